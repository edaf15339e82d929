"""How many tests must flip to change the answer: the error-correcting-code reading.

Paper: Algorithm `ECOC`: a leaf's template is a code word, h the received word. A tree corrects no
error on its own path, so what protects an answer is the number of tests that must flip before h
matches a template with another answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UnsupportedModelError
from ...machine import template_product
from ...machine.coded import coded
from ...run.inputs.given_rows import given_row
from ..change.goals import goal
from ..change.nearest_answer import ROWS_AT_ONCE
from ..space.cells import Cells, from_bits
from ..space.regions import regions, some_input

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    from ...machine import DecisionMachine
    from ..change.goals import Goal

DOING = "measuring the code distance"


@dataclass(frozen=True)
class CodeMargin:
    """The fewest tests that must flip to change a machine's answer to one input."""

    flips: float
    """In code space: any test may flip alone, as by noise. Infinite where nothing changes it."""
    reachable: float | None
    """One tree: as `flips`, among templates that some input matches. None for forests."""
    whole: float | None
    """One tree: tests of the *whole* tree that answer differently for some input with another
    answer, so that all tests of a feature move together. None for forests."""
    row: Float[np.ndarray, "n"] | None
    """One tree: an input that attains `whole`."""
    before: Any

    def __str__(self) -> str:
        text = f"{self.before}: {self.flips:g} test{'' if self.flips == 1 else 's'} must flip"
        if self.whole is not None:
            text += f"; {self.reachable:g} on the way of an input, {self.whole:g} in all its code"
        return text


def code_margin(machine: DecisionMachine, x: Any, target: Any = None) -> CodeMargin:
    """See `DecisionMachine.code_margin`."""
    if machine.is_oblique:
        raise UnsupportedModelError(
            DOING,
            "the machine's tests are oblique",
            "use a machine whose tests read one column each",
        )
    row = given_row(x, machine.columns, DOING)
    found = goal(machine, row, target)
    cells = Cells(machine, DOING)
    h = cells.answers(row)
    distances = [template_distances(machine, h, tree) for tree in range(machine.n_trees)]
    if machine.n_trees <= 1:
        return _one_tree(cells, row, found, distances)
    return CodeMargin(_forest_flips(found, distances), None, None, None, found.before)


