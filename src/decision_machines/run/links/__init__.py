"""From margins to probabilities or responses: a function for each link of `machine.links`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine.links import LINKS as KNOWN
from . import catboost as catboost_links
from . import interpret as interpret_links
from . import libm
from . import lightgbm as lightgbm_links
from . import onnx as onnx_links
from . import spark as spark_links
from . import treelite as treelite_links
from . import xgboost as xgboost_links
from . import ydf as ydf_links

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float


def identity(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    return margin


def sigmoid(margin: Float[np.ndarray, "m k"], slope: float = 1.0) -> Float[np.ndarray, "m k"]:
    one = margin.dtype.type(1)
    with np.errstate(over="ignore"):
        found: np.ndarray = one / (one + np.exp(-margin.dtype.type(slope) * margin))
        return found


def expit(margin: Float[np.ndarray, "m k"], slope: float = 1.0) -> Float[np.ndarray, "m k"]:
    """The sigmoid as SciPy computes it; `sigmoid` may differ from it in the last bit."""
    from scipy.special import expit as scipy_expit

    found: np.ndarray = scipy_expit(margin.dtype.type(slope) * margin)
    return found


def softmax(margin: Float[np.ndarray, "m k"], by_column: float = 0.0) -> Float[np.ndarray, "m k"]:
    """Softmax over the classes; `by_column` adds the exponentials class by class.

    NumPy adds eight or more numbers that lie side by side in pairs, and columns one after the
    other, so the layout of the source's sums decides the last bit.
    """
    if by_column:
        margin = np.asfortranarray(margin)
    e = np.exp(margin - margin.max(axis=1, keepdims=True))
    found: np.ndarray = e / e.sum(axis=1, keepdims=True)
    return found


def exp(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    with np.errstate(over="ignore"):
        found: np.ndarray = np.exp(margin)
        return found


def samme(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """AdaBoost's probabilities; one margin is the difference of two classes."""
    if margin.shape[1] == 1:
        return softmax(np.concatenate([-margin, margin], axis=1) / 2)
    return softmax(margin / (margin.shape[1] - 1), by_column=1.0)


def isolation(margin: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """The isolation forest's score: -1 is most abnormal."""
    return -(2 ** (-margin))


PLAIN: dict[str, Callable[..., np.ndarray]] = {
    "identity": identity,
    "sigmoid": sigmoid,
    "expit": expit,
    "softmax": softmax,
    "exp": exp,
    "samme": samme,
    "isolation": isolation,
    "xgboost_sigmoid": xgboost_links.sigmoid,
    "xgboost_exp": libm.exp,
    "xgboost_rounded_exp": xgboost_links.rounded_exp,
    "xgboost_softmax": xgboost_links.softmax,
    "xgboost_step": xgboost_links.step,
    "xgboost_sorted": xgboost_links.sorted_quantiles,
    "xgboost_increments": xgboost_links.increments,
    "catboost_exp": catboost_links.exp,
    "catboost_softmax": catboost_links.softmax,
    "catboost_mean_and_variance": catboost_links.mean_and_variance,
    "lightgbm_exp": libm.exp,
    "lightgbm_softmax": lightgbm_links.softmax,
    "lightgbm_softplus": lightgbm_links.softplus,
    "signed_square": lightgbm_links.signed_square,
    "ydf_sigmoid": ydf_links.sigmoid,
    "ydf_softmax": ydf_links.softmax,
    "ydf_exp": ydf_links.exponential,
    "ydf_clamped": ydf_links.clamped,
    "ydf_anomaly": ydf_links.anomaly,
    "treelite_sigmoid": treelite_links.sigmoid,
    "treelite_softmax": treelite_links.softmax,
    "treelite_anomaly": treelite_links.anomaly,
    "interpret_sigmoid": interpret_links.sigmoid,
    "interpret_softmax": interpret_links.softmax,
    "interpret_exp": interpret_links.exp,
    "spark_sigmoid": spark_links.sigmoid,
    "onnx": onnx_links.onnx,
}
"""The function of every link that divides nothing."""


def averaged(link: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """The link of a random forest: its margins are sums, its answers are made of averages."""

    def of_average(
        margin: Float[np.ndarray, "m k"], divisor: float, *params: Any
    ) -> Float[np.ndarray, "m r"]:
        return link(margin / margin.dtype.type(divisor), *params)

    return of_average


LINKS: dict[str, Callable[..., np.ndarray]] = {
    name: averaged(PLAIN[link.plain.name]) if link.is_averaged else PLAIN[name]
    for name, link in KNOWN.items()
}
"""The function of every link of `machine.links`: margins and the link's parameters → responses."""

EXPITS: dict[str, Callable[..., tuple[float, float]]] = {
    "expit": lambda slope=1.0: (float(slope), -math.inf),
    "xgboost_sigmoid": lambda: (1.0, float(xgboost_links.LEAST_MARGIN)),
}
"""Links that are SciPy's expit: their parameters → the margin's factor, and its least product."""
