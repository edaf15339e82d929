"""What CatBoost makes of its sums, loss by loss: links, labels and what `predict` answers."""

from __future__ import annotations

import contextlib
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UnsupportedModelError
from ...machine import Output
from .parts import refuse

if TYPE_CHECKING:
    from jaxtyping import Float

    from .parts import Parts

BINARY = ("Logloss", "CrossEntropy", "Focal")
MULTILABEL = ("MultiLogloss", "MultiCrossEntropy")
CLASSIFICATION = (*BINARY, "MultiClass", "MultiClassOneVsAll", *MULTILABEL)
REGRESSION_LINKS = {
    "Poisson": "catboost_exp",
    "Tweedie": "catboost_exp",
    "RMSEWithUncertainty": "catboost_mean_and_variance",
}
IDENTITY = (
    *("RMSE", "MultiRMSE", "MultiRMSEWithMissingValues", "RMSPE", "LogCosh", "Lq", "MAE", "MAPE"),
    *("Quantile", "MultiQuantile", "GroupQuantile", "LogLinQuantile", "Expectile", "Huber"),
    *("Cox", "SurvivalAft", "PairLogit", "PairLogitPairwise", "YetiRank", "YetiRankPairwise"),
    *("QueryRMSE", "QuerySoftMax", "QueryCrossEntropy", "StochasticFilter", "StochasticRank"),
    *("LambdaMart", "Combination", "UserPerObjMetric", "UserQuerywiseMetric"),
    *("PythonUserDefinedPerObject", "PythonUserDefinedMultiTarget"),
)
"""Losses whose answer is the sum itself: regressions, rankings and users' own."""
LABEL_TYPES = {"Integer": np.int64, "Float": np.float64, "String": np.str_, "Boolean": np.bool_}


def output_of(
    parts: Parts, values: Float[np.ndarray, "L k"], kind: str | None, doing: str
) -> tuple[Output, Float[np.ndarray, "L c"]]:
    """The output, and the leaf values with a column for every class that the labels name.

    `kind` is the class of the model object; None for a file, which is taken for the class that
    fits its loss. `CatBoost` itself predicts margins, whatever the loss.
    """
    loss = loss_of(parts.info)
    if loss and loss not in (*CLASSIFICATION, *REGRESSION_LINKS, *IDENTITY):
        raise UnsupportedModelError(
            doing,
            f"model_info.params.loss_function is {loss[:60]!r}, whose link we do not know",
            "update decision-machines, or train with another loss",
        )
    how: dict[str, Any] = {"decision": "response"}
    base = parts.bias
    if kind == "CatBoostClassifier" or (kind in (None, "CatBoost") and loss in CLASSIFICATION):
        labels, position = _labels(parts.info, values.shape[1], loss, doing)
        how = {"classes": (labels,), **_classification(parts.info, values.shape[1], loss, doing)}
        if len(labels) != values.shape[1] and values.shape[1] > 1:
            # A class that the training data lacked has the margin -inf.
            wide = np.zeros((len(values), len(labels)))
            wide[:, position] = values
            base = np.full(len(labels), -np.inf)
            base[position] = parts.bias
            values = wide
    elif kind != "CatBoostRanker" and loss in REGRESSION_LINKS:
        how["link"] = REGRESSION_LINKS[loss]
    if kind == "CatBoost":
        how |= {"decision": "margin", "decision_params": ()}
    if how.get("link") == "catboost_mean_and_variance" and values.shape[1] != 2:
        refuse(doing, f"{values.shape[1]} outputs where {loss} has 2")
    return Output(base, np.float64, base_first=False, scale=parts.scale, **how), values


def _classification(info: Any, k: int, loss: str, doing: str) -> dict[str, Any]:
    if loss in MULTILABEL:
        return {"link": "expit", "decision": "each_margin_above"}
    if k == 1:
        return {
            "link": "expit",
            "decision": "margin_above",
            "decision_params": (_threshold(info, doing),),
        }
    link = "expit" if loss == "MultiClassOneVsAll" else "catboost_softmax"
    # CatBoost gives the labels of several classes as a column.
    return {"link": link, "decision": "argmax_margin", "squeeze": False}


def loss_of(info: Any) -> str:
    """The name of the loss, without its parameters; empty where the model does not say."""
    params = info.get("params")
    loss = params.get("loss_function") if isinstance(params, dict) else info.get("loss_function")
    if isinstance(loss, str) and loss.startswith("{"):
        # So it stands in the notes of a sum of models.
        with contextlib.suppress(ValueError, RecursionError):
            loss = json.loads(loss)
    if isinstance(loss, dict):
        loss = loss.get("type")
    return loss.split(":")[0] if isinstance(loss, str) else ""


def _threshold(info: Any, doing: str) -> float:
    """The margin above which the second class is predicted."""
    text = info.get("binclass_probability_threshold", "0.5")
    try:
        p = float(text)
    except (TypeError, ValueError):
        p = math.nan
    if not 0 < p < 1:
        refuse(doing, f"binclass_probability_threshold is {text!r}")
    return -math.log(1 / p - 1)


def _labels(info: Any, k: int, loss: str, doing: str) -> tuple[np.ndarray, np.ndarray]:
    """The labels, and the label that each output stands for."""
    params = info.get("class_params", info.get("multiclass_params", {}))
    if not isinstance(params, dict):
        refuse(doing, "class_params is not an object")
    names = params.get("class_names") or []
    stands_for = params.get("class_to_label") or []
    count = params.get("classes_count") or 0
    n_outputs = 2 if k == 1 and loss not in MULTILABEL else k
    if not isinstance(names, list) or not isinstance(stands_for, list) or not _is_count(count):
        refuse(doing, f"class_params is {str(params)[:80]}")
    if not names and not count:
        names, stands_for = stands_for or list(range(n_outputs)), list(range(n_outputs))
    elif not names:
        names = list(range(count))
    position = stands_for or list(range(n_outputs))
    labels = _typed(names, params.get("class_label_type", "Integer"), doing)
    if (
        len(position) != n_outputs
        or not all(isinstance(p, (int, float)) and p in range(len(labels)) for p in position)
        or len(set(position)) < n_outputs
        or (k == 1 and len(labels) != n_outputs)
    ):
        refuse(doing, f"{n_outputs} outputs stand for {stands_for} of {len(labels)} labels")
    return labels, np.array(position, np.int64)


def _is_count(count: Any) -> bool:
    return isinstance(count, int) and 0 <= count <= 1 << 20


def _typed(names: list[Any], label_type: Any, doing: str) -> np.ndarray:
    dtype = LABEL_TYPES.get(label_type) if isinstance(label_type, str) else None
    wanted: Any = {np.str_: str, np.bool_: bool}.get(dtype or object, (int, float))
    if dtype is None or not all(isinstance(name, wanted) for name in names):
        refuse(doing, f"labels {str(names)[:60]} of the type {label_type!r}")
    try:
        return np.array(names, dtype)
    except (OverflowError, ValueError):
        refuse(doing, f"labels {str(names)[:60]} of the type {label_type!r}")
