"""XGBoost's objectives: which one answers as a machine does, and the base score of a margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...run.links import libm
from .objectives import LEAST_SCORE, MOST_SCORE

if TYPE_CHECKING:
    from ...machine import Output
    from ..limits import Limits


@dataclass(frozen=True)
class Objective:
    name: str
    to_score: Any
    """From a margin to about the base score that has it."""
    to_margin: Any
    """From a base score to its margin, as XGBoost computes it; None where they are the same."""

    def params(self, k: int) -> dict[str, dict[str, str]]:
        if self.name.startswith("multi:"):
            return {"softmax_multiclass_param": {"num_class": str(k)}}
        if self.name == "count:poisson":
            return {"poisson_regression_param": {"max_delta_step": "0.7"}}
        if self.name == "survival:aft":
            aft = {"aft_loss_distribution": "normal", "aft_loss_distribution_scale": "1"}
            return {"aft_loss_param": aft}
        if self.name == "binary:hinge":
            return {}
        return {"reg_loss_param": {"scale_pos_weight": "1"}}


def objective_of(output: Output, limits: Limits) -> Objective:
    k = len(output)
    labels = None if output.classes is None else output.classes[0]
    numbered = labels is not None and np.array_equal(labels, np.arange(max(k, 2)))
    decides = output.decision
    if output.link_params or len(output.groups) > 2 or not output.squeeze:
        limits.unknown_link()
    if decides in ("above", "argmax") and not numbered:
        limits.refuse(
            "output.classes are not the numbers from 0, which XGBoost's classifier answers with",
            "write it with margins=True and choose the labels yourself",
        )
    if decides == "above" and output.decision_params not in ((), (0.5,)):
        limits.unknown_link()
    if (output.link, decides) == ("xgboost_sigmoid", "response"):
        name = "reg:logistic" if labels is None else "binary:logistic"
        return Objective(name, *LOGISTIC)
    if (output.link, decides) not in WRITTEN:
        limits.unknown_link()
    found = WRITTEN[output.link, decides]
    if found.name.startswith("multi:") and (k < 2 or not numbered):
        limits.unknown_link()
    if found.name == "reg:squarederror" and labels is not None:
        limits.unknown_link()
    return found


def _log(score: np.ndarray) -> np.ndarray:
    """log in float32, by the C library that XGBoost itself calls, to agree in the last bit."""
    return libm.log(np.where(score > 0, score, np.float32(np.nan)))


def _logit(score: np.ndarray) -> np.ndarray:
    """The margin of scores that every release takes as they are; NaN for others."""
    one = np.float32(1)
    with np.errstate(all="ignore"):
        is_kept = (score >= LEAST_SCORE) & (score <= MOST_SCORE)
        return np.where(is_kept, -_log(one / score - one), np.float32(np.nan))


def base_scores(objective: Objective, base: np.ndarray) -> np.ndarray | None:
    """Base scores in the objective's own scale whose margins are `base`, or None."""
    if objective.to_margin is None:
        return base
    found = []
    for margin in base:
        with np.errstate(all="ignore"):
            near = np.float32(objective.to_score(np.float64(margin)))
        # A float32 has many base scores for one margin or one for several: look around.
        around = (near.view(np.int32) + np.arange(-64, 65, dtype=np.int32)).view(np.float32)
        with np.errstate(all="ignore"):
            hits = around[(objective.to_margin(around) == margin) & np.isfinite(around)]
        if not len(hits):
            return None
        found.append(hits[len(hits) // 2])
    return np.array(found, np.float32)


SAME = (None, None)
LOGISTIC = (lambda m: 1 / (1 + np.exp(-m)), _logit)
EXPONENTIAL = (np.exp, _log)
WRITTEN: dict[tuple[str, str], Objective] = {
    ("identity", "response"): Objective("reg:squarederror", *SAME),
    ("xgboost_exp", "response"): Objective("count:poisson", *EXPONENTIAL),
    ("xgboost_rounded_exp", "response"): Objective("survival:aft", *EXPONENTIAL),
    ("xgboost_step", "response"): Objective("binary:hinge", *SAME),
    ("xgboost_step", "above"): Objective("binary:hinge", *SAME),
    ("xgboost_sigmoid", "above"): Objective("binary:logistic", *LOGISTIC),
    ("xgboost_sigmoid", "above_each"): Objective("binary:logistic", *LOGISTIC),
    ("identity", "above"): Objective("binary:logitraw", *SAME),
    ("xgboost_softmax", "response"): Objective("multi:softprob", *SAME),
    ("xgboost_softmax", "argmax"): Objective("multi:softprob", *SAME),
    ("xgboost_softmax", "argmax_margin"): Objective("multi:softmax", *SAME),
    ("softmax", "argmax_margin"): Objective("multi:softmax", *SAME),
}
"""The objective of each link and decision that XGBoost has to the bit; ("xgboost_sigmoid",
"response") is one of two, by whether there are labels. All others are refused."""
