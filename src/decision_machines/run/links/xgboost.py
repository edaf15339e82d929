"""XGBoost's links: float32 results of the C library's float32 exponential, which it calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .libm import exp, log1p

if TYPE_CHECKING:
    from jaxtyping import Float


LEAST_MARGIN = np.float32(-88.7)
"""Where the sigmoid is held: exp would overflow soon after."""


def sigmoid(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """The sigmoid of margins of at least `LEAST_MARGIN`."""
    from scipy.special import expit

    found: np.ndarray = expit(np.maximum(margin, LEAST_MARGIN))
    return found


def rounded_exp(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """exp in float64, then rounded: the objective survival:aft."""
    with np.errstate(all="ignore"):
        return exp(margin.astype(np.float64)).astype(np.float32)


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


def sorted_quantiles(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """The margins of each row in rising order, as reg:quantileerror gives them since 3.4."""
    return np.sort(margin, axis=1)


LEAST_INCREMENT = 1e-6


def increments(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """The first margin, then the one before plus a softplus: reg:expectileerror of several."""
    found = np.array(margin)
    least = margin.dtype.type(LEAST_INCREMENT)
    with np.errstate(all="ignore"):
        added = np.maximum(margin, 0) + log1p(exp(-np.abs(margin))) + least
        for column in range(1, margin.shape[1]):
            found[:, column] = found[:, column - 1] + added[:, column]
    return found
