"""Shapley values: what each feature adds to a row's margin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..machine import DecisionMachine


class ShapleyVerbs:
    """Shapley values: what each feature adds to a row's margin."""

    def with_cover(
        self: DecisionMachine,
        X: Any,
        sample_weight: Any = None,
        *,
        n_threads: int | None = None,
    ) -> DecisionMachine:
        """The same machine with covers counted on rows X instead of those that it has.

        Parameters
        ----------
        X
            Rows as for `predict`, best those that the model was trained on.
        sample_weight
            A weight for each row; 1 by default.

        Returns
        -------
        DecisionMachine
            Whose `cover` says how many rows, or how much weight, reached each test and leaf.

        Examples
        --------
        >>> import decision_machines as dm
        >>> machine = dm.figure_one().with_cover([[2, 1, 2, 2], [0, 0, 0, 0], [9, 9, 9, 9]])
        >>> machine.cover.tests[0].item()
        3.0
        """
        from ...explain.shapley.covers import with_cover

        return with_cover(self, X, sample_weight, n_threads)
