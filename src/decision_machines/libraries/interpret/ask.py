"""Asking InterpretML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..oracles import Oracle, labels_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float


class InterpretOracle(Oracle):
    """One term at a time, and the whole sum."""

    compared = "terms and margins"

    def _table(self, X: Float[np.ndarray, "m n"]) -> Any:
        import pandas

        names = self.machine.columns.names
        assert names is not None
        table = pandas.DataFrame(X, columns=list(names))
        for feature, known in self.labels.items():
            table[names[feature]] = pandas.Series(
                [None if v is None else str(v) for v in labels_of(X[:, feature], known)],
                dtype=object,
            )
        return table

    @property
    def n_trees(self) -> int:
        return len(self.model.term_scores_)

    def tree_margin(self, X: Float[np.ndarray, "m n"], tree: int) -> Float[np.ndarray, "m k"]:
        found = np.asarray(self.model.eval_terms(self._table(X)))[:, tree]
        return found.reshape(len(X), -1)

    def margin(self, X: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "m k"]:
        if hasattr(self.model, "decision_function"):
            return np.asarray(self.model.decision_function(self._table(X)))
        return np.asarray(self.model._predict_score(self._table(X)))


def predictor(model: Any) -> Callable[[Any, int], Any]:
    """InterpretML's `predict`, on one thread whatever is asked for."""
    return lambda X, threads: model.predict(X)
