"""Predicting with soft trees (`machine.soft`): no torch, rows in the lanes of the native kernel.

The kernel is that of training, forwards only. It computes in the dtype of the slopes, and gives the
same bits on any number of threads. With ``skip`` above 0 a path that all rows of a strip (64 in
float32 on AVX-512) reach with less weight ends there, with the mean of the leaves below. For each
tree the weight that is cut off is below ``skip`` times the number of cuts, at most its tests, and
below 1; `cut_bound` states what that can change.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from ..errors import InputError
from ..machine.soft import hard_of
from .decide import check_classes, decide, probabilities, respond
from .engines.processor import cpu_count, target
from .inputs.features import read_features

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int, Num

    from ..machine import Assembly, DecisionMachine
    from .assemblies import Asked

DOING = "predicting with soft trees"
ENGINES = ("auto", "native", "reference")
NUMBERS_AT_ONCE = 1 << 22
"""Columns of z times rows that are held at a time."""


class SoftEngine:
    """Soft trees ready to run: their plan, and what each test reads.

    A test of several columns reads a column of its own, after those of the machine: what it weighs
    less its threshold, subtracted in float64. Trees whose tests are all hard are left to the hard
    engine, which is many times faster.
    """

    __slots__ = ("V", "hard", "machine", "nudge", "plan", "shift", "slope", "t", "weights")

    def __init__(self, soft: Assembly) -> None:
        machine = hard_of(soft)
        is_hard = hard_trees(soft)
        self.hard: DecisionMachine | None = None
        parts = [np.array(soft.numbers[name]) for name in ("slope", "t", "nudge")]
        if is_hard.any():
            bare = replace(machine.output.as_margins(), base=np.zeros_like(machine.output.base))
            bare = replace(bare, divisor=1.0, scale=1.0)
            self.hard = replace(machine.mask(np.flatnonzero(~is_hard)), output=bare)
            of_tests = np.repeat(~is_hard, np.diff(machine.trees.test_start))
            parts = [part[of_tests] for part in parts]
            machine = machine.mask(np.flatnonzero(is_hard))
        self.machine = machine
        self.slope, self.t, self.nudge = parts
        self.V = np.ascontiguousarray(machine.V, self.t.dtype)
        selection, oblique = _read_by(machine)
        self.weights = machine.S[oblique].astype(np.float64) if len(oblique) else None
        self.shift = self.t[oblique].astype(np.float64) + self.nudge[oblique]
        self.t[oblique] = self.nudge[oblique] = 0.0
        self.plan = _native.SoftPlan(
            np.ascontiguousarray(machine.children, np.int32).reshape(-1, 2),
            np.ascontiguousarray(machine.trees.test_start, np.int64),
            np.ascontiguousarray(selection, np.int32),
            np.ascontiguousarray(machine.missing, np.int8),
            np.ascontiguousarray(machine.trees.feeds, np.int32),
            len(machine.columns) + len(oblique),
            machine.n_outputs,
        )

    def sums(self, X: Any, n_threads: int | None, skip: float) -> Float[np.ndarray, "m k"]:
        """The sum over the trees for the rows of X, without base and scale."""
        rows = read_features(X, self.machine.columns)
        step = max(256, NUMBERS_AT_ONCE // max(self.plan.n_columns, 1) // 256 * 256)
        threads = cpu_count() if n_threads is None else int(n_threads)
        out = np.empty((rows.n_rows, self.machine.n_outputs), self.t.dtype)
        run = self.plan.forward32 if self.t.dtype == np.float32 else self.plan.forward64
        for start in range(0, rows.n_rows, step):
            stop = min(start + step, rows.n_rows)
            z = self._columns(rows.block(start, stop))
            given = (self.t, self.nudge, self.slope, self.V, skip, threads)
            run(target(), z, *given, out[start:stop])
        total = out.astype(np.float64)
        return total if self.hard is None else total + self.hard.margin(X, n_threads=n_threads)

    def _columns(self, x: np.ndarray) -> Float[np.ndarray, "m n"]:
        z = np.asarray(self.machine.columns.read(x))
        if self.weights is not None:
            z = np.concatenate([z, _weighed(self.weights, z) - self.shift], axis=1)
        with np.errstate(over="ignore"):
            return z.astype(self.t.dtype, copy=False)


def hard_trees(soft: Assembly) -> Bool[np.ndarray, "T"]:
    """Which trees have no soft test, and stand at the machine's own thresholds."""
    machine = hard_of(soft)
    slope, t, nudge = (soft.numbers[name] for name in ("slope", "t", "nudge"))
    is_soft = np.isfinite(slope) | (nudge != 0) | (t != machine.t.astype(t.dtype))
    of_test = np.repeat(np.arange(machine.n_trees), np.diff(machine.trees.test_start))
    found: np.ndarray = np.bincount(of_test, is_soft, machine.n_trees) == 0
    return found


def _read_by(machine: DecisionMachine) -> tuple[Int[np.ndarray, "J"], Int[np.ndarray, "o"]]:
    """The column that each test reads, and the tests that weigh several columns or one by not 1."""
    if not machine.is_oblique:
        return machine.selection, np.empty(0, np.int64)
    S = machine.S
    sizes = np.diff(S.indptr)
    first = np.minimum(S.indptr[:-1], max(len(S.data) - 1, 0))
    is_plain = sizes == 1
    if len(S.data):
        is_plain &= S.data[first] == 1.0
    selection = np.where(is_plain, S.indices[first] if len(S.data) else 0, 0)
    oblique = np.flatnonzero(~is_plain)
    selection[oblique] = len(machine.columns) + np.arange(len(oblique))
    return selection, oblique


