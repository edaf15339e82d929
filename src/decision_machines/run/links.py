"""From margins to probabilities or responses, one function for each link, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import catboost_links, lightgbm_links

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float


def identity(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    return margin


def sigmoid(margin: Float[np.ndarray, "m k"], slope: float = 1.0) -> Float[np.ndarray, "m k"]:
    one = margin.dtype.type(1)
    with np.errstate(over="ignore"):
        return one / (one + np.exp(-margin.dtype.type(slope) * margin))


def expit(margin: Float[np.ndarray, "m k"], slope: float = 1.0) -> Float[np.ndarray, "m k"]:
    """The sigmoid as SciPy computes it; `sigmoid` may differ from it in the last bit."""
    from scipy.special import expit as scipy_expit

    return scipy_expit(margin.dtype.type(slope) * margin)


def softmax(margin: Float[np.ndarray, "m k"], by_column: float = 0.0) -> Float[np.ndarray, "m k"]:
    """Softmax over the classes; `by_column` adds the exponentials class by class.

    NumPy adds eight or more numbers that lie side by side in pairs, and columns one after the
    other, so the layout of the source's sums decides the last bit.
    """
    if by_column:
        margin = np.asfortranarray(margin)
    e = np.exp(margin - margin.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def exp(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    with np.errstate(over="ignore"):
        return np.exp(margin)


def samme(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """AdaBoost's probabilities; one margin is the difference of two classes."""
    if margin.shape[1] == 1:
        return softmax(np.concatenate([-margin, margin], axis=1) / 2)
    return softmax(margin / (margin.shape[1] - 1), by_column=1.0)


def isolation(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """The isolation forest's score: -1 is most abnormal."""
    return -(2 ** (-margin))


def sigmoid_single(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """The float32 sigmoid of XGBoost, its argument held at 88.7 where exp would overflow.

    Here and in the two below exp is taken in float64 and rounded once. The C library's float32 exp,
    which XGBoost calls, rounds otherwise for one value in a thousand or so: then the answers
    differ by 1 or 2 units in the last place, and in all other cases not at all.
    """
    one = np.float32(1)
    return one / (exp_single(np.minimum(-margin, np.float32(88.7))) + one)


def exp_single(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """The float32 nearest to exp."""
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(margin.astype(np.float64)).astype(np.float32)


def softmax_single(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """XGBoost's softmax: float32 exponentials, added in float64 class after class."""
    e = exp_single(margin - margin.max(axis=1, keepdims=True))
    total = np.zeros((len(e), 1))
    for column in range(e.shape[1]):
        total += e[:, column : column + 1]
    return e / total.astype(np.float32)


def step(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """1 where the margin is above 0, else 0."""
    return (margin > 0).astype(margin.dtype)


LINKS: dict[str, Callable[..., np.ndarray]] = {
    "identity": identity,
    "sigmoid": sigmoid,
    "softmax": softmax,
    "exp": exp,
    "expit": expit,
    "samme": samme,
    "isolation": isolation,
    "sigmoid_single": sigmoid_single,
    "exp_single": exp_single,
    "softmax_single": softmax_single,
    "step": step,
}
LINKS |= {
    "catboost_exp": catboost_links.exp,
    "catboost_softmax": catboost_links.softmax,
    "catboost_mean_and_variance": catboost_links.mean_and_variance,
}
LINKS |= {
    "lightgbm_exp": lightgbm_links.exp,
    "lightgbm_softmax": lightgbm_links.softmax,
    "lightgbm_softplus": lightgbm_links.softplus,
    "signed_square": lightgbm_links.signed_square,
}
LINKS |= {f"averaged {name}": lightgbm_links.averaged(link) for name, link in list(LINKS.items())}
