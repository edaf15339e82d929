"""The inputs that reach each leaf of one tree, exactly: cells of every feature on its path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jaxtyping import Bool, Float

    from .cells import Cells


def regions(
    cells: Cells, tree: int, within: Mapping[int, int] | None = None
) -> Iterator[tuple[int, dict[int, int]]]:
    """Every leaf of a tree that an input can reach, left to right, with the cells that reach it.

    Parameters
    ----------
    within
        Cells to which features are confined, as bits; features left out may take any value.

    Yields
    ------
    leaf
        Counted over all trees.
    sets
        Feature → bits of the cells allowed, for the features on the path and those in `within`.
    """
    m = cells.machine
    tests, leaves = m.trees.tests(tree), m.trees.leaves(tree)
    root = tests.start if tests.stop > tests.start else ~leaves.start
    start = dict(within or {})
    if not all(start.values()):
        return
    feature = cells.feature
    children = m.children
    stack: list[tuple[int, dict[int, int]]] = [(int(root), start)]
    while stack:
        node, sets = stack.pop()
        if node < 0:
            yield ~node, sets
            continue
        f = int(feature[node])
        now = sets.get(f)
        if now is None:
            now = cells.all_bits(f)
        left = now & cells.left_bits(node)
        right = now & ~cells.left_bits(node)
        low, high = children[node].tolist()
        if right:
            stack.append((high, {**sets, f: right}))
        if left:
            stack.append((low, {**sets, f: left}))


def reachable(cells: Cells, tree: int) -> Bool[np.ndarray, "L"]:
    """Which leaves of a tree some input reaches."""
    leaves = cells.machine.trees.leaves(tree)
    found = np.zeros(leaves.stop - leaves.start, bool)
    for leaf, _ in regions(cells, tree):
        found[leaf - leaves.start] = True
    return found


def some_input(
    cells: Cells, sets: Mapping[int, int], x: Float[np.ndarray, "n"] | None = None
) -> Float[np.ndarray, "n"]:
    """An input with every feature in its set: x's own value wherever that lies in it."""
    row = np.zeros(cells.machine.n_features) if x is None else np.array(x, np.float64)
    for feature, bits in sets.items():
        if not bits >> int(cells.cell(feature, row[feature])) & 1:
            row[feature] = cells.representative(feature, bits)
    return row
