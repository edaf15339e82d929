"""Features as ranks: what a search for axis-aligned tests works with, and the way back.

Rank r of a feature is its r-th smallest training value, so every test that tells training rows
apart is "rank ≤ r". NaN has a rank of its own. A feature of more than 65 535 values has runs of
neighbouring values for ranks, with about as many rows each.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float, Int

MISSING = 65535
"""The rank of NaN, as the native search knows it; other ranks are below."""


@dataclass(frozen=True)
class Ranks:
    """The ranks of rows, and the least and the largest value of each rank."""

    rank: Int[np.ndarray, "n m"]
    least: tuple[np.ndarray, ...]
    largest: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, X: Float[np.ndarray, "m n"]) -> Ranks:
        """Rank every feature of X.

        Examples
        --------
        >>> ranks = Ranks.of(np.array([[3.0], [1.0], [np.nan], [3.0]]))
        >>> ranks.rank.tolist(), ranks.threshold(0, 0, 1)
        ([[1, 0, 65535, 1]], 2.0)
        """
        rank = np.empty(X.shape[::-1], np.uint16)
        least, largest = [], []
        for x, out in zip(X.T, rank, strict=True):
            known = ~np.isnan(x)
            values, inverse, counts = np.unique(x[known], return_inverse=True, return_counts=True)
            first = last = np.arange(len(values))
            if len(values) > MISSING:
                before = np.cumsum(counts) - counts
                run = np.unique(before * MISSING // counts.sum(), return_inverse=True)[1]
                inverse = run[inverse]
                first = np.flatnonzero(np.diff(run, prepend=-1))
                last = np.append(first[1:], len(run)) - 1
            out[known], out[~known] = inverse, MISSING
            least.append(values[first])
            largest.append(values[last])
        return cls(rank, tuple(least), tuple(largest))

    def take(self, which: Int[np.ndarray, "k"]) -> Ranks:
        """The same ranks, of some of the rows."""
        return Ranks(np.ascontiguousarray(self.rank[:, which]), self.least, self.largest)

    @property
    def n_ranks(self) -> Int[np.ndarray, "n"]:
        return np.array([len(values) for values in self.least], np.int32)

    @functools.cached_property
    def places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Least and largest value of every rank, in units of their feature's spread, and where
        each feature's ranks start."""
        start = np.concatenate([[0], np.cumsum(self.n_ranks, dtype=np.int64)])
        found: tuple[list[np.ndarray], list[np.ndarray]] = ([np.empty(0)], [np.empty(0)])
        for rank, least, largest in zip(self.rank, self.least, self.largest, strict=True):
            top = np.abs(largest[np.isfinite(largest)]).max(initial=0.0) or 1.0
            values = (largest / top)[rank[rank != MISSING]]
            spread = np.std(values[np.isfinite(values)]) if np.isfinite(values).any() else 0.0
            for out, ends in zip(found, (least, largest), strict=True):
                out.append(ends / top / (spread or 1.0))
        return np.concatenate(found[0]), np.concatenate(found[1]), start

    def threshold(self, feature: int, below: int, above: int) -> float:
        """The middle between two ranks; +inf where nothing is above (then all values go left)."""
        if above < 0:
            return float("inf")
        return between(float(self.largest[feature][below]), float(self.least[feature][above]))


def between(low: float, high: float) -> float:
    """The middle of two numbers, or `low` where rounding leaves none that is below `high`.

    Examples
    --------
    >>> between(1.0, 2.0), between(1.0, 1.0000000000000002), between(-np.inf, 0.0)
    (1.5, 1.0, -inf)
    """
    # Half of each: the difference of two large numbers could overflow. inf stays exact.
    middle = low / 2 + high / 2 if np.isfinite(low) and np.isfinite(high) else low
    return middle if low <= middle < high else low
