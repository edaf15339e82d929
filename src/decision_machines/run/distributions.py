"""Distributions by name: sums of trees become parameters and means, as in NGBoost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from .assemblies import Asked

    Parameters = dict[str, np.ndarray]


class Distribution(NamedTuple):
    """How many sums it takes, its parameters from them, and SciPy's distribution of these."""

    n_sums: int
    parameters: Callable[[np.ndarray], Parameters]
    family: str
    given: Callable[[Parameters], dict[str, Any]]
    """From the parameters to what SciPy calls them."""


def _itself(parameters: Parameters) -> dict[str, Any]:
    return parameters


def _location_and_scale(x: np.ndarray) -> Parameters:
    return {"loc": x[0], "scale": np.exp(x[1])}


DISTRIBUTIONS: dict[str, Distribution] = {
    "Normal": Distribution(2, _location_and_scale, "norm", _itself),
    "NormalFixedVar": Distribution(
        1, lambda x: {"loc": x[0], "scale": np.ones_like(x[0])}, "norm", _itself
    ),
    "NormalFixedMean": Distribution(
        1, lambda x: {"loc": np.zeros_like(x[0]), "scale": np.exp(x[0])}, "norm", _itself
    ),
    "LogNormal": Distribution(
        2, lambda x: {"s": np.exp(x[1]), "scale": np.exp(x[0])}, "lognorm", _itself
    ),
    "Exponential": Distribution(1, lambda x: {"scale": np.exp(x[0])}, "expon", _itself),
    "Laplace": Distribution(2, _location_and_scale, "laplace", _itself),
    "Poisson": Distribution(1, lambda x: {"mu": np.exp(x[0])}, "poisson", _itself),
    "T": Distribution(3, lambda x: {**_location_and_scale(x), "df": np.exp(x[2])}, "t", _itself),
    "TFixedDf": Distribution(
        2, lambda x: {**_location_and_scale(x), "df": np.ones_like(x[0]) * 3.0}, "t", _itself
    ),
    "Gamma": Distribution(
        2,
        lambda x: {"alpha": np.exp(x[0]), "beta": np.exp(x[1])},
        "gamma",
        lambda p: {"a": p["alpha"], "loc": np.zeros_like(p["alpha"]), "scale": 1 / p["beta"]},
    ),
    "HalfNormal": Distribution(
        1,
        lambda x: {"loc": np.zeros(x[0].shape), "scale": np.exp(x[0])},
        "halfnorm",
        lambda p: {"loc": 0, "scale": p["scale"]},
    ),
    "Weibull": Distribution(
        2,
        lambda x: {"shape": np.exp(x[0]), "scale": np.exp(x[1])},
        "weibull_min",
        lambda p: {"c": p["shape"], "loc": 0, "scale": p["scale"]},
    ),
}
"""Every distribution of numbers that a model may predict."""
CATEGORICAL = "Categorical"


def _of(asked: Asked) -> Distribution:
    return DISTRIBUTIONS[asked.assembly.words["distribution"][0]]


def parameters(asked: Asked) -> Parameters:
    """What the source's distribution calls its `params`; of classes, their probabilities."""
    if asked.assembly.classes is not None:
        return {f"p{k}": column for k, column in enumerate(probabilities(asked).T)}
    return _of(asked).parameters(asked.margin(0).T)


def mean(asked: Asked) -> np.ndarray:
    """The mean of every row's distribution."""
    from scipy import stats

    own = _of(asked)
    given = own.given(own.parameters(asked.margin(0).T))
    return np.asarray(getattr(stats, own.family)(**given).mean())


def probabilities(asked: Asked) -> np.ndarray:
    """The first class has the logit 0, the others what the trees add up to."""
    from scipy.special import softmax

    margin = asked.margin(0)
    logits = np.zeros((margin.shape[1] + 1, len(margin)))
    logits[1:] = margin.T
    return np.asarray(softmax(logits, axis=0).T)


def prediction(asked: Asked) -> np.ndarray:
    """The mean, or the class of the largest probability."""
    classes = asked.assembly.classes
    if classes is None:
        return mean(asked)
    return np.asarray(classes[np.argmax(probabilities(asked), axis=1)])
