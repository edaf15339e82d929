"""Delta scoring: what one or two features do to the sums, all other values of the rows kept.

Only trees that test the moved features are redone, and in each of them only the answers that its
own tests can tell apart. A grid of a hundred values is three or four codes to a tree with two or
three tests of the feature: each code is scored once, and the grid looks its code up. Where the
sums of whole points are cheaper than the leaves of codes, the distinct points are scored.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from ...machine import Rule
from ...machine.coded import coded
from ...machine.values import wide_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxtyping import Float, Int

    from ...machine import CategorySets, Columns, DecisionMachine

ROWS_AT_ONCE = 8192
TREES_AT_ONCE = 128
"""Each tree has its own copy of the moved features, so rows grow with the trees done together."""


def can_delta(machine: DecisionMachine) -> bool:
    """Whether a machine's answer is a sum of leaves that tests of single columns choose."""
    return (
        not machine.is_oblique
        and machine.linear is None
        and machine.output.aggregate == "sum"
        and machine.columns.look_ups is None
    )


def trees_that_test(machine: DecisionMachine, features: list[int]) -> Int[np.ndarray, "T"]:
    """The trees with a test of any of these features."""
    moved = np.isin(machine.columns.feature[machine.selection], features)
    return np.unique(machine.trees.of_test[moved]).astype(np.int64)


class Delta:
    """Features of a machine set to the values of a grid."""

    def __init__(
        self,
        machine: DecisionMachine,
        features: list[int],
        grid: Float[np.ndarray, "G f"],
        n_threads: int | None = None,
    ) -> None:
        self.machine, self.features = machine, features
        self.grid = _as_read(machine, grid)
        self.n_threads = n_threads
        plain = coded(machine)
        # Rows come as features: what is missing is NaN already.
        plain = replace(plain, columns=replace(plain.columns, missing_value=float("nan")))
        trees = trees_that_test(machine, features)
        self.rest = plain.mask(trees)
        """All other trees: their sum does not change."""
        moved = plain.mask(np.setdiff1d(np.arange(plain.n_trees), trees))
        zero = np.zeros_like(moved.output.base)
        self.moved = replace(moved, output=replace(moved.output, base=zero))
        self.code, self.points = _codes(self.moved, features, self.grid)
        first, back = _distinct(self.code)
        self.distinct, self.back = first, back
        """Grid points that some tree tells apart, and where each point is among them."""
        self.factor = machine.output.scale / machine.output.divisor

    @property
    def by_point(self) -> bool:
        """Whether to score the distinct grid points one by one, rather than the trees' codes.

        A code asks the engine for every tree's exit leaf, a point for the sum alone. Measured,
        a code costs as much as 80 points for trees of 8 leaves, 20 for 31, and 2.5 for 400.
        """
        n_codes = max((len(p) for p in self.points), default=0)
        leaves = self.moved.n_leaves / max(self.moved.n_trees, 1)
        return n_codes * max(2.5, 640 / max(leaves, 1)) > len(self.distinct)

    @functools.cached_property
    def parts(self) -> list[Part]:
        """The moved trees, those with as many codes together."""
        order = np.argsort([len(p) for p in self.points], kind="stable")
        chunks = [order[a : a + TREES_AT_ONCE] for a in range(0, len(order), TREES_AT_ONCE)]
        return [Part(self, np.sort(chunk)) for chunk in chunks]

    def margins(self, x: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "m G k"]:
        """The margin of every row with the features at every grid point.

        Equal to scoring the changed rows, up to the order of the sum.
        """
        rest = self.rest.margin(x, n_threads=self.n_threads).astype(np.float64)
        if self.by_point:
            total = np.stack(list(self._each_point(x)), axis=1)
        else:
            k = self.machine.n_outputs
            sums = np.zeros((k, len(self.distinct), len(x)))
            for part in self.parts:
                for chosen, leaf in part.leaves(x):
                    for output in range(k):
                        sums[output] += part.chosen_values(chosen, leaf, output)
            total = sums.transpose(2, 1, 0) * self.factor
        return (total + rest[:, None])[:, self.back]

    def mean_margins(
        self, x: Float[np.ndarray, "m n"], weight: Float[np.ndarray, "m"]
    ) -> Float[np.ndarray, "G k"]:
        """The weighted sum over rows of `margins`, without ever forming them."""
        rest = weight @ self.rest.margin(x, n_threads=self.n_threads).astype(np.float64)
        if self.by_point:
            total = np.stack([weight @ found for found in self._each_point(x)])
        else:
            total = np.zeros((len(self.distinct), self.machine.n_outputs))
            for part in self.parts:
                for chosen, leaf in part.leaves(x):
                    total += chosen @ part.mean_values(leaf, weight)
            total *= self.factor
        found: np.ndarray = (total + rest)[self.back]
        return found

    def _each_point(self, x: Float[np.ndarray, "m n"]) -> Iterator[Float[np.ndarray, "m k"]]:
        changed = np.array(x)
        for point in self.grid[self.distinct]:
            changed[:, self.features] = point
            yield self.moved.margin(changed, n_threads=self.n_threads).astype(np.float64)


