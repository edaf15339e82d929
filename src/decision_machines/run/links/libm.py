"""The C library's exponential and logarithm, in the dtype of their argument.

Libraries written in C++ call these for their links, in float32 or float64; NumPy brings functions
of its own, which differ in the last bit on some processors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import _native

if TYPE_CHECKING:
    from jaxtyping import Float


def exp(x: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    return _each("exp", x)


def exp2(x: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    return _each("exp2", x)


def log(x: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    return _each("log", x)


def log1p(x: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    return _each("log1p", x)


def expm1(x: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    return _each("expm1", x)


def _each(function: str, x: np.ndarray) -> np.ndarray:
    found = np.array(x, order="C")
    _native.libm(function, found.reshape(-1))
    return found
