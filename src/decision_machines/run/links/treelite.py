"""Treelite's postprocessors as GTIL computes them, in the dtype of the margins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .libm import exp, exp2

if TYPE_CHECKING:
    from jaxtyping import Float


def sigmoid(margin: Float[np.ndarray, "m k"], slope: float = 1.0) -> Float[np.ndarray, "m k"]:
    one = margin.dtype.type(1)
    with np.errstate(over="ignore"):
        found: np.ndarray = one / (one + exp(-margin.dtype.type(slope) * margin))
    return found


def softmax(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """Softmax whose exponentials are float32 and are added in float64, whatever the margins are."""
    largest = margin.astype(np.float32).max(axis=1, keepdims=True)
    with np.errstate(over="ignore"):
        e = exp(margin - largest).astype(np.float32)
    total = np.zeros((len(e), 1))
    for column in range(e.shape[1]):
        total += e[:, column : column + 1]
    found: np.ndarray = e.astype(margin.dtype) / total.astype(np.float32)
    return found


def anomaly(margin: Float[np.ndarray, "m k"], divisor: float = 1.0) -> Float[np.ndarray, "m k"]:
    """exponential_standard_ratio: 2 to the power of minus the margin over the ratio."""
    return exp2(-margin / margin.dtype.type(divisor))
