"""The same machine with less in it: every prediction stays, bit for bit.

Tests that the path above already answers are passed over, so leaves whose tests contradict each
other go; a test whose two sides are equal subtrees goes; columns that nothing reads go. Trees stay,
even those of one leaf: the order of the sum decides its last bits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine import Cover, Trees
from ..space.cells import Cells
from .canonical import use_columns

if TYPE_CHECKING:
    from ...machine import DecisionMachine

BOTH, LEFT, RIGHT = 0, -1, 1
Sides = tuple[dict[Any, int] | None, dict[Any, int] | None]
"""What is known left and right of a test; None where no input gets there."""


def simplify(machine: DecisionMachine) -> DecisionMachine:
    """See `DecisionMachine.simplify`."""
    cells = None if machine.is_oblique else Cells(machine)
    keys = machine.columns.column_keys()
    tests: list[int] = []
    leaves: list[int] = []
    children: list[tuple[int, int]] = []
    reached: tuple[list[int], list[int]] = ([], [])
    starts = [0]
    for tree in range(machine.n_trees):
        sides = _answered_sides(machine, cells, tree)
        end = _merged(machine, tree, sides, keys)
        _emit(machine, tree, end, tests, leaves, children, reached)
        starts.append(len(tests))
    smaller = _assemble(machine, tests, leaves, children, starts, _reached_cover(machine, *reached))
    return use_columns(smaller)


def _answered_sides(machine: DecisionMachine, cells: Cells | None, tree: int) -> dict[int, int]:
    """For each test that some input reaches: whether inputs leave it on both sides, or on which."""
    own = machine.trees.tests(tree)
    if own.start == own.stop:
        return {}
    found: dict[int, int] = {}
    stack: list[tuple[int, dict[Any, int]]] = [(own.start, {})]
    while stack:
        j, known = stack.pop()
        left, right = (
            _cell_sides(cells, j, known) if cells is not None else _same_sides(machine, j, known)
        )
        found[j] = BOTH if left and right else LEFT if left else RIGHT
        for child, below in zip(machine.children[j].tolist(), (left, right), strict=True):
            if child >= 0 and below is not None:
                stack.append((child, below))
    return found


def _cell_sides(cells: Cells, j: int, known: dict[Any, int]) -> Sides:
    """What is known of the features left and right of a test; None where nothing gets there."""
    f = int(cells.feature[j])
    now = known.get(f)
    if now is None:
        now = cells.all_bits(f)
    left = now & cells.left_bits(j)
    right = now & ~cells.left_bits(j)
    return ({**known, f: left} if left else None), ({**known, f: right} if right else None)


def _same_sides(machine: DecisionMachine, j: int, known: dict[Any, int]) -> Sides:
    """Oblique tests: only one that was asked before, in the same words, is answered."""
    S = machine.S
    at = slice(S.indptr[j], S.indptr[j + 1])
    key = (
        S.indices[at].tobytes(),
        S.data[at].tobytes(),
        machine.t[j].tobytes(),
        int(machine.missing[j]),
    )
    answer = known.get(key, BOTH)
    return (
        {**known, key: LEFT} if answer != RIGHT else None,
        {**known, key: RIGHT} if answer != LEFT else None,
    )


def _merged(
    machine: DecisionMachine, tree: int, sides: dict[int, int], keys: list[tuple[Any, ...]]
) -> dict[int, int]:
    """Where each node that remains stands in for: a test → the node that takes its place."""
    place: dict[int, int] = {}
    name: dict[Any, int] = {}
    name_of: dict[int, int] = {}

    def resolved(node: int) -> int:
        node = place.get(node, node)
        if node < 0 and node not in name_of:
            leaf = ~node
            key: tuple[Any, ...] = (machine.V[leaf].tobytes(),)
            if machine.linear is not None:
                key = (leaf,)
            name_of[node] = name.setdefault(key, len(name))
        return node

    for j in sorted(sides, reverse=True):  # children come after their parents
        low, high = machine.children[j].tolist()
        if sides[j] != BOTH:
            place[j] = resolved(low if sides[j] == LEFT else high)
            continue
        low, high = resolved(low), resolved(high)
        if name_of[low] == name_of[high]:
            place[j] = low
            continue
        asked = (
            (j,)
            if machine.is_oblique
            else (
                keys[machine.selection[j]],
                float(machine.t[j]) + 0.0,
                int(machine.missing[j]),
            )
        )
        name_of[j] = name.setdefault((*asked, name_of[low], name_of[high]), len(name))
        place[j] = j
    return place


def _emit(
    machine: DecisionMachine,
    tree: int,
    place: dict[int, int],
    tests: list[int],
    leaves: list[int],
    children: list[tuple[int, int]],
    reached: tuple[list[int], list[int]],
) -> None:
    """Write a tree down in preorder, leaves left to right.

    `reached` takes, for each test and each leaf written, the node of the machine in whose place it
    stands: what reached that one reaches it.
    """
    own = machine.trees.tests(tree)
    root = own.start if own.stop > own.start else ~machine.trees.leaves(tree).start
    stack: list[tuple[int, int, int]] = [(root, -1, 0)]
    while stack:
        given, parent, side = stack.pop()
        node = place.get(given, given)
        if node < 0:
            new = ~len(leaves)
            leaves.append(~node)
            reached[1].append(given)
        else:
            new = len(tests)
            tests.append(node)
            reached[0].append(given)
            children.append((0, 0))
            low, high = machine.children[node].tolist()
            stack.append((high, new, 1))
            stack.append((low, new, 0))
        if parent >= 0:
            pair = list(children[parent])
            pair[side] = new
            children[parent] = (pair[0], pair[1])


def _reached_cover(machine: DecisionMachine, tests: list[int], leaves: list[int]) -> Cover | None:
    cover = machine.cover
    if cover is None:
        return None
    of_tests, of_leaves = (np.array(nodes, np.int64) for nodes in (tests, leaves))
    weight = np.concatenate([cover.tests, cover.leaves[::-1]])  # node -1 is leaf 0
    return Cover(weight[of_tests], weight[of_leaves])


def _assemble(
    machine: DecisionMachine,
    tests: list[int],
    leaves: list[int],
    children: list[tuple[int, int]],
    starts: list[int],
    cover: Cover | None,
) -> DecisionMachine:
    at, kept = np.array(tests, np.int64), np.array(leaves, np.int64)
    is_same = len(tests) == machine.n_tests
    trees = machine.trees
    return replace(
        machine,
        selection=machine.selection[at],
        t=machine.t[at],
        missing=machine.missing[at],
        children=np.array(children, np.int32).reshape(-1, 2),
        V=machine.V[kept] if len(kept) else machine.V,
        trees=Trees(
            np.array(starts),
            trees.feeds,
            trees.test_ids[at] if is_same and trees.test_ids is not None else None,
            trees.leaf_ids[kept] if is_same and trees.leaf_ids is not None else None,
        ),
        linear=None if machine.linear is None else machine.linear.keep(kept),
        cover=cover,
    )
