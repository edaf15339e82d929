"""Asking YDF."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..oracles import Oracle, labels_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float, Int


class YDFOracle(Oracle):
    """Leaves of all trees at once, and what `predict` gives, which is compared with the response.

    Truth values are given as such, and labels as the text, or the integer, that a code stands for.
    """

    compared = "leaves and responses"

    def _table(self, X: Float[np.ndarray, "m n"]) -> dict[str, np.ndarray]:
        columns, names = {}, self.machine.columns.names
        truths = {f.name for f in self.model.input_features() if f.semantic.name == "BOOLEAN"}
        assert names is not None
        for feature, name in enumerate(names):
            x = X[:, feature]
            if feature in self.labels:
                found = np.empty(len(x), object)
                found[:] = ["" if v is None else v for v in labels_of(x, self.labels[feature])]
                columns[name] = found
            else:
                x = x.astype(np.float32)
                columns[name] = x >= np.float32(0.5) if name in truths else x
        return columns

    def askable(self, X: Float[np.ndarray, "m n"]) -> np.ndarray:
        """YDF takes no missing truth value."""
        truths = {f.name for f in self.model.input_features() if f.semantic.name == "BOOLEAN"}
        names = self.machine.columns.names or ()
        at = [i for i, name in enumerate(names) if name in truths]
        is_missing: np.ndarray = np.any(np.isnan(X[:, at]), axis=1)
        return ~is_missing

    def _with_targets(self, X: Float[np.ndarray, "m n"]) -> dict[str, np.ndarray]:
        """Also the columns that only training reads, which `predict_leaves` insists on."""
        table = self._table(X)
        for column in self.model.data_spec().columns:
            if column.name not in table:
                is_number = column.HasField("numerical")
                table[column.name] = np.full(
                    len(X), 0.0 if is_number else "0", np.float32 if is_number else object
                )
        return table

    @property
    def n_trees(self) -> int:
        found: int = self.model.num_trees()
        return found

    def leaves(self, X: Float[np.ndarray, "m n"], tree: int) -> Int[np.ndarray, "m"]:
        if not len(X):
            return np.empty(0, np.int64)
        return np.asarray(self.model.predict_leaves(self._with_targets(X)))[:, tree].astype(
            np.int64
        )

    def whole(self, X: Float[np.ndarray, "m n"]) -> tuple[str, np.ndarray, np.ndarray]:
        ours = self.machine.response(X)
        slow = not self.model.list_compatible_engines()
        theirs = self.model.predict(self._table(X), use_slow_engine=slow, num_threads=1)
        return "response", ours, np.asarray(theirs).reshape(ours.shape)


def predictor(model: Any) -> Callable[[Any, int], Any]:
    """YDF's `predict` as its users call it; rows of an array become columns by name."""

    def predict(X: Any, threads: int) -> Any:
        if not hasattr(X, "columns"):
            X = dict(zip(model.input_feature_names(), np.asarray(X).T, strict=True))
        return model.predict(X, num_threads=threads)

    return predict
