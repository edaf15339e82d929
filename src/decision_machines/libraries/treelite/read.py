"""Treelite's models and checkpoints, which answer as GTIL's `predict` does.

Thresholds, leaves and rows are float32, or all float64. The sum starts at 0 and takes the leaves in
tree order; averages are divided before the base scores are added. GTIL adds base scores, which are
float64, to a float32 sum in float64 and rounds: where one is not a float32, it is part of the
link, and margins are without it. GTIL's answers have an axis for targets; ours have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InvariantError, ModelFormatError, UnsupportedModelError
from ...machine import ALL_OUTPUTS, DecisionMachine, Output, Trees, stored_cover
from ...machine.steps import Step
from ..document import WHOLE
from .checkpoint import Checkpoint, read_checkpoint
from .read_tests import Forest, read_forest
from .releases import RELEASES

if TYPE_CHECKING:
    from jaxtyping import Float

LINKS = {
    "identity": "identity",
    "identity_multiclass": "identity",
    "signed_square": "signed_square",
    "hinge": "xgboost_step",
    "sigmoid": "treelite_sigmoid",
    "multiclass_ova": "treelite_sigmoid",
    "exponential": "lightgbm_exp",
    "exponential_standard_ratio": "treelite_anomaly",
    "logarithm_one_plus_exp": "lightgbm_softplus",
    "softmax": "treelite_softmax",
}
"""Postprocessor → link."""
CLASSIFIES = {0: 2, 2: None}
"""Types of tasks that classify, and into how many classes; None for one for each output."""


def read_treelite(model: Any) -> DecisionMachine:
    """The machine of a `treelite.Model`; it answers as `treelite.gtil.predict` does."""
    kind = type(model).__name__
    if not hasattr(model, "serialize_bytes"):
        raise UnsupportedModelError(
            f"reading a Treelite {kind}", "it is not a treelite.Model", "pass one"
        )
    return _read(model.serialize_bytes(), f"reading a Treelite {kind}", f"Treelite {kind}")


def read_treelite_bytes(data: bytes, source: str = "model file") -> DecisionMachine:
    """The machine of a checkpoint."""
    return _read(data, f"reading the Treelite checkpoint {source}", f"Treelite {source}")


def _read(data: bytes, doing: str, source: str) -> DecisionMachine:
    checkpoint = read_checkpoint(bytes(data), doing)
    RELEASES.note(checkpoint.release, doing)
    header = checkpoint.header
    n_targets, classes = header["num_target"], header["num_class"].tolist()
    if len(classes) != n_targets or n_targets < 1 or min(classes) < 1:
        raise ModelFormatError(
            doing, f"num_class is {classes!r:.60} for {n_targets} targets (num_target)", WHOLE
        )
    if n_targets > 1 and max(classes) > 1:
        raise UnsupportedModelError(
            doing,
            f"{n_targets} targets (num_target) with several classes each (num_class)",
            "write a model for each target",
        )
    k = max(n_targets, classes[0])
    if k > max(len(data), 1):
        raise ModelFormatError(doing, f"{k} outputs (num_target, num_class)", WHOLE)
    forest = read_forest(checkpoint, doing)
    feeds, V = _values(checkpoint, forest, n_targets, k, doing)
    output = _output(checkpoint, feeds, n_targets, k, doing)
    try:
        return DecisionMachine(
            columns=forest.columns,
            selection=forest.selection,
            t=forest.t,
            missing=forest.missing,
            children=forest.found.children,
            V=V,
            trees=Trees(
                forest.found.test_start, feeds, test_ids=forest.test_ids, leaf_ids=forest.leaf_ids
            ),
            output=output,
            source=source,
            cover=_cover(checkpoint, forest),
        )
    except InvariantError as error:
        raise ModelFormatError(doing, error.found, WHOLE) from None


def _values(
    checkpoint: Checkpoint, forest: Forest, n_targets: int, k: int, doing: str
) -> tuple[np.ndarray, Float[np.ndarray, "L k"]]:
    """What each tree feeds, and the values of the leaves."""
    header, trees = checkpoint.header, checkpoint.trees
    target, class_ = header["target_id"].tolist(), header["class_id"].tolist()
    if len(target) != len(trees) or len(class_) != len(trees):
        raise ModelFormatError(
            doing, f"target_id and class_id of {len(target)} and {len(class_)} trees", WHOLE
        )
    fed = class_ if n_targets == 1 else target
    other = target if n_targets == 1 else class_
    if any(o not in (0, -1) for o in other) or any(not -1 <= f < k for f in fed):
        raise ModelFormatError(doing, "target_id or class_id names an output of none", WHOLE)
    shape = header["leaf_vector_shape"].tolist()
    is_vector = shape != [1, 1]
    wanted = [1, k] if n_targets == 1 else [k, 1]
    if is_vector and (shape != wanted or any(f != -1 for f in fed)):
        raise UnsupportedModelError(
            doing,
            f"leaf_vector_shape is {shape!r:.40} for {k} outputs, fed by some trees alone",
            "give a model whose leaves hold a value for every output, or one value",
        )
    if not is_vector and any(f == -1 or o == -1 for f, o in zip(fed, other, strict=True)):
        if k > 1:
            raise ModelFormatError(doing, "a tree of single values that feeds all outputs", WHOLE)
        fed = [0] * len(trees)
    parts = []
    for i, tree in enumerate(trees):
        leaves = forest.leaf_ids[forest.leaves(i)]
        begin, end = (tree[f"leaf_vector_{w}"][leaves].astype(np.int64) for w in ("begin", "end"))
        has_vector = end != begin
        if not is_vector:
            if np.any(has_vector & (end - begin != 1)):
                raise ModelFormatError(doing, f"a leaf of tree {i} with several values", WHOLE)
            found = tree["leaf_value"][leaves]
            if np.any(has_vector):
                _within(begin, end, tree["leaf_vector"], i, doing)
                found = np.where(has_vector, tree["leaf_vector"][begin * has_vector], found)
            parts.append(found[:, None])
            continue
        if np.any(end - begin != k):
            raise ModelFormatError(doing, f"a leaf of tree {i} without {k} values", WHOLE)
        _within(begin, end, tree["leaf_vector"], i, doing)
        parts.append(tree["leaf_vector"][begin[:, None] + np.arange(k)])
    width = k if is_vector or not trees else 1
    V = np.concatenate(parts) if parts else np.empty((0, width), checkpoint.dtype)
    if not np.all(np.isfinite(V)):
        raise ModelFormatError(doing, "a leaf value that is not finite", WHOLE)
    return (np.full(len(trees), ALL_OUTPUTS) if is_vector else np.array(fed, np.int64)), V


def _within(begin: np.ndarray, end: np.ndarray, held: np.ndarray, tree: int, doing: str) -> None:
    if np.any((begin < 0) | (end > len(held)) | (begin > end)):
        raise ModelFormatError(doing, f"leaf vectors outside those of tree {tree}", WHOLE)


def _output(
    checkpoint: Checkpoint, feeds: np.ndarray, n_targets: int, k: int, doing: str
) -> Output:
    header, dtype = checkpoint.header, checkpoint.dtype
    name = header["postprocessor"]
    if name not in LINKS:
        raise UnsupportedModelError(
            doing,
            f"postprocessor is {name!r:.60}, which we do not know",
            f"use one of {', '.join(LINKS)}",
        )
    base = header["base_scores"]
    if len(base) != k or not np.all(np.isfinite(base)):
        raise ModelFormatError(doing, f"{len(base)} base_scores for {k} outputs", WHOLE)
    divisor = 1.0
    if header["average_tree_output"]:
        counts = {int(np.count_nonzero((feeds == o) | (feeds < 0))) for o in range(k)}
        if len(counts) != 1 or 0 in counts:
            raise UnsupportedModelError(
                doing,
                f"average_tree_output over {sorted(counts)} trees of the outputs",
                "give a model with as many trees for each output",
            )
        divisor = float(counts.pop())
    link = LINKS[name]
    params: tuple[Any, ...] = ()
    if link == "treelite_sigmoid":
        params = (_positive(header["sigmoid_alpha"], "sigmoid_alpha", doing),)
    if link == "treelite_anomaly":
        params = (_positive(header["ratio_c"], "ratio_c", doing),)
    own = base.astype(dtype)
    if not np.array_equal(own.astype(np.float64), base):
        link, params, own = "onnx", _steps(name, header, base, doing), np.zeros(k, dtype)
    n_classes = CLASSIFIES.get(header["task_type"], 0) if n_targets == 1 else 0
    labels = None
    if n_classes != 0 and (k > 1) == (n_classes is None):
        labels = (np.arange(n_classes or k),)
    groups = None if n_targets == 1 else tuple(range(k + 1)) if name == "softmax" else None
    return Output(
        own,
        dtype,
        base_first=False,
        divisor=divisor,
        link=link,
        link_params=params,
        classes=labels,
        groups=groups,
    )


def _positive(value: float, name: str, doing: str) -> float:
    if not 0 < value < np.inf:
        raise ModelFormatError(doing, f"{name} is {value}", WHOLE)
    return float(value)


def _steps(name: str, header: dict[str, Any], base: np.ndarray, doing: str) -> tuple[Step, ...]:
    """The base scores added in float64, and the postprocessor."""
    alpha = header["sigmoid_alpha"]
    sigmoid = (
        Step("multiply", (-alpha,)),
        Step("libm_exp"),
        Step("add", (1.0,)),
        Step("divide_into", (1.0,)),
    )
    after: dict[str, tuple[Step, ...]] = {
        "identity": (),
        "identity_multiclass": (),
        "sigmoid": sigmoid,
        "multiclass_ova": sigmoid,
        "exponential": (Step("libm_exp"),),
        "logarithm_one_plus_exp": (Step("libm_exp"), Step("libm_log1p")),
    }
    if name not in after:
        raise UnsupportedModelError(
            doing,
            f"base_scores that are not float32, with the postprocessor {name!r}",
            "give base scores that are float32, or a model of float64",
        )
    return (Step("double"), Step("add", tuple(base.tolist())), Step("single"), *after[name])


def _cover(checkpoint: Checkpoint, forest: Forest) -> Any:
    """The sums of hessians, or the counts of rows, where the model has them for every node."""
    for name in ("sum_hess", "data_count"):
        if checkpoint.trees and all(
            len(tree[name]) == tree["num_nodes"] and np.all(tree[f"{name}_present"])
            for tree in checkpoint.trees
        ):
            held = np.concatenate([tree[name] for tree in checkpoint.trees]).astype(np.float64)
            found = forest.found
            return stored_cover(held[found.tests], held[found.leaves], found.test_start)
    return None
