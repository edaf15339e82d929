"""Thresholds of every library as thresholds of one kind of test: left where z ≤ t."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float


def at_most(t: Float[np.ndarray, "J"], dtype: Any) -> Float[np.ndarray, "J"]:
    """The largest value of `dtype` that is not above t: z ≤ t and z ≤ at_most(t) are one test.

    Examples
    --------
    >>> at_most(np.array([0.1]), np.float32) <= 0.1
    array([ True])
    """
    t = np.asarray(t, np.float64)
    with np.errstate(over="ignore"):
        rounded = t.astype(dtype)
    below = np.nextafter(rounded, np.array(-np.inf, rounded.dtype))
    return np.where(rounded.astype(np.float64) > t, below, rounded)


def strictly_below(t: Float[np.ndarray, "J"]) -> Float[np.ndarray, "J"]:
    """The value just before t in its own dtype: z < t is z ≤ strictly_below(t).

    Examples
    --------
    >>> strictly_below(np.float32([1.0])) < 1.0
    array([ True])
    """
    t = np.asarray(t)
    found: np.ndarray = np.nextafter(t, np.array(-np.inf, t.dtype))
    return found
