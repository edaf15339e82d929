"""From margins to probabilities or responses, one function for each link, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import catboost as catboost_links
from . import lightgbm as lightgbm_links
from . import onnx as onnx_links
from . import xgboost as xgboost_links

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


LINKS: dict[str, Callable[..., np.ndarray]] = {
    "identity": identity,
    "sigmoid": sigmoid,
    "softmax": softmax,
    "exp": exp,
    "expit": expit,
    "samme": samme,
    "isolation": isolation,
}
LINKS |= {
    "xgboost_sigmoid": xgboost_links.sigmoid,
    "xgboost_exp": xgboost_links.exp,
    "xgboost_rounded_exp": xgboost_links.rounded_exp,
    "xgboost_softmax": xgboost_links.softmax,
    "xgboost_step": xgboost_links.step,
}
LINKS |= {"onnx": onnx_links.onnx}
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
