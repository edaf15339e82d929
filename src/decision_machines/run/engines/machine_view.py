"""A machine as the compiled code reads it: its arrays, in the dtypes that the kernels take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _native

if TYPE_CHECKING:
    from ...machine import DecisionMachine
    from ...machine.columns import Columns
    from ...machine.output import Output


def machine_view(machine: DecisionMachine) -> _native.Machine:
    """The machine's parts, which the view holds; an array of the right dtype is not copied.

    Examples
    --------
    >>> import decision_machines as dm
    >>> type(machine_view(dm.figure_one())).__name__
    'Machine'
    """
    trees = machine.trees
    return _native.Machine(
        columns=_columns(machine.columns),
        sets=_sets(machine.columns),
        trees=_native.Machine.Trees(
            children=machine.children, test_start=trees.test_start, feeds=trees.feeds
        ),
        tests=_tests(machine),
        output=_output(machine.output, machine.V, machine.is_narrow),
        linear=_linear(machine),
    )


def _columns(columns: Columns) -> _native.Machine.Columns:
    missing_value = columns.missing_value
    if columns.dtype == np.float32 and type(missing_value) is float:
        # NumPy compares a Python float with float32 values in float32.
        with np.errstate(over="ignore"):
            missing_value = float(np.float32(missing_value))
    return _native.Machine.Columns(
        n_features=columns.n_features,
        feature=columns.feature,
        rule=columns.rule,
        single=bool(columns.dtype == np.float32),
        integers_single=bool(columns.integers_as == np.float32),
        missing_value=float(missing_value),
        absent=float(columns.absent),
    )


def _sets(columns: Columns) -> _native.Machine.Sets | None:
    sets = columns.sets
    if sets is None:
        return None
    return _native.Machine.Sets(
        start=sets.start,
        members=sets.members,
        answers=sets.answer,
        outside=sets.outside,
        negative_fractions=bool(sets.negative_fractions),
        whole=bool(sets.whole),
    )


def _tests(machine: DecisionMachine) -> _native.Machine.Tests:
    t = machine.t.astype(np.float64, copy=False)
    if not machine.is_oblique:
        return _native.Machine.Tests(t=t, missing=machine.missing, selection=machine.selection)
    S = machine.S
    # Terms are added in the order of the columns, as `reference.selected` adds them.
    weights = _native.Machine.Weights(
        start=S.indptr.astype(np.int64),
        column=S.indices.astype(np.int32),
        weight=S.data.astype(machine.columns.dtype, copy=False),
    )
    return _native.Machine.Tests(t=t, missing=machine.missing, weights=weights)


def _output(output: Output, V: np.ndarray, is_narrow: bool) -> _native.Machine.Output:
    return _native.Machine.Output(
        # Each value is cast to the sum's dtype before it is added: done once, here.
        V=_cast(V, output.dtype),
        narrow=is_narrow,
        base=output.base.astype(np.float64),
        base_first=bool(output.base_first),
        divisor=float(output.divisor),
        scale=float(output.scale),
        aggregate=_native.Machine.Aggregate[output.aggregate],
    )


def _linear(machine: DecisionMachine) -> _native.Machine.Linear | None:
    linear = machine.linear
    if linear is None:
        return None
    dtype = linear.intercept.dtype
    return _native.Machine.Linear(
        start=linear.start,
        feature=linear.feature,
        intercept=linear.intercept.astype(np.float64),
        coefficient=linear.coefficient.astype(np.float64),
        constant=_cast(machine.V, dtype).astype(np.float64),
        single=bool(dtype == np.float32),
    )


def _cast(V: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    with np.errstate(over="ignore"):
        return V.astype(dtype, copy=False)
