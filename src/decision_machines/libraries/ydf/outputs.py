"""What YDF makes of the leaves: values, their sum in the order of its engines, the link.

YDF predicts with the fastest engine that takes the model, and they add differently. QuickScorer
(boosted trees of at most 64 leaves, one output) begins with the initial prediction; the generic
engines begin with 0 and add it last; both add in float32, tree after tree. Forests divide each
leaf by the number of trees first. Models in which something missing does not go where the
feature's mean or most frequent label goes (LOCAL_IMPUTATION) fall to the slow engine, which adds in
float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine import ALL_OUTPUTS, Output
from ...machine.steps import Step
from ...run.links import libm
from .features import labels_of

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from .parts import Parts

CLASSIFICATION, REGRESSION, RANKING, ANOMALY_DETECTION = 1, 2, 3, 6
TASKS = {
    CLASSIFICATION: "CLASSIFICATION",
    REGRESSION: "REGRESSION",
    RANKING: "RANKING",
    4: "CATEGORICAL_UPLIFT",
    5: "NUMERICAL_UPLIFT",
    ANOMALY_DETECTION: "ANOMALY_DETECTION",
    7: "SURVIVAL_ANALYSIS",
}
MULTINOMIAL = 3
LOSSES: dict[int, tuple[str, str]] = {
    1: ("BINOMIAL_LOG_LIKELIHOOD", "ydf_sigmoid"),
    2: ("SQUARED_ERROR", "identity"),
    MULTINOMIAL: ("MULTINOMIAL_LOG_LIKELIHOOD", "ydf_softmax"),
    4: ("LAMBDA_MART_NDCG5", "identity"),
    5: ("XE_NDCG_MART", "identity"),
    6: ("BINARY_FOCAL_LOSS", "ydf_sigmoid"),
    7: ("POISSON", "ydf_exp"),
    8: ("MEAN_AVERAGE_ERROR", "identity"),
    9: ("LAMBDA_MART_NDCG", "identity"),
}
"""The losses by their numbers, and what becomes of the sum."""
QUICK_LEAVES, QUICK_TREES = 64, 65535
"""The most leaves of a tree and the most trees that QuickScorer takes."""


@dataclass(frozen=True)
class Values:
    """Leaf values and what becomes of them."""

    V: Float[np.ndarray, "L k"]
    feeds: Int[np.ndarray, "T"]
    output: Output


def values_of(
    parts: Parts,
    leaves: list[dict[str, Any]],
    depths: Int[np.ndarray, "L"],
    leaf_start: Int[np.ndarray, "T+1"],
    imputes: bool,
) -> Values:
    """The values of a forest of any kind.

    Parameters
    ----------
    imputes
        Whether YDF's fast engines take its missing values.
    """
    task = parts.header.get("task", 0)
    allowed = {
        "gradient_boosted_trees": (CLASSIFICATION, REGRESSION, RANKING),
        "random_forest": (CLASSIFICATION, REGRESSION),
        "isolation_forest": (ANOMALY_DETECTION,),
    }[parts.kind]
    if task not in allowed:
        raise parts.refuse(
            f"AbstractModel.task is {TASKS.get(task, task)} of a {parts.kind} model",
            f"train for one of {', '.join(TASKS[known] for known in allowed)}",
        )
    gives_logits = parts.forest.get("output_logits", False)
    if not parts.header.get("classification_outputs_probabilities", True) and not gives_logits:
        raise parts.refuse(
            "AbstractModel.classification_outputs_probabilities is false", "train it for labels"
        )
    if parts.kind == "gradient_boosted_trees":
        return _boosted(parts, leaves, leaf_start, imputes, task)
    if not imputes:
        raise parts.refuse(
            "something missing does not go where the feature's mean or most frequent label goes "
            "(LOCAL_IMPUTATION), so that YDF predicts with its slow engine",
            "train with missing_value_policy='GLOBAL_IMPUTATION'",
        )
    if parts.kind == "isolation_forest":
        return _isolation(parts, leaves, depths, leaf_start)
    return _forest(parts, leaves, leaf_start, task)


def _classes(parts: Parts) -> np.ndarray:
    at = parts.header.get("label_col_idx", 0)
    if not 0 <= at < len(parts.columns):
        raise parts.fault(f"AbstractModel.label_col_idx is {at} of {len(parts.columns)} columns")
    labels = labels_of(parts.columns[at], parts)[1:]
    if len(labels) < 2:
        raise parts.refuse(f"a classifier of {len(labels)} class", "train on two classes or more")
    return np.array(labels)


def _boosted(
    parts: Parts,
    leaves: list[dict[str, Any]],
    leaf_start: np.ndarray,
    imputes: bool,
    task: int,
) -> Values:
    loss = parts.forest.get("loss", 0)
    if loss not in LOSSES:
        raise parts.refuse(
            f"loss of the boosted trees' header is {loss}, which we do not know",
            f"train with one of {', '.join(name for name, _ in LOSSES.values())}",
        )
    name, link = LOSSES[loss]
    classes = _classes(parts) if task == CLASSIFICATION else None
    is_classified = link in ("ydf_sigmoid", "ydf_softmax")
    per_round = parts.forest.get("num_trees_per_iter", 1)
    k = len(classes) if classes is not None and loss == MULTINOMIAL else 1
    initial = np.array(parts.forest.get("initial_predictions", []), np.float32)
    n_trees = len(leaf_start) - 1
    if (
        is_classified != (classes is not None)
        or (link == "ydf_sigmoid" and classes is not None and len(classes) != 2)
        or per_round != k
        or len(initial) != k
        or n_trees % k
    ):
        raise parts.fault(
            f"{name} with {per_round} trees a round, {len(initial)} initial predictions and "
            f"{n_trees} trees for {k} outputs"
        )
    V = np.array([_regressor(leaf, parts) for leaf in leaves], np.float32)
    _finite(V, parts)
    _finite(initial, parts)
    if parts.forest.get("output_logits", False):
        link, classes = "identity", None
    is_quick = (
        k == 1 and n_trees <= QUICK_TREES and bool(np.all(np.diff(leaf_start) <= QUICK_LEAVES))
    )
    params: tuple[Step, ...] = ()
    dtype: Any = np.float32
    if not imputes:
        if k > 1 or link == "ydf_exp":
            raise parts.refuse(
                f"something missing does not go where the feature's mean or most frequent label "
                f"goes (LOCAL_IMPUTATION), with the loss {name}",
                "train with missing_value_policy='GLOBAL_IMPUTATION'",
            )
        dtype = np.float64
        if link == "identity":
            link, params = "onnx", (Step("single"),)
    elif k > 1 and np.any(initial):
        raise parts.refuse(
            "initial_predictions of MULTINOMIAL_LOG_LIKELIHOOD that are not 0",
            "train without initialize_with_class_priors",
        )
    output = Output(
        initial.astype(dtype),
        dtype,
        base_first=is_quick or not imputes or k > 1,
        link=link,
        link_params=params,
        classes=None if classes is None else (classes,),
    )
    return Values(V[:, None], np.arange(n_trees) % k, output)


def _forest(
    parts: Parts, leaves: list[dict[str, Any]], leaf_start: np.ndarray, task: int
) -> Values:
    n_trees = len(leaf_start) - 1
    if task == REGRESSION:
        V = np.array([_regressor(leaf, parts) for leaf in leaves], np.float32)
        V = V / np.float32(n_trees)
        _finite(V, parts)
        return Values(V[:, None], np.zeros(n_trees, np.int64), Output(np.zeros(1), np.float32))
    classes = _classes(parts)
    n = len(classes)
    shares = np.zeros((len(leaves), n), np.float32)
    winner_takes_all = parts.forest.get("winner_take_all_inference", True)
    for i, leaf in enumerate(leaves):
        if "classifier" not in leaf:
            raise parts.fault("a leaf of a classifier without Node.classifier")
        held = leaf["classifier"]
        if winner_takes_all:
            top = held.get("top_value", 0)
            if not 1 <= top <= n:
                raise parts.refuse(f"a leaf whose class is {top} of {n}", "train on known classes")
            shares[i, top - 1] = np.float32(1) / np.float32(n_trees)
        else:
            counts = held.get("distribution", {}).get("counts", [])
            total = held.get("distribution", {}).get("sum", 0.0)
            if len(counts) != n + 1 or not total > 0:
                raise parts.fault(f"a leaf with counts of {len(counts)} classes, not {n + 1}")
            shares[i] = np.array(counts[1:]) / (total * n_trees)
    _finite(shares, parts)
    output = Output(
        np.zeros(1 if n == 2 else n), np.float32, link="ydf_clamped", classes=(classes,)
    )
    if n == 2:
        return Values(shares[:, 1:], np.zeros(n_trees, np.int64), output)
    return Values(shares, np.full(n_trees, ALL_OUTPUTS), output)


def _isolation(
    parts: Parts, leaves: list[dict[str, Any]], depths: np.ndarray, leaf_start: np.ndarray
) -> Values:
    n_trees = len(leaf_start) - 1
    counts = []
    for leaf in leaves:
        if "anomaly_detection" not in leaf:
            raise parts.fault("a leaf of an isolation forest without Node.anomaly_detection")
        counts.append(leaf["anomaly_detection"].get("num_examples_without_weight", 0))
    expected = path_lengths(np.array([parts.forest.get("num_examples_per_trees", 0)]))
    if not expected[0] > 0 or n_trees == 0:
        raise parts.fault(
            f"num_examples_per_trees is {parts.forest.get('num_examples_per_trees', 0)}"
        )
    V = depths.astype(np.float32) + path_lengths(np.array(counts, np.int64))
    V = V / np.float32(n_trees)
    _finite(V, parts)
    output = Output(
        np.zeros(1),
        np.float32,
        link="ydf_anomaly",
        link_params=(float(expected[0]),),
    )
    return Values(V[:, None], np.zeros(n_trees, np.int64), output)


def path_lengths(counts: Int[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
    """The expected depth of a tree grown on so many rows, in float32 as YDF computes it.

    Examples
    --------
    >>> path_lengths(np.array([1, 2, 256])).tolist()
    [0.0, 1.0, 10.244771003723145]
    """
    n = counts.astype(np.float32)
    one, two = np.float32(1), np.float32(2)
    with np.errstate(all="ignore"):
        harmonic = libm.log(n - one) + np.float32(0.5772156649)
        found = two * harmonic - two * (n - one) / n
    return np.where(counts > 2, found, np.where(counts == 2, one, np.float32(0)))


def _regressor(leaf: dict[str, Any], parts: Parts) -> float:
    if "regressor" not in leaf:
        raise parts.fault("a leaf without Node.regressor")
    return float(leaf["regressor"].get("top_value", 0.0))


def _finite(values: np.ndarray, parts: Parts) -> None:
    if not np.all(np.isfinite(values)):
        raise parts.fault("a value of a leaf, or an initial prediction, that is not finite")
