"""XGBoost's links: float32 results of the C library's float32 exponential, which it calls.

NumPy's own float32 exponential rounds otherwise. SciPy's expit is the C library's, and so is
NumPy's complex exponential up to 88; above, `exp` may differ from XGBoost by 1 unit in the last
place. All else is equal to the bit where XGBoost, NumPy and SciPy share a C library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float


def sigmoid(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """The sigmoid, held at -88.7, where exp would overflow soon after."""
    from scipy.special import expit

    return expit(np.maximum(margin, np.float32(-88.7)))


def exp(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    with np.errstate(all="ignore"):
        found = np.exp(margin.astype(np.complex64)).real
        is_large = margin > 88
        if np.any(is_large):
            found[is_large] = rounded_exp(margin[is_large])
    return np.ascontiguousarray(found)


def rounded_exp(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """exp in float64, then rounded: the objective survival:aft."""
    with np.errstate(all="ignore"):
        return np.exp(margin.astype(np.float64)).astype(np.float32)


def softmax(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """Softmax with float32 exponentials, added in float64 class after class."""
    e = exp(margin - margin.max(axis=1, keepdims=True))
    total = np.zeros((len(e), 1))
    for column in range(e.shape[1]):
        total += e[:, column : column + 1]
    return e / total.astype(np.float32)


def step(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """1 where the margin is above 0, else 0."""
    return (margin > 0).astype(margin.dtype)
