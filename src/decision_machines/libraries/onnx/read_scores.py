"""What ONNX's tree operators make of the weights of the leaves reached, as ONNX Runtime does it.

Weights are added in the dtype of the thresholds, tree after tree, the base values last. This is the
order of one thread; with several threads ONNX Runtime adds partial sums, in other bits.

A classifier of two classes has rules of its own. With weights for class 0 alone, the sum s belongs
to class 1: its scores are (1 - s, s) where no weight is negative, else (-s, s).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UnsupportedModelError
from ...machine import ALL_OUTPUTS
from ...machine.trees import ranges
from .steps import TRANSFORMS
from .values import Attributes, refuse

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    from .read_trees import Graph

STEPS_OF = {"NONE": [], **{name: [step] for step, name in TRANSFORMS.items()}}
"""The steps of each post_transform."""
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


@dataclass
class Scores:
    """How sums become what the operator answers."""

    k: int
    """Sums that are kept."""
    base: Float[np.ndarray, "k"]
    steps: list[str]
    n_columns: int
    """Columns of the answer."""
    dtype: Any = np.float32
    """Of the answer."""
    aggregate: str = "SUM"
    labels: np.ndarray | None = None
    decision: str = "response"
    decision_params: tuple[float, ...] = ()
    output_of: dict[int, int] = field(default_factory=dict)
    """Which sum a weight's id adds to; itself where nothing is said."""


@dataclass(frozen=True)
class Leaves:
    """V, the output that each tree feeds, and which outputs every row is sure to have."""

    V: Float[np.ndarray, "L k"]
    feeds: Int[np.ndarray, "T"] | None
    always: Bool[np.ndarray, "k"]
    some_positive: bool
    """Whether every row is sure to reach a weight above 0."""


def gather(
    graph: Graph, leaves: np.ndarray, tree_start: np.ndarray, scores: Scores, doing: str
) -> Leaves:
    """The leaf values of the machine, from the weights of the graph's leaves."""
    output = graph.weight_output
    if np.any((output < 0) | (output > 1 << 24)):
        refuse(doing, "a weight for an output that does not exist")
    if scores.output_of:
        output = np.array([scores.output_of[i] for i in output.tolist()], np.int64)
    if np.any(output >= scores.k):
        refuse(doing, f"a weight for output {output.max()} of {scores.k}")
    if not np.all(np.isfinite(graph.weight)):
        refuse(doing, "a weight that is not a finite number")
    order = np.argsort(graph.weight_node, kind="stable")
    counts = np.bincount(graph.weight_node, minlength=len(graph.mode))
    start = np.concatenate([[0], np.cumsum(counts)])
    counts = counts[leaves]
    which = order[ranges(start, leaves)]
    row = np.repeat(np.arange(len(leaves)), counts)
    output, weight = output[which], graph.weight[which]
    if scores.k == 1 and np.any(counts != 1):
        refuse(doing, f"a leaf with {counts[counts != 1][0]} weights for the one output")
    firsts = tree_start[:-1]
    positive = np.zeros(len(leaves), bool)
    positive[row[weight > 0]] = True
    some_positive = bool(np.any(_all_of_tree(positive, firsts)))
    dtype = scores.base.dtype
    if scores.k > 1 and len(firsts) and np.all(counts == 1):
        fed = output[firsts]
        if np.array_equal(np.repeat(fed, np.diff(tree_start)), output):
            always = np.bincount(fed, minlength=scores.k) > 0
            return Leaves(weight[:, None].astype(dtype), fed, always, some_positive)
    absent = {"MIN": np.inf, "MAX": -np.inf}.get(scores.aggregate, 0.0)
    V = np.full((len(leaves), scores.k), absent, dtype)
    V[row, output] = weight
    has = np.zeros(V.shape, bool)
    has[row, output] = True
    if np.count_nonzero(has) < len(row):
        raise UnsupportedModelError(
            doing, "a leaf with two weights for one output", "add the two weights up"
        )
    always = np.any(_all_of_tree(has, firsts), axis=0)
    if scores.aggregate in ("MIN", "MAX") and not np.all(always):
        raise UnsupportedModelError(
            doing,
            f"output {np.argmin(always)} of an aggregate {scores.aggregate} has weights in some "
            "leaves only",
            "give every leaf a weight for every output",
        )
    feeds = np.zeros(len(firsts), np.int64) if scores.k == 1 else np.full(len(firsts), ALL_OUTPUTS)
    return Leaves(V, feeds, always, some_positive)


def _all_of_tree(values: np.ndarray, firsts: np.ndarray) -> np.ndarray:
    if not len(firsts):
        return np.zeros((1, *values.shape[1:]), bool)
    return np.logical_and.reduceat(values, firsts, axis=0)


def regressor(attributes: Attributes, n_targets: int, dtype: Any) -> Scores:
    """The scores of a TreeEnsembleRegressor."""
    base = attributes.numbers("base_values")
    aggregate = attributes.text("aggregate_function", "SUM")
    transform = attributes.text("post_transform", "NONE")
    if len(base) not in (0, n_targets) or n_targets < 1 or n_targets > 1 << 20:
        refuse(attributes.doing, f"{len(base)} base values for {n_targets} targets")
    return Scores(
        n_targets,
        (base if len(base) else np.zeros(n_targets)).astype(dtype),
        [*_steps(transform, n_targets, attributes.doing), "single"],
        n_targets,
        aggregate=_aggregate(aggregate, attributes.doing),
    )


