"""LightGBM's links, with the exponential of the C library that LightGBM calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .libm import exp, log1p

if TYPE_CHECKING:
    from jaxtyping import Float


def softmax(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """Softmax over the classes, the exponentials added class by class."""
    with np.errstate(invalid="ignore"):
        e = exp(margin - margin.max(axis=1, keepdims=True))
    total = np.zeros((len(e), 1))
    for column in range(e.shape[1]):
        total += e[:, column : column + 1]
    return e / total


def softplus(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """log(1 + exp)."""
    return log1p(exp(margin))


def signed_square(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """What undoes the signed square root of a target."""
    with np.errstate(over="ignore"):
        found: np.ndarray = np.sign(margin) * margin * margin
        return found
