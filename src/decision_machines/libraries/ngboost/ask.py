"""Asking NGBoost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..sklearn.ask import TreesOracle

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float


class NGBoostOracle(TreesOracle):
    """Trees of every stage, one for each parameter; some see a part of the features."""

    takes_infinity = False

    def trees(self) -> list[Any]:
        return [tree.tree_ for stage in self.model.base_models for tree in stage]

    def subset(self, X: Float[np.ndarray, "m n"], tree: int) -> Float[np.ndarray, "m s"]:
        columns = self.model.col_idxs[tree // len(self.model.base_models[0])]
        return X[:, columns]

    def tree_margin(self, X: Float[np.ndarray, "m n"], tree: int) -> None:
        """None: what a tree's value is multiplied by, only the whole model tells."""
        return None

    def margin(self, X: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "m k"]:
        return np.asarray(self.model.pred_param(X))


def answers(model: Any) -> dict[str, Callable[[Any], Any]]:
    """What an assembly of the model answers, as the model does."""
    found: dict[str, Callable[[Any], Any]] = {"predict": model.predict}
    if hasattr(model, "predict_proba"):
        found["predict_proba"] = model.predict_proba
    return found
