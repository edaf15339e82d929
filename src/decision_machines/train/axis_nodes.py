"""A tree that a search found: its nodes, what its leaves say, and the machine of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from ..machine import Columns, DecisionMachine, Output, Trees, layout

if TYPE_CHECKING:
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
    mean: Float[np.ndarray, "N k"]
    """Of the training rows that reach the node: numbers, or shares of classes."""
    weight: Float[np.ndarray, "N"]

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
        weight = found["weight"]
        mean = found["totals"].reshape(len(t), -1) / weight[:, None]
        return cls(
            found["left"], found["right"], found["feature"], t, found["missing_left"], mean, weight
        )

    @property
    def n_leaves(self) -> int:
        return int(np.sum(self.left < 0))

    def exits(self, X: Float[np.ndarray, "m n"]) -> Int[np.ndarray, "m"]:
        """The node where each row leaves the tree."""
        return _native.exit_nodes(
            self.left, self.right, self.feature, self.t, self.missing_left, np.ascontiguousarray(X)
        )

    def values(self, shrink: Float[np.ndarray, "s"]) -> Float[np.ndarray, "s N k"]:
        """What each node says, drawn towards its parent as if `shrink` more rows stood there.

        A node departs from its parent by weight / (weight of the parent + shrink) of what its rows
        ask for; 0 gives the plain means.
        """
        out = np.repeat(self.mean[None], len(shrink), axis=0)
        keeps = self.weight / (self.weight + np.asarray(shrink)[:, None])  # (s, N)
        for i in np.flatnonzero(self.left >= 0):
            for child in (self.left[i], self.right[i]):
                step = self.mean[child] - self.mean[i]
                out[:, child] = out[:, i] + keeps[:, i, None] * step
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
