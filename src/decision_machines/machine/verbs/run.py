"""Predicting: what the run room does with a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..made_once import made_once

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float, Int, Num

    from ...run.prepared import Prepared
    from ...run.row_function import RowFunction
    from ..machine import DecisionMachine


class RunVerbs:
    """Predicting: what the run room does with a machine."""

    @made_once
    def _prepared(self: DecisionMachine) -> Prepared:
        """What predicting needs, kept for the next time: an import costs as much as a row."""
        from ...run.prepared import Prepared

        return Prepared()

    def predict(
        self: DecisionMachine, X: Any, *, n_threads: int | None = None, engine: str = "auto"
    ) -> np.ndarray:
        """What the source's `predict` gives for the rows of X: labels, or values.

        Parameters
        ----------
        X
            (m, n_features) NumPy array, SciPy sparse matrix, or a pandas, polars or Arrow table,
            whose columns are matched by name where the model has names.
        n_threads
            Threads to use; by default all that the process may run on.
        engine
            "auto": the native engine, and the walk for machines that it cannot run. "native": the
            native engine, or an error that says why it cannot run the machine. "walk": level by
            level down the trees, in NumPy. "reference": the paper's Eq. `tree` as dense matrix
            products; slow, obvious. All give the same bits.

        Examples
        --------
        >>> import decision_machines as dm
        >>> dm.figure_one().predict([[2, 1, 2, 2]], engine="native")
        array([5.])
        """
        return self._prepared.predict(self, X, n_threads=n_threads, engine=engine)

    def predict_proba(
        self: DecisionMachine, X: Any, *, n_threads: int | None = None, engine: str = "auto"
    ) -> Float[np.ndarray, "m c"] | list[Float[np.ndarray, "m c"]]:
        """What the source's `predict_proba` gives: (m, classes), or a list of them per target.

        Parameters are those of `predict`.
        """
        return self._prepared.predict_proba(self, X, n_threads=n_threads, engine=engine)

    def margin(
        self: DecisionMachine, X: Any, *, n_threads: int | None = None, engine: str = "auto"
    ) -> Float[np.ndarray, "m k"]:
        """(m, k) sums of leaf values before the link, in the source's own dtype and order.

        Parameters are those of `predict`.
        """
        return self._prepared.margin(self, X, n_threads=n_threads, engine=engine)

    def response(
        self: DecisionMachine, X: Any, *, n_threads: int | None = None, engine: str = "auto"
    ) -> Float[np.ndarray, "m r"]:
        """(m, r) margins through the link: probabilities, rates, scores, before any decision.

        Parameters are those of `predict`.
        """
        return self._prepared.response(self, X, n_threads=n_threads, engine=engine)

    def apply(
        self: DecisionMachine, X: Any, *, n_threads: int | None = None, engine: str = "auto"
    ) -> Int[np.ndarray, "m T"]:
        """(m, n_trees) exit leaf of every tree, counted from 0 within the tree, left to right.

        Parameters are those of `predict`.
        """
        return self._prepared.apply(self, X, n_threads=n_threads, engine=engine)

    def row_function(self: DecisionMachine, outputs: str = "predict") -> RowFunction:
        """A function of one row, for services: it answers in microseconds, labels included.

        Parameters
        ----------
        outputs
            "predict", "predict_proba", "response", "margin" or "apply": what the function gives is
            what that method gives for one row, without the axis of rows.

        Returns
        -------
        RowFunction
            Takes a mapping from the features' names to values, or a list, tuple or array of values
            in the order of the features. Labels are given as they are; None and NaN are missing
            values. All features must be there, and no others.

        Examples
        --------
        >>> import decision_machines as dm
        >>> answer = dm.figure_one().row_function()
        >>> float(answer([2, 1, 2, 2]))
        5.0
        """
        from ...run.row_function import RowFunction

        return RowFunction(self, outputs)

    def source_leaves(
        self: DecisionMachine, X: Any, *, n_threads: int | None = None, engine: str = "auto"
    ) -> Int[np.ndarray, "m T"]:
        """(m, n_trees) exit leaf of every tree, under the number that the source gives it.

        Parameters are those of `predict`.
        """
        return self._prepared.source_leaves(self, X, n_threads=n_threads, engine=engine)

    def features(
        self: DecisionMachine, X: Any, *, dtype: Any = None
    ) -> Num[np.ndarray, "m n_features"]:
        """(m, n_features) X as the machine reads it: numbers, labels as codes, nothing as NaN.

        Parameters
        ----------
        dtype
            Of the result; the columns' own by default, to which every x is cast.
        """
        from ...run.inputs.features import features

        return features(self, X, dtype=dtype)

    def decide(self: DecisionMachine, margins: Any) -> np.ndarray:
        """What `predict` gives where the margins are these, (m, k): link, then decision.

        Examples
        --------
        >>> import decision_machines as dm
        >>> dm.figure_one().decide([[5.0]])
        array([5.])
        """
        from ...run.decide import decide, given_margins

        return decide(self, given_margins(self, margins))

    def respond(self: DecisionMachine, margins: Any) -> Float[np.ndarray, "m r"]:
        """What `response` gives where the margins are these, (m, k): the link alone."""
        from ...run.decide import given_margins, respond

        return respond(self, given_margins(self, margins))
