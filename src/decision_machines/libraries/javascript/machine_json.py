"""A machine as JavaScript reads it: arrays as base64, all else as text and numbers of JSON."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine.label_words import plain_label
from ...machine.schema import number_to_json, parameter_to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...machine import DecisionMachine


def packed(array: np.ndarray) -> dict[str, Any]:
    """An array as base64 of little endian, whole numbers in as few bytes as hold them."""
    array = np.asarray(array)
    if array.dtype.kind in "iub":
        low, high = int(array.min(initial=0)), int(array.max(initial=0))
        small = next(
            (d for d in ("i1", "i2", "i4") if np.iinfo(d).min <= low and high <= np.iinfo(d).max),
            "f8",  # a category may need more; JavaScript's numbers hold it
        )
        array = array.astype(small)
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return {
        "type": array.dtype.str[1:],
        "shape": list(array.shape),
        "base64": base64.b64encode(array.tobytes()).decode("ascii"),
    }


def machine_json(machine: DecisionMachine, labels: Mapping[int, tuple[Any, ...]]) -> dict[str, Any]:
    """A machine for JSON; `labels` are those of its features that are given as labels."""
    columns, trees = machine.columns, machine.trees
    test_tree, leaf_start = trees.of_test, trees.leaf_start
    first_test = trees.test_start[test_tree][:, None]
    first_leaf = leaf_start[test_tree][:, None]
    is_test = machine.children >= 0
    # Counted within the tree, children of small trees fit in a byte.
    children = np.where(is_test, machine.children - first_test, machine.children + first_leaf)
    S = machine.S if machine.is_oblique else None
    sets, linear = columns.sets, machine.linear
    return {
        "source": machine.source,
        "names": [
            columns.names[i] if columns.names is not None else f"x[{i}]"
            for i in range(columns.n_features)
        ],
        "labels": {
            str(feature): [plain_label(columns, v) for v in found]
            for feature, found in labels.items()
        },
        "columns": {
            "dtype": columns.dtype.name,
            "feature": packed(columns.feature),
            "rule": packed(columns.rule),
            "missing_value": number_to_json(columns.missing_value),
        },
        "sets": None
        if sets is None
        else {
            "start": packed(sets.start),
            "members": packed(sets.members),
            "answer": packed(sets.answer),
            "outside": packed(sets.outside),
            "negative_fractions": sets.negative_fractions,
            "whole": sets.whole,
        },
        "selection": packed(machine.selection) if S is None else None,
        "S": None
        if S is None
        else {
            "start": packed(S.indptr),
            "column": packed(S.indices),
            "weight": packed(S.data),
        },
        "t": packed(machine.t),
        "missing": packed(machine.missing),
        "children": packed(children),
        "test_start": packed(trees.test_start),
        "feeds": packed(trees.feeds),
        "leaf_ids": None if trees.leaf_ids is None else packed(trees.leaf_ids),
        "V": packed(machine.V),
        "linear": None
        if linear is None
        else {
            "intercept": packed(linear.intercept),
            "start": packed(linear.start),
            "feature": packed(linear.feature),
            "coefficient": packed(linear.coefficient),
        },
        "output": _output(machine),
    }


def _output(machine: DecisionMachine) -> dict[str, Any]:
    output = machine.output
    return {
        "base": packed(output.base),
        "dtype": output.dtype.name,
        "base_first": output.base_first,
        "divisor": output.divisor,
        "scale": output.scale,
        "aggregate": output.aggregate,
        "weights": None if output.weights is None else packed(output.weights),
        "link": output.link,
        "link_params": [parameter_to_json(v) for v in output.link_params],
        "decision": output.decision,
        "decision_params": [number_to_json(v) for v in output.decision_params],
        "classes": None
        if output.classes is None
        else [[str(v) for v in labels.tolist()] for labels in output.classes],
        "groups": list(output.groups),
    }
