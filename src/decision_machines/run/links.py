"""From margins to probabilities or responses, one function for each link, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float


def identity(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    return margin


def sigmoid(margin: Float[np.ndarray, "m k"], slope: float = 1.0) -> Float[np.ndarray, "m k"]:
    one = margin.dtype.type(1)
    with np.errstate(over="ignore"):
        return one / (one + np.exp(-margin.dtype.type(slope) * margin))


def softmax(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    e = np.exp(margin - margin.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def exp(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    with np.errstate(over="ignore"):
        return np.exp(margin)


LINKS: dict[str, Callable[..., np.ndarray]] = {
    "identity": identity,
    "sigmoid": sigmoid,
    "softmax": softmax,
    "exp": exp,
}
