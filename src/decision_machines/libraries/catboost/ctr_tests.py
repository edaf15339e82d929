"""The tests that ask for CTRs, as columns of a machine.

A statistic of one categorical feature is a number for each of its labels: a test of it asks whether
the label is in a set. A statistic of several features together is a look-up column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine import Rule
from ...machine.look_ups import LookUps, Term
from .ctr import statistic
from .ctr_labels import find_labels, label_adds
from .parts import refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jaxtyping import Float, Int, UInt64

    from ...machine.columns import ColumnKey
    from .ctr import Combination, Ctr, CtrTable
    from .parts import Parts

MOST_MEMBERS = 1 << 16
"""Labels times borders of one statistic up to which its tests are sets."""


class CtrTests:
    """Tests of CTRs in CatBoost's order: the column and the threshold of each.

    Attributes
    ----------
    keys
        The columns, whose first has the number that the caller gave.
    labels
        Column of the data → hashes of all labels that the tables know of.
    """

    def __init__(self, parts: Parts, names: Mapping[int, str], first: int, doing: str) -> None:
        self.parts = parts
        self.doing = doing
        self.flat_cat = {f.index: f.flat for f in parts.cats}
        self.floats = {f.index: f for f in parts.floats}
        self.keys: list[ColumnKey] = []
        self.labels: dict[int, Int[np.ndarray, "v"]] = {}
        self.look_ups: LookUps | None = None
        self._column: list[Int[np.ndarray, "b"]] = []
        self._t: list[Float[np.ndarray, "b"]] = []
        if not parts.ctrs:
            return
        for ctr in parts.ctrs:
            self._check(ctr)
        params = _parameters(parts.info)
        found = find_labels(
            {ctr.base: parts.ctr_tables[ctr.base] for ctr in parts.ctrs},
            {f.index: f.values for f in parts.cats},
            {f.index: names[f.flat] for f in parts.cats},
            is_of_training_rows=params.get("counter_calc_method") == "SkipTest",
            doing=doing,
        )
        self.labels = {self.flat_cat[cat]: labels for cat, labels in found.items()}
        tables = _Tables(self)
        for ctr in parts.ctrs:
            values = statistic(ctr, parts.ctr_tables[ctr.base], doing)
            cats = ctr.base.combination.cats
            is_alone = not (cats[1:] or ctr.base.combination.above or ctr.base.combination.equals)
            if (
                is_alone
                and len(self.labels[self.flat_cat[cats[0]]]) * len(ctr.borders) <= MOST_MEMBERS
            ):
                own = self._sets(ctr, values)
                column, t = np.arange(len(own)), np.full(len(own), 0.5, np.float32)
            else:
                own = [tables.add(ctr, values)]
                column, t = np.zeros(len(ctr.borders), np.int64), ctr.borders
            self._column.append(first + len(self.keys) + column)
            self._t.append(t)
            self.keys += own
        self.look_ups = tables.look_ups()

    @property
    def column(self) -> Int[np.ndarray, "b"]:
        return np.concatenate([np.empty(0, np.int64), *self._column])

    @property
    def t(self) -> Float[np.ndarray, "b"]:
        return np.concatenate([np.empty(0, np.float32), *self._t])

    def _check(self, ctr: Ctr) -> None:
        combination = ctr.base.combination
        cats = {*combination.cats, *(cat for cat, _ in combination.equals)}
        if not combination.cats or len(set(combination.cats)) < len(combination.cats):
            refuse(self.doing, f"a CTR of the categorical features {combination.cats}")
        if not cats <= set(self.flat_cat) or not {f for f, _ in combination.above} <= set(
            self.floats
        ):
            refuse(self.doing, "a CTR of a feature that the model does not have")
        if ctr.base not in self.parts.ctr_tables:
            refuse(self.doing, "a CTR without its table")
        if not np.all(
            np.isfinite([*ctr.borders, ctr.prior, ctr.denominator, ctr.shift, ctr.scale])
        ):
            refuse(self.doing, "a CTR with a number that is not finite")

    def _sets(self, ctr: Ctr, values: Float[np.ndarray, "r+1"]) -> list[ColumnKey]:
        """A member column for each border: the labels whose statistic is above it."""
        combination = ctr.base.combination
        flat = self.flat_cat[combination.cats[0]]
        of_label = values[
            self._rows(ctr.base.combination, self.parts.ctr_tables[ctr.base].keys, flat)
        ]
        found = []
        for border in ctr.borders:
            is_above = of_label > border
            outside = bool(values[-1] > border)
            members = np.flatnonzero(is_above != outside)
            answer = -1 if outside else 1
            found.append(
                (
                    flat,
                    int(Rule.MEMBER),
                    tuple(members.tolist()),
                    (answer,) * len(members),
                    -answer,
                )
            )
        return found

    def _rows(
        self, combination: Combination, keys: UInt64[np.ndarray, "r"], flat: int
    ) -> Int[np.ndarray, "v"]:
        """The row of a table that each label of its one feature finds; the last where none."""
        key = label_adds(combination.factors()[0], self.labels[flat])
        at = np.searchsorted(keys, key)
        is_found = keys[np.minimum(at, len(keys) - 1)] == key if len(keys) else at < 0
        return np.where(is_found, at, len(keys))


class _Tables:
    """Tables for the look-up columns: one for each combination, with all its statistics."""

    def __init__(self, tests: CtrTests) -> None:
        self.tests = tests
        self.place: dict[Combination, int] = {}
        self.statistics: list[list[tuple[CtrTable, Float[np.ndarray, "r+1"]]]] = []

    def add(self, ctr: Ctr, values: Float[np.ndarray, "r+1"]) -> ColumnKey:
        combination = ctr.base.combination
        at = self.place.setdefault(combination, len(self.place))
        if at == len(self.statistics):
            self.statistics.append([])
        self.statistics[at].append((self.tests.parts.ctr_tables[ctr.base], values))
        flat = self.tests.flat_cat[combination.cats[0]]
        return (flat, int(Rule.LOOK_UP), at, len(self.statistics[at]) - 1)

    def look_ups(self) -> LookUps | None:
        if not self.place:
            return None
        terms: list[_Term] = []
        term_start, keys, values = [0], [], []
        for combination, statistics in zip(self.place, self.statistics, strict=True):
            terms += self._terms(combination)
            term_start.append(len(terms))
            all_keys = np.unique(np.concatenate([table.keys for table, _ in statistics]))
            rows = np.empty((len(all_keys) + 1, len(statistics)), np.float32)
            for i, (table, own) in enumerate(statistics):
                rows[:, i] = own[-1]
                rows[np.searchsorted(all_keys, table.keys), i] = own[:-1]
            keys.append(all_keys)
            values.append(rows.ravel())
        no_adds = np.empty(0, np.uint64)
        adds = [term.labels if term.labels is not None else no_adds for term in terms]
        return LookUps(
            column_table=np.empty(0, np.int32),
            column_statistic=np.empty(0, np.int32),
            term_start=np.array(term_start),
            term_feature=np.array([term.feature for term in terms]),
            term_kind=np.array([term.kind for term in terms], np.uint8),
            term_number=np.array([term.number for term in terms], np.float32),
            term_missing=np.array([term.missing for term in terms], np.uint8),
            term_adds=np.array([term.adds for term in terms], np.uint64),
            label_start=np.cumsum([0, *map(len, adds)]),
            label_adds=np.concatenate(adds),
            key_start=np.cumsum([0, *map(len, keys)]),
            keys=np.concatenate(keys),
            n_statistics=np.array([len(s) for s in self.statistics], np.int32),
            values=np.concatenate(values),
        )

    def _terms(self, combination: Combination) -> list[_Term]:
        tests = self.tests
        factors = iter(combination.factors())
        found = []
        for cat in combination.cats:
            flat = tests.flat_cat[cat]
            adds = label_adds(next(factors), tests.labels[flat])
            found.append(_Term(flat, Term.LABEL, labels=adds))
        for index, border in combination.above:
            feature = tests.floats[index]
            found.append(
                _Term(feature.flat, Term.ABOVE, border, int(feature.nan_goes_right), next(factors))
            )
        for cat, label in combination.equals:
            flat = tests.flat_cat[cat]
            known = tests.labels.get(
                flat, next(f.values for f in tests.parts.cats if f.index == cat)
            )
            at = np.flatnonzero(known == label)
            if not len(at):
                refuse(tests.doing, f"a CTR of the label {label}, which no test asks for")
            found.append(_Term(flat, Term.EQUALS, float(at[0]), adds=next(factors)))
        return found


class _Term:
    def __init__(
        self,
        feature: int,
        kind: Term,
        number: float = 0.0,
        missing: int = 0,
        adds: int = 0,
        labels: UInt64[np.ndarray, "v"] | None = None,
    ) -> None:
        self.feature, self.kind, self.number = feature, kind, number
        self.missing, self.adds, self.labels = missing, adds, labels


def _parameters(info: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters of training that concern categories, where the model tells them."""
    params = info.get("params")
    found = params.get("cat_feature_params") if isinstance(params, dict) else None
    return found if isinstance(found, dict) else {}
