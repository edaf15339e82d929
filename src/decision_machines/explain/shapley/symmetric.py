"""Symmetric trees: the leaf's number is the pattern of a row, so that a table has all values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _native
from ...run.engines.processor import target
from .shares import test_features

if TYPE_CHECKING:
    from jaxtyping import Float, Int, Num

    from ...machine import DecisionMachine

MOST_LEVELS = 10
"""Deeper trees have tables too large to be worth it."""


def symmetric_trees(machine: DecisionMachine) -> Int[np.ndarray, "s"]:
    """The trees that ask one test on each level, every path as long as the others."""
    found = []
    depth, start = machine.structure.depth, machine.trees.test_start
    sizes = np.diff(start)
    for tree in np.flatnonzero((sizes > 0) & (sizes & (sizes + 1) == 0)).tolist():
        own = machine.trees.tests(tree)
        levels = int(sizes[tree] + 1).bit_length() - 1
        leaves = machine.structure.leaf_depth[machine.trees.leaves(tree)]
        if levels > MOST_LEVELS or np.any(leaves != levels):
            continue
        asked = np.stack(
            [machine.selection[own], machine.t[own], machine.missing[own]], axis=1
        ).astype(np.float64)
        first = np.searchsorted(np.sort(depth[own]), np.arange(levels))
        of_level = asked[np.argsort(depth[own], kind="stable")[first]]
        if np.array_equal(asked, of_level[depth[own]]):
            found.append(tree)
    return np.array(found, np.int64)


class Symmetric:
    """Tables of symmetric trees' values, made by the tree form itself for every pattern."""

    def __init__(
        self,
        machine: DecisionMachine,
        trees: Int[np.ndarray, "s"],
        share: Float[np.ndarray, "J"],
        dtype: Any,
        point: float | None,
    ) -> None:
        from .paths import ColumnsRead

        self.read = ColumnsRead(machine, dtype)
        feature = test_features(machine)
        self.features, slot = np.unique(feature, return_inverse=True)
        self.features = self.features.astype(np.int32)
        slot = slot.reshape(-1)
        n_slots, width = len(self.features), machine.V.shape[1]
        asked, places, tables, n_places, n_levels = [], [], [], [0], [0]
        for tree in trees.tolist():
            own = np.arange(machine.n_tests)[machine.trees.tests(tree)]
            level = machine.structure.depth[own]
            levels = int(level.max()) + 1
            # The first test of each level, bit by bit.
            tests = own[[int(np.argmax(level == i)) for i in range(levels)]]
            here = np.unique(slot[tests])
            table = _table(machine, own, level, tree, share, slot, here, levels, point)
            asked.append(tests)
            n_levels.append(levels)
            feeds = int(machine.trees.feeds[tree])
            outputs = np.arange(width) if feeds < 0 or width > 1 else np.array([feeds])
            places.append((outputs[None, :] * n_slots + here[:, None]).reshape(-1))
            n_places.append(len(places[-1]))
            tables.append(table.reshape(-1))
        tests = np.concatenate(asked)
        kind = _native.ShapleyTables32 if self.read.dtype == np.float32 else _native.ShapleyTables64
        self.plan = kind(
            start=np.cumsum(n_levels),
            column=self.read.column[tests],
            t=self.read.t[tests],
            missing=machine.missing[tests],
            place_start=np.cumsum(n_places),
            places=np.concatenate(places).astype(np.int32),
            table=np.concatenate(tables).astype(self.read.dtype),
            n_columns=len(self.read.used),
            n_slots=n_slots,
            n_outputs=machine.n_outputs,
        )

    def add(
        self, x: Num[np.ndarray, "m n"], factor: float, n_threads: int, out: np.ndarray
    ) -> None:
        """Add the values of rows to (m, n, k) `out`."""
        self.plan.values(target(), self.read.read(x), self.features, factor, n_threads, out)


def _table(
    machine: DecisionMachine,
    own: np.ndarray,
    level: np.ndarray,
    tree: int,
    share: np.ndarray,
    slot: np.ndarray,
    here: np.ndarray,
    levels: int,
    point: float | None,
) -> np.ndarray:
    """(2^levels, features, width) values by the pattern of answers; bit i is level i, 1 right."""
    leaves = machine.trees.leaves(tree)
    children = machine.children[own]
    width = machine.V.shape[1]
    forest = _native.ShapleyForest(
        children=np.where(children >= 0, children - own[0], children + leaves.start).astype(
            np.int32
        ),
        test_start=np.array([0, len(own)]),
        column=level.astype(np.int32),
        slot=np.searchsorted(here, slot[own]).astype(np.int32),
        t=np.full(len(own), 0.5),
        missing=np.ones(len(own), np.int8),
        share=share[own],
        values=machine.V[leaves].astype(np.float64),
        feeds=np.array([0 if width == 1 else -1], np.int32),
        n_columns=levels,
        n_slots=len(here),
        n_outputs=width,
    )
    patterns = (np.arange(1 << levels)[:, None] >> np.arange(levels) & 1).astype(np.float64)
    out = np.zeros((len(patterns), len(here), width))
    plan = _native.ShapleyPlan64(forest, False, point)
    plan.values(target(), patterns, np.arange(len(here), dtype=np.int32), 1.0, 1, out, None)
    return out
