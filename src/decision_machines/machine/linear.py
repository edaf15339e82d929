"""Leaves whose value is a linear function of the features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InvariantError
from .arrays import Part, frozen

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@dataclass(frozen=True, eq=False)
class LinearLeaves(Part):
    """Leaf i answers intercept[i] + the sum of coefficient · x, added term by term in this order.

    Where any x that the leaf reads is NaN, it answers its row of V instead. The features are
    raw features x (cast to the columns' dtype), not columns z. Paper: cites
    `loh2011classification`.

    Parameters
    ----------
    start
        Terms of leaf i are start[i] to start[i + 1]. A leaf without terms answers its intercept.
    """

    intercept: Float[np.ndarray, "L k"]
    start: Int[np.ndarray, "L+1"]
    feature: Int[np.ndarray, "m"]
    coefficient: Float[np.ndarray, "m k"]

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "start", frozen(self.start, np.int64, "linear.start"))
        set_(self, "feature", frozen(self.feature, np.int32, "linear.feature"))
        for name in ("intercept", "coefficient"):
            array = np.asarray(getattr(self, name))
            set_(self, name, frozen(array, array.dtype, f"linear.{name}"))
        terms = len(self.feature)
        if (
            self.intercept.ndim != 2
            or self.coefficient.shape != (terms, self.intercept.shape[1])
            or self.start.shape != (len(self.intercept) + 1,)
            or self.start[0] != 0
            or self.start[-1] != terms
            or np.any(np.diff(self.start) < 0)
            or np.any(self.feature < 0)
        ):
            raise InvariantError(
                "linear leaves",
                "intercepts, starts, features and coefficients do not fit together",
                "give an intercept for each leaf and terms in the order of the leaves",
            )

    def keep(self, leaves: Int[np.ndarray, "l"]) -> LinearLeaves:
        """The functions of these leaves alone."""
        from .trees import ranges

        terms = ranges(self.start, leaves)
        sizes = np.diff(self.start)[leaves]
        return LinearLeaves(
            self.intercept[leaves],
            np.concatenate([[0], np.cumsum(sizes)]),
            self.feature[terms],
            self.coefficient[terms],
        )
