"""Trees out of a graph of nodes that several parents may share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...errors import UnsupportedModelError

if TYPE_CHECKING:
    from jaxtyping import Int

MOST_NODES = 50_000_000
MOST_COPIES = 1_000_000


def expand(
    left: Int[np.ndarray, "N"], right: Int[np.ndarray, "N"], roots: Int[np.ndarray, "T"], doing: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The trees that hang from `roots`, level by level, a shared node copied for each parent.

    Returns
    -------
    node, left, right, start
        For each node of each tree the node it is a copy of, its children counted within the
        tree, and where each tree's nodes start.
    """
    limit = min(len(left) * 2 + MOST_COPIES, MOST_NODES)
    node, tree, parent, side = [roots], [np.arange(len(roots))], [], []
    n_nodes, first = len(roots), 0
    while len(node[-1]):
        here, at = node[-1], first + np.arange(len(node[-1]))
        inner = left[here] >= 0
        first += len(here)
        node.append(np.concatenate([left[here][inner], right[here][inner]]))
        tree.append(np.tile(tree[-1][inner], 2))
        parent.append(np.tile(at[inner], 2))
        side.append(np.repeat([0, 1], np.count_nonzero(inner)))
        n_nodes += len(node[-1])
        if n_nodes > limit or len(node) > len(left) + 1:
            raise UnsupportedModelError(
                doing,
                "nodes that lead back to themselves, or that are shared by so many others that "
                f"the trees have more than {limit} nodes",
                "write the model as trees, and large sets of categories as membership sets",
            )
    node_of, tree_of = np.concatenate(node), np.concatenate(tree)
    order = np.argsort(tree_of, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(tree_of, minlength=len(roots)))])
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    children = np.full((len(order), 2), -1, np.int64)
    if parent:
        child = np.arange(len(roots), len(order))
        children[place[np.concatenate(parent)], np.concatenate(side)] = (
            place[child] - start[tree_of[child]]
        )
    return node_of[order], children[:, 0], children[:, 1], start
