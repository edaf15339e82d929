"""Asking Treelite's own GTIL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..oracles import Oracle

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float, Int


class TreeliteOracle(Oracle):
    """Leaves of all trees at once, and what `predict` gives, compared with the response."""

    compared = "leaves and responses"

    @property
    def n_trees(self) -> int:
        found: int = self.model.num_tree
        return found

    def leaves(self, X: Float[np.ndarray, "m n"], tree: int) -> Int[np.ndarray, "m"]:
        import treelite

        found = treelite.gtil.predict_leaf(self.model, self._rows(X), nthread=1)
        return np.asarray(found)[:, tree].astype(np.int64)

    def _rows(self, X: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "m n"]:
        with np.errstate(over="ignore"):
            return X.astype(self.machine.columns.dtype)

    def whole(self, X: Float[np.ndarray, "m n"]) -> tuple[str, np.ndarray, np.ndarray]:
        import treelite

        ours = self.machine.response(X)
        theirs = treelite.gtil.predict(self.model, self._rows(X), nthread=1)
        return "response", ours, np.asarray(theirs).reshape(ours.shape)


def predictor(model: Any) -> Callable[[Any, int], Any]:
    """GTIL's `predict`."""
    import treelite

    return lambda X, threads: treelite.gtil.predict(model, np.asarray(X), nthread=threads)