def template_distances(
    machine: DecisionMachine, h: Int[np.ndarray, "J"], tree: int
) -> Int[np.ndarray, "L"]:
    """On how many tests of each leaf's template h disagrees: (depth - <b, h>) / 2."""
    tests, leaves = machine.trees.tests(tree), machine.trees.leaves(tree)
    children = machine.children[tests].astype(np.int64)
    own = np.where(children >= 0, children - tests.start, children + leaves.start)
    p = template_product(own, h[None, tests])[0]
    return np.asarray((machine.structure.leaf_depth[leaves] - p) // 2)


def _one_tree(
    cells: Cells, row: Float[np.ndarray, "n"], found: Goal, distances: list[np.ndarray]
) -> CodeMargin:
    m = cells.machine
    if not m.n_trees:
        return CodeMargin(np.inf, np.inf, np.inf, None, found.before)
    cost = _flip_counts(cells, row)
    leaves, rows, whole = [], [], []
    for leaf, sets in regions(cells, 0):
        best, total = dict(sets), 0
        for feature, bits in sets.items():
            size = len(cells.ends[feature]) + 1
            own = np.where(from_bits(bits, size), cost[feature], np.iinfo(np.int64).max)
            at = int(np.argmin(own))
            best[feature], total = 1 << at, total + int(own[at])
        leaves.append(leaf)
        whole.append(total)
        rows.append(some_input(cells, best, row))
    is_met = np.concatenate(
        [found.met(np.array(rows[a : a + ROWS_AT_ONCE])) for a in range(0, len(rows), ROWS_AT_ONCE)]
    )
    # A template that no input matches has a value too, and noise in h may match it.
    raw = np.flatnonzero(_leaves_met(m, found))
    flips = distances[0][raw].min() if len(raw) else np.inf
    if not np.any(is_met):
        return CodeMargin(float(flips), np.inf, np.inf, None, found.before)
    met = np.flatnonzero(is_met)
    best_row = met[int(np.argmin(np.array(whole)[met]))]
    return CodeMargin(
        float(flips),
        float(distances[0][np.array(leaves)[met]].min()),
        float(whole[best_row]),
        rows[best_row],
        found.before,
    )


def _leaves_met(m: DecisionMachine, found: Goal) -> Bool[np.ndarray, "L"]:
    """Whether each leaf of a tree has an answer that meets the goal, its tests left aside."""
    if not m.n_tests:
        return found.answers(np.asarray(coded(m).predict(np.zeros((1, m.n_features)))))
    # Leaves stand left to right: if every test asks x[0] ≤ its last leaf on the left, then x[0]
    # is the leaf.
    plain = replace(
        coded(m).columns,
        feature=np.zeros(1, np.int32),
        rule=np.zeros(1, np.uint8),
        sets=None,
        missing_value=float("nan"),
    )
    ladder = replace(m, columns=plain, selection=np.zeros(m.n_tests, np.int32), t=_last_left(m))
    X = np.zeros((m.n_leaves, m.n_features))
    X[:, 0] = np.arange(m.n_leaves)
    return found.answers(np.asarray(ladder.predict(X)))


def _last_left(m: DecisionMachine) -> Float[np.ndarray, "J"]:
    """For each test, the last leaf on its left."""
    right = m.children[:, 1]
    first = np.where(right < 0, ~right, m.structure.first_leaf[np.maximum(right, 0)])
    return first - 1.0


def _flip_counts(cells: Cells, row: Float[np.ndarray, "n"]) -> dict[int, np.ndarray]:
    """For each feature and cell, how many tests answer differently than for the input."""
    cost = {}
    for feature, tests in cells.tests.items():
        own = int(cells.cell(feature, row[feature]))
        total = np.zeros(len(cells.ends[feature]) + 1, np.int64)
        for j in tests.tolist():
            left = cells.left(j)
            total += left != left[own]
        cost[feature] = total
    return cost


def _forest_flips(found: Goal, distances: list[np.ndarray]) -> float:
    """The fewest flips over all trees: by adding trees, the most that k flips can gain.

    Exact where each way to the goal is one sum (any other answer, or two classes), rounding
    apart; for a target among three classes or more it is a lower bound.
    """
    m = found.machine
    if not found.ways:
        return np.inf
    best = np.inf
    for way in found.ways:
        need = max((_flips_for(m, found, distances, i) for i in way), default=0.0)
        best = min(best, need)
    return best


def _flips_for(m: DecisionMachine, found: Goal, distances: list[np.ndarray], which: int) -> float:
    """The fewest flips for which one function of the trees reaches 0."""
    gains = []
    for tree in range(m.n_trees):
        w, flips = found.W[m.trees.leaves(tree), which], distances[tree]
        most = np.full(int(flips.max(initial=0)) + 1, -np.inf)
        np.maximum.at(most, flips, w)
        gains.append(np.maximum.accumulate(most))
    total = np.array([0.0])
    constant, need, is_strict = found.constant[which], found.need[which], found.strict[which]
    longest = sum(len(g) - 1 for g in gains)
    limit = 8
    while True:
        total = np.array([0.0])
        for gain in gains:
            total = _most_together(total, gain, limit)
        most = total + constant
        reached = np.flatnonzero(most > need if is_strict else most >= need)
        if len(reached):
            return float(reached[0])
        if limit >= longest:
            return np.inf
        limit *= 4


def _most_together(a: np.ndarray, b: np.ndarray, limit: int) -> np.ndarray:
    """The most of a[i] + b[j] over i + j = k, for every k up to a limit."""
    size = min(len(a) + len(b) - 1, limit + 1)
    found = np.full(size, -np.inf)
    for j, gain in enumerate(b[:size]):
        part = a[: size - j] + gain
        found[j : j + len(part)] = np.maximum(found[j : j + len(part)], part)
    return np.maximum.accumulate(found)
