"""Thresholds over columns of float32, for libraries that compare x as it comes, in float64."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

    from ..machine import DecisionMachine


def double_thresholds(machine: DecisionMachine) -> Float[np.ndarray, "J"]:
    """(J,) in float64; over float32 columns, the largest x that a cast does not take above t."""
    return largest_doubles(machine.t)


def double_range(low: float, high: float, dtype: np.dtype[Any]) -> tuple[float, float]:
    """The least and the largest x in float64 that a cast to `dtype` takes to low … high.

    Examples
    --------
    >>> double_range(1.0, 1.0, np.dtype("float32"))
    (0.9999999701976776, 1.0000000596046448)
    """
    if dtype == np.float64:
        return low, high
    below = np.nextafter(np.float32(low), np.float32(-np.inf))
    under, last = largest_doubles(np.array([below, high], np.float32)).tolist()
    return float(np.nextafter(under, np.inf)), last


def largest_doubles(t: Float[np.ndarray, "J"]) -> Float[np.ndarray, "J"]:
    """For each t, the largest x in float64 that a cast to the dtype of t does not take above it."""
    if t.dtype == np.float64:
        return t
    with np.errstate(over="ignore"):
        above = np.nextafter(t, np.float32(np.inf))
    low, high = t.astype(np.float64), above.astype(np.float64)
    # The number after the largest float32 would be 2**128; halfway there a cast gives infinity.
    largest, limit = float(np.finfo(np.float32).max), 2.0**128
    low = np.where(np.isneginf(low), -limit, low)
    high = np.where(np.isposinf(high), limit, np.where(np.isneginf(high), -limit, high))
    with np.errstate(invalid="ignore"):
        middle = low + (high - low) / 2
    is_even = t.view(np.int32) % 2 == 0
    # A tie goes to the even one of the two.
    below = np.where(is_even, middle, np.nextafter(middle, -np.inf))
    below = np.where(t == largest, np.nextafter(middle, -np.inf), below)
    below = np.where(t == -np.inf, middle, below)
    return np.where(np.isposinf(t), np.inf, below)
