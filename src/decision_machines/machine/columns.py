"""How raw features x become the columns z that tests read."""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvariantError
from .arrays import Part, frozen, namespace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jaxtyping import Int, Num

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


@dataclass(frozen=True, eq=False)
class CategorySets(Part):
    """The sets of the `Rule.MEMBER` columns, in the order of those columns.

    A category found in the set gives `answer` (-1: z = 0, the left of a test at 0.5;
    +1: z = 1, the right; 0: z = NaN, the test's missing answer). Any other category,
    and any x that is no category, gives `outside`. NaN stays NaN.
    """

    start: Int[np.ndarray, "c+1"]
    members: Int[np.ndarray, "m"]
    """Categories, ascending within each set."""
    answer: Int[np.ndarray, "m"]
    outside: Int[np.ndarray, "c"]
    negative_fractions: bool = False
    """Whether -0.5 is category 0 (LightGBM truncates first) or no category (XGBoost)."""
    whole: bool = False
    """Whether only whole numbers are categories (ONNX); else a fraction is cut off."""

    def __post_init__(self) -> None:
        for name, dtype in (
            ("start", np.int64),
            ("members", np.int64),
            ("answer", np.int8),
            ("outside", np.int8),
        ):
            object.__setattr__(self, name, frozen(getattr(self, name), dtype, f"sets.{name}"))
        n = len(self.start) - 1
        ascending = np.diff(self.members) > 0
        if n >= 0:
            firsts = self.start[1:-1]
            firsts = firsts[(firsts > 0) & (firsts < len(self.members))]
            ascending[firsts - 1] = True
        if (
            n < 0
            or self.start[0] != 0
            or self.start[-1] != len(self.members)
            or np.any(np.diff(self.start) < 0)
            or len(self.answer) != len(self.members)
            or len(self.outside) != n
            or not np.all(ascending)
            or np.any(np.abs(self.answer) > 1)
            or np.any(np.abs(self.outside) > 1)
            or np.any(self.members < 0)
        ):
            raise InvariantError(
                "category sets",
                "starts, members, answers and outside do not fit together",
                "give ascending non-negative members per set, one answer in {-1, 0, 1} for "
                "each member and one `outside` for each set",
            )

    def __len__(self) -> int:
        return len(self.outside)

    def category(self, x: float) -> int | None:
        """The category that a number of the columns' dtype stands for; None where it is none."""
        lowest = -1.0 if self.negative_fractions else 0.0
        is_category = (x > lowest or x == 0.0) and x < 2.0**31 and not (self.whole and x % 1)
        return int(x) if is_category else None

    def look_up(self, which: int, x):
        """z of one member column: 0, 1 or NaN for each x, over any array namespace."""
        xp = namespace(x)
        lowest = -1.0 if self.negative_fractions else 0.0
        # Beyond 2**31 no library keeps a category; there, and below `lowest`, nothing is found.
        is_category = ((x > lowest) | (x == 0.0)) & (x < 2.0**31)
        if self.whole:
            is_category = is_category & (x == xp.trunc(x))
        k = xp.astype(xp.trunc(xp.where(is_category, x, xp.zeros_like(x))), xp.int64)
        span = slice(int(self.start[which]), int(self.start[which + 1]))
        answer = xp.full(x.shape, int(self.outside[which]), dtype=xp.int8)
        if span.stop > span.start:
            members = xp.asarray(self.members[span].copy())
            at = xp.clip(xp.searchsorted(members, k), max=members.shape[0] - 1)
            found = is_category & (xp.take(members, at) == k)
            answer = xp.where(found, xp.take(xp.asarray(self.answer[span].copy()), at), answer)
        z = xp.where(answer > 0, xp.ones_like(x), xp.zeros_like(x))
        nan = xp.asarray(float("nan"), dtype=x.dtype)
        return xp.where((answer == 0) | xp.isnan(x), nan, z)


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
        A label not among them is -1, no label at all is NaN.
    refuses_new_labels
        Whether a label in a table that is not among the `categories` is an error instead.
    label_hash
        "catboost" where labels are matched by `labels.label_hash` of their text rather than by
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
    encodes_arrays
        Whether the entries of an array, too, are labels to be looked up in `categories`, as a
        table's always are; else an array already holds the positions.
    """

    n_features: int
    dtype: Any = np.float64
    feature: Int[np.ndarray, "n"] | Any = None
    rule: Int[np.ndarray, "n"] | Any = None
    names: tuple[str, ...] | None = None
    sets: CategorySets | None = None
    categories: Mapping[int, tuple] = field(default_factory=dict)
    absent: float = 0.0
    missing_value: float = float("nan")
    integers_as: Any = None
    table_categories: tuple[tuple, ...] | None = None
    encodes_arrays: bool = False
    label_hash: str = ""
    refuses_new_labels: bool = False

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
        self._check()

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
        if self.names is not None and len(self.names) != self.n_features:
            raise InvariantError(
                "one name per feature",
                f"{len(self.names)} names for {self.n_features} features",
                "give a name for each feature, or none at all",
            )

    def __len__(self) -> int:
        return len(self.feature)

    def name(self, column: int) -> str:
        """What a reader would call this column: its feature's name or x[i]."""
        return self.feature_name(int(self.feature[column]))

    def feature_name(self, feature: int) -> str:
        """What a reader would call this feature: its name or x[i]."""
        return self.names[feature] if self.names is not None else f"x[{feature}]"

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
            z.append(column)
        return xp.stack(z, axis=1)
