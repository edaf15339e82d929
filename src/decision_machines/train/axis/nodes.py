"""A tree that a search found: its nodes, what its leaves say, and the machine of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _native
from ...machine import Columns, DecisionMachine, Output, Trees, layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Bool, Float, Int

    from .ranks import Ranks


@dataclass(frozen=True)
class Nodes:
    """Nodes in preorder, the root first."""

    left: Int[np.ndarray, "N"]
    """Children; -1 at a leaf."""
    right: Int[np.ndarray, "N"]
    feature: Int[np.ndarray, "N"]
    t: Float[np.ndarray, "N"]
    missing_left: Bool[np.ndarray, "N"]
    cut: Int[np.ndarray, "N"] | None = None
    """The last rank that goes left, for searches that go on from here."""

    @classmethod
    def of(cls, found: dict[str, np.ndarray], ranks: Ranks) -> Nodes:
        """What the native search found, thresholds in the middle between their node's rows."""
        t = np.zeros(len(found["left"]))
        for i in np.flatnonzero(found["left"] >= 0):
            feature, cut = int(found["feature"][i]), int(found["cut"][i])
            below, above = int(found["below"][i]), int(found["above"][i])
            if below < 0:  # only missing values go left
                below = cut
            t[i] = ranks.threshold(feature, below, above)
        left, right, missing_left = found["left"], found["right"], found["missing_left"]
        return cls(left, right, found["feature"], t, missing_left, found["cut"])

    @property
    def n_leaves(self) -> int:
        return int(np.sum(self.left < 0))

    @property
    def ends(self) -> Int[np.ndarray, "N"]:
        """Node i's subtree is i, ..., ends[i] - 1."""
        end = np.arange(1, len(self.left) + 1)
        for i in np.flatnonzero(self.left >= 0)[::-1]:  # children come after their parents
            end[i] = max(end[self.left[i]], end[self.right[i]])
        return end

    def exits(self, X: Float[np.ndarray, "m n"]) -> Int[np.ndarray, "m"]:
        """The node where each row leaves the tree."""
        return _native.exit_nodes(
            self.left, self.right, self.feature, self.t, self.missing_left, np.ascontiguousarray(X)
        )

    def without(self, at: int) -> Nodes:
        """The tree with a leaf in the place of node `at`."""
        kept = np.ones(len(self.left), bool)
        kept[at + 1 : self.ends[at]] = False
        new = np.cumsum(kept) - 1
        left, right = self.left.copy(), self.right.copy()
        left[at] = right[at] = -1
        left, right = (np.where(c[kept] < 0, -1, new[c[kept]]) for c in (left, right))
        cut = None if self.cut is None else self.cut[kept]
        rest = self.feature[kept], self.t[kept], self.missing_left[kept]
        return Nodes(left, right, *rest, cut)

    def values(
        self,
        answers: Float[np.ndarray, "m k"],
        w: Float[np.ndarray, "m"],
        exits: Int[np.ndarray, "m"],
        shrinks: Sequence[float] = (0.0,),
        quantile: float | None = None,
    ) -> Float[np.ndarray, "s N k"]:
        """What each node says: its rows' mean or quantile, drawn towards its parent's.

        A node departs from its parent by only a part of what its rows ask for, as if so many more
        rows that ask for nothing stood in the parent. 0 gives the plain means.
        """
        N = len(self.left)
        if quantile is not None:
            weight = self._sums(np.bincount(exits, w, N))
            return self._drawn(self._quantiles(answers, w, exits, quantile), weight, shrinks)
        totals = np.stack([np.bincount(exits, w * column, N) for column in answers.T], axis=1)
        return self.shares(totals, np.bincount(exits, w, N), shrinks)

    def shares(
        self,
        totals: Float[np.ndarray, "N k"],
        weight: Float[np.ndarray, "N"],
        shrinks: Sequence[float] = (0.0,),
    ) -> Float[np.ndarray, "s N k"]:
        """The same from the totals and weights of the leaves' rows."""
        weight = self._sums(weight)
        return self._drawn(self._sums(totals) / weight[:, None], weight, shrinks)

    def _sums(self, of_leaves: np.ndarray) -> np.ndarray:
        """Of each node, over the leaves below."""
        found = of_leaves.copy()
        for i in np.flatnonzero(self.left >= 0)[::-1]:
            found[i] = found[self.left[i]] + found[self.right[i]]
        return found

    def _drawn(self, own: np.ndarray, weight: np.ndarray, shrinks: Sequence[float]) -> np.ndarray:
        out = np.repeat(own[None], len(shrinks), axis=0)
        keeps = weight / (weight + np.asarray(shrinks)[:, None])  # (s, N)
        for i in np.flatnonzero(self.left >= 0) if any(shrinks) else ():
            children = [self.left[i], self.right[i]]
            out[:, children] = out[:, i, None] + keeps[:, i, None, None] * (own[children] - own[i])
        return out

    def _quantiles(
        self, answers: np.ndarray, w: np.ndarray, exits: np.ndarray, quantile: float
    ) -> np.ndarray:
        """(N, k) the least number of each node's rows with that share of them at or below it."""
        out = np.zeros((len(self.left), answers.shape[1]))
        for c, y in enumerate(answers.T):
            order = np.argsort(y, kind="stable")
            y, weights, leaf = y[order], w[order], exits[order]
            for i, end in enumerate(self.ends):
                own = (leaf >= i) & (leaf < end)
                if own.any():
                    sums = np.cumsum(weights[own])
                    share = quantile * sums[-1] * (1 - 1e-12)
                    out[i, c] = y[own][np.searchsorted(sums, share)]
        return out

    def monotone(
        self, values: Float[np.ndarray, "s N k"], sign: Int[np.ndarray, "n"], *, is_shares: bool
    ) -> Float[np.ndarray, "s N k"]:
        """Values changed until no leaf's falls (sign 1) or rises (-1) along a feature.

        `is_shares` for two classes: the second one's share is meant.
        """
        found = values.copy()
        for each in found:
            for c in range(1 if is_shares else 0, values.shape[2]):
                each[:, c] = _native.monotone_values(
                    self.left, self.right, self.feature, self.t, self.missing_left, sign,
                    np.ascontiguousarray(each[:, c]),
                )  # fmt: skip
            if is_shares:
                each[:, 0] = 1 - each[:, 1]
        return found

    def paid(self, costs: Float[np.ndarray, "n"], weight: Float[np.ndarray, "N"]) -> float:
        """What a row pays on average for the different features on its path.

        `weight` is that of the rows that end in each node.
        """
        below, total = self._sums(weight), 0.0
        asked: list[frozenset[int]] = [frozenset()] * len(self.left)
        for i in np.flatnonzero(self.left >= 0):
            feature = int(self.feature[i])
            if feature not in asked[i]:
                total += float(costs[feature] * below[i])
            asked[self.left[i]] = asked[self.right[i]] = asked[i] | {feature}
        return total / max(float(below[0]), 1e-300)

    def machine(
        self, values: Float[np.ndarray, "N k"], n_features: int, classes: Any, source: str
    ) -> DecisionMachine:
        """The machine whose leaves say `values`; `classes` are labels, or None for numbers."""
        found = layout(self.left, self.right, np.array([0, len(self.left)]), "laying out a tree")
        output = Output(
            np.zeros(values.shape[1]),
            decision="response" if classes is None else "argmax",
            classes=None if classes is None else (np.asarray(classes),),
        )
        return DecisionMachine(
            columns=Columns(n_features, np.float64),
            selection=self.feature[found.tests],
            t=self.t[found.tests],
            missing=np.where(self.missing_left[found.tests] != 0, -1, 1),
            children=found.children,
            V=values[found.leaves],
            trees=Trees(np.array([0, len(found.tests)])),
            output=output,
            source=source,
        )
