"""The native engine's plan of a machine: all that the compiled code needs to know of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _native

if TYPE_CHECKING:
    from ...machine import DecisionMachine

AGGREGATES = {"sum": 0, "min": 1, "max": 2}
FORCES = {"auto": 0, "select": 1, "deep": 2, "raw": 3, "pack": 4}
"""Kernels that a plan may be held to, for tests and measurements."""


def refusal(machine: DecisionMachine) -> str | None:
    """Why the native engine cannot run this machine, or None where it can.

    Examples
    --------
    >>> import decision_machines as dm
    >>> refusal(dm.figure_one()) is None
    True
    """
    linear = machine.linear
    if machine.output.aggregate not in AGGREGATES:
        return f"it combines trees by their {machine.output.aggregate}"
    if machine.n_leaves >= 2**31:
        return f"it has {machine.n_leaves} leaves, more than can be numbered in 32 bits"
    if linear is not None and linear.intercept.dtype != linear.coefficient.dtype:
        return (
            f"its linear leaves have intercepts of {linear.intercept.dtype} and coefficients of "
            f"{linear.coefficient.dtype}"
        )
    return None


def compile_plan(machine: DecisionMachine, *, target: str, kernel: str = "auto") -> Any:
    """The machine compiled for one target."""
    columns, output, trees = machine.columns, machine.output, machine.trees
    sets = columns.sets
    none = np.empty(0, np.int64)
    missing_value = columns.missing_value
    if columns.dtype == np.float32 and type(missing_value) is float:
        # NumPy compares a Python float with float32 values in float32.
        with np.errstate(over="ignore"):
            missing_value = float(np.float32(missing_value))
    parts = {
        "array_type": np.ndarray,
        "empty": np.empty,
        "dtype": output.dtype,
        "n_features": columns.n_features,
        "n_outputs": len(output),
        "single": columns.dtype == np.float32,
        "integers_single": columns.integers_as == np.float32,
        "missing_value": float(missing_value),
        "absent": float(columns.absent),
        "negative_fractions": bool(sets is not None and sets.negative_fractions),
        "whole": bool(sets is not None and sets.whole),
        "narrow": machine.is_narrow,
        "sum_single": output.dtype == np.float32,
        "base_first": bool(output.base_first),
        "divisor": float(output.divisor),
        "scale": float(output.scale),
        "aggregate": AGGREGATES[output.aggregate],
        "feature": columns.feature,
        "rule": columns.rule,
        "set_start": np.zeros(1, np.int64) if sets is None else sets.start,
        "members": none if sets is None else sets.members,
        "answers": none.astype(np.int8) if sets is None else sets.answer,
        "outside": none.astype(np.int8) if sets is None else sets.outside,
        "t": machine.t.astype(np.float64, copy=False),
        "missing": machine.missing,
        "children": machine.children.reshape(-1),
        "test_start": trees.test_start,
        "feeds": trees.feeds,
        # Each value is cast to the sum's dtype before it is added: done once, here.
        "V": _cast(machine.V, output.dtype).reshape(-1),
        "base": output.base.astype(np.float64),
    }
    if machine.is_oblique:
        S = machine.S
        # Terms are added in the order of the columns, as `reference.selected` adds them.
        parts |= {
            "weight_start": S.indptr.astype(np.int64),
            "weight_column": S.indices.astype(np.int32),
            "weight": S.data,
        }
    else:
        parts["selection"] = machine.selection
    if machine.linear is not None:
        linear = machine.linear
        constant = _cast(machine.V, linear.intercept.dtype).astype(np.float64)
        parts |= {
            "linear_constant": constant.reshape(-1),
            "linear_start": linear.start,
            "linear_feature": linear.feature,
            "intercept": linear.intercept.astype(np.float64).reshape(-1),
            "coefficient": linear.coefficient.astype(np.float64).reshape(-1),
            "linear_single": linear.intercept.dtype == np.float32,
        }
    return _native.Engine(target, FORCES[kernel], parts)


def _cast(V: np.ndarray, dtype: np.dtype) -> np.ndarray:
    with np.errstate(over="ignore"):
        return V.astype(dtype, copy=False)


def describe_plan(machine: DecisionMachine) -> dict[str, Any]:
    """How the native engine would run a machine: target, trees by kernel, tests, bytes.

    Examples
    --------
    >>> import decision_machines as dm
    >>> describe_plan(dm.figure_one())["trees by kernel"]
    {'select': 1}
    """
    cause = refusal(machine)
    if cause is not None:
        return {"target": f"none, because {cause}: the walk runs this machine"}
    plan = machine._prepared.compiled(machine).plan.describe()
    kernels = plan["kernels"]
    nodes = machine.n_tests + machine.n_leaves
    return {
        "target": plan["target"],
        "trees by kernel": {name: kernels.count(name) for name in sorted(set(kernels))},
        "distinct tests": plan["distinct_tests"],
        "selects": plan["selects"],
        "groups of trees": len(plan["groups"]),
        "codings of the columns": plan["sections"],
        "bytes": plan["bytes"],
        "bytes per node": round(plan["bytes"] / max(nodes, 1), 1),
    }
