"""The values of Spark's leaves, and what becomes of them, in float64 and in the order of the trees.

A tree of a classifier gives the weights of the classes (`rawPrediction`), a forest the sum of its
trees' shares; probabilities are these over their sum. Boosted trees are weighted and added; the two
numbers of a classifier's `rawPrediction` are the sum's negative and the sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine import ALL_OUTPUTS, Output
from ...machine.steps import Step
from .nodes import weights

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from .folder import Stage
    from .nodes import Nodes

CLASSIFIERS = (
    "DecisionTreeClassificationModel",
    "RandomForestClassificationModel",
    "GBTClassificationModel",
)
REGRESSORS = (
    "DecisionTreeRegressionModel",
    "RandomForestRegressionModel",
    "GBTRegressionModel",
)
MODELS = CLASSIFIERS + REGRESSORS
"""The models of trees, by the names of their classes."""
LOSSES = {"GBTClassificationModel": ("logistic",), "GBTRegressionModel": ("squared", "absolute")}
LOG_LOSS_SLOPE = 2.0
"""Spark's logistic loss has labels of -1 and 1: the log-odds are twice the sum."""


@dataclass(frozen=True)
class Values:
    """Leaf values, the output that each tree feeds, and what follows."""

    V: Float[np.ndarray, "L w"]
    feeds: Int[np.ndarray, "T"]
    output: Output


def values_of(
    model: Stage, nodes: Nodes, leaves: Int[np.ndarray, "L"], classes: Any = None
) -> Values:
    """What the leaves hold.

    Parameters
    ----------
    leaves
        The nodes that are leaves, in the machine's order.
    classes
        The labels that an IndexToString gives to the classes.
    """
    n_trees = len(nodes.start) - 1
    if model.param("thresholds") is not None:
        raise model.refuse(
            f"{model.kind}.thresholds is {model.param('thresholds')!r:.60}",
            "save the model without it, model.clear(model.thresholds), and compare the "
            "probabilities over the thresholds, machine.predict_proba(X) / thresholds",
        )
    if model.kind.startswith("GBT"):
        known = LOSSES[model.kind]
        if model.param("lossType") not in known:
            raise model.refuse(
                f"{model.kind}.lossType is {model.param('lossType')!r:.40}",
                f"use {' or '.join(known)}",
            )
        of_tree = np.repeat(np.arange(n_trees), np.diff(nodes.start))[leaves]
        V = nodes.prediction[leaves] * weights(model, n_trees)[of_tree]
        if model.kind == "GBTRegressionModel":
            return _made(model, V[:, None], n_trees, Output(np.zeros(1)))
        found = Output(
            np.zeros(2),
            link="spark_sigmoid",
            link_params=(LOG_LOSS_SLOPE,),
            decision="argmax_margin",
            classes=(_classes(model, 2, classes),),
        )
        return _made(model, np.stack([-V, V], axis=1), n_trees, found)
    if model.kind in REGRESSORS:
        output = Output(np.zeros(1), divisor=float(n_trees))
        return _made(model, nodes.prediction[leaves][:, None], n_trees, output)
    k = model.count("numClasses")
    held = [nodes.stats[leaf] for leaf in leaves.tolist()]
    if any(len(stats) != k for stats in held):
        raise model.fault(f"a leaf whose impurityStats are not those of {k} classes")
    V = np.array(held, np.float64).reshape(-1, k)
    if np.any(V < 0):
        raise model.fault("a leaf with a negative weight of a class")
    if model.kind == "RandomForestClassificationModel":
        total = total_of(V)
        V = np.divide(V, total, out=np.zeros_like(V), where=total != 0)
    output = Output(
        np.zeros(k),
        link="onnx",
        link_params=(Step("normalize"),),
        decision="argmax_margin",
        classes=(_classes(model, k, classes),),
    )
    return _made(model, V, n_trees, output)


def total_of(V: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m 1"]:
    """The sum of each row, one number after the other."""
    total = np.zeros((len(V), 1))
    for column in range(V.shape[1]):
        total += V[:, column : column + 1]
    return total


def _made(model: Stage, V: Float[np.ndarray, "L w"], n_trees: int, output: Output) -> Values:
    if not np.all(np.isfinite(V)):
        raise model.fault("a value of a leaf that is not finite")
    feeds = np.full(n_trees, ALL_OUTPUTS) if V.shape[1] > 1 else np.zeros(n_trees, np.int64)
    return Values(V, feeds, output)


def _classes(model: Stage, k: int, labels: Any) -> np.ndarray:
    """Spark's classes are 0.0, 1.0, … unless an IndexToString names them."""
    if labels is None:
        return np.arange(float(k))
    if len(labels) < k:
        raise model.fault(f"an IndexToString with {len(labels)} labels for {k} classes")
    return np.array(labels[:k])
