"""InterpretML's links, in float64.

InterpretML brings an exponential of its own; with the C library's, responses may differ from it in
the last bits, while margins and labels do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import libm

if TYPE_CHECKING:
    from jaxtyping import Float


def exp(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    with np.errstate(over="ignore"):
        return libm.exp(margin)


def sigmoid(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    e = exp(margin)
    with np.errstate(invalid="ignore"):
        found: np.ndarray = np.where(np.isposinf(e), margin.dtype.type(1), e / (e + 1))
        return found


def softmax(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """Softmax over the classes, the exponentials added class by class."""
    e = exp(margin - margin.max(axis=1, keepdims=True))
    total = np.zeros((len(e), 1), e.dtype)
    for column in range(e.shape[1]):
        total += e[:, column : column + 1]
    found: np.ndarray = e / total
    return found
