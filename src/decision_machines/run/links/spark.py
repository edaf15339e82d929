"""Spark's link: the logistic loss of boosted trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float


def sigmoid(margin: Float[np.ndarray, "m 2"], slope: float = 1.0) -> Float[np.ndarray, "m 2"]:
    """The sigmoid of the first margin, and what it leaves of 1; the second margin is its negative.

    Java computes the exponential in its own way; it differs from ours by at most 1 ulp.
    """
    one = margin.dtype.type(1)
    with np.errstate(over="ignore"):
        first = one / (one + np.exp(-margin.dtype.type(slope) * margin[:, :1]))
    return np.concatenate([first, one - first], axis=1)
