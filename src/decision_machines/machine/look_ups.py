"""Tables of statistics, looked up by a combination of features, as CatBoost's CTRs are.

A *combination* is a list of terms, each of which adds a number of 64 bits to a key: a label adds
the number of its category, a test adds its number where it says yes. The key finds a row of the
combination's table; each of the table's statistics is one column z.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvariantError, UnsupportedModelError
from .arrays import Part, frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jaxtyping import Float, Int, Num, UInt64

    from .machine import DecisionMachine

LOOK_UP = 4
"""The number of `Rule.LOOK_UP`."""
MOST_CATEGORIES = 1 << 24
"""Categories of one feature: each must be a float32."""


class Term(enum.IntEnum):
    """What a term of a combination asks of its feature."""

    LABEL = 0
    """Which category it is: adds that category's number. With any other x nothing is found."""
    EQUALS = 1
    """Whether it is one category."""
    ABOVE = 2
    """Whether x is above a border; a missing x is where `term_missing` says so."""


@dataclass(frozen=True, eq=False)
class LookUps(Part):
    """The tables of the `Rule.LOOK_UP` columns, and which statistic each such column is.

    Parameters
    ----------
    column_table, column_statistic
        (c,) of each `Rule.LOOK_UP` column, in their order: its table, and its place there.
    term_start
        (p+1,) where the terms of each table's combination start.
    term_feature, term_kind, term_number, term_missing, term_adds
        (q,) of each term: its feature; a `Term`; the category or the border that it asks for;
        whether a missing x is above; what yes adds to the key.
    label_start, label_adds
        (q+1,), (a,) what each category of a `Term.LABEL` adds to the key.
    key_start, keys
        (p+1,), (r,) the keys of each table, ascending.
    n_statistics
        (p,) how many statistics each table holds.
    values
        The statistics, table after table and row after row; after the rows of its keys each table
        has one more, for a key that it does not hold.
    """

    column_table: Int[np.ndarray, "c"]
    column_statistic: Int[np.ndarray, "c"]
    term_start: Int[np.ndarray, "p+1"]
    term_feature: Int[np.ndarray, "q"]
    term_kind: Int[np.ndarray, "q"]
    term_number: Float[np.ndarray, "q"]
    term_missing: Int[np.ndarray, "q"]
    term_adds: UInt64[np.ndarray, "q"]
    label_start: Int[np.ndarray, "q+1"]
    label_adds: UInt64[np.ndarray, "a"]
    key_start: Int[np.ndarray, "p+1"]
    keys: UInt64[np.ndarray, "r"]
    n_statistics: Int[np.ndarray, "p"]
    values: Float[np.ndarray, "s"]

    def __post_init__(self) -> None:
        for name, dtype in (
            ("column_table", np.int32),
            ("column_statistic", np.int32),
            ("term_start", np.int64),
            ("term_feature", np.int32),
            ("term_kind", np.uint8),
            ("term_number", np.float32),
            ("term_missing", np.uint8),
            ("term_adds", np.uint64),
            ("label_start", np.int64),
            ("label_adds", np.uint64),
            ("key_start", np.int64),
            ("keys", np.uint64),
            ("n_statistics", np.int32),
            ("values", np.float32),
        ):
            object.__setattr__(self, name, frozen(getattr(self, name), dtype, f"look_ups.{name}"))
        self._check()

    def _check(self) -> None:
        n_tables, n_terms = len(self.n_statistics), len(self.term_feature)
        is_whole = (
            _divides(self.term_start, n_tables, n_terms)
            and _divides(self.label_start, n_terms, len(self.label_adds))
            and _divides(self.key_start, n_tables, len(self.keys))
            and len(self.column_table) == len(self.column_statistic)
            and all(
                len(getattr(self, f"term_{name}")) == n_terms
                for name in ("kind", "number", "missing", "adds")
            )
        )
        if not is_whole or np.any(self.n_statistics < 1):
            _refuse("starts and sizes do not fit together")
        if len(self.values) != int(self.value_start[-1]):
            _refuse(f"{len(self.values)} values where tables need {self.value_start[-1]}")
        if n_terms and (self.term_feature.min() < 0 or self.term_kind.max() > max(Term)):
            _refuse("a term of an unknown kind, or of a feature below 0")
        n_labels = np.diff(self.label_start)
        if np.any(n_labels > MOST_CATEGORIES) or np.any(n_labels[self.term_kind != Term.LABEL]):
            _refuse("categories for a term that asks for no label, or too many")
        inner = np.ones(max(len(self.keys) - 1, 0), bool)
        firsts = self.key_start[1:-1]
        inner[firsts[(firsts > 0) & (firsts < len(self.keys))] - 1] = False
        if np.any((self.keys[1:] <= self.keys[:-1])[: len(inner)] & inner):
            _refuse("keys that do not ascend")
        table, statistic = self.column_table, self.column_statistic
        if len(table) and (
            table.min() < 0
            or table.max() >= n_tables
            or np.any((statistic < 0) | (statistic >= self.n_statistics[table]))
        ):
            _refuse("a column of a statistic that no table has")

    @property
    def n_tables(self) -> int:
        return len(self.n_statistics)

    @property
    def value_start(self) -> Int[np.ndarray, "p+1"]:
        """Where the values of each table start."""
        sizes = (np.diff(self.key_start) + 1) * self.n_statistics
        return np.concatenate([[0], np.cumsum(sizes)])

    def features(self, table: int) -> tuple[int, ...]:
        """The features of a table's combination, in the order of its terms."""
        span = slice(*self.term_start[table : table + 2].tolist())
        return tuple(dict.fromkeys(self.term_feature[span].tolist()))

    def of_columns(self, keys: Iterable[tuple[int, int]]) -> LookUps:
        """The same tables for other columns, each a table and a statistic."""
        wanted = np.array(list(keys), np.int32).reshape(-1, 2)
        return replace(self, column_table=wanted[:, 0], column_statistic=wanted[:, 1])

    def rows(self, table: int, x: Num[np.ndarray, "m n_features"]) -> Int[np.ndarray, "m"]:
        """The row of a table that each row of x finds; one past its keys where it finds none."""
        key = np.zeros(len(x), np.uint64)
        is_known = np.ones(len(x), bool)
        for term in range(*self.term_start[table : table + 2].tolist()):
            value = x[:, int(self.term_feature[term])]
            if self.term_kind[term] == Term.LABEL:
                adds = self.label_adds[self.label_start[term] : self.label_start[term + 1]]
                is_label = (value >= 0) & (value < len(adds)) & (value == np.trunc(value))
                is_known &= is_label
                if len(adds):
                    key += adds[np.where(is_label, value, 0).astype(np.int64)]
                continue
            if self.term_kind[term] == Term.EQUALS:
                says_yes = value == self.term_number[term]
            else:
                says_yes = value > self.term_number[term]
                if self.term_missing[term]:
                    says_yes |= np.isnan(value)
            key += np.where(says_yes, self.term_adds[term], np.uint64(0))
        keys = self.keys[self.key_start[table] : self.key_start[table + 1]]
        at = np.searchsorted(keys, key)
        if not len(keys):
            return at
        is_found = is_known & (keys[np.minimum(at, len(keys) - 1)] == key)
        return np.where(is_found, at, len(keys))

    def read(self, x: Num[np.ndarray, "m n_features"]) -> Float[np.ndarray, "m c"]:
        """z of all look-up columns, of rows in any dtype."""
        with np.errstate(over="ignore"):
            x = x.astype(np.float32, copy=False)
        z = np.empty((len(x), len(self.column_table)), np.float32)
        starts = self.value_start
        for table in np.unique(self.column_table).tolist():
            width = int(self.n_statistics[table])
            values = self.values[starts[table] : starts[table + 1]].reshape(-1, width)
            own = np.flatnonzero(self.column_table == table)
            z[:, own] = values[self.rows(table, x)][:, self.column_statistic[own]]
        return z


def check_single_features(machine: DecisionMachine, doing: str) -> None:
    """Refuse a machine with a test that reads several features through a table.

    Examples
    --------
    >>> import decision_machines as dm
    >>> check_single_features(dm.figure_one(), "drawing boxes")
    """
    columns = machine.columns
    if columns.look_ups is None or machine.is_oblique:
        return
    is_looked_up = columns.rule[machine.selection] == LOOK_UP
    if np.any(is_looked_up):
        column = int(machine.selection[int(np.argmax(is_looked_up))])
        raise UnsupportedModelError(
            doing,
            f"a test reads the {columns.name(column)}: several features at once",
            "train CatBoost with max_ctr_complexity=1, whose tests read one feature each",
        )


def _divides(start: Int[np.ndarray, "p+1"], n: int, size: int) -> bool:
    """Whether `start` divides `size` things into n parts."""
    return bool(
        len(start) == n + 1
        and start[0] == 0
        and start[-1] == size
        and not np.any(np.diff(start) < 0)
    )


def _refuse(found: str) -> Any:
    raise InvariantError(
        "tables of statistics", found, "give tables as machine.look_ups.LookUps describes them"
    )
