"""A hard oblique tree with linear functions in its leaves, in training's units.

The tree is complete, its tests in level order (the children of test j are 2j + 1 and 2j + 2). A
test that sends all training rows one way is kept open: it sends every row there, and the machine
is built without it.

A leaf may be capped: its answers are cut off below and above, so that a row far from all others is
not answered by a number far from all others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    from .scaled_rows import ScaledRows


@dataclass(frozen=True)
class RegressionTree:
    """One complete tree: a row goes right where W z > t, and its leaf answers A u.

    Parameters
    ----------
    goes_right
        Where a test goes that reads a NaN.
    slope
        How steep each test was when it was learned, for softening it again.
    V
        What leaves answer where a term is missing.
    low, high
        Caps of each leaf's answer; infinite where there is none.
    """

    W: Float[np.ndarray, "J v"]
    t: Float[np.ndarray, "J"]
    goes_right: Bool[np.ndarray, "J"]
    slope: Float[np.ndarray, "J"]
    A: Float[np.ndarray, "L p q"]
    V: Float[np.ndarray, "L q"]
    low: Float[np.ndarray, "L"]
    high: Float[np.ndarray, "L"]

    @classmethod
    def of_tests(
        cls,
        W: Float[np.ndarray, "J v"],
        t: Float[np.ndarray, "J"],
        slope: Float[np.ndarray, "J"],
        A: Float[np.ndarray, "L p q"],
        rows: ScaledRows,
    ) -> RegressionTree:
        """The tree with tests closed that divide no rows, missing sides and constants settled."""
        n_leaves, _, q = A.shape
        caps = np.full(n_leaves, -np.inf), np.full(n_leaves, np.inf)
        empty = np.zeros(len(t), bool)
        tree = cls(W, t, empty, slope, A, np.zeros((n_leaves, q)), *caps)
        return tree.settled(rows)

    def settled(self, rows: ScaledRows) -> RegressionTree:
        """The tree with what its rows decide, tests and functions apart.

        Tests that divide no rows send all their way. NaN goes the way of more rows. A leaf's
        constant is the mean of its rows with a missing term, where there are any, else of all
        its rows, with the mean of all as one row more.
        """
        W, t, goes_right = self.W.copy(), self.t.copy(), self.goes_right.copy()
        is_right = self.answers(rows.Z)
        at = np.zeros(len(rows), np.int64)
        for level in range(self.n_levels):
            first, width = 2**level - 1, 2**level
            goes = is_right[first + at, np.arange(len(rows))]
            right = np.bincount(at, rows.weight * goes, width)
            left = np.bincount(at, rows.weight * ~goes, width)
            tests = slice(first, first + width)
            goes_right[tests] = right > left
            is_idle = (right == 0) | (left == 0)
            W[tests][is_idle] = 0.0
            t[tests][is_idle] = np.where(right > left, -np.inf, np.inf)[is_idle]
            at = 2 * at + goes
        is_meant = ~rows.is_whole if not rows.is_whole.all() else rows.is_whole
        exits, weight, y = at[is_meant], rows.weight[is_meant], rows.y[is_meant]
        n_leaves, q = self.V.shape
        mean = np.average(rows.y, axis=0, weights=rows.weight)
        count = np.bincount(exits, weight, n_leaves)
        total = np.stack([np.bincount(exits, weight * y[:, k], n_leaves) for k in range(q)], 1)
        V = (total + mean) / (count + 1.0)[:, None]
        return replace(self, W=W, t=t, goes_right=goes_right, V=V).with_functions(self.A)

    def with_functions(self, A: Float[np.ndarray, "L p q"]) -> RegressionTree:
        """The tree with these functions in its leaves, open."""
        V = A[:, 0] if A.shape[1] == 1 else self.V
        return replace(self, A=A, V=V, low=np.full(len(A), -np.inf), high=np.full(len(A), np.inf))

    @property
    def n_levels(self) -> int:
        return (len(self.t) + 1).bit_length() - 1

    def answers(self, Z: Float[np.ndarray, "m v"]) -> Bool[np.ndarray, "J m"]:
        """Whether each row goes right at each test."""
        is_nan = np.isnan(Z)
        has_nan = bool(is_nan.any())
        q = self.W @ (np.where(is_nan, 0.0, Z) if has_nan else Z).T
        is_right = q > self.t[:, None]
        if not has_nan:
            return is_right
        is_missing = (self.W != 0).astype(float) @ is_nan.T.astype(float) > 0
        return np.where(is_missing, self.goes_right[:, None], is_right)

    def exit_leaves(self, Z: Float[np.ndarray, "m v"]) -> Int[np.ndarray, "m"]:
        is_right = self.answers(Z)
        at, each = np.zeros(len(Z), np.int64), np.arange(len(Z))
        for _ in range(self.n_levels):
            at = 2 * at + 1 + is_right[at, each]
        return at - len(self.t)

    def predict(self, rows: ScaledRows) -> Float[np.ndarray, "m q"]:
        """The answer for each row, in the targets' scaled units."""
        exits = self.exit_leaves(rows.Z)
        return self.answers_of(exits, rows)

    def answers_of(self, exits: Int[np.ndarray, "m"], rows: ScaledRows) -> Float[np.ndarray, "m q"]:
        """What the leaves `exits` answer for the rows."""
        linear = np.einsum("mp,mpq->mq", rows.U, self.A[exits])
        linear = np.clip(linear, self.low[exits, None], self.high[exits, None])
        found: np.ndarray = np.where(rows.is_whole[:, None], linear, self.V[exits])
        return found

    def capped(self, ranges: Ranges, share: float, low: bool, high: bool) -> RegressionTree:
        """The tree, leaves' answers held within those for their rows but this share at an end."""
        lows, highs = ranges.without(share)
        lows, highs = np.where(low, lows, -np.inf), np.where(high, highs, np.inf)
        return replace(self, low=np.minimum(lows, highs), high=highs)

    def ranges(self, exits: Int[np.ndarray, "m"], rows: ScaledRows) -> Ranges:
        """What the functions answer for the rows, which exit at these leaves."""
        own = rows.is_whole
        exits, weight = exits[own], rows.weight[own]
        values = np.einsum("mp,mp->m", rows.U[own], self.A[exits, :, 0])
        order = np.lexsort((values, exits))
        has_slope = np.any(self.A[:, :-1, 0] != 0, axis=1)
        return Ranges(exits[order], values[order], np.cumsum(weight[order]), has_slope)


