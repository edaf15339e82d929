"""Asking XGBoost."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..oracles import Oracle

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float, Int

    from ...machine import Output


class XGBoostOracle(Oracle):
    """One boosting round at a time; DMatrix refuses infinity."""

    takes_infinity = False

    @cached_property
    def booster(self) -> Any:
        return self.model.get_booster() if hasattr(self.model, "get_booster") else self.model

    @cached_property
    def trees_per_round(self) -> int:
        return len(self.booster[0:1].get_dump()) if self.booster.num_boosted_rounds() else 1

    @property
    def n_rounds(self) -> int:
        best = (
            getattr(self.model, "best_iteration", None) if self.booster is not self.model else None
        )
        found: int = self.booster.num_boosted_rounds() if best is None else best + 1
        return found

    @property
    def n_trees(self) -> int:
        return self.n_rounds * self.trees_per_round

    def _matrix(self, X: Float[np.ndarray, "m n"]) -> Any:
        import xgboost

        missing = getattr(self.model, "missing", None)
        return xgboost.DMatrix(
            X,
            feature_names=self.booster.feature_names,
            feature_types=self.booster.feature_types,
            missing=np.nan if missing is None else missing,
        )

    def leaves(self, X: Float[np.ndarray, "m n"], tree: int) -> Int[np.ndarray, "m"]:
        round_, within = divmod(tree, self.trees_per_round)
        found = self.booster[round_ : round_ + 1].predict(self._matrix(X), pred_leaf=True)
        exits: np.ndarray = found.reshape(len(X), -1)[:, within].astype(np.int64)
        return exits

    def tree_margin(
        self, X: Float[np.ndarray, "m n"], tree: int
    ) -> Float[np.ndarray, "m k"] | None:
        """One round's margin; None where a round holds several trees for the same output."""
        round_, within = divmod(tree, self.trees_per_round)
        n_outputs = self.machine.n_outputs
        if self.trees_per_round not in (1, n_outputs):
            return None
        found: np.ndarray = self.booster.predict(
            self._matrix(X), output_margin=True, iteration_range=(round_, round_ + 1)
        ).reshape(len(X), n_outputs)
        if self.trees_per_round == 1:
            return found
        alone = np.broadcast_to(self.machine.output.base, found.shape).copy()
        alone[:, within] = found[:, within]
        return alone

    def output_of_tree(self, output: Output) -> Output:
        """A round of XGBoost starts at the base score too."""
        return output

    def margin(self, X: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "m k"]:
        found: np.ndarray = self.booster.predict(
            self._matrix(X), output_margin=True, iteration_range=(0, self.n_rounds)
        )
        return found


def predictor(model: Any) -> Callable[[Any, int], Any]:
    """XGBoost's `predict` as its users call it."""
    if hasattr(model, "get_booster"):
        return lambda X, threads: model.set_params(n_jobs=threads).predict(X)
    import xgboost

    def predict(X: Any, threads: int) -> Any:
        model.set_param({"nthread": threads})
        if hasattr(X, "columns") or "c" in (model.feature_types or ()):
            names = {"feature_names": model.feature_names, "feature_types": model.feature_types}
            options = {"enable_categorical": True} if hasattr(X, "columns") else names
            return model.predict(xgboost.DMatrix(X, nthread=threads, **options))
        return model.inplace_predict(X, validate_features=False)

    return predict
