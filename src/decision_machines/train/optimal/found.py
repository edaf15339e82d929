"""Trees over orders of the rows: where rows leave them, and their nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..axis.nodes import Nodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float, Int

    from .orders import Order


@dataclass(frozen=True)
class FoundTree:
    """Node i of a complete tree has children 2 i + 1 and 2 i + 2."""

    order: Int[np.ndarray, "N"]
    """Which order's cut each node tests; -1 at a leaf and where nothing is."""
    below: Int[np.ndarray, "N"]
    """The last rank that goes left."""
    above: Int[np.ndarray, "N"]
    """The first rank of the node's rows that goes right."""

    @classmethod
    def of(cls, flat: Int[np.ndarray, "F"]) -> FoundTree:
        """What the native search gives."""
        return cls(*flat.reshape(-1, 3).T)

    def nodes(
        self,
        orders: Sequence[Order],
        rank: Int[np.ndarray, "o m"],
        w: Float[np.ndarray, "m"],
    ) -> tuple[Nodes, Int[np.ndarray, "m"]]:
        """The nodes in preorder, and the leaf of each row, counted from 0, left to right.

        Missing values go where the rows with most weight go, if a test has not met any.
        """
        made: list[list[float]] = []
        leaf = np.zeros(rank.shape[1], np.int64)
        n_leaves = 0

        def put(at: int, rows: Int[np.ndarray, "r"]) -> int:
            nonlocal n_leaves
            place = len(made)
            made.append([-1, -1, 0, 0.0, 0])
            if at >= len(self.order) or self.order[at] < 0:
                leaf[rows] = n_leaves
                n_leaves += 1
                return place
            which = int(self.order[at])
            is_left = rank[which, rows] <= self.below[at]
            sides = [(2 * at + 1, rows[is_left]), (2 * at + 2, rows[~is_left])]
            t, missing_left, swap = orders[which].test(int(self.below[at]), int(self.above[at]))
            if missing_left is None:
                missing_left = bool(w[sides[0][1]].sum() >= w[sides[1][1]].sum())
            if swap:
                sides.reverse()
            children = [put(*side) for side in sides]
            made[place] = [*children, orders[which].feature, t, missing_left]
            return place

        put(0, np.arange(rank.shape[1]))
        left, right, feature, t, missing = zip(*made, strict=True)
        nodes = Nodes(
            np.array(left, np.int64),
            np.array(right, np.int64),
            np.array(feature, np.int32),
            np.array(t, np.float64),
            np.array(missing, np.uint8),
        )
        return nodes, leaf
