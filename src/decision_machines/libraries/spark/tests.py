"""Spark's splits as tests of columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ...machine import CategorySets, Columns, Rule

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from ...machine import Layout
    from .features import Feature, Features
    from .folder import Stage
    from .nodes import Nodes

MOST_CATEGORIES = 1 << 24


@dataclass(frozen=True)
class Tests:
    """The tests of a forest."""

    columns: Columns
    selection: Int[np.ndarray, "J"]
    t: Float[np.ndarray, "J"]
    missing: Int[np.ndarray, "J"]


@dataclass
class _Sets:
    """The distinct (feature, set) pairs among tests of sets."""

    places: dict[tuple[int, bytes, int], int] = field(default_factory=dict)
    features: list[int] = field(default_factory=list)
    members: list[np.ndarray] = field(default_factory=list)
    outside: list[int] = field(default_factory=list)

    def place(self, feature: int, members: Int[np.ndarray, "c"], outside: int) -> int:
        """The set's own column among those of sets; its members go where others do not."""
        key = (feature, members.tobytes(), outside)
        if key not in self.places:
            self.places[key] = len(self.features)
            self.features.append(feature)
            self.members.append(members)
            self.outside.append(outside)
        return self.places[key]

    def sets(self) -> CategorySets | None:
        if not self.features:
            return None
        sizes = [len(members) for members in self.members]
        return CategorySets(
            start=np.concatenate([[0], np.cumsum(sizes)]),
            members=np.concatenate(self.members),
            answer=-np.repeat(np.array(self.outside, np.int8), sizes),
            outside=np.array(self.outside, np.int8),
            whole=True,
        )


def read_tests(nodes: Nodes, found: Layout, features: Features, model: Stage) -> Tests:
    """Every test of the forest."""
    n, n_tests = len(features.columns), len(found.tests)
    selection = np.zeros(n_tests, np.int64)
    t = np.full(n_tests, 0.5)
    missing = np.ones(n_tests, np.int8)
    sets = _Sets()
    for j, node in enumerate(found.tests.tolist()):
        at, held = int(nodes.feature[node]), nodes.held[node]
        n_categories = int(nodes.n_categories[node])
        if not 0 <= at < len(features.places):
            raise model.fault(f"a split reads the feature {at} of {len(features.places)}")
        number = features.places[at]
        feature = features.columns[number]
        _check(held, n_categories, model)
        if n_categories < 0 and not feature.labels:
            selection[j], t[j] = number, held[0]
            continue
        if feature.labels:
            members, outside = _of_labels(held, n_categories, feature)
        else:
            members, outside = _smaller_half(held, n_categories)
        selection[j], missing[j] = n + sets.place(number, members, outside), outside
    columns = Columns(
        n,
        np.float64,
        feature=np.concatenate([np.arange(n), np.array(sets.features, np.int64)]),
        rule=np.repeat([Rule.VALUE, Rule.MEMBER], [n, len(sets.features)]),
        names=tuple(feature.name for feature in features.columns) if features.named else None,
        sets=sets.sets(),
        categories={i: f.labels for i, f in enumerate(features.columns) if f.labels},
        encodes_arrays=any(feature.labels for feature in features.columns),
        accepted=features.accepted(),
    )
    return Tests(columns, selection, t, missing)


def _check(held: Float[np.ndarray, "c"], n_categories: int, model: Stage) -> None:
    if n_categories < 0:
        if n_categories != -1 or len(held) != 1 or np.isnan(held[0]):
            raise model.fault(f"a split with the thresholds {held.tolist()!r:.60}")
    elif n_categories > MOST_CATEGORIES:
        raise model.fault(f"a split of {n_categories} categories")
    elif (
        np.any(held != np.trunc(held))
        or np.any((held < 0) | (held >= n_categories))
        or len(np.unique(held)) != len(held)
    ):
        raise model.fault(f"categories {held.tolist()!r:.60} of {n_categories}")


def _smaller_half(
    held: Float[np.ndarray, "c"], n_categories: int
) -> tuple[Int[np.ndarray, "c"], int]:
    """The categories that Spark looks for, ascending, and where any other value goes."""
    left = np.sort(held).astype(np.int64)
    if len(left) <= n_categories // 2:
        return left, 1
    return np.setdiff1d(np.arange(n_categories), left), -1


def _of_labels(
    held: Float[np.ndarray, "c"], n_categories: int, feature: Feature
) -> tuple[Int[np.ndarray, "c"], int]:
    """The labels, by their places, that go elsewhere than unknown ones, and where those go."""
    place = np.arange(feature.n_labels + 1)  # the last one is that of unknown labels
    if n_categories < 0:
        side = np.where(place <= held[0], -1, 1)
    else:
        members, outside = _smaller_half(held, n_categories)
        side = np.where(np.isin(place, members), -outside, outside)
    outside = int(side[-1])
    found = np.flatnonzero(side[:-1] != outside)
    twins = [feature.twins[label] for label in found.tolist() if label in feature.twins]
    return np.sort(np.concatenate([found, np.array(twins, np.int64)])), outside
