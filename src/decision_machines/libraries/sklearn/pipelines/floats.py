"""The floating-point numbers of a dtype in their order, each with a whole number for a key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@dataclass(frozen=True)
class Ordered:
    """Neighbouring numbers have neighbouring keys; both zeros have the key 0."""

    dtype: np.dtype[Any]

    def keys(self, x: Float[np.ndarray, "m"]) -> Int[np.ndarray, "m"]:
        """The keys of numbers, which must not be NaN.

        Examples
        --------
        >>> doubles = Ordered(np.dtype(np.float64))
        >>> doubles.keys(np.array([0.0, 5e-324, -5e-324]))
        array([ 0,  1, -1])
        """
        if self.dtype == np.float32:
            bits = np.asarray(x, np.float32).view(np.int32).astype(np.int64)
            most = np.int64(2**31 - 1)
        else:
            bits = np.asarray(x, np.float64).view(np.int64)
            most = np.int64(2**63 - 1)
        return np.where(bits < 0, -(bits & most), bits)

    def values(self, keys: Int[np.ndarray, "m"]) -> Float[np.ndarray, "m"]:
        """The numbers of keys, in the dtype."""
        keys = np.asarray(keys, np.int64)
        bits = np.abs(keys)
        if self.dtype == np.float32:
            x = bits.astype(np.int32).view(np.float32)
        else:
            x = bits.view(np.float64)
        return np.asarray(np.where(keys < 0, -x, x).astype(self.dtype))

    @property
    def lowest(self) -> int:
        """The key of minus infinity."""
        return int(self.keys(np.array([-np.inf]))[0])

    @property
    def highest(self) -> int:
        return -self.lowest


def between(
    low: Int[np.ndarray, "m"], high: Int[np.ndarray, "m"], n: int
) -> Int[np.ndarray, "m n"]:
    """n ascending keys between two, evenly spread; the last again where there are fewer.

    Examples
    --------
    >>> between(np.array([0, 0]), np.array([8, 3]), 3).tolist()
    [[2, 4, 6], [1, 2, 2]]
    """
    # The difference of two keys may not fit in 63 bits.
    width = high.astype(np.uint64) - low.astype(np.uint64)
    step = np.maximum(width // np.uint64(n + 1), np.uint64(1))
    offset = step[:, None] * np.arange(1, n + 1, dtype=np.uint64)
    offset = np.minimum(offset, width[:, None] - np.uint64(1))
    return np.asarray((low.astype(np.uint64)[:, None] + offset).astype(np.int64))