@dataclass(frozen=True)
class Part:
    """Some of the moved trees, each reading a copy of the moved features that is its own.

    So one call scores every tree at a code of its own, whatever the others are at.
    """

    delta: Delta
    trees: Int[np.ndarray, "t"]

    @functools.cached_property
    def machine(self) -> DecisionMachine:
        whole, features = self.delta.moved, self.delta.features
        m = whole.mask(np.setdiff1d(np.arange(whole.n_trees), self.trees))
        columns, n = m.columns, m.n_features
        is_moved = np.isin(columns.feature[m.selection], features)
        pairs = np.stack([m.trees.of_test[is_moved], m.selection[is_moved]])
        own, at = np.unique(pairs, axis=1, return_inverse=True)
        place = {feature: i for i, feature in enumerate(features)}
        copies = [place[f] for f in columns.feature[own[1]].tolist()]
        selection = m.selection.copy()
        selection[is_moved] = len(columns) + at.reshape(-1)
        wider = replace(
            columns,
            n_features=n + len(self.trees) * len(features),
            feature=np.concatenate([columns.feature, n + own[0] * len(features) + copies]),
            rule=np.concatenate([columns.rule, columns.rule[own[1]]]),
            sets=_with_copies(columns, own[1]),
            names=None,
            categories={},
            table_categories=None,
        )
        return replace(m, columns=wider, selection=selection)

    @functools.cached_property
    def values(self) -> list[Float[np.ndarray, "L"]]:
        """What each leaf adds to each output."""
        V = wide_values(self.machine, np.float64)
        return [np.ascontiguousarray(column) for column in V.T]

    def leaves(self, x: Float[np.ndarray, "m n"]) -> Iterator[tuple[sp.csr_array, np.ndarray]]:
        """For each code: (points, t) trees that have it at a point; (t, m) their exit leaves."""
        delta, m = self.delta, self.machine
        points = [delta.points[tree] for tree in self.trees]
        wide = np.empty((len(x), m.n_features), x.dtype)
        wide[:, : x.shape[1]] = x
        code = delta.code[delta.distinct][:, self.trees]
        for i in range(max(len(p) for p in points)):
            at = np.array([p[min(i, len(p) - 1)] for p in points])
            wide[:, x.shape[1] :] = delta.grid[at].reshape(-1)
            leaf = m.apply(wide, n_threads=delta.n_threads) + m.trees.leaf_start[:-1]
            yield sp.csr_array((code == i).astype(np.float64)), leaf.T

    def chosen_values(self, chosen: sp.csr_array, leaf: np.ndarray, output: int) -> np.ndarray:
        """(points, m) the sum of the trees' values, where they have the code."""
        return np.asarray(chosen @ self.values[output][leaf])

    def mean_values(self, leaf: np.ndarray, weight: np.ndarray) -> Float[np.ndarray, "t k"]:
        """The weighted sum over rows of each tree's values: how much weight reaches each leaf."""
        m = self.machine
        shares = np.bincount(
            leaf.reshape(-1), weights=np.tile(weight, len(leaf)), minlength=m.n_leaves
        )
        start = m.trees.leaf_start[:-1]
        return np.stack([np.add.reduceat(shares * v, start) for v in self.values], axis=1)


def _as_read(machine: DecisionMachine, grid: np.ndarray) -> np.ndarray:
    """The grid's values as the machine reads a row's: cast, and NaN where they mean missing."""
    with np.errstate(over="ignore"):
        cast = np.asarray(grid).astype(machine.columns.dtype)
    return np.where(cast == machine.columns.missing_value, machine.columns.dtype.type("nan"), cast)


def _codes(
    m: DecisionMachine, features: list[int], grid: np.ndarray
) -> tuple[Int[np.ndarray, "G T"], list[np.ndarray]]:
    """(G, T) the code of every grid point in every tree, and a point of every code."""
    is_moved = np.isin(m.columns.feature[m.selection], features)
    rows = np.zeros((len(grid), m.n_features), grid.dtype)
    rows[:, features] = grid
    z = m.columns.read(rows)
    code = np.zeros((len(grid), m.n_trees), np.int64)
    points = []
    for tree in range(m.n_trees):
        own = m.trees.tests(tree)
        tests = np.flatnonzero(is_moved[own]) + own.start
        q = z[:, m.selection[tests]]
        goes_left = np.where(np.isnan(q), m.missing[tests] < 0, q <= m.t[tests])
        words = np.packbits(goes_left, axis=1)
        _, first, inverse = np.unique(words, axis=0, return_index=True, return_inverse=True)
        code[:, tree] = inverse.reshape(-1)
        points.append(first)
    return code, points


def _distinct(code: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if not code.shape[1]:
        return np.zeros(1, np.int64), np.zeros(len(code), np.int64)
    _, first, back = np.unique(code, axis=0, return_index=True, return_inverse=True)
    return first, back.reshape(-1)


def _with_copies(columns: Columns, copied: np.ndarray) -> CategorySets | None:
    """The category sets of all columns and of the copied ones after them."""
    if columns.sets is None:
        return None
    sets = columns.sets
    number = np.cumsum(columns.rule == Rule.MEMBER) - 1
    which = number[copied[columns.rule[copied] == Rule.MEMBER]]
    which = np.concatenate([np.arange(len(sets)), which])
    spans = [slice(int(sets.start[w]), int(sets.start[w + 1])) for w in which]
    return replace(
        sets,
        start=np.cumsum([0] + [s.stop - s.start for s in spans]),
        members=np.concatenate([sets.members[s] for s in spans]),
        answer=np.concatenate([sets.answer[s] for s in spans]),
        outside=sets.outside[which],
    )
