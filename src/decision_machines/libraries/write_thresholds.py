"""Thresholds over columns of float32, for libraries that compare x as it comes, in float64."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

    from ..machine import DecisionMachine


def double_thresholds(machine: DecisionMachine) -> Float[np.ndarray, "J"]:
    """(J,) in float64; over float32 columns, the largest x that a cast does not take above t."""
    t = machine.t
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
