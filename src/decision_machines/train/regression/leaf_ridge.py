"""Linear functions for the leaves of a complete tree, by ridge regression in closed form.

A leaf of few rows cannot support a free linear function. It is therefore drawn, row for row of the
ridge, to what is known from above: the function of its parent, which is drawn to that of its own
parent, up to one function for all rows. Or it is drawn to the function it had before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float, Int

MOST_NUMBERS = 2**25
"""How many numbers the leaves' sums may hold; beyond, leaves keep what they learned."""


@dataclass(frozen=True)
class LeafSums:
    """What ridge regressions need to know of the rows in each leaf: Σ w u uᵀ and Σ w u yᵀ."""

    uu: Float[np.ndarray, "L p p"]
    uy: Float[np.ndarray, "L p q"]

    @classmethod
    def of(
        cls,
        U: Float[np.ndarray, "m p"],
        y: Float[np.ndarray, "m q"],
        weight: Float[np.ndarray, "m"],
        exits: Int[np.ndarray, "m"],
        n_leaves: int,
    ) -> LeafSums:
        """Sums over rows U, whose last column is 1."""
        p, q = U.shape[1], y.shape[1]
        uu, uy = np.zeros((n_leaves, p, p)), np.zeros((n_leaves, p, q))
        order = np.argsort(exits, kind="stable")
        ends = np.searchsorted(exits[order], np.arange(n_leaves), side="right")
        for leaf, rows in enumerate(np.split(order, ends[:-1])):
            weighted = U[rows].T * weight[rows]
            uu[leaf], uy[leaf] = weighted @ U[rows], weighted @ y[rows]
        return cls(uu, uy)

    @property
    def weight(self) -> Float[np.ndarray, "L"]:
        """Of the rows in each leaf."""
        return self.uu[:, -1, -1]

    def above(self) -> LeafSums:
        """The same sums for the level above."""
        return LeafSums(self.uu[0::2] + self.uu[1::2], self.uy[0::2] + self.uy[1::2])


def ridge_towards(
    sums: LeafSums, prior: Float[np.ndarray, "L p q"], ridge: float
) -> Float[np.ndarray, "L p q"]:
    """The functions A of least Σ w (y - A u)² + ridge |A - prior|² in each leaf.

    Examples
    --------
    >>> U = np.array([[0.0, 1.0], [1.0, 1.0]])
    >>> sums = LeafSums.of(U, np.array([[1.0], [3.0]]), np.ones(2), np.zeros(2, int), 1)
    >>> ridge_towards(sums, np.zeros((1, 2, 1)), 1e-12).round(6)[0, :, 0]
    array([2., 1.])
    """
    p = sums.uu.shape[1]
    return _solved(sums.uu + ridge * np.eye(p), sums.uy + ridge * prior)


def ridge_from_above(
    sums: LeafSums, ridge: float, root_ridge: float = 1e-3
) -> Float[np.ndarray, "L p q"]:
    """The functions of the leaves, each node's drawn to its parent's by the ridge.

    Parameters
    ----------
    ridge
        As many rows as the parent's function is worth.
    root_ridge
        Draws the slopes of the function for all rows to 0, relative to the rows' weight.
    """
    return from_root(sums, root_function(sums, root_ridge), ridge)


def root_function(sums: LeafSums, root_ridge: float) -> Float[np.ndarray, "1 p q"]:
    """One function for all rows, its slopes drawn to 0 and its intercept free."""
    uu, uy = sums.uu.sum(0, keepdims=True), sums.uy.sum(0, keepdims=True)
    slopes = np.eye(uu.shape[1])
    slopes[-1, -1] = 1e-9
    return _solved(uu + max(root_ridge * uu[0, -1, -1], 1e-9) * slopes, uy)


def from_root(
    sums: LeafSums, A: Float[np.ndarray, "1 p q"], ridge: float
) -> Float[np.ndarray, "L p q"]:
    """From the root's function down to those of the leaves."""
    levels = [sums]
    while len(levels[-1].uu) > 1:
        levels.append(levels[-1].above())
    for level in reversed(levels[:-1]):
        A = ridge_towards(level, np.repeat(A, 2, axis=0), ridge)
    return A


def _solved(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solutions of symmetric systems, by least squares where rounding made one singular."""
    try:
        found = np.linalg.solve(left, right)
        if np.all(np.isfinite(found)):
            return found
    except np.linalg.LinAlgError:
        pass
    return np.stack(
        [np.linalg.pinv(a, hermitian=True) @ b for a, b in zip(left, right, strict=True)]
    )
