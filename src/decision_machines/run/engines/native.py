"""The native engine: a plan compiled from the machine, and the data handed to it where it lies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ... import _native
from ..inputs.arrays import is_table, read_rows, sparse_matrix
from ..inputs.tables import table_columns
from .processor import cpu_count, target

if TYPE_CHECKING:
    from ...machine import DecisionMachine

AGGREGATES = {"sum": 0, "min": 1, "max": 2}
FORCES = {"auto": 0, "select": 1, "deep": 2, "raw": 3, "pack": 4}
"""Kernels that a plan may be held to, for tests and measurements."""
ROWS_FOR_THREADS = 2048
"""Fewer rows than this are done before a second thread has started."""
ROWS_AT_ONCE = 65536


def supports(machine: DecisionMachine) -> bool:
    """Whether the native engine can run this machine; the walk does the others."""
    linear = machine.linear
    return (
        machine.output.aggregate in AGGREGATES
        and machine.n_leaves < 2**31
        and (linear is None or linear.intercept.dtype == linear.coefficient.dtype)
    )


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
    ready = machine.__dict__.get("_ready") or prepare(machine)
    if ready.plan is None:
        return {"target": "none: the plain walk runs this machine"}
    plan = ready.plan.describe()
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


class Ready(NamedTuple):
    """A machine's plan, and what a call needs to know of the machine, looked up once."""

    plan: Any
    """None where the native engine cannot run the machine."""
    width: int
    """Columns of an array that can be handed over as it is; -1 where none can."""
    n_outputs: int
    n_trees: int
    dtype: np.dtype
    integers_single: bool


def prepare(machine: DecisionMachine) -> Ready:
    """Compile the machine's plan, and keep it with the machine.

    Threads that come first at the same time each compile; one of the equal plans is kept.
    """
    columns = machine.columns
    ready = Ready(
        compile_plan(machine, target=target()) if supports(machine) else None,
        -1 if columns.encodes_arrays else columns.n_features,
        machine.n_outputs,
        machine.n_trees,
        machine.output.dtype,
        columns.integers_as == np.float32,
    )
    return machine.__dict__.setdefault("_ready", ready)


def margin(machine: DecisionMachine, X: Any, n_threads: int | None = None):
    """(m, k) margins, or None where another engine must do it."""
    ready = machine.__dict__.get("_ready") or prepare(machine)
    if ready.width >= 0 and ready.plan:
        found = ready.plan.row(X, ready.integers_single)
        if found is not None:
            return found
    return _general(ready, machine, X, n_threads, leaves=False)


def apply(machine: DecisionMachine, X: Any, n_threads: int | None = None):
    """(m, n_trees) exit leaves, or None where another engine must do it."""
    ready = machine.__dict__.get("_ready") or prepare(machine)
    return _general(ready, machine, X, n_threads, leaves=True)


def _general(ready: Ready, machine: DecisionMachine, X: Any, n_threads: int | None, leaves: bool):
    """Any X: read where it lies if the engine can, else turned into floats a block at a time."""
    plan, columns = ready.plan, machine.columns
    if plan is None:
        return None

    def threads(n_rows: int) -> int:
        if n_threads is None:
            return 1 if n_rows < ROWS_FOR_THREADS else cpu_count()
        return int(n_threads)

    def empty(n_rows: int) -> np.ndarray:
        shape = (n_rows, ready.n_trees if leaves else ready.n_outputs)
        return np.empty(shape, np.int32 if leaves else ready.dtype)

    if sp.issparse(X) and not columns.encodes_arrays:
        rows = sparse_matrix(X, columns)
        out = empty(rows.shape[0])
        if plan.sparse(rows.data, rows.indices, rows.indptr, out, leaves, threads(len(out))):
            return out
    elif is_table(X):
        parts = table_columns(X, columns)
        out = empty(parts.n_rows)
        if plan.features(parts.values, parts.n_rows, out, leaves, threads(len(out))):
            return out
    elif type(X) is np.ndarray and X.ndim == 2 and X.shape[1] == ready.width:
        out = empty(len(X))
        if plan.array(X, out, leaves, threads(len(out)), ready.integers_single):
            return out
    rows = read_rows(X, columns)
    out = empty(rows.n_rows)
    for start in range(0, rows.n_rows, ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, rows.n_rows)
        block = np.ascontiguousarray(rows.block(start, stop), columns.dtype)
        plan.array(block, out[start:stop], leaves, threads(stop - start), ready.integers_single)
    return out
