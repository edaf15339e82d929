"""Goals as linear functions of the leaves, by how a machine decides.

Where even the most that the trees can add up to stays below what a goal needs, a box of inputs
holds none that meets it. Every way to decide that is known here is one of two: a margin that must
reach a number, or a margin that must reach another.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UnsupportedModelError
from ...machine.decisions import DECISIONS
from ...machine.links import LINKS
from ...machine.values import wide_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...machine import DecisionMachine
    from .goals import Goal

DOING = "searching for a counterfactual"


def bound_of(machine: DecisionMachine) -> str | None:
    """What bounds a forest's answers: "classes" (one margin beside another), "margin" or
    "second_margin" (one against a number), "values" (each of several); None where nothing does.

    Examples
    --------
    >>> import decision_machines as dm
    >>> bound_of(dm.figure_one())
    'margin'
    """
    output = machine.output
    if output.aggregate != "sum":
        return None
    link, decision = LINKS[output.link], DECISIONS[output.decision]
    if output.decision == "argmax_margin" or (
        output.decision == "argmax" and link.family.keeps_order
    ):
        return "classes"
    if machine.n_outputs == 1 and (link.family.is_increasing or decision.reads == "margin"):
        return "margin"
    if output.decision == "second_margin_above" and machine.n_outputs == 2:
        return "second_margin"
    if output.decision in ("response", "margin") and output.link == "identity":
        return "values"
    return None


def with_functions(found: Goal) -> Goal:
    """The goal with the functions that bound it."""
    machine = found.machine
    output = machine.output
    bound = bound_of(machine)
    if bound == "classes":
        return _between_classes(found)
    if bound == "margin":
        return _one_margin(found)
    if bound == "second_margin":
        return _one_margin(found, which=1)
    if bound == "values" and found.target is None:
        return _any_value(found)
    if output.aggregate != "sum":
        raise UnsupportedModelError(
            DOING,
            f"the machine takes the {output.aggregate} of its trees, not their sum",
            "ask one tree: machine.tree(i)",
        )
    raise UnsupportedModelError(
        DOING,
        f"a forest with the link {output.link!r} and the decision {output.decision!r}, which we "
        "cannot bound",
        "ask one tree, machine.tree(i), or a machine that predicts labels or one value",
    )


def leaf_sums(machine: DecisionMachine) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(L, k) what each leaf adds to every margin, in float64; the constant; the rounding error."""
    output = machine.output
    V = wide_values(machine, np.float64)
    factor = output.scale / output.divisor
    base = output.base.astype(np.float64)
    constant = base * factor if output.base_first else base
    W = V * factor
    largest = np.maximum.reduceat(np.abs(W), machine.trees.leaf_start[:-1], axis=0).sum(axis=0)
    eps = max(np.finfo(output.dtype).eps, np.finfo(np.float64).eps)
    return W, constant, (machine.n_trees + 8) * eps * (largest + np.abs(constant))


def _between_classes(found: Goal) -> Goal:
    """One class must reach another: any the present one, or the wanted one all others."""
    machine = found.machine
    output = machine.output
    W, constant, slack = leaf_sums(machine)
    assert output.classes is not None
    pairs: list[tuple[int, int]] = []
    if found.target is None:
        labels = np.atleast_1d(found.before)
        for own_classes, first, label in zip(output.classes, output.groups, labels, strict=False):
            own = first + int(np.flatnonzero(own_classes == label)[0])
            pairs += [(c, own) for c in range(first, first + len(own_classes)) if c != own]
        ways: tuple[tuple[int, ...], ...] = tuple((i,) for i in range(len(pairs)))
    else:
        wanted = output.classes[0].tolist().index(found.target)
        pairs = [(wanted, c) for c in range(machine.n_outputs) if c != wanted]
        ways = (tuple(range(len(pairs))),)
    a, b = np.array(pairs, int).reshape(-1, 2).T
    # A softmax rounds responses that differ by less than this to equals, and the first one wins.
    least = 8 * np.finfo(output.dtype).eps
    return replace(
        found,
        W=W[:, a] - W[:, b],
        constant=constant[a] - constant[b],
        slack=slack[a] + slack[b] + least,
        need=np.zeros(len(a)),
        strict=a > b,
        ways=ways,
    )


def _any_value(found: Goal) -> Goal:
    """Several values: any of them must rise or fall."""
    machine = found.machine
    W, constant, slack = leaf_sums(machine)
    dtype = machine.output.dtype
    own = np.asarray(found.before, dtype)
    up, down = dtype.type(np.inf), dtype.type(-np.inf)
    return replace(
        found,
        W=np.concatenate([W, -W], axis=1),
        constant=np.concatenate([constant, -constant]),
        slack=np.concatenate([slack, slack]),
        need=np.concatenate([np.nextafter(own, up), -np.nextafter(own, down)]).astype(float),
        strict=np.zeros(2 * len(own), bool),
        ways=tuple((i,) for i in range(2 * len(own))),
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
    return replace(
        found,
        W=w[:, None] * signs,
        constant=signs * c,
        slack=np.full(len(parts), s),
        need=signs * ends,
        strict=np.zeros(len(parts), bool),
        ways=tuple(ways),
    )


def _met_ranges(answers: Callable[[float], bool], found: Goal) -> list[tuple[float, float]]:
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


def _first(holds: Callable[[float], bool], dtype: np.dtype[Any]) -> float | None:
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