def ensemble_5(attributes: Attributes, dtype: Any) -> Scores:
    """The scores of a TreeEnsemble of version 5."""
    n_targets = attributes.integer("n_targets", 0)
    aggregate = attributes.integer("aggregate_function", 1)
    transform = attributes.integer("post_transform", 0)
    if not 1 <= n_targets <= 1 << 20 or not 0 <= aggregate < len(AGGREGATES):
        refuse(attributes.doing, f"{n_targets} targets, aggregated by {aggregate}")
    # The specification calls 1 SOFTMAX and 2 LOGISTIC, ONNX Runtime the other way round.
    known = {0: "NONE"} if dtype == np.float64 else {0: "NONE", 3: "SOFTMAX_ZERO", 4: "PROBIT"}
    if transform not in known:
        raise UnsupportedModelError(
            attributes.doing,
            f"post_transform {transform}, which ONNX Runtime and the specification of version 5 "
            "understand differently",
            "leave the transform to an operator Softmax or Sigmoid after the trees",
        )
    return Scores(
        n_targets,
        np.zeros(n_targets, dtype),
        _steps(known[transform], n_targets, attributes.doing),
        n_targets,
        dtype,
        AGGREGATES[aggregate],
    )


def classifier(attributes: Attributes, dtype: Any) -> Scores:
    """The scores and labels of a TreeEnsembleClassifier."""
    doing = attributes.doing
    texts, numbers = (
        attributes.texts("classlabels_strings"),
        attributes.integers("classlabels_int64s"),
    )
    labels = np.array(texts) if texts else numbers
    n = len(labels)
    base = attributes.numbers("base_values")
    transform = attributes.text("post_transform", "NONE")
    if n < 2:
        raise UnsupportedModelError(
            doing, f"a classifier of {n} classes", "train it on data of at least two classes"
        )
    if n > 2:
        if len(base) not in (0, n):
            refuse(doing, f"{len(base)} base values for {n} classes")
        return Scores(
            n,
            (base if len(base) else np.zeros(n)).astype(dtype),
            [*_steps(transform, n, doing), "single"],
            n,
            labels=labels,
            decision="argmax_margin",
        )
    ids = set(attributes.integers("class_ids").tolist())
    weights = attributes.numbers("class_weights")
    # Where no weight is negative, scores are taken for probabilities.
    threshold = 0.5 if not np.any(weights < 0) else 0.0
    if ids == {0} and len(base) <= 1 and transform != "PROBIT":
        pair = "complement" if threshold and transform != "LOGISTIC" else "opposite"
        steps = [pair, "logistic"] if transform == "LOGISTIC" else [pair]
        _steps(transform, 2, doing)
        return Scores(
            1,
            (base if len(base) else np.zeros(1)).astype(dtype),
            [*steps, "single"],
            2,
            labels=labels,
            decision="margin_above",
            decision_params=(threshold,),
        )
    if ids == {1} and not len(base):
        return Scores(
            1,
            np.zeros(1, dtype),
            ["beside_zero", *_steps(transform, 2, doing), "single"],
            2,
            labels=labels,
            decision="margin_above",
            decision_params=(threshold,),
            output_of={1: 0},
        )
    if ids == {0, 1} and not len(base):
        # ONNX Runtime answers 0 and 1 here, whatever the integers that are the labels.
        return Scores(
            2,
            np.zeros(2, dtype),
            [*_steps(transform, 2, doing), "single"],
            2,
            labels=labels,
            decision="second_margin_above",
            decision_params=(0.0, 0.0 if texts else 1.0),
        )
    raise UnsupportedModelError(
        doing,
        f"two classes with weights for the classes {sorted(ids)}, {len(base)} base values and the "
        f"transform {transform}: ONNX Runtime then leaves some of them out",
        "give all weights to class 0, and one base value",
    )


def check_certain(scores: Scores, leaves: Leaves, has_base: bool, doing: str) -> None:
    """Refuse where the answer depends on which outputs a row's leaves happen to mention."""
    if np.all(leaves.always) or (scores.labels is not None and scores.k > 2 and has_base):
        return
    if scores.labels is None and not has_base:
        return
    if scores.k > 2 and leaves.some_positive and np.all(leaves.V >= 0):
        return
    raise UnsupportedModelError(
        doing,
        f"output {np.argmin(leaves.always)} has no weight in some leaves, and ONNX Runtime leaves "
        "an output out of a row where no leaf has one",
        "give every leaf of a tree a weight for every output, 0 where it has none",
    )


def _steps(transform: str, n: int, doing: str) -> list[str]:
    if transform not in STEPS_OF:
        raise UnsupportedModelError(
            doing, f"the post_transform {transform!r}", f"use one of {', '.join(STEPS_OF)}"
        )
    # ONNX Runtime transforms a single score by PROBIT only.
    return STEPS_OF[transform] if n > 1 or transform == "PROBIT" else []


def _aggregate(name: str, doing: str) -> str:
    if name not in AGGREGATES:
        raise UnsupportedModelError(
            doing, f"the aggregate_function {name!r}", f"use one of {', '.join(AGGREGATES)}"
        )
    return name