def _weighed(S: Any, z: Num[np.ndarray, "m n"]) -> Float[np.ndarray, "m o"]:
    """S z, NaN where a column of a weight is; infinities count as very large."""
    is_nan = np.isnan(z)
    most = np.finfo(np.float64).max * 2.0**-20
    known = np.where(is_nan, 0.0, np.clip(z.astype(np.float64), -most, most))
    found: np.ndarray = (S @ known.T).T
    if is_nan.any():
        lost = ((S != 0).astype(np.float64) @ is_nan.T.astype(np.float64)).T > 0
        found = np.where(lost, np.nan, found)
    return found


def reference_sums(soft: Assembly, X: Any) -> Float[np.ndarray, "m k"]:
    """The same sums in plain NumPy, tree by tree from the root down; slow, obvious.

    Paper: Eq. `soft`.
    """
    machine = hard_of(soft)
    slope, t, nudge = (soft.numbers[name].astype(np.float64) for name in ("slope", "t", "nudge"))
    is_hard = hard_trees(soft)
    rows = read_features(X, machine.columns)
    exact = np.asarray(machine.columns.read(rows.block(0, rows.n_rows)), np.float64)
    z = exact.astype(soft.numbers["t"].dtype).astype(np.float64)
    selection, oblique = _read_by(machine)
    if len(oblique):
        weighed = _weighed(machine.S[oblique].astype(np.float64), exact)
        z, exact = (np.concatenate([part, weighed], axis=1) for part in (z, exact))
    out = np.zeros((len(z), machine.n_outputs))
    for tree in range(machine.n_trees):
        feeds = int(machine.trees.feeds[tree])
        first = machine.trees.tests(tree).start
        is_leaf = machine.trees.tests(tree).stop == first
        pending = [(~machine.trees.leaves(tree).start if is_leaf else first, np.ones(len(z)))]
        while pending:
            node, weight = pending.pop()
            if node < 0:
                value = machine.V[~node].astype(np.float64)
                if feeds >= 0:
                    out[:, feeds] += weight * value[0]
                else:
                    out += weight[:, None] * value
                continue
            column = (exact if is_hard[tree] else z)[:, selection[node]]
            at = float(machine.t[node]) if is_hard[tree] else t[node]
            with np.errstate(invalid="ignore", over="ignore"):
                distance = np.where(column == at, 0, column - at) - nudge[node]
                if np.isinf(slope[node]):
                    right = (distance > 0).astype(np.float64)
                else:
                    right = 1 / (1 + np.exp(-np.clip(distance * slope[node], -700, 700)))
            right = np.where(np.isnan(column), machine.missing[node] > 0, right)
            left_node, right_node = machine.children[node]
            pending += [(right_node, weight * right), (left_node, weight * (1 - right))]
    return out


def margin(
    soft: Assembly, X: Any, *, n_threads: int | None = None, engine: str = "auto", skip: float = 0.0
) -> Float[np.ndarray, "m k"]:
    """The sum before the link; see `Assembly.margin`."""
    machine = hard_of(soft)
    if engine not in ENGINES:
        raise InputError(DOING, f"engine={engine!r}", f"use one of {', '.join(ENGINES)}")
    if n_threads is not None and not (isinstance(n_threads, (int, np.integer)) and n_threads > 0):
        raise InputError(DOING, f"n_threads={n_threads!r}", "use a whole number of at least 1")
    if not 0 <= skip < 1:
        raise InputError(DOING, f"skip={skip!r}", "use 0 for exact sums, or a weight below 1")
    if engine == "reference":
        total = reference_sums(soft, X)
    else:
        total = soft._engine.sums(X, n_threads, float(skip))
    output = machine.output
    found = total.astype(np.float64)
    if output.base_first:
        found = found + output.base
    found = found / output.divisor * output.scale
    if not output.base_first:
        found = found + output.base
    return found.astype(output.dtype)


def cut_bound(soft: Assembly, skip: float) -> Float[np.ndarray, "k"]:
    """The most that ``skip`` can change of each output's margin, over all inputs.

    For each tree the weight cut off times the range of its values; rounding comes on top.

    Examples
    --------
    >>> import decision_machines as dm
    >>> from decision_machines.machine.soft import soft_trees
    >>> cut_bound(soft_trees(dm.figure_one(), np.ones(5)), 0.01)
    array([0.25])
    """
    machine = hard_of(soft)
    starts = machine.trees.leaf_start[:-1]
    V = machine.V.astype(np.float64)
    spread = np.maximum.reduceat(V, starts) - np.minimum.reduceat(V, starts)
    n_tests = np.diff(machine.trees.test_start)
    part = np.minimum(skip * n_tests, 1.0)[:, None] * spread
    found = np.zeros(machine.n_outputs)
    if machine.is_narrow:
        np.add.at(found, machine.trees.feeds, part[:, 0])
    else:
        found += part.sum(0)
    bound: np.ndarray = found * abs(machine.output.scale / machine.output.divisor)
    return bound


def response(
    soft: Assembly, X: Any, *, n_threads: int | None = None, engine: str = "auto"
) -> Float[np.ndarray, "m r"]:
    """Margins through the link; see `Assembly.response`."""
    return respond(hard_of(soft), margin(soft, X, n_threads=n_threads, engine=engine))


def prediction(asked: Asked) -> np.ndarray:
    return decide(hard_of(asked.assembly), margin(asked.assembly, asked.X, **asked.how))


def shares(asked: Asked) -> Any:
    check_classes(hard_of(asked.assembly))
    return probabilities(hard_of(asked.assembly), margin(asked.assembly, asked.X, **asked.how))
