"""Shapley values: what each feature adds to a row's margin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..made_once import made_once

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float

    from ...explain.shapley.values import ShapleyPrepared
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
        n_threads
            Threads to use; by default all that the process may run on.

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

    @made_once
    def _shapley(self: DecisionMachine) -> ShapleyPrepared:
        """What Shapley values need, kept for the next time."""
        from ...explain.shapley.values import ShapleyPrepared

        return ShapleyPrepared()

    def shap_values(
        self: DecisionMachine,
        X: Any,
        background: Any = None,
        *,
        n_threads: int | None = None,
        dtype: Any = "float64",
        output: str = "margin",
    ) -> Float[np.ndarray, "m n ..."]:
        """What each feature adds to each row's margin: exact Shapley values.

        With `shap_base`, the values of a row add up to its margin.

        Parameters
        ----------
        X
            Rows as for `predict`.
        background
            Rows to compare with: a feature that is not known is that of a background row. By
            default the trees' covers decide, as in the libraries' own contributions: a test on an
            unknown feature sends a row to both sides by their shares of the training weight.
        n_threads
            Threads to use; by default all that the process may run on.
        dtype
            "float64", or "float32": then terms are computed in float32, about twice as fast.
            Values against a background are always computed in float64.
        output
            "margin", or "probability": values of the response, which need a background.

        Returns
        -------
        array
            (m, n_features), or (m, n_features, outputs) where the machine has several outputs, as
            shap shapes them.

        Examples
        --------
        >>> import numpy as np
        >>> import decision_machines as dm
        >>> rows = [[2, 1, 2, 2], [0, 0, 0, 0], [9, 9, 9, 9]]
        >>> machine = dm.figure_one().with_cover(rows)
        >>> phi = machine.shap_values(rows)
        >>> bool(np.allclose(phi.sum(axis=1) + machine.shap_base(), machine.margin(rows)[:, 0]))
        True
        """
        from ...explain.shapley.values import squeezed

        found, _ = self._shapley.values(
            self, X, background, dtype=dtype, pairs=False, n_threads=n_threads, output=output
        )
        return squeezed(self, found)

    def shap_interaction_values(
        self: DecisionMachine,
        X: Any,
        background: Any = None,
        *,
        n_threads: int | None = None,
        dtype: Any = "float64",
    ) -> Float[np.ndarray, "m n n ..."]:
        """What each pair of features adds to each row's margin; parameters as of `shap_values`.

        Returns
        -------
        array
            (m, n_features, n_features), or (m, n_features, n_features, outputs). Symmetric; half
            of an interaction stands on each side of the diagonal, and a row of the matrix adds up
            to the feature's value.
        """
        from ...explain.shapley.values import squeezed

        _, found = self._shapley.values(
            self, X, background, dtype=dtype, pairs=True, n_threads=n_threads
        )
        assert found is not None
        return squeezed(self, found)

    def banzhaf_values(
        self: DecisionMachine, X: Any, *, n_threads: int | None = None, dtype: Any = "float64"
    ) -> Float[np.ndarray, "m n ..."]:
        """What each feature adds on average over all sets of other features: Banzhaf values.

        Every set counts alike, where in Shapley values every size of sets does. They go by covers,
        and need not add up to the margin. Parameters and shapes are as of `shap_values`.

        Examples
        --------
        >>> import decision_machines as dm
        >>> rows = [[2, 1, 2, 2], [0, 0, 0, 0], [9, 9, 9, 9]]
        >>> dm.figure_one().with_cover(rows).banzhaf_values(rows).shape
        (3, 4)
        """
        from ...explain.shapley.values import squeezed

        found, _ = self._shapley.values(
            self, X, None, dtype=dtype, pairs=False, n_threads=n_threads, point=0.5
        )
        return squeezed(self, found)

    def first_order_values(
        self: DecisionMachine, X: Any, *, n_threads: int | None = None, dtype: Any = "float64"
    ) -> Float[np.ndarray, "m n ..."]:
        """What each feature adds by itself: the mean margin where it alone is known, less the base.

        By covers. Parameters and shapes are as of `shap_values`.

        Examples
        --------
        >>> import decision_machines as dm
        >>> rows = [[2, 1, 2, 2], [0, 0, 0, 0], [9, 9, 9, 9]]
        >>> dm.figure_one().with_cover(rows).first_order_values(rows).shape
        (3, 4)
        """
        from ...explain.shapley.values import squeezed

        found, _ = self._shapley.values(
            self, X, None, dtype=dtype, pairs=False, n_threads=n_threads, point=0.0
        )
        return squeezed(self, found)

    def shap_base(self: DecisionMachine, background: Any = None, *, output: str = "margin") -> Any:
        """What the values of `shap_values` add to: the mean margin, with no feature known.

        Parameters
        ----------
        background, output
            As given to `shap_values`.

        Returns
        -------
        float or array
            A number, or (outputs,) where the machine has several outputs.
        """
        from ...explain.shapley.values import shap_base

        found = shap_base(self, background, output)
        return float(found[0]) if len(found) == 1 else found
