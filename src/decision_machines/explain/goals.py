"""What a counterfactual is to reach: another answer, a certain label, a range of values.

A goal is checked on rows by `machine.predict` itself. For forests it is also a few linear functions
of the leaves: where even the most that the trees can add up to stays below zero, a box holds no
input that meets the goal.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, UnsupportedModelError
from ..machine import ALL_OUTPUTS

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from ..machine import DecisionMachine

DOING = "searching for a counterfactual"
NOT_MONOTONE = ("onnx", "catboost_mean_and_variance", "samme")
"""Links that are not increasing in one margin (or not known to be)."""
KEEPS_ORDER = ("identity", "softmax", "catboost_softmax", "lightgbm_softmax", "xgboost_softmax")
"""Links under which the largest margin is the largest response, ties within rounding apart."""


@dataclass(frozen=True)
class Goal:
    """A target for predictions, and what can be said of it from sums over trees."""

    machine: DecisionMachine
    before: Any
    """The prediction of the input itself."""
    target: Any
    """None for any other answer, a label, or (low, high) for a value."""
    W: Float[np.ndarray, "L q"] = field(default_factory=lambda: np.empty((0, 0)))
    """What each leaf adds to each of q functions of the trees."""
    constant: Float[np.ndarray, "q"] = field(default_factory=lambda: np.empty(0))
    slack: Float[np.ndarray, "q"] = field(default_factory=lambda: np.empty(0))
    """By how much rounding may make the machine's own sums differ from these."""
    need: Float[np.ndarray, "q"] = field(default_factory=lambda: np.empty(0))
    """What each function must reach. Compared, not subtracted: that would round."""
    strict: Bool[np.ndarray, "q"] = field(default_factory=lambda: np.empty(0, bool))
    """Functions that must be above that: where two classes tie, the first one wins."""
    ways: tuple[tuple[int, ...], ...] = ()
    """The goal is met only where all functions of one of these reach their need, rounding apart."""

    def met(self, X: Float[np.ndarray, "m n"]) -> Bool[np.ndarray, "m"]:
        """Whether the machine's own prediction for each row meets the goal."""
        return self.answers(predicted(self.machine, X))

    def answers(self, found: np.ndarray) -> Bool[np.ndarray, "m"]:
        if self.target is None:
            differs = found != self.before
            if found.dtype.kind == "f":
                differs &= ~((found != found) & (self.before != self.before))
            return differs.reshape(len(found), -1).any(axis=1)
        if isinstance(self.target, tuple):
            low, high = self.target
            return (found >= low) & (found <= high)
        return found == self.target


def predicted(machine: DecisionMachine, X: np.ndarray) -> np.ndarray:
    """`machine.predict` for rows of numbers, in which labels already are codes."""
    return np.asarray(coded(machine).predict(X, n_threads=1))


def coded(machine: DecisionMachine) -> DecisionMachine:
    """The machine as it reads rows in which labels already are codes."""
    if not machine.columns.encodes_arrays:
        return machine
    return replace(machine, columns=replace(machine.columns, encodes_arrays=False))


def goal(machine: DecisionMachine, x: Float[np.ndarray, "n"], target: Any = None) -> Goal:
    """The goal for one input; with the functions that bound it, where the machine is a forest."""
    if machine.linear is not None:
        raise UnsupportedModelError(
            DOING,
            "the machine's leaves are linear functions, so an answer changes within a leaf",
            "use a machine whose leaves are constants",
        )
    before = predicted(machine, x[None])
    if before.ndim > 1 and target is not None:
        raise InputError(
            DOING,
            f"the target {target!r} for a machine with {before.shape[1]} answers",
            "leave the target out: any other answer then counts",
        )
    found = Goal(machine, before[0], _checked(machine, before, target))
    return found if machine.n_trees <= 1 else _with_functions(found)


def _checked(machine: DecisionMachine, before: np.ndarray, target: Any) -> Any:
    if target is None:
        return None
    if isinstance(target, (tuple, list)):
        try:
            low, high = (float(v) for v in target)
        except (TypeError, ValueError):
            low, high = 1.0, 0.0
        if before.dtype.kind != "f" or not low <= high:
            raise InputError(
                DOING,
                f"the target {target!r}",
                "give (low, high) for a machine that predicts values, else a label",
            )
        return (low, high)
    classes = machine.output.classes
    labels = [-1, 1] if classes is None else classes[0].tolist()
    if before.dtype.kind == "f" and classes is None:
        raise InputError(
            DOING, f"the target {target!r}", "give a range of values: target=(low, high)"
        )
    if target not in labels:
        shown = ", ".join(repr(v) for v in labels[:12])
        raise InputError(DOING, f"the target {target!r}", f"use one of the labels {shown}")
    return target


def _with_functions(found: Goal) -> Goal:
    """The goal as linear functions of the leaves, by how the machine decides."""
    machine = found.machine
    output = machine.output
    if output.aggregate != "sum":
        raise UnsupportedModelError(
            DOING,
            f"the machine takes the {output.aggregate} of its trees, not their sum",
            "ask one tree: machine.tree(i)",
        )
    if output.decision in ("argmax", "argmax_margin") and len(output.groups) == 2:
        if output.decision == "argmax" and output.link not in KEEPS_ORDER:
            raise _unsupported(output.link, output.decision)
        return _between_classes(found)
    if machine.n_outputs == 1 and output.link not in NOT_MONOTONE:
        return _one_margin(found)
    if output.decision == "second_margin_above" and machine.n_outputs == 2:
        return _one_margin(found, which=1)
    raise _unsupported(output.link, output.decision)


