"""What is known of a step: the columns that it reads, what it refuses, where it is not monotone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable


class Handler:
    """A family of steps; every output column is a function of one input column.

    Between the `boundaries` of an input column, every output of it never falls or never rises.
    """

    is_rounded: bool = False
    """Whether rounding may undo the order of neighbouring numbers (powers, logarithms)."""
    computes: bool = True
    """Whether it does arithmetic, whose last bits follow the dtype of its input."""

    def sources(self, step: Any, n: int) -> list[int]:
        """The input column of each output column, of n input columns."""
        return list(range(n))

    def labels(self, step: Any, i: int) -> Iterable[Any] | None:
        """The labels that it knows of input column i; None where it takes numbers there."""
        return None

    def boundaries(self, step: Any, i: int) -> np.ndarray:
        """Numbers of input column i up to which, and above which, its outputs are monotone."""
        return np.empty(0)

    def refuses(self, step: Any, i: int, column: np.ndarray) -> np.ndarray:
        """Which entries of input column i it refuses."""
        return refuses_infinite(column) if self.takes_nan(step) else refuses_all_but_finite(column)

    def takes_nan(self, step: Any) -> bool:
        return True

    def benign(self, step: Any, i: int) -> Any:
        """An entry of input column i that it takes."""
        return 1.0


def refuses_infinite(column: np.ndarray) -> np.ndarray:
    """Infinite numbers, which scikit-learn refuses nearly everywhere."""
    if column.dtype.kind == "f":
        return np.asarray(np.isinf(column))
    if column.dtype == object:
        return np.array([isinstance(v, float) and abs(v) == np.inf for v in column], bool)
    return np.zeros(len(column), bool)


def refuses_all_but_finite(column: np.ndarray) -> np.ndarray:
    """Infinite numbers and NaN."""
    if column.dtype.kind == "f":
        return np.asarray(~np.isfinite(column))
    is_missing = np.array([v is None or v != v for v in column.tolist()], bool)
    return np.asarray(is_missing | refuses_infinite(column))


def around(points: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
    """Every number and the one before it: a function that treats them apart is monotone between."""
    points = np.unique(np.asarray(points, dtype))
    below = np.nextafter(points, np.array(-np.inf, points.dtype))
    return np.unique(np.concatenate([points, below]).astype(np.float64))
