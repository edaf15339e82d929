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
        return cls(found["left"], found["right"], found["feature"], t, found["missing_left"])

    @property
    def n_leaves(self) -> int:
        return int(np.sum(self.left < 0))

    def exits(self, X: Float[np.ndarray, "m n"]) -> Int[np.ndarray, "m"]:
        """The node where each row leaves the tree."""
        return _native.exit_nodes(
            self.left, self.right, self.feature, self.t, self.missing_left, np.ascontiguousarray(X)
        )

    def values(
        self,
        answers: Float[np.ndarray, "m k"],
        w: Float[np.ndarray, "m"],
        exits: Int[np.ndarray, "m"],
        shrinks: Sequence[float] = (0.0,),
    ) -> Float[np.ndarray, "s N k"]:
        """What each node says: its rows' mean, drawn towards its parent's.

        A node departs from its parent by only a part of what its rows ask for, as if so many more
        rows that ask for nothing stood in the parent. 0 gives the plain means.
        """
        N = len(self.left)
        weight = np.bincount(exits, w, N)
        totals = np.stack([np.bincount(exits, w * column, N) for column in answers.T], axis=1)
        inner = np.flatnonzero(self.left >= 0)
        for i in inner[::-1]:  # children come after their parents
            weight[i] = weight[self.left[i]] + weight[self.right[i]]
            totals[i] = totals[self.left[i]] + totals[self.right[i]]
        mean = totals / weight[:, None]
        out = np.repeat(mean[None], len(shrinks), axis=0)
        keeps = weight / (weight + np.asarray(shrinks)[:, None])  # (s, N)
        for i in inner if any(shrinks) else ():
            children = [self.left[i], self.right[i]]
            out[:, children] = out[:, i, None] + keeps[:, i, None, None] * (
                mean[children] - mean[i]
            )
        return out

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
