"""Predicting: what the run room does with a machine."""

from __future__ import annotations

from .room import room


class RunVerbs:
    """Predicting: what the run room does with a machine."""

    def predict(self, X, *, n_threads: int | None = None, engine: str = "auto"):
        """What the source's `predict` answers for the rows of X: labels, or values.

        Parameters
        ----------
        X
            (m, n_features) NumPy array, SciPy sparse matrix, or a pandas, polars or Arrow table,
            whose columns are matched by name where the model has names.
        n_threads
            Threads to use; by default all that the process may run on.
        engine
            "auto" (the native engine wherever it can), "walk" (level by level down the tree), or
            "reference" (the paper's Eq. `tree` as dense matrix products; slow, obvious).
        """
        return room("run").predict(self, X, n_threads=n_threads, engine=engine)

    def predict_proba(self, X, *, n_threads: int | None = None, engine: str = "auto"):
        """What the source's `predict_proba` answers: (m, classes), a list of them per target."""
        return room("run").predict_proba(self, X, n_threads=n_threads, engine=engine)

    def margin(self, X, *, n_threads: int | None = None, engine: str = "auto"):
        """(m, k) sums of leaf values before the link, in the source's own dtype and order."""
        return room("run").margin(self, X, n_threads=n_threads, engine=engine)

    def response(self, X, *, n_threads: int | None = None, engine: str = "auto"):
        """(m, r) margins through the link: probabilities, rates, scores, before any decision."""
        return room("run").response(self, X, n_threads=n_threads, engine=engine)

    def features(self, X, *, dtype=None):
        """(m, n_features) X as the machine reads it: numbers, labels as codes, nothing as NaN.

        Parameters
        ----------
        dtype
            Of the result; the columns' own by default, to which every x is cast.
        """
        return room("run").features(self, X, dtype=dtype)

    def apply(self, X, *, n_threads: int | None = None, engine: str = "auto"):
        """(m, n_trees) exit leaf of every tree, counted from 0 within the tree, left to right."""
        return room("run").apply(self, X, n_threads=n_threads, engine=engine)

    def source_leaves(self, X, *, n_threads: int | None = None, engine: str = "auto"):
        """(m, n_trees) exit leaf of every tree, under the number that the source gives it."""
        return room("run").source_leaves(self, X, n_threads=n_threads, engine=engine)

    def decide(self, margins):
        """What `predict` answers where the margins are these, (m, k): link, then decision.

        Examples
        --------
        >>> import decision_machines as dm
        >>> dm.figure_one().decide([[5.0]])
        array([5.])
        """
        return room("run").decide(self, room("run").given_margins(self, margins))

    def respond(self, margins):
        """What `response` answers where the margins are these, (m, k): the link alone."""
        return room("run").respond(self, room("run").given_margins(self, margins))
