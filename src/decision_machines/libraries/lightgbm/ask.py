"""Asking LightGBM."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..oracles import Oracle

if TYPE_CHECKING:
    from collections.abc import Callable


class LightGBMOracle(Oracle):
    """One iteration at a time."""

    @cached_property
    def booster(self):
        return self.model.booster_ if hasattr(self.model, "booster_") else self.model

    @property
    def n_iterations(self) -> int:
        best = self.booster.best_iteration
        return best if best > 0 else self.booster.current_iteration()

    @property
    def n_trees(self) -> int:
        return self.n_iterations * self.booster.num_model_per_iteration()

    def _ask(self, X, start=0, n=None, **kind):
        return self.booster.predict(
            X,
            start_iteration=start,
            num_iteration=self.n_iterations if n is None else n,
            validate_features=False,
            **kind,
        )

    def leaves(self, X, tree):
        iteration, within = divmod(tree, self.booster.num_model_per_iteration())
        found = self._ask(X, iteration, 1, pred_leaf=True)
        return np.asarray(found).reshape(len(X), -1)[:, within].astype(np.int64)

    def tree_margin(self, X, tree):
        iteration, within = divmod(tree, self.booster.num_model_per_iteration())
        found = np.asarray(self._ask(X, iteration, 1, raw_score=True)).reshape(len(X), -1)
        alone = np.zeros_like(found)
        alone[:, within] = found[:, within]
        return alone

    def output_of_tree(self, output):
        return replace(output, divisor=1.0)

    def margin(self, X):
        return self._ask(X, raw_score=True)


def predictor(model: Any) -> Callable[[Any, int], Any]:
    """LightGBM's `predict` as its users call it."""
    return lambda X, threads: model.predict(X, num_threads=threads, validate_features=False)
