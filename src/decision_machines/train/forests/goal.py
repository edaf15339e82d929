"""What boosting explains, in numbers of ordinary size, and the machine of what explained it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine import Columns, DecisionMachine, Output, Trees, direct_sum
from ..axis.standard_rows import standardised
from ..rows import Rows, read_targets

if TYPE_CHECKING:
    from jaxtyping import Float

DOING = "boosting trees"


@dataclass(frozen=True)
class Goal:
    """What is to be explained: (m, k) numbers of unit size, or 0 and 1 for classes."""

    Y: Float[np.ndarray, "m k"]
    base: Float[np.ndarray, "k"]
    n_classes: int | None
    centre: Float[np.ndarray, "k"] | Any = 0.0
    scale: float = 1.0

    @classmethod
    def of(cls, y: Any, n_classes: int | None, w: np.ndarray) -> Goal:
        if n_classes is None:
            rows = standardised(
                Rows(np.zeros((len(w), 1)), read_targets(y, len(w), DOING), w), None
            )
            assert rows.y is not None
            assert rows.centre is not None
            return cls(rows.y, np.zeros(rows.k), None, rows.centre, rows.scale)
        code = np.asarray(y, np.int64)
        share = np.bincount(code, w, n_classes) / w.sum()
        share = np.clip(share, 1e-9, 1 - 1e-9)
        if n_classes == 2:
            return cls((code == 1)[:, None] * 1.0, np.log(share[1:] / share[:1]), 2)
        return cls(np.eye(n_classes)[code], np.log(share), n_classes)

    def like(self, y: Any) -> Goal:
        """Other targets in the same units."""
        if self.n_classes is None:
            Y = np.asarray(y, np.float64).reshape(len(y), -1)
            return replace(self, Y=(Y / 2 - self.centre / 2) / (self.scale / 2))
        code = np.asarray(y, np.int64)
        Y = (code == 1)[:, None] * 1.0 if self.n_classes == 2 else np.eye(self.n_classes)[code]
        return replace(self, Y=Y)

    @property
    def is_classes(self) -> bool:
        return self.n_classes is not None

    @property
    def is_scalar(self) -> bool:
        return self.is_classes or self.Y.shape[1] == 1

    @property
    def code(self) -> np.ndarray:
        return self.Y[:, 0].astype(int) if self.n_classes == 2 else self.Y.argmax(axis=1)

    def take(self, which: np.ndarray) -> Goal:
        return replace(self, Y=self.Y[which])

    def shares(self, F: np.ndarray) -> np.ndarray:
        if self.n_classes == 2:
            from scipy.special import expit

            second: np.ndarray = expit(F)
            return second
        e = np.exp(F - F.max(axis=1, keepdims=True))
        found: np.ndarray = e / e.sum(axis=1, keepdims=True)
        return found

    def asks(
        self, F: np.ndarray, w: np.ndarray
    ) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int | None]]:
        """What the trees of a round should say at margins F.

        For each tree the numbers to fit and their weights, the gradient and the curvature of the
        loss, and the output that it feeds; None for all. Each of three classes and more has a
        tree of its own.
        """
        if not self.is_classes:
            return [(self.Y - F, w, self.Y - F, np.ones_like(F), None)]
        P = self.shares(F)
        gradient, curve = self.Y - P, np.maximum(P * (1 - P), 1e-6)
        # As LogitBoost does: a step is bounded where a row is surely wrong.
        target = np.clip(gradient / curve, -4, 4)
        found = []
        for c in range(F.shape[1]):
            own = slice(c, c + 1)
            feeds = None if F.shape[1] == 1 else c
            parts = (target[:, own], w * curve[:, c], gradient[:, own], curve[:, own], feeds)
            found.append(parts)
        return found

    @property
    def trees_of_a_round(self) -> int:
        return self.Y.shape[1] if self.is_classes else 1

    def loss(self, F: np.ndarray, w: np.ndarray | None) -> float:
        if not self.is_classes:
            return float(np.average(((self.Y - F) ** 2).sum(axis=1), weights=w))
        if self.n_classes == 2:
            return float(np.average(np.logaddexp(0, (1 - 2 * self.Y) * F)[:, 0], weights=w))
        own = np.maximum(np.sum(self.shares(F) * self.Y, axis=1), 1e-300)
        return float(-np.average(np.log(own), weights=w))

    def output(self) -> Output:
        if not self.is_classes:
            return Output(self.centre + self.scale * self.base)
        if self.n_classes == 2:
            return Output(self.base, link="expit", decision="margin_above", classes=(np.arange(2),))
        classes = (np.arange(len(self.base)),)
        return Output(self.base, link="softmax", decision="argmax", classes=classes)

    def machine(self, trees: Any, n: int, start: DecisionMachine | None) -> DecisionMachine:
        """The sum of the trees, in the targets' own units, after those of `start`."""
        if isinstance(trees, DecisionMachine):
            if self.is_classes:
                return trees
            scaled = direct_sum([trees], [self.scale])
            output = replace(scaled.output, base=scaled.output.base + self.centre)
            return replace(scaled, output=output, source="boosted trees")
        output = self.output() if start is None else start.output
        none = _tree(n, np.empty((0, 2)), [], [], [], np.zeros((1, len(self.base))))
        before = [] if start is None else [replace(start, output=_silent(start.output))]
        own = [tree for round_ in trees for tree in round_]
        weights = [1.0] * len(before) + [self.scale] * len(own)
        parts = [*before, *own] or [none]
        total = direct_sum(parts, weights or [1.0])
        return replace(total, output=output, source="boosted trees")


def _silent(output: Output) -> Output:
    return replace(output.as_margins(), base=np.zeros_like(output.base))


def _tree(
    n: int, children: Any, selection: Any, t: Any, missing: Any, V: np.ndarray
) -> DecisionMachine:
    return DecisionMachine(
        columns=Columns(n),
        selection=np.asarray(selection, np.int32),
        t=np.asarray(t, np.float64),
        missing=np.asarray(missing, np.int8),
        children=np.asarray(children, np.int32).reshape(-1, 2),
        V=V,
        trees=Trees(np.array([0, len(t)])),
        output=Output(np.zeros(V.shape[1])),
    )
