"""The native engine's plan of a machine: all that the compiled code needs to know of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import _native
from ...errors import InputError
from .machine_view import machine_view

if TYPE_CHECKING:
    from ...machine import DecisionMachine

AGGREGATES = tuple(_native.Machine.Aggregate.__members__)
KERNELS = tuple(_native.Kind.__members__)
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


def compile_plan(machine: DecisionMachine, *, target: str, kernel: str = "auto") -> _native.Engine:
    """The machine compiled for one target, by the kernels that cost least or those of one kind.

    What cannot run the machine, or a tree of it, is replaced by what can. Paper: cites
    `lucchese2015quickscorer`, `lucchese2017quickscorer`, `dato2016fast`, `ye2018rapidscorer`, which
    find exit leaves without walking, by bit vectors; docs/engine.md says what our kernels do.

    Examples
    --------
    >>> import decision_machines as dm
    >>> compile_plan(dm.figure_one(), target="auto", kernel="deep").describe().kernels
    ['deep']
    """
    if kernel not in KERNELS:
        raise InputError(
            "compiling a machine", f"kernel={kernel!r}", f"use one of {', '.join(KERNELS)}"
        )
    return _native.Engine(machine_view(machine), target, _native.Kind[kernel])


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
    kernels = plan.kernels
    nodes = machine.n_tests + machine.n_leaves
    return {
        "target": plan.target,
        "trees by kernel": {name: kernels.count(name) for name in sorted(set(kernels))},
        "distinct tests": plan.n_distinct_tests,
        "selects": plan.n_selects,
        "groups of trees": len(plan.groups),
        "codings of the columns": plan.n_sections,
        "bytes": plan.n_bytes,
        "bytes per node": round(plan.n_bytes / max(nodes, 1), 1),
    }
