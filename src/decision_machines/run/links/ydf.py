"""YDF's links: float32 answers of the C library's float32 functions, which its engines call.

YDF's slow engine, for models that its fast ones do not take, adds and links in float64 and rounds
the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .libm import exp, exp2

if TYPE_CHECKING:
    from jaxtyping import Float

BOUND = 19.0
"""Margins of the loss POISSON are held within this bound."""


def sigmoid(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    one = margin.dtype.type(1)
    with np.errstate(over="ignore"):
        found: np.ndarray = one / (one + exp(-margin))
    return found.astype(np.float32)


def softmax(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """Softmax without a shift, the exponentials added class after class in float32."""
    with np.errstate(over="ignore", invalid="ignore"):
        e = exp(margin.astype(np.float32))
        total = np.zeros((len(e), 1), np.float32)
        for column in range(e.shape[1]):
            total += e[:, column : column + 1]
        found: np.ndarray = e * (np.float32(1) / total)
    return found


def exponential(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    held: np.ndarray = np.clip(margin, -BOUND, BOUND)
    return exp(held).astype(np.float32)


def clamped(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """Shares of trees, whose sum in float32 may be a rounding above 1."""
    found: np.ndarray = np.clip(margin, 0, 1)
    return found


def anomaly(margin: Float[np.ndarray, "m k"], divisor: float = 1.0) -> Float[np.ndarray, "m k"]:
    """An isolation forest's score: 2 to the power of minus the depth over the expected depth."""
    return exp2(-margin.astype(np.float32) / np.float32(divisor))
