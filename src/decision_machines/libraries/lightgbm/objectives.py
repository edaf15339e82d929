"""What LightGBM's objectives make of raw scores, read from the model text's `objective` line."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...errors import UnsupportedModelError
from ...machine import Output
from ...machine.links import AVERAGED
from .read_text import LightgbmText, broken

LINK_OF = {
    "regression": "identity",
    "regression_l1": "identity",
    "huber": "identity",
    "fair": "identity",
    "quantile": "identity",
    "mape": "identity",
    "poisson": "lightgbm_exp",
    "gamma": "lightgbm_exp",
    "tweedie": "lightgbm_exp",
    "binary": "expit",
    "multiclass": "lightgbm_softmax",
    "multiclassova": "expit",
    "cross_entropy": "expit",
    "xentropy": "expit",
    "cross_entropy_lambda": "lightgbm_softplus",
    "xentlambda": "lightgbm_softplus",
    "lambdarank": "identity",
    "rank_xendcg": "identity",
    "custom": "identity",
}
"""The link of each objective; a model trained with a function of the user's own has none."""
SQUARED = {"regression", "regression_l1", "fair", "quantile", "mape"}
"""The objectives that `sqrt` (`reg_sqrt` in training) makes square their answer; not huber."""
CLASSIFY = {"binary", "multiclass", "multiclassova"}


@dataclass(frozen=True)
class Objective:
    """An objective's name, its link, and whether its outputs are probabilities of classes."""

    name: str
    link: str
    link_params: tuple[float, ...] = ()

    @property
    def classifies(self) -> bool:
        return self.name in CLASSIFY


def objective_of(text: LightgbmText, n_outputs: int) -> Objective:
    """The objective that the text names; raw scores are the answer where it names none."""
    name, *options = text.header.get("objective", "custom").split() or ["custom"]
    if name not in LINK_OF:
        raise UnsupportedModelError(
            text.doing,
            f"objective={name[:60]}, whose link we do not know",
            f"use one of {', '.join(LINK_OF)}; or delete the objective line to have raw scores "
            "as the answer",
        )
    link = LINK_OF[name]
    params: tuple[float, ...] = ()
    known = dict(option.partition(":")[::2] for option in options)
    if set(known) - {"sqrt", "sigmoid", "num_class"}:
        raise UnsupportedModelError(
            text.doing,
            f"objective={' '.join([name, *options])[:120]} has an option that we do not know",
            "delete the option if it leaves predictions alone",
        )
    if "sqrt" in known and name in SQUARED:
        link = "signed_square"
    if name in ("binary", "multiclassova"):
        params = (_slope(known.get("sigmoid", ""), text.doing),)
    if name in ("multiclass", "multiclassova") and known.get("num_class") != str(n_outputs):
        broken(
            text.doing,
            f"objective has num_class:{known.get('num_class')} where the header has {n_outputs}",
        )
    if name not in ("multiclass", "multiclassova", "custom") and n_outputs != 1:
        broken(text.doing, f"the objective {name} has one output where the header has {n_outputs}")
    return Objective(name, link, params)


def output_of(
    objective: Objective,
    n_outputs: int,
    averaged_over: int | None,
    labels: np.ndarray | None,
) -> Output:
    """The output of a model: raw scores, the link, and labels where a classifier gives them."""
    link, params = objective.link, objective.link_params
    if averaged_over is not None:
        # Raw scores are plain sums even where answers are made of averages.
        link, params = AVERAGED + link, (float(averaged_over), *params)
    decision = "response"
    decision_params: tuple[float, ...] = ()
    classes = np.arange(max(n_outputs, 2)) if objective.classifies else None
    if labels is not None:
        classes = labels
        decision, decision_params = ("above", (0.5,)) if n_outputs == 1 else ("argmax", ())
    return Output(
        np.zeros(n_outputs),
        link=link,
        link_params=params,
        decision=decision,
        decision_params=decision_params,
        classes=None if classes is None else (classes,),
    )


def _slope(value: str, doing: str) -> float:
    try:
        slope = float(value)
    except ValueError:
        slope = math.nan
    if not (slope > 0 and math.isfinite(slope)) or "_" in value:
        broken(doing, f"the objective's sigmoid:{value[:40]} is not a number above 0")
    return slope
