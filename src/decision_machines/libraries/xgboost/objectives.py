"""XGBoost's objectives: from base_score to the margin where sums start, from margins to answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine import Output
from ...run.links import libm
from ...run.links.xgboost import LEAST_INCREMENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float

    from ..document import Document


def _same(score: np.float32) -> np.float32:
    return score


def _log(score: np.float32) -> float:
    """log in float32, by the C library that XGBoost itself calls, to agree in the last bit."""
    return float(libm.log(np.array([score], np.float32))[0])


def _logit(score: np.float32) -> float:
    one = np.float32(1)
    return -_log(one / score - one) if 0 < score < 1 else math.nan


CLAMPS_SCORES = (3, 2)
"""The first release that moves base scores of logistic objectives away from 0 and 1, which it
finds where all labels are alike; releases before refuse to train or to load such a model."""
LEAST_SCORE = np.float32(1e-6)
MOST_SCORE = np.float32(1) - LEAST_SCORE
LINKS_FIRST_GUESSES = (3, 1)
"""Until this release the base score of a model without trees is linked like any other."""


def _increments(scores: Float[np.ndarray, "k"]) -> Float[np.ndarray, "k"]:
    """The margins whose increments (see `run.links.xgboost`) are between these scores."""
    least = np.float32(LEAST_INCREMENT)
    gaps = np.maximum(np.diff(scores) - least, least)
    return np.concatenate([scores[:1], gaps + libm.log(-libm.expm1(-gaps))])


@dataclass(frozen=True)
class Objective:
    """What an objective does to base_score before the sum, and to the sum after it."""

    to_margin: Callable[[np.float32], Any] = _same
    link: str = "identity"


SORTS_QUANTILES = (3, 4)
"""The first release that puts the quantiles of a row in rising order."""
OBJECTIVES: dict[str, Objective] = {
    **dict.fromkeys(
        (
            "reg:squarederror",
            "reg:linear",
            "reg:squaredlogerror",
            "reg:pseudohubererror",
            "reg:absoluteerror",
            "reg:quantileerror",
            "rank:pairwise",
            "rank:ndcg",
            "rank:map",
            "binary:logitraw",
        ),
        Objective(),
    ),
    **dict.fromkeys(("reg:logistic", "binary:logistic"), Objective(_logit, "xgboost_sigmoid")),
    **dict.fromkeys(
        ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox"),
        Objective(_log, "xgboost_exp"),
    ),
    "survival:aft": Objective(_log, "xgboost_rounded_exp"),
    **dict.fromkeys(("multi:softmax", "multi:softprob"), Objective(_same, "xgboost_softmax")),
    "binary:hinge": Objective(_same, "xgboost_step"),
    "reg:expectileerror": Objective(_same, "xgboost_increments"),
}


def base_margins(
    name: str,
    param: Document,
    n_outputs: int,
    has_trees: bool,
    release: tuple[int, ...],
    *,
    is_margin: bool = False,
) -> Float[np.ndarray, "k"]:
    """Margins of base_score, which is text: a number, or since 3.1 a list.

    Parameters
    ----------
    release
        Of XGBoost, which saved the model.
    is_margin
        Whether it is a margin already, as in files from before release 1.0.
    """
    text = param.text("base_score")
    try:
        found = np.array([float(part) for part in text.strip().strip("[]").split(",")], np.float64)
    except ValueError:
        raise param.fault(f"{param.name('base_score')} is {text[:40]!r}, not numbers") from None
    if len(found) not in (1, n_outputs):
        raise param.fault(
            f"{len(found)} values in {param.name('base_score')} for {n_outputs} outputs"
        )
    with np.errstate(all="ignore"):
        base = found.astype(np.float32)
        # An estimated base score of a model without trees is used as it is: XGBoost links it when
        # the first tree is grown.
        is_guess = release >= LINKS_FIRST_GUESSES and (
            "boost_from_average" not in param or param.integer("boost_from_average") != 0
        )
        if not is_margin and (has_trees or not is_guess):
            if OBJECTIVES[name].to_margin is _logit and release >= CLAMPS_SCORES:
                is_score = (base >= 0) & (base <= 1)
                base = np.where(is_score, np.clip(base, LEAST_SCORE, MOST_SCORE), base)
            if OBJECTIVES[name].link == "xgboost_increments":
                base = _increments(np.broadcast_to(base, n_outputs))
            base = np.array([OBJECTIVES[name].to_margin(score) for score in base], np.float32)
    if not np.all(np.isfinite(base)):
        raise param.fault(
            f"{param.name('base_score')} is {text[:40]!r}, whose margin is not finite"
        )
    return np.broadcast_to(base, n_outputs).copy()


def output_of(
    name: str, base: Float[np.ndarray, "k"], n_classes: int | None, release: tuple[int, ...]
) -> Output:
    """Links and decisions, as `predict` and `predict_proba` have them.

    Parameters
    ----------
    release
        Of XGBoost, which saved the model.
    n_classes
        Of a wrapper that classifies; None for a booster, and for other wrappers.
    """
    k = len(base)
    link, decision = OBJECTIVES[name].link, "response"
    labels = None
    if name == "reg:quantileerror" and k > 1 and release >= SORTS_QUANTILES:
        link = "xgboost_sorted"
    if link == "xgboost_increments" and k == 1:
        link = "identity"
    if name == "multi:softmax":
        # The booster answers with the class as a float, the wrapper as an int32; the wrapper takes
        # probabilities from SciPy's softmax.
        decision = "argmax_margin"
        labels = np.arange(k, dtype=np.float32 if n_classes is None else np.int32)
        link = link if n_classes is None else "softmax"
    elif n_classes is not None:
        is_labels = k > 1 and n_classes == 2  # several yes/no targets
        decision = "above_each" if is_labels else "argmax" if k > 1 else "above"
        labels = np.arange(n_classes)
    elif name == "multi:softprob":
        labels = np.arange(k)
    elif name == "binary:logistic" and k == 1:
        labels = np.arange(2)
    return Output(
        base,
        np.float32,
        link=link,
        decision=decision,
        classes=None if labels is None else (labels,),
    )
