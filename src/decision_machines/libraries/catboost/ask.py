"""Asking CatBoost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..oracles import Oracle, labels_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float, Int


class CatBoostOracle(Oracle):
    """One tree at a time; category features are passed as the labels that our codes stand for."""

    takes_no_label = False
    keeps_labels = False

    @property
    def n_trees(self) -> int:
        found: int = self.model.tree_count_
        return found

    def _pool(self, X: Float[np.ndarray, "m n"]) -> Any:
        import catboost

        categorical = list(self.model.get_cat_feature_indices())
        if not categorical:
            return catboost.Pool(X)
        import pandas

        names = self.model.feature_names_
        table = pandas.DataFrame(X, columns=names)
        for feature in categorical:
            table[names[feature]] = labels_of(X[:, feature], self.labels.get(feature, {}))
        return catboost.Pool(table, cat_features=categorical)

    def leaves(self, X: Float[np.ndarray, "m n"], tree: int) -> Int[np.ndarray, "m"]:
        found = self.model.calc_leaf_indexes(self._pool(X), ntree_start=tree, ntree_end=tree + 1)
        return np.asarray(found).reshape(len(X), -1)[:, 0].astype(np.int64)

    def margin(self, X: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "m k"]:
        import catboost

        # The base class's own: a ranker's `predict` does not let itself be asked for raw scores.
        predict = catboost.CatBoost.predict
        found: np.ndarray = predict(
            self.model, self._pool(X), prediction_type="RawFormulaVal", thread_count=1
        )
        return found


def predictor(model: Any) -> Callable[[Any, int], Any]:
    """CatBoost's `predict` as its users call it."""

    def predict(X: Any, threads: int) -> Any:
        if hasattr(X, "columns"):
            categorical = [X.columns[f] for f in model.get_cat_feature_indices()]
            X = X.astype(dict.fromkeys(categorical, str))
        return model.predict(X, thread_count=threads)

    return predict
