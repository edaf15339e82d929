"""Leaf boxes: the interval of every column for every leaf, from S, t and B.

Row i of B says on which side of each test leaf i stands, so its box is an intersection of
half-spaces: below the least t of its tests on the left, above the greatest t of those on the right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UnsupportedModelError
from ...machine import Rule
from ...machine.look_ups import check_single_features
from ...machine.trees import ranges
from ..given import features_of
from .cells import Cells
from .regions import reachable

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int, Num

    from ...machine import DecisionMachine

ENTRIES_AT_ONCE = 1 << 24


@dataclass(frozen=True, eq=False, repr=False)
class Boxes:
    """The box of every leaf of some trees, sparse: only the columns that a leaf's path tests.

    Entries start[i] to start[i + 1] are those of the i-th leaf: a number z of the column passes
    where lower < z ≤ upper, NaN where `missing` says so. A column without an entry is free.
    """

    machine: DecisionMachine
    trees: Int[np.ndarray, "T"]
    leaf: Int[np.ndarray, "L"]
    """The leaves, counted over all trees of the machine."""
    start: Int[np.ndarray, "L+1"]
    column: Int[np.ndarray, "e"]
    """Ascending within a leaf."""
    lower: Float[np.ndarray, "e"]
    """Exclusive. -inf where no test bounds the column from below; then -inf itself is inside."""
    upper: Float[np.ndarray, "e"]
    """Inclusive."""
    bounded: Bool[np.ndarray, "e"]
    """Whether a test bounds the column from below."""
    missing: Bool[np.ndarray, "e"]
    """Whether NaN passes every test of the column on the path."""
    reachable: Bool[np.ndarray, "L"]
    """Whether any input reaches the leaf: its tests do not contradict each other."""

    def __len__(self) -> int:
        return len(self.leaf)

    def __repr__(self) -> str:
        dead = int(np.count_nonzero(~self.reachable))
        return (
            f"Boxes({len(self)} leaves of {len(self.trees)} "
            f"tree{'' if len(self.trees) == 1 else 's'}, {len(self.column)} intervals"
            f"{f', {dead} leaves that no input reaches' if dead else ''})"
        )

    def __getitem__(self, i: int) -> dict[int, tuple[float, float, bool]]:
        """The box of the i-th leaf: column → (lower, upper, whether NaN passes)."""
        i = range(len(self))[i]
        at = slice(int(self.start[i]), int(self.start[i + 1]))
        return {
            c: (low, high, nan)
            for c, low, high, nan in zip(
                self.column[at].tolist(),
                self.lower[at].tolist(),
                self.upper[at].tolist(),
                self.missing[at].tolist(),
                strict=True,
            )
        }

    def contains(self, X: Any) -> Bool[np.ndarray, "m L"]:
        """Whether each row lies in each leaf's box: once in every tree, at the leaf of `apply`."""
        z = self.machine.columns.read(features_of(self.machine, X))
        is_in = np.ones((len(z), len(self)), bool)
        owner = np.repeat(np.arange(len(self)), np.diff(self.start))
        step = max(1, ENTRIES_AT_ONCE // max(len(z), 1))
        for a in range(0, len(owner), step):
            at = slice(a, a + step)
            own = z[:, self.column[at]]
            passes = (own <= self.upper[at]) & ((own > self.lower[at]) | ~self.bounded[at])
            passes = np.where(np.isnan(own), self.missing[at], passes)
            firsts = np.flatnonzero(np.diff(owner[at], prepend=-1))
            is_in[:, owner[at][firsts]] &= np.logical_and.reduceat(passes, firsts, axis=1)
        return is_in

    def dense(self) -> tuple[Num[np.ndarray, "L n"], Num[np.ndarray, "L n"], np.ndarray]:
        """(L, n) lower, upper and whether NaN passes, free columns included."""
        shape = (len(self), len(self.machine.columns))
        lower = np.full(shape, -np.inf, self.lower.dtype)
        upper, missing = np.full(shape, np.inf, self.upper.dtype), np.ones(shape, bool)
        owner = np.repeat(np.arange(len(self)), np.diff(self.start))
        lower[owner, self.column] = self.lower
        upper[owner, self.column] = self.upper
        missing[owner, self.column] = self.missing
        return lower, upper, missing


def boxes(machine: DecisionMachine, trees: Any = None) -> Boxes:
    """The box of every leaf; see `DecisionMachine.boxes`."""
    if machine.is_oblique:
        raise UnsupportedModelError(
            "making leaf boxes",
            "the machine's tests are oblique: a leaf is bounded by slanted planes, not by a box",
            "use machine.rules(), which writes the planes",
        )
    check_single_features(machine, "making leaf boxes")
    chosen = machine.trees.choose(trees)
    parts = [_of_tree(machine, int(tree)) for tree in chosen]
    sizes = np.concatenate([np.zeros(1, np.int64), *(np.diff(p[0]) for p in parts)])
    dtypes = (np.dtype(np.int32), machine.t.dtype, machine.t.dtype, np.dtype(bool), np.dtype(bool))
    column, lower, upper, bounded, missing = (
        np.concatenate([np.empty(0, dtype), *(p[i] for p in parts)])
        for i, dtype in enumerate(dtypes, start=1)
    )
    return Boxes(
        machine,
        chosen,
        ranges(machine.trees.leaf_start, chosen),
        np.cumsum(sizes),
        column,
        lower,
        upper,
        bounded,
        missing,
        _reachable(machine, chosen, parts),
    )


def _of_tree(machine: DecisionMachine, tree: int) -> tuple[np.ndarray, ...]:
    """start, column, lower, upper, bounded, missing of one tree: entries of B merged by column."""
    B = machine.templates(tree)
    tests = machine.trees.tests(tree)
    owner = np.repeat(np.arange(B.shape[0]), np.diff(B.indptr))
    column = machine.selection[tests][B.indices]
    order = np.lexsort((column, owner))
    side, test = B.data[order], B.indices[order] + tests.start
    owner, column, t = owner[order], column[order], machine.t[test]
    is_first = np.ones(len(owner), bool)
    is_first[1:] = (owner[1:] != owner[:-1]) | (column[1:] != column[:-1])
    firsts = np.flatnonzero(is_first)
    inf = t.dtype.type(np.inf)
    start = np.concatenate([[0], np.cumsum(np.bincount(owner[firsts], minlength=B.shape[0]))])
    if not len(firsts):
        none = np.empty(0, t.dtype)
        return start, column, none, none, np.empty(0, bool), np.empty(0, bool)
    return (
        start,
        column[firsts],
        np.maximum.reduceat(np.where(side > 0, t, -inf), firsts),
        np.minimum.reduceat(np.where(side < 0, t, inf), firsts),
        np.logical_or.reduceat(side > 0, firsts),
        np.logical_and.reduceat(machine.missing[test] == side, firsts),
    )


def _reachable(
    machine: DecisionMachine, trees: np.ndarray, parts: list[tuple[np.ndarray, ...]]
) -> np.ndarray:
    """Whether each leaf has an input: by its intervals where columns are plain, else by cells."""
    columns = machine.columns
    used = np.unique(machine.selection)
    plain = bool(
        np.all(columns.rule[used] == Rule.VALUE)
        and len(np.unique(columns.feature[used])) == len(used)
        and np.isnan(columns.missing_value)
    )
    found = [np.empty(0, bool)]
    cells = None if plain else Cells(machine)
    for tree, (start, _, lower, upper, bounded, missing) in zip(trees, parts, strict=True):
        if cells is not None:
            found.append(reachable(cells, int(tree)))
            continue
        is_empty = ~((lower < upper) | ~bounded | missing)
        owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
        found.append(np.bincount(owner[is_empty], minlength=len(start) - 1) == 0)
    return np.concatenate(found)
