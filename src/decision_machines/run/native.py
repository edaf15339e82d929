"""The native engine: a plan compiled from the machine, and the data handed to it where it lies."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .. import _native
from ..errors import InputError

if TYPE_CHECKING:
    from ..machine import DecisionMachine

AGGREGATES = {"sum": 0, "min": 1, "max": 2}
FORCES = {"auto": 0, "select": 1, "walk": 2, "walk32": 3, "raw": 4}
"""Kernels that a plan may be held to, for tests and measurements."""


def target() -> str:
    """The kernels' target: DECISION_MACHINES_TARGET, or the fastest that this processor runs."""
    wanted = os.environ.get("DECISION_MACHINES_TARGET", "").replace("+", "_") or "auto"
    names = _native.targets()
    if wanted == "auto":
        return names[-1]
    if wanted not in names:
        raise InputError(
            "choosing the engine's target",
            f"DECISION_MACHINES_TARGET={wanted!r}",
            f"use one of {', '.join(names)} or auto",
        )
    return wanted


def cpu_count() -> int:
    """Processors that this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def engine_info() -> dict[str, Any]:
    """What the native engine runs on: its target, the targets it could run, its threads.

    Examples
    --------
    >>> import decision_machines as dm
    >>> sorted(dm.engine_info())
    ['available', 'target', 'threads']
    """
    return {"target": target(), "available": _native.targets(), "threads": cpu_count()}


def supports(machine: DecisionMachine) -> bool:
    """Whether the native engine can run this machine; the walk does the others."""
    linear = machine.linear
    return (
        not machine.is_oblique
        and machine.output.aggregate in AGGREGATES
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
        "n_features": columns.n_features,
        "n_outputs": len(output),
        "single": columns.dtype == np.float32,
        "integers_single": columns.integers_as == np.float32,
        "missing_value": float(missing_value),
        "absent": float(columns.absent),
        "negative_fractions": bool(sets is not None and sets.negative_fractions),
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
        "selection": machine.selection,
        "t": machine.t.astype(np.float64),
        "missing": machine.missing,
        "children": machine.children.reshape(-1),
        "test_start": trees.test_start,
        "feeds": trees.feeds,
        # Each value is cast to the sum's dtype before it is added: done once, here.
        "V": _cast(machine.V, machine).reshape(-1),
        "base": output.base.astype(np.float64),
    }
    if machine.linear is not None:
        linear = machine.linear
        with np.errstate(over="ignore"):
            V = machine.V.astype(linear.intercept.dtype).astype(np.float64)
        parts |= {
            "V": V.reshape(-1),
            "linear_start": linear.start,
            "linear_feature": linear.feature,
            "intercept": linear.intercept.astype(np.float64).reshape(-1),
            "coefficient": linear.coefficient.astype(np.float64).reshape(-1),
            "linear_single": linear.intercept.dtype == np.float32,
        }
    return _native.Engine(target, FORCES[kernel], parts)


def _cast(V: np.ndarray, machine: DecisionMachine) -> np.ndarray:
    with np.errstate(over="ignore"):
        return V.astype(machine.output.dtype).astype(np.float64)


def plan_of(machine: DecisionMachine) -> Any:
    """The machine's plan, compiled on first use and kept with it; None where there can be none.

    Two threads that come first at once both compile; one of the equal plans is kept.
    """
    wanted = target()
    plans = machine.__dict__.get("_plans")
    if plans is None:
        plans = machine.__dict__.setdefault("_plans", {})
    if wanted not in plans:
        plans[wanted] = compile_plan(machine, target=wanted) if supports(machine) else None
    return plans[wanted]


def run(machine: DecisionMachine, X: Any, out: np.ndarray, leaves: bool, n_threads: int | None):
    """Margins or leaves of X into `out`; whether X is of a kind that the engine reads."""
    plan = plan_of(machine)
    if plan is None:
        return False
    threads = thread_count(n_threads)
    columns = machine.columns
    if sp.issparse(X):
        return plan.sparse(X.data, X.indices, X.indptr, out, leaves, threads)
    if isinstance(X, list):
        return plan.features(X, len(out), out, leaves, threads)
    return plan.array(X, out, leaves, threads, columns.integers_as == np.float32)


def thread_count(n_threads: int | None) -> int:
    if n_threads is None or n_threads == -1:
        return cpu_count()
    if isinstance(n_threads, bool) or not isinstance(n_threads, (int, np.integer)) or n_threads < 1:
        raise InputError(
            "predicting", f"n_threads={n_threads!r}", "use a number of threads of at least 1"
        )
    return int(n_threads)
