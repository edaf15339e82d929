"""CatBoost's links, to the bit: its exponential is an approximation, good to a few last places.

(Its sigmoid is not an approximation; the link `expit` gives it.)

exp(x) is read from a table of 2^(i/2048) and corrected by a cubic, as in Shigeo Mitsunari's fmath,
which CatBoost uses. Four numbers at a time are clamped to the range of float64; the one to three
left over at the end of a row are not: they give 0 and infinity instead.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

STEPS = 2048
LOWEST, HIGHEST = -708.39641853226408, 709.78271289338397
LANES = 4


def exp(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """CatBoost's exponential, clamped to the range of float64 throughout."""
    x = np.clip(margin.astype(np.float64), LOWEST, HIGHEST)
    # Adding 3 · 2^51 leaves the nearest integer of x · 2048 / log 2 in the low bits.
    shift = float(3 << 51)
    shifted = x * (STEPS / math.log(2.0)) + shift
    bits = shifted.view(np.int64)
    t = (shifted - shift) * (math.log(2.0) / STEPS) - x
    cubic = (3.0000000027955394 - t) * (t * t) * 0.16666666685227835064 - t + 1.0
    exponent = (bits + 1023 * STEPS) >> 11 << 52
    found: np.ndarray = cubic * (exponent | _mantissas()[bits & (STEPS - 1)]).view(np.float64)
    return found


def softmax(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """exp of the distance to the largest, over their sum taken class after class."""
    k = margin.shape[1]
    x = margin - margin.max(axis=1, keepdims=True)
    e = exp(x)
    tail = slice(k - k % LANES, k)
    e[:, tail] = np.where(x[:, tail] <= LOWEST, 0.0, e[:, tail])
    total = np.zeros(len(e))
    for column in range(k):
        total = total + e[:, column]
    return e / total[:, None]


def mean_and_variance(margin: Float[np.ndarray, "m 2"]) -> Float[np.ndarray, "m 2"]:
    """The mean, and the variance exp(2 x) of RMSEWithUncertainty."""
    return np.stack([margin[:, 0], exp(2.0 * margin[:, 1])], axis=1)


@functools.cache
def _mantissas() -> np.ndarray:
    # The C library's pow; NumPy's own differs in the last bit of some entries.
    table = np.array([math.pow(2.0, i / STEPS) for i in range(STEPS)])
    return table.view(np.int64) & ((1 << 52) - 1)
