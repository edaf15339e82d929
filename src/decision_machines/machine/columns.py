"""How raw features x become the columns z that tests read."""

from __future__ import annotations

import enum
import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvariantError
from .accepted import Accepted
from .arrays import Part, frozen, namespace
from .category_sets import CategorySets
from .look_ups import LOOK_UP, LookUps

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jaxtyping import Int, Num

ColumnKey = tuple[Any, ...]
"""What makes a column itself: its feature and its rule; of a member column also its set's members,
their answers and the answer to all others; of a look-up column its table and its statistic."""

ZERO = float(np.float32(1e-35))
"""LightGBM's zero: values no larger than this count as absent where zero means missing."""


class Rule(enum.IntEnum):
    """What a column makes of its feature."""

    VALUE = 0
    """z = x; NaN stays and the test's own missing answer decides."""
    NAN_AS_ZERO = 1
    """z = 0 where x is NaN."""
    ZERO_AS_NAN = 2
    """z = NaN where x is within 1e-35 (as a float32) of zero."""
    MEMBER = 3
    """z = 0, 1 or NaN by looking the category int(x) up in the column's set."""
    LOOK_UP = LOOK_UP
    """z = a statistic, found in a table by a combination of features; `feature` is the first."""


@dataclass(frozen=True, eq=False)
class Columns(Part):
    """From the n_features raw features x to the n columns z.

    Parameters
    ----------
    n_features
        Width of the data a user passes.
    dtype
        float32 or float64: every x is cast to it first.
    feature
        (n,) the feature each column reads. By default column i is feature i, as it is.
    rule
        (n,) a `Rule` for each column.
    names
        Feature names; a table is matched to them by name.
    sets
        The category sets of the `Rule.MEMBER` columns.
    categories
        For a feature given as labels: feature → its labels; the label's position is x.
        A label not among them is -1, no label at all is NaN. Read-only.
    refuses_new_labels
        Whether a label in a table that is not among the `categories` is an error instead.
    label_hash
        "catboost" where labels are matched by the hash of their text (`label_hash`) rather than by
        themselves; an integer among the `categories` is the hash of a label whose text the
        source does not keep.
    table_categories
        The labels of a table's categorical columns in the order of their features, where the
        source says no more (LightGBM): the k-th such column has the k-th labels, and a label not
        among them is NaN.
    absent
        What an entry absent from a sparse row is: 0.0, or NaN.
    missing_value
        A value read as NaN, besides NaN itself (the `missing=` of some libraries).
    integers_as
        The dtype that a NumPy array of integers passes through on its way to `dtype`.
    look_ups
        The tables of the `Rule.LOOK_UP` columns.
    encodes_arrays
        Whether the entries of an array, too, are labels to be looked up in `categories`, as a
        table's always are; else an array already holds the positions.
    edges
        For a feature whose numbers are read as ranges: feature → ascending bounds. x is the
        number of bounds below the value given: 0 up to the first bound, 1 above it up to the
        second … Read-only.
    accepted
        What the source takes, where it refuses some inputs and the machine must too.
    """

    n_features: int
    dtype: Any = np.float64
    feature: Int[np.ndarray, "n"] | Any = None
    rule: Int[np.ndarray, "n"] | Any = None
    names: tuple[str, ...] | None = None
    sets: CategorySets | None = None
    categories: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    absent: float = 0.0
    missing_value: float = float("nan")
    integers_as: Any = None
    table_categories: tuple[tuple[Any, ...], ...] | None = None
    encodes_arrays: bool = False
    label_hash: str = ""
    refuses_new_labels: bool = False
    edges: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    accepted: Accepted | None = None
    look_ups: LookUps | None = None

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "n_features", int(self.n_features))
        set_(self, "dtype", np.dtype(self.dtype))
        set_(
            self,
            "integers_as",
            np.dtype(self.dtype if self.integers_as is None else self.integers_as),
        )
        if self.feature is None:
            set_(self, "feature", np.arange(self.n_features))
        if self.rule is None:
            set_(self, "rule", np.full(len(self.feature), Rule.VALUE))
        set_(self, "feature", frozen(self.feature, np.int32, "columns.feature"))
        set_(self, "rule", frozen(self.rule, np.uint8, "columns.rule"))
        if self.names is not None:
            set_(self, "names", tuple(str(name) for name in self.names))
        labels = {int(feature): tuple(found) for feature, found in self.categories.items()}
        set_(self, "categories", MappingProxyType(labels))
        edges = {int(f): tuple(map(float, bounds)) for f, bounds in self.edges.items()}
        set_(self, "edges", MappingProxyType(edges))
        if self.table_categories is not None:
            set_(self, "table_categories", tuple(map(tuple, self.table_categories)))
        self._check()

    def __reduce__(self) -> tuple[Any, ...]:
        # A read-only view can be neither pickled nor copied.
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        given |= {"categories": dict(self.categories), "edges": dict(self.edges)}
        return type(self), (*given.values(),)

    def _check(self) -> None:
        if self.n_features < 0 or self.dtype not in (np.float32, np.float64):
            raise InvariantError(
                "column dtype",
                f"{self.n_features} features of dtype {self.dtype}",
                "use float32 or float64 and a feature count of at least 0",
            )
        if len(self.feature) != len(self.rule):
            raise InvariantError(
                "one rule per column",
                f"{len(self.feature)} features for {len(self.rule)} rules",
                "give one feature and one rule for each column",
            )
        if len(self.feature) and not (
            self.feature.min() >= 0 and self.feature.max() < self.n_features
        ):
            raise InvariantError(
                "columns read existing features",
                f"a column reads a feature outside 0..{self.n_features - 1}",
                "correct columns.feature or columns.n_features",
            )
        if self.label_hash not in ("", "catboost"):
            raise InvariantError(
                "known label hash", f"label_hash = {self.label_hash!r}", "use '' or 'catboost'"
            )
        if np.any(self.rule > max(Rule)):
            raise InvariantError("known rules", "an unknown column rule", "use a value of Rule")
        n_member = int(np.count_nonzero(self.rule == Rule.MEMBER))
        if n_member != (0 if self.sets is None else len(self.sets)):
            raise InvariantError(
                "one set per member column",
                f"{n_member} member columns and {0 if self.sets is None else len(self.sets)} sets",
                "give one category set for each column whose rule is MEMBER",
            )
        for feature, bounds in self.edges.items():
            ascends = all(a < b for a, b in itertools.pairwise(bounds))
            if not 0 <= feature < self.n_features or feature in self.categories or not ascends:
                raise InvariantError(
                    "edges of ranges ascend",
                    f"edges of feature {feature} that do not ascend, or that has labels too",
                    "give ascending bounds of features that have no labels",
                )
        if self.accepted is not None and len(self.accepted) != self.n_features:
            raise InvariantError(
                "what is accepted fits the features",
                f"bounds of {len(self.accepted)} of {self.n_features} features",
                "give each feature its bounds",
            )
        self._check_look_ups()
        if self.names is not None and len(self.names) != self.n_features:
            raise InvariantError(
                "one name per feature",
                f"{len(self.names)} names for {self.n_features} features",
                "give a name for each feature, or none at all",
            )

    def _check_look_ups(self) -> None:
        look_ups = self.look_ups
        n = int(np.count_nonzero(self.rule == Rule.LOOK_UP))
        n_held = 0 if look_ups is None else len(look_ups.column_table)
        if n != n_held:
            raise InvariantError(
                "a statistic for each look-up column",
                f"{n} look-up columns and {n_held} statistics",
                "give one table and statistic for each column whose rule is LOOK_UP",
            )
        if look_ups is None:
            return
        if np.any(look_ups.term_feature >= self.n_features):
            raise InvariantError(
                "combinations of existing features",
                f"a combination reads a feature outside 0..{self.n_features - 1}",
                "correct look_ups.term_feature or columns.n_features",
            )

    def __len__(self) -> int:
        return len(self.feature)

    def name(self, column: int) -> str:
        """What a reader would call this column: its feature's name or x[i].

        A statistic is called by its number and by the features of its combination.
        """
        if self.rule[column] == Rule.LOOK_UP:
            table, statistic = self.look_up(column)
            assert self.look_ups is not None
            said = ", ".join(map(self.feature_name, self.look_ups.features(table)))
            return f"statistic {table}.{statistic} of ({said})"
        return self.feature_name(int(self.feature[column]))

    def feature_name(self, feature: int) -> str:
        """What a reader would call this feature: its name or x[i]."""
        return self.names[feature] if self.names is not None else f"x[{feature}]"

    def column_keys(self) -> list[ColumnKey]:
        """What makes each column itself; columns of one key hold the same numbers."""
        found: list[ColumnKey] = []
        for c in range(len(self)):
            key: ColumnKey = (int(self.feature[c]), int(self.rule[c]))
            if key[1] == Rule.MEMBER:
                members, answers, outside = self.members(c)
                # A member that is answered like all others need not be one.
                is_told_apart = answers != outside
                key += (
                    tuple(members[is_told_apart].tolist()),
                    tuple(answers[is_told_apart].tolist()),
                    outside,
                )
            elif key[1] == Rule.LOOK_UP:
                key += self.look_up(c)
            found.append(key)
        return found

    def with_keys(self, keys: Iterable[ColumnKey], n_features: int | None = None) -> Columns:
        """The columns of these keys, of the same features or of the first `n_features`."""
        keys = list(keys)
        members = [key[2:] for key in keys if key[1] == Rule.MEMBER]
        sets = None
        if members:
            assert self.sets is not None
            sets = replace(
                self.sets,
                start=np.cumsum([0] + [len(which) for which, _, _ in members]),
                members=np.concatenate([np.array(which, np.int64) for which, _, _ in members]),
                answer=np.concatenate([np.array(answer, np.int8) for _, answer, _ in members]),
                outside=np.array([outside for _, _, outside in members], np.int8),
            )
        return replace(
            self if n_features is None else self._of_first(n_features),
            feature=np.array([key[0] for key in keys], np.int32),
            rule=np.array([key[1] for key in keys], np.uint8),
            sets=sets,
            look_ups=None
            if self.look_ups is None
            else self.look_ups.of_columns(key[2:] for key in keys if key[1] == Rule.LOOK_UP),
        )

    def _of_first(self, n_features: int) -> Columns:
        """No column of the first features, read as they are."""
        none = np.empty(0, np.int32)
        return replace(
            self,
            n_features=n_features,
            feature=none,
            rule=none.astype(np.uint8),
            names=None if self.names is None else self.names[:n_features],
            sets=None,
            categories={f: found for f, found in self.categories.items() if f < n_features},
            edges={},
            accepted=None,
        )

    def coded(self) -> Columns:
        """The columns for rows in which labels are codes already, as `features` gives them."""
        is_coded = not (self.categories or self.edges or self.encodes_arrays)
        if is_coded and self.table_categories is None and self.accepted is None:
            return self
        return replace(
            self,
            categories={},
            table_categories=None,
            encodes_arrays=False,
            label_hash="",
            refuses_new_labels=False,
            edges={},
            accepted=None,
        )

    @functools.cached_property
    def member_features(self) -> tuple[int, ...]:
        """The features that some column looks up as categories, ascending."""
        return tuple(np.unique(self.feature[self.rule == Rule.MEMBER]).tolist())

    def members(self, column: int) -> tuple[Int[np.ndarray, "m"], Int[np.ndarray, "m"], int]:
        """A member column's categories, the answer to each, and the answer to any other."""
        assert self.sets is not None
        which = int(np.count_nonzero(self.rule[:column] == Rule.MEMBER))
        span = slice(*self.sets.start[which : which + 2].tolist())
        return self.sets.members[span], self.sets.answer[span], int(self.sets.outside[which])

    def look_up(self, column: int) -> tuple[int, int]:
        """A look-up column's table, and its statistic there."""
        assert self.look_ups is not None
        which = int(np.count_nonzero(self.rule[:column] == Rule.LOOK_UP))
        return (
            int(self.look_ups.column_table[which]),
            int(self.look_ups.column_statistic[which]),
        )

    def read(self, X: Num[Any, "m n_features"]) -> Num[Any, "m n"]:
        """The columns z of rows X, on NumPy arrays or torch tensors alike."""
        xp = namespace(X)
        x = xp.astype(X, xp.float32 if self.dtype == np.float32 else xp.float64)
        nan = xp.asarray(float("nan"), dtype=x.dtype)
        if not np.isnan(self.missing_value):
            x = xp.where(x == self.missing_value, nan, x)
        if not np.any(self.rule):
            return xp.take(x, xp.asarray(self.feature.astype(np.int64)), axis=1)
        z = []
        n_member = 0
        # Keys of 64 bits are added up by NumPy, which every namespace can hand its rows to.
        statistics = iter(
            () if self.look_ups is None else self.look_ups.read(np.asarray(x)).T  # (c, m)
        )
        for feature, rule in zip(self.feature, self.rule, strict=True):
            column = x[:, int(feature)]
            if rule == Rule.NAN_AS_ZERO:
                column = xp.where(xp.isnan(column), xp.zeros_like(column), column)
            elif rule == Rule.ZERO_AS_NAN:
                column = xp.where(xp.abs(column) <= ZERO, nan, column)
            elif rule == Rule.MEMBER:
                assert self.sets is not None
                column = self.sets.look_up(n_member, column)
                n_member += 1
            elif rule == Rule.LOOK_UP:
                column = xp.astype(xp.asarray(next(statistics)), x.dtype)
            z.append(column)
        return xp.stack(z, axis=1)
