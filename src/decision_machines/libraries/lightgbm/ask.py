"""Asking LightGBM."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..oracles import Oracle

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float, Int

    from ...machine import Output


class LightGBMOracle(Oracle):
    """One iteration at a time."""

    @cached_property
    def booster(self) -> Any:
        return self.model.booster_ if hasattr(self.model, "booster_") else self.model

    @property
    def n_iterations(self) -> int:
        best = self.booster.best_iteration
        found: int = best if best > 0 else self.booster.current_iteration()
        return found

    @property
    def n_trees(self) -> int:
        found: int = self.n_iterations * self.booster.num_model_per_iteration()
        return found

    def _ask(
        self, X: Float[np.ndarray, "m n"], start: int = 0, n: int | None = None, **kind: bool
    ) -> np.ndarray:
        found: np.ndarray = self.booster.predict(
            X,
            start_iteration=start,
            num_iteration=self.n_iterations if n is None else n,
            validate_features=False,
            **kind,
        )
        return found

    def leaves(self, X: Float[np.ndarray, "m n"], tree: int) -> Int[np.ndarray, "m"]:
        iteration, within = divmod(tree, self.booster.num_model_per_iteration())
        found = self._ask(X, iteration, 1, pred_leaf=True)
        return np.asarray(found).reshape(len(X), -1)[:, within].astype(np.int64)

    def tree_margin(self, X: Float[np.ndarray, "m n"], tree: int) -> Float[np.ndarray, "m k"]:
        iteration, within = divmod(tree, self.booster.num_model_per_iteration())
        found = np.asarray(self._ask(X, iteration, 1, raw_score=True)).reshape(len(X), -1)
        alone = np.zeros_like(found)
        alone[:, within] = found[:, within]
        return alone

    def output_of_tree(self, output: Output) -> Output:
        return replace(output, divisor=1.0)

    def margin(self, X: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "m k"]:
        return self._ask(X, raw_score=True)


def predictor(model: Any) -> Callable[[Any, int], Any]:
    """LightGBM's `predict` as its users call it."""
    return lambda X, threads: model.predict(X, num_threads=threads, validate_features=False)