@dataclass(frozen=True)
class Ranges:
    """The answers of each leaf for its rows, in order."""

    leaf: Int[np.ndarray, "m"]
    value: Float[np.ndarray, "m"]
    """Ascending within each leaf."""
    total: Float[np.ndarray, "m"]
    """Weight of all rows up to each."""
    has_slope: Bool[np.ndarray, "L"]

    def without(self, share: float) -> tuple[Float[np.ndarray, "L"], Float[np.ndarray, "L"]]:
        """The least and the largest answer of each leaf, but this share of its weight at each end.

        Infinite for leaves without rows and for those that answer a constant.
        """
        n_leaves = len(self.has_slope)
        low, high = np.full(n_leaves, -np.inf), np.full(n_leaves, np.inf)
        leaves = np.arange(n_leaves)
        first = np.searchsorted(self.leaf, leaves, side="left")
        last = np.searchsorted(self.leaf, leaves, side="right")
        is_meant = (last > first) & self.has_slope
        first, last = first[is_meant], last[is_meant]
        before = np.concatenate([[0.0], self.total])[first]
        weight = self.total[last - 1] - before
        at_low = np.searchsorted(self.total, before + share * weight, side="right")
        at_high = np.searchsorted(self.total, before + (1 - share) * weight, side="left")
        low[is_meant] = self.value[np.clip(at_low, first, last - 1)]
        high[is_meant] = self.value[np.clip(at_high, first, last - 1)]
        return low, high
