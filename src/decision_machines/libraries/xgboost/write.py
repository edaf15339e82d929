"""A machine as an XGBoost model: made as the JSON that XGBoost saves, and loaded by it.

x ≤ t becomes x < next(t) in float32. XGBoost takes the child after the left one for the right one,
so siblings are numbered one after the other. Sums are float32, from the base score on, so only a
machine that sums so is written. A base score that no value of the objective's has for its margin
is a first tree of one leaf instead.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine import Rule
from ..limits import Limits, flags, margins_only, memberships, require
from .write_objectives import objective_of
from .write_trees import forest_of, right_set

if TYPE_CHECKING:
    from ...machine import DecisionMachine, Output

NEWEST = (3, 2)
"""The version of XGBoost whose files we write where it is not asked for another."""
MOST_CATEGORIES = 2**24


def to_xgboost(machine: DecisionMachine, *, margins: bool = False) -> Any:
    """A Booster, or an XGBClassifier; see `DecisionMachine.to_xgboost`."""
    limits = Limits(machine, "an XGBoost model")
    xgboost = require("xgboost", limits.doing)
    text = xgboost_json(machine, margins=margins, version=_version(xgboost))
    classify = not margins and machine.output.decision not in ("response",)
    model = xgboost.XGBClassifier() if classify else xgboost.Booster()
    model.load_model(bytearray(text))
    return model


def _version(xgboost: Any) -> tuple[int, int]:
    major, minor = xgboost.__version__.split(".")[:2]
    return int(major), int(minor)


def xgboost_json(
    machine: DecisionMachine, *, margins: bool = False, version: tuple[int, int] = NEWEST
) -> bytes:
    """The content of the model file, JSON, for a version of XGBoost."""
    machine = margins_only(machine) if margins else machine
    limits = Limits(machine, "an XGBoost model")
    _check(machine, limits)
    objective = objective_of(machine.output, limits)
    trees, score = forest_of(machine, objective, version)
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
                "cats": _labels(machine, limits, version),
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
            "base_score": f"[{','.join(map(str, score))}]" if version >= (3, 1) else str(score[0]),
            "boost_from_average": "0",
            "num_class": str(k if is_multiclass else 0),
            "num_feature": str(columns.n_features),
            "num_target": str(1 if is_multiclass else k),
        },
        "objective": {"name": objective.name, **objective.params(k)},
    }
    return json.dumps({"learner": learner, "version": [*version, 0]}).encode()


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
    assert sets is not None
    if sets.negative_fractions or sets.whole:
        limits.where(
            flags(machine, found),
            "reads a category set in which -0.5 is category 0, or a fraction is none "
            "(columns.sets.negative_fractions, .whole); XGBoost cuts off fractions above 0",
            "use to_lightgbm or to_onnx",
        )
    limits.where(
        flags(
            machine,
            (j for j, m in found.items() if max(right_set(m), default=0) >= MOST_CATEGORIES),
        ),
        f"has a category of {MOST_CATEGORIES} or more, which XGBoost does not look up",
        "number the categories from 0 on",
    )


def _attributes(output: Output) -> dict[str, str]:
    """A classifier says so in its file."""
    if output.decision == "response":
        return {}
    return {"scikit_learn": json.dumps({"_estimator_type": "classifier"})}


def _labels(
    machine: DecisionMachine, limits: Limits, version: tuple[int, int]
) -> dict[str, list[Any]]:
    """The labels of categorical features, as XGBoost 3.1 and newer keep them."""
    columns = machine.columns
    if columns.encodes_arrays or columns.label_hash or columns.table_categories:
        limits.no_labels()
    if not columns.categories:
        return {"enc": [], "feature_segments": [], "sorted_idx": []}
    if not columns.refuses_new_labels or version < (3, 1):
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


def xgboost_content(machine: DecisionMachine, suffix: str, *, margins: bool = False) -> bytes:
    """The bytes of a model file: UBJSON where the suffix is .ubj, else JSON."""
    if suffix != ".ubj":
        return xgboost_json(machine, margins=margins)
    model = to_xgboost(machine, margins=margins)
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    return bytes(booster.save_raw("ubj"))
