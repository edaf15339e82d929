"""The terms of an EBM as trees: a table over one feature's bins is a tree with a leaf for each.

A term of several features is a tree over the first, with a tree over the next in each leaf. Of a
number, missing is asked first, and then the cuts by halves: x ≥ cut is the higher bin. Of a label,
the sets of labels of the lower bins are asked, by halves, and missing first, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine import CategorySets
from ..thresholds import strictly_below

if TYPE_CHECKING:
    from jaxtyping import Int

MOST_LEAVES = 1 << 24
"""Of one term."""


@dataclass
class Axis:
    """One feature of a term: the bins of its values from the lowest on."""

    feature: int
    cuts: np.ndarray | None
    """Of a number; None of labels."""
    bins: Int[np.ndarray, "n"]
    """The place in the term's table of each range of numbers, or of each label; the last of
    labels is that of any other."""
    missing: int = 0


@dataclass
class Grower:
    """Tests and leaves as they are made, all terms one after the other."""

    n_features: int
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    column: list[int] = field(default_factory=list)
    t: list[float] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    value: list[tuple[int, ...]] = field(default_factory=list)
    """The place in the term's table, of a leaf; empty of a test."""
    start: list[int] = field(default_factory=lambda: [0])
    sets: dict[tuple[int, bytes], int] = field(default_factory=dict)
    members: list[np.ndarray] = field(default_factory=list)
    set_features: list[int] = field(default_factory=list)

    def term(self, axes: list[Axis]) -> None:
        """The tree of a term."""
        self._axis(axes, ())
        self.start.append(len(self.left))

    def _node(self, column: int, t: float, missing: int, value: tuple[int, ...]) -> int:
        self.left.append(-1)
        self.right.append(-1)
        self.column.append(column)
        self.t.append(t)
        self.missing.append(missing)
        self.value.append(value)
        return len(self.left) - 1 - self.start[-1]

    def _link(self, node: int, left: int, right: int) -> int:
        at = node + self.start[-1]
        self.left[at], self.right[at] = left, right
        return node

    def _axis(self, axes: list[Axis], chosen: tuple[int, ...]) -> int:
        if not axes:
            return self._node(0, 0.0, -1, chosen)
        axis = axes[0]
        if axis.cuts is not None:
            node = self._node(axis.feature, np.inf, 1, ())  # all numbers are left, missing right
            below = self._cuts(axes, chosen, 0, len(axis.bins))
        else:
            nothing = np.empty(0, np.int64)
            node = self._node(self._set(axis.feature, nothing), 0.5, 1, ())
            known = np.unique(axis.bins)
            below = self._labels(axes, chosen, known)
        return self._link(node, below, self._axis(axes[1:], (*chosen, axis.missing)))

    def _cuts(self, axes: list[Axis], chosen: tuple[int, ...], first: int, last: int) -> int:
        """The tree of some neighbouring ranges."""
        axis = axes[0]
        assert axis.cuts is not None
        if last - first == 1:
            return self._axis(axes[1:], (*chosen, int(axis.bins[first])))
        middle = (first + last) // 2
        bound = float(strictly_below(axis.cuts[middle - 1 : middle])[0])
        node = self._node(axis.feature, bound, -1, ())
        low = self._cuts(axes, chosen, first, middle)
        return self._link(node, low, self._cuts(axes, chosen, middle, last))

    def _labels(self, axes: list[Axis], chosen: tuple[int, ...], bins: np.ndarray) -> int:
        """The tree of some bins of labels."""
        axis = axes[0]
        if len(bins) == 1:
            return self._axis(axes[1:], (*chosen, int(bins[0])))
        # Any other label must stay outside the set that goes left, so its bin is kept right.
        bins = np.concatenate([bins[bins != axis.bins[-1]], bins[bins == axis.bins[-1]]])
        low, high = bins[: len(bins) // 2], bins[len(bins) // 2 :]
        inside = np.flatnonzero(np.isin(axis.bins[:-1], low))
        node = self._node(self._set(axis.feature, inside), 0.5, -1, ())
        below = self._labels(axes, chosen, low)
        return self._link(node, below, self._labels(axes, chosen, high))

    def _set(self, feature: int, members: np.ndarray) -> int:
        """The column of a set of labels, after those of the features."""
        key = (feature, members.tobytes())
        if key not in self.sets:
            self.sets[key] = len(self.members)
            self.members.append(members)
            self.set_features.append(feature)
        return self.n_features + self.sets[key]

    def category_sets(self) -> CategorySets | None:
        """The sets: their members go left. An empty one sends all labels left."""
        if not self.members:
            return None
        lengths = [len(members) for members in self.members]
        return CategorySets(
            start=np.concatenate([[0], np.cumsum(lengths)]),
            members=np.concatenate(self.members).astype(np.int64),
            answer=np.full(sum(lengths), -1, np.int8),
            outside=np.array([1 if length else -1 for length in lengths], np.int8),
        )


def axes_of(
    features: Any,
    levels: list[list[Any]],
    labels: dict[int, tuple[Any, ...]],
    shape: tuple[int, ...],
) -> list[Axis]:
    """The axes of a term over these features, whose table is of this shape.

    Parameters
    ----------
    levels
        Of each feature, its bins for terms of one feature, of two, …
    """
    found = []
    for feature, size in zip(features, shape, strict=True):
        own = levels[feature]
        bins = own[min(len(own), len(features)) - 1]
        if not isinstance(bins, dict):
            found.append(Axis(feature, np.asarray(bins, np.float64), np.arange(1, len(bins) + 2)))
            continue
        # What is not in this level's dictionary, and the last one, is the table's last bin.
        places = [bins.get(str(int(v)) if not isinstance(v, str) else v) for v in labels[feature]]
        found.append(
            Axis(
                feature, None, np.array([size - 1 if p is None else p for p in places] + [size - 1])
            )
        )
    return found