def _unsupported(link: str, decision: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        DOING,
        f"a forest with the link {link!r} and the decision {decision!r}, which we cannot bound",
        "ask one tree, machine.tree(i), or a machine that predicts labels or one value",
    )


def leaf_sums(machine: DecisionMachine) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(L, k) what each leaf adds to every margin, in float64; the constant; the rounding error."""
    output = machine.output
    V = machine.V.astype(np.float64)
    if machine.is_narrow:
        wide = np.zeros((machine.n_leaves, machine.n_outputs))
        wide[np.arange(machine.n_leaves), machine.trees.feeds[machine.trees.of_leaf]] = V[:, 0]
        V = wide
    assert np.all(machine.trees.feeds != ALL_OUTPUTS) or not machine.is_narrow
    factor = output.scale / output.divisor
    base = output.base.astype(np.float64)
    constant = base * factor if output.base_first else base
    W = V * factor
    largest = np.maximum.reduceat(np.abs(W), machine.trees.leaf_start[:-1], axis=0).sum(axis=0)
    eps = max(np.finfo(output.dtype).eps, np.finfo(np.float64).eps)
    return W, constant, (machine.n_trees + 8) * eps * (largest + np.abs(constant))


def _between_classes(found: Goal) -> Goal:
    machine = found.machine
    W, constant, slack = leaf_sums(machine)
    assert machine.output.classes is not None
    labels = machine.output.classes[0].tolist()
    k = len(labels)
    if found.target is None:
        own = labels.index(found.before.item() if hasattr(found.before, "item") else found.before)
        pairs = [(c, own) for c in range(k) if c != own]
        ways: tuple[tuple[int, ...], ...] = tuple((i,) for i in range(len(pairs)))
    else:
        wanted = labels.index(found.target)
        pairs = [(wanted, c) for c in range(k) if c != wanted]
        ways = (tuple(range(len(pairs))),)
    a, b = (np.array(side, int) for side in zip(*pairs, strict=True))
    # A softmax rounds responses that differ by less than this to equals, and the first one wins.
    least = 8 * np.finfo(machine.output.dtype).eps
    return Goal(
        machine,
        found.before,
        found.target,
        W[:, a] - W[:, b],
        constant[a] - constant[b],
        slack[a] + slack[b] + least,
        np.zeros(len(a)),
        a > b,
        ways,
    )


def _one_margin(found: Goal, which: int = 0) -> Goal:
    """Goals on one margin: where it must reach at least, or at most, found by bisection."""
    machine = found.machine
    W, constant, slack = leaf_sums(machine)
    w, c, s = W[:, which], constant[which], slack[which]

    def answers(margin: float) -> bool:
        row = np.zeros((1, machine.n_outputs), machine.output.dtype)
        row[0, which] = margin
        return bool(found.answers(np.asarray(machine.decide(row)))[0])

    parts: list[tuple[float, float]] = []  # (sign, threshold): sign · margin ≥ sign · threshold
    ways: list[tuple[int, ...]] = []
    for low, high in _met_ranges(answers, found):
        way = []
        for sign, end in ((1.0, low), (-1.0, high)):
            if np.isfinite(end):
                way.append(len(parts))
                parts.append((sign, end))
        ways.append(tuple(way))
    signs = np.array([p[0] for p in parts])
    ends = np.array([p[1] for p in parts])
    return Goal(
        machine,
        found.before,
        found.target,
        w[:, None] * signs,
        signs * c,
        np.full(len(parts), s),
        signs * ends,
        np.zeros(len(parts), bool),
        tuple(ways),
    )


def _met_ranges(answers, found: Goal) -> list[tuple[float, float]]:
    """The margins that meet the goal, as at most two ranges: predictions rise with the margin."""
    dtype, target = found.machine.output.dtype, found.target
    most = float(np.finfo(dtype).max)

    def before(end: float) -> float:
        return float(np.nextafter(dtype.type(end), dtype.type(-np.inf)))

    if isinstance(target, tuple):
        low = _first(lambda m: _value(found, m) >= target[0], dtype)
        high = _first(lambda m: _value(found, m) > target[1], dtype)
        if low is None:
            return []
        return [(low, np.inf if high is None else before(high))]
    at_bottom, at_top = answers(-most), answers(most)
    if at_bottom and at_top:
        # A value: every other one, above and below its own.
        above = _first(lambda m: _value(found, m) > found.before, dtype)
        below = _first(lambda m: _value(found, m) >= found.before, dtype)
        ranges = [] if above is None else [(above, np.inf)]
        if below is not None and below > -most:
            ranges.append((-np.inf, before(below)))
        return ranges
    if at_top:
        low = _first(answers, dtype)
        assert low is not None
        return [(low, np.inf)]
    if at_bottom:
        end = _first(lambda m: not answers(m), dtype)
        assert end is not None
        return [(-np.inf, before(end))]
    return []


def _value(found: Goal, margin: float) -> float:
    row = np.full((1, found.machine.n_outputs), margin, found.machine.output.dtype)
    return float(np.asarray(found.machine.decide(row)).reshape(-1)[0])


def _first(holds, dtype: np.dtype) -> float | None:
    """The least finite number for which something holds that, once true, stays true.

    Bisection over all numbers of the dtype: taken as whole numbers, their bits are in order.
    """
    whole = np.dtype(np.int64 if dtype.itemsize == 8 else np.int32)
    half = int(np.array(np.finfo(dtype).max, dtype).view(whole))

    def at(place: int) -> float:
        size = float(np.array(abs(place), whole).view(dtype))
        return size if place >= 0 else -size

    low, high = -half, half
    if not holds(at(high)):
        return None
    while low < high:
        middle = (low + high) // 2
        if holds(at(middle)):
            high = middle
        else:
            low = middle + 1
    return at(low)
