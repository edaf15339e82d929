"""A machine as an XGBoost model: made as the JSON that XGBoost saves, and loaded by it.

x ≤ t becomes x < next(t) in float32. XGBoost takes the child after the left one for the right one,
so siblings are numbered one after the other. Sums are float32, from the base score on, so only a
machine that sums so is written. A base score that no value of the objective's has for its margin
is a first tree of one leaf instead.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from ..machine import Rule
from .limits import Limits, flags, margins_only, memberships, missing_answers, require
from .nodes import nodes_of

if TYPE_CHECKING:
    from ..machine import DecisionMachine, Output
    from .nodes import Nodes

ROOT = 2**31 - 1
MOST_CATEGORIES = 2**24


def to_xgboost(machine: DecisionMachine, *, margins: bool = False) -> Any:
    """A Booster, or an XGBClassifier; see `DecisionMachine.to_xgboost`."""
    limits = Limits(machine, "an XGBoost model")
    xgboost = require("xgboost", limits.doing)
    text = xgboost_json(machine, margins=margins, vectors=_version(xgboost) >= (3, 2))
    classify = not margins and machine.output.decision not in ("response",)
    model = xgboost.XGBClassifier() if classify else xgboost.Booster()
    model.load_model(bytearray(text))
    return model


def _version(xgboost: Any) -> tuple[int, ...]:
    return tuple(int(part) for part in xgboost.__version__.split(".")[:2])


def xgboost_json(machine: DecisionMachine, *, margins: bool = False, vectors: bool = True) -> bytes:
    """The content of the model file, JSON.

    Parameters
    ----------
    vectors
        Whether leaves of several values are written as such, as XGBoost 3.2 reads them; else
        each tree becomes one for each output.
    """
    machine = margins_only(machine) if margins else machine
    limits = Limits(machine, "an XGBoost model")
    _check(machine, limits)
    objective = _objective(machine.output, limits)
    trees, score = _forest(machine, objective, vectors)
    k = machine.n_outputs
    is_multiclass = objective.name.startswith("multi:")
    columns = machine.columns
    categorical = {int(columns.feature[machine.selection[j]]) for j in memberships(machine)}
    learner = {
        "attributes": _attributes(machine.output),
        "feature_names": list(columns.names or ()),
        "feature_types": ["c" if f in categorical else "float" for f in range(columns.n_features)]
        if categorical
        else [],
        "gradient_booster": {
            "model": {
                "cats": _labels(machine, limits),
                "gbtree_model_param": {
                    "num_parallel_tree": "1",
                    "num_trees": str(len(trees.feeds)),
                },
                "iteration_indptr": trees.rounds,
                "tree_info": trees.feeds,
                "trees": trees.written,
            },
            "name": "gbtree",
        },
        "learner_model_param": {
            "base_score": "[" + ",".join(str(s) for s in score) + "]",
            "boost_from_average": "0",
            "num_class": str(k if is_multiclass else 0),
            "num_feature": str(columns.n_features),
            "num_target": str(1 if is_multiclass else k),
        },
        "objective": {"name": objective.name, **objective.params(k)},
    }
    return json.dumps({"learner": learner, "version": [3, 2, 0]}).encode()


def _check(machine: DecisionMachine, limits: Limits) -> None:
    limits.columns((Rule.VALUE, Rule.NAN_AS_ZERO, Rule.MEMBER), np.float32)
    limits.constant_leaves()
    limits.plain_sum()
    output, sets = machine.output, machine.columns.sets
    if output.dtype != np.float32 or output.divisor != 1 or output.scale != 1:
        limits.refuse(
            f"its trees are summed in {output.dtype} with output.divisor {output.divisor:g} and "
            f"output.scale {output.scale:g}; XGBoost adds in float32 and does no more",
            "use to_lightgbm or to_onnx; or, if rounding to float32 may change the last digits, "
            "fold divisor and scale into V and set output.dtype to float32 with "
            "dataclasses.replace",
        )
    if not np.all(np.isfinite(machine.V)):
        limits.refuse("V has a value that is not finite", "keep the machine with machine.save")
    limits.where(
        np.isposinf(machine.t) & (machine.columns.rule[machine.selection] != Rule.MEMBER),
        "has the threshold inf, which XGBoost's x < t cannot have all numbers below",
        "use to_lightgbm or to_onnx",
    )
    found = memberships(machine)
    if not found:
        return
    if sets.negative_fractions or sets.whole:
        limits.where(
            flags(machine, found),
            "reads a category set in which -0.5 is category 0, or a fraction is none "
            "(columns.sets.negative_fractions, .whole); XGBoost cuts off fractions above 0",
            "use to_lightgbm or to_onnx",
        )
    limits.where(
        flags(
            machine, (j for j, m in found.items() if max(_right(m), default=0) >= MOST_CATEGORIES)
        ),
        f"has a category of {MOST_CATEGORIES} or more, which XGBoost does not look up",
        "number the categories from 0 on",
    )


def _right(m) -> np.ndarray:
    """The set as XGBoost keeps it: what does not go where all else goes."""
    return m.right if m.outside < 0 else m.left


# ---------------------------------------------------------------------- trees


@dataclass
class _Written:
    written: list[dict]
    feeds: list[int]
    rounds: list[int]


def _forest(machine: DecisionMachine, objective: _Objective, vectors: bool):
    """The trees, and the base score of each output."""
    output, k = machine.output, machine.n_outputs
    zero, none = _scores(objective, np.zeros(k, np.float32)), [np.zeros(k, np.float32)]
    first, last = ([output.base], none) if output.base_first else (none, [output.base])
    score = _scores(objective, output.base) if output.base_first else None
    if score is not None:
        first = none
    assert zero is not None
    values = machine.V.astype(np.float32)
    is_vector = not machine.is_narrow and k > 1 and vectors
    # Everything x goes to the side where a set's members do not go: a test whose other values go
    # right has its sides exchanged.
    sets = memberships(machine)
    swap = flags(machine, (j for j, m in sets.items() if m.outside > 0))
    nodes = nodes_of(machine, swap, siblings_together=True)
    parts = _parts(machine, nodes, sets, swap)
    if is_vector:
        trees = [_tree(machine, parts, nodes, i, values) for i in range(machine.n_trees)]
        feeds = [0] * len(trees)
    elif machine.is_narrow or k == 1:
        trees = [_tree(machine, parts, nodes, i, values) for i in range(machine.n_trees)]
        feeds = np.maximum(machine.trees.feeds, 0).tolist()
    else:
        trees = [
            _tree(machine, parts, nodes, i, values[:, [o]])
            for i in range(machine.n_trees)
            for o in range(k)
        ]
        feeds = list(range(k)) * machine.n_trees

    def constants(bases: list[np.ndarray]) -> list[tuple[dict, int]]:
        if not np.any(bases[0]):
            return []
        rows = [bases[0]] if is_vector else [bases[0][[o]] for o in range(k)]
        return [(_constant(row, machine.n_features), o) for o, row in enumerate(rows)]

    before, after = constants(first), constants(last)
    every = [*before, *zip(trees, feeds, strict=True), *after]
    for i, (tree, _) in enumerate(every):
        tree["id"] = i
    fed = [feed for _, feed in every]
    per_round = 1 if is_vector else k
    is_tiled = fed == [i % per_round for i in range(len(fed))] and len(fed) % per_round == 0
    rounds = list(range(0, len(fed) + 1, per_round)) if is_tiled else [0, len(fed)]
    return _Written([tree for tree, _ in every], fed, rounds), zero if score is None else score


def _parts(machine: DecisionMachine, nodes: Nodes, sets: dict, swap: np.ndarray) -> dict[str, Any]:
    """The arrays of all nodes, side by side."""
    t = np.nextafter(machine.t, np.float32(np.inf))
    is_member = machine.columns.rule[machine.selection] == Rule.MEMBER
    goes_left = (missing_answers(machine) < 0) != swap
    return {
        "feature": nodes.spread(machine.columns.feature[machine.selection], 0),
        "t": nodes.spread(np.where(is_member, np.float32(0), t), np.float32(0)),
        "default_left": nodes.spread(goes_left.astype(np.int64), 0),
        "split_type": nodes.spread(is_member.astype(np.int64), 0),
        "sets": sets,
    }


def _tree(machine: DecisionMachine, parts: dict, nodes: Nodes, i: int, values: np.ndarray) -> dict:
    at = nodes.tree(i)
    left, right = nodes.left[at], nodes.right[at]
    n, k = len(left), values.shape[1]
    is_leaf = left < 0
    leaf = nodes.leaf[at]
    parents = np.full(n, ROOT if k == 1 else -1)
    inner = np.flatnonzero(~is_leaf)
    parents[left[inner]] = parents[right[inner]] = inner
    held = np.zeros((n, k), np.float32)
    held[is_leaf] = values[leaf[is_leaf]]
    conditions = parts["t"][at].copy()
    found: dict[str, Any] = {}
    if k == 1:
        conditions[is_leaf] = held[is_leaf, 0]
    else:
        # A leaf's right child is its row among the vectors.
        right = right.copy()
        right[is_leaf] = np.arange(np.count_nonzero(is_leaf))
        found["leaf_weights"] = _floats(held[is_leaf].reshape(-1))
    members = [
        (int(node), _right(parts["sets"][int(nodes.test[at][node])]).tolist())
        for node in np.flatnonzero(parts["split_type"][at])
    ]
    sizes = [len(which) for _, which in members]
    return found | {
        "base_weights": _floats(held.reshape(-1)),
        "categories": [c for _, which in members for c in which],
        "categories_nodes": [node for node, _ in members],
        "categories_segments": (np.cumsum(sizes) - sizes).astype(int).tolist() if sizes else [],
        "categories_sizes": sizes,
        "default_left": parts["default_left"][at].tolist(),
        "left_children": left.tolist(),
        "loss_changes": [0.0] * n,
        "parents": parents.tolist(),
        "right_children": right.tolist(),
        "split_conditions": _floats(conditions),
        "split_indices": parts["feature"][at].tolist(),
        "split_type": parts["split_type"][at].tolist(),
        "sum_hessian": [0.0] * n,
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(machine.n_features),
            "num_nodes": str(n),
            "size_leaf_vector": str(k),
        },
    }


def _constant(values: np.ndarray, n_features: int) -> dict:
    """A tree of one leaf."""
    k = len(values)
    none: list = []
    return ({"leaf_weights": _floats(values)} if k > 1 else {}) | {
        "base_weights": _floats(values),
        **dict.fromkeys(
            ("categories", "categories_nodes", "categories_segments", "categories_sizes"), none
        ),
        "default_left": [0],
        "left_children": [-1],
        "loss_changes": [0.0],
        "parents": [ROOT if k == 1 else -1],
        "right_children": [-1 if k == 1 else 0],
        "split_conditions": _floats(values) if k == 1 else [0.0],
        "split_indices": [0],
        "split_type": [0],
        "sum_hessian": [0.0],
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(n_features),
            "num_nodes": "1",
            "size_leaf_vector": str(k),
        },
    }


def _floats(values: np.ndarray) -> list[float]:
    """Floats that JSON writes with the fewest digits that tell float32 numbers apart."""
    return [float(str(v)) for v in np.asarray(values, np.float32)]


# ---------------------------------------------------------------------- objective, labels


@dataclass(frozen=True)
class _Objective:
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


def _objective(output: Output, limits: Limits) -> _Objective:
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
    same = (None, None)
    logistic = (lambda m: 1 / (1 + np.exp(-m)), _logit)
    exponential = (np.exp, _log)
    table: dict[tuple[str, str], tuple] = {
        ("identity", "response"): ("reg:squarederror", *same),
        ("xgboost_exp", "response"): ("count:poisson", *exponential),
        ("xgboost_rounded_exp", "response"): ("survival:aft", *exponential),
        ("xgboost_step", "response"): ("binary:hinge", *same),
        ("xgboost_step", "above"): ("binary:hinge", *same),
        ("xgboost_sigmoid", "above"): ("binary:logistic", *logistic),
        ("xgboost_sigmoid", "above_each"): ("binary:logistic", *logistic),
        ("identity", "above"): ("binary:logitraw", *same),
        ("xgboost_softmax", "response"): ("multi:softprob", *same),
        ("xgboost_softmax", "argmax"): ("multi:softprob", *same),
        ("xgboost_softmax", "argmax_margin"): ("multi:softmax", *same),
        ("softmax", "argmax_margin"): ("multi:softmax", *same),
    }
    if (output.link, decides) == ("xgboost_sigmoid", "response"):
        name = "reg:logistic" if labels is None else "binary:logistic"
        return _Objective(name, *logistic)
    if (output.link, decides) not in table:
        limits.unknown_link()
    found = _Objective(*table[output.link, decides])
    if found.name.startswith("multi:") and (k < 2 or not numbered):
        limits.unknown_link()
    if found.name == "reg:squarederror" and labels is not None:
        limits.unknown_link()
    return found


def _attributes(output: Output) -> dict[str, str]:
    """A classifier says so in its file."""
    if output.decision == "response":
        return {}
    return {"scikit_learn": json.dumps({"_estimator_type": "classifier"})}


def _log(score: np.ndarray) -> np.ndarray:
    """log in float32, by the C library that XGBoost itself calls, to agree in the last bit."""
    found = np.where(score > 0, score, np.float32(np.nan))
    _native.libm("log", found)
    return found


def _logit(score: np.ndarray) -> np.ndarray:
    one = np.float32(1)
    with np.errstate(all="ignore"):
        return -_log(one / score - one)


def _scores(objective: _Objective, base: np.ndarray) -> np.ndarray | None:
    """Base scores in the objective's own scale whose margins are `base`, or None."""
    if objective.to_margin is None:
        return base
    found = []
    for margin in base:
        with np.errstate(all="ignore"):
            near = np.float32(objective.to_score(np.float64(margin)))
        # A float32 has many base scores for one margin or one for several: look around.
        bits = near.view(np.int32) + np.arange(-64, 65, dtype=np.int32)
        near = bits.view(np.float32)
        with np.errstate(all="ignore"):
            hits = near[(objective.to_margin(near) == margin) & np.isfinite(near)]
        if not len(hits):
            return None
        found.append(hits[len(hits) // 2])
    return np.array(found, np.float32)


def _labels(machine: DecisionMachine, limits: Limits) -> dict[str, list]:
    """The labels of categorical features, as XGBoost 3.1 and newer keep them."""
    columns = machine.columns
    if columns.encodes_arrays or columns.label_hash or columns.table_categories is not None:
        limits.no_labels()
    if not columns.categories:
        return {"enc": [], "feature_segments": [], "sorted_idx": []}
    if not columns.refuses_new_labels:
        limits.no_labels()
    stored, sizes, order = [], [], []
    for feature in range(columns.n_features):
        labels = columns.categories.get(feature, ())
        if all(isinstance(label, str) and label.isascii() for label in labels):
            ends = np.cumsum([0, *map(len, labels)]).tolist() if labels else []
            stored.append({"offsets": ends, "values": list("".join(labels).encode())})
        elif all(type(label) is int and abs(label) < 2**63 for label in labels):
            stored.append({"type": INT64, "values": list(labels)})
        else:
            limits.refuse(
                f"columns.categories[{feature}] has labels that are neither ASCII text nor all "
                "whole numbers, which XGBoost does not keep",
                "write the machine for codes: see machine.features",
            )
        sizes.append(len(labels))
        order += sorted(range(len(labels)), key=labels.__getitem__)
    segments = np.cumsum([0, *sizes]).tolist()
    return {"enc": stored, "feature_segments": segments, "sorted_idx": order}


INT64 = 15
