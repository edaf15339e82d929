"""Values of several features together that find each row of a table of statistics."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...machine.look_ups import Term

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...machine import DecisionMachine
    from ...machine.look_ups import LookUps

MOST_COMBINATIONS = 1 << 18


class Combination(NamedTuple):
    """What a table's features can be given together."""

    features: tuple[int, ...]
    values: list[tuple[float, ...]]
    """One for each row of the table that can be found, and for finding none."""
    is_whole: bool
    """Whether every row of the table is found."""


class Combinations:
    """The combinations of a machine's tables, each made when it is first asked for."""

    def __init__(self, machine: DecisionMachine, codes: Mapping[int, list[float]]) -> None:
        self.look_ups = machine.columns.look_ups
        self.n_features = machine.n_features
        self.codes = codes
        self._found: dict[int, Combination] = {}
        self._rows: dict[tuple[int, tuple[float, ...]], int] = {}

    def of(self, table: int) -> Combination:
        """The combination of one table."""
        if table not in self._found:
            assert self.look_ups is not None
            self._found[table] = self._make(self.look_ups, table)
        return self._found[table]

    def statistic(self, table: int, which: int, row: list[float]) -> float:
        """A statistic of a row."""
        look_ups = self.look_ups
        assert look_ups is not None
        features = self.of(table).features
        key = (table, tuple(row[f] for f in features))
        if key not in self._rows:
            self._rows[key] = int(look_ups.rows(table, np.array([row], np.float32))[0])
        start = int(look_ups.value_start[table])
        return float(
            look_ups.values[start + self._rows[key] * look_ups.n_statistics[table] + which]
        )

    def _make(self, look_ups: LookUps, table: int) -> Combination:
        features = look_ups.features(table)
        options = [self._options(look_ups, table, feature) for feature in features]
        n_keys = int(look_ups.key_start[table + 1] - look_ups.key_start[table])
        if math.prod(map(len, options)) > MOST_COMBINATIONS:
            options = [values[:1] for values in options]
        values = list(itertools.product(*options))
        x = np.zeros((len(values), self.n_features), np.float32)
        x[:, list(features)] = values
        rows, first = np.unique(look_ups.rows(table, x), return_index=True)
        is_whole = int(np.count_nonzero(rows < n_keys)) == n_keys
        return Combination(features, [values[i] for i in first.tolist()], is_whole)

    def _options(self, look_ups: LookUps, table: int, feature: int) -> list[float]:
        """Values of a feature that no term of the combination tells apart from all others."""
        found = list(self.codes.get(feature, []))
        for term in range(*look_ups.term_start[table : table + 2].tolist()):
            is_own = look_ups.term_feature[term] == feature
            if is_own and look_ups.term_kind[term] == Term.ABOVE:
                border = look_ups.term_number[term]
                found += [float(border), float(np.nextafter(border, np.float32(np.inf)))]
        return found or [-1.0]
