"""Look-up columns for the native engine: to its plan, the statistics found are features."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ... import _native
from ...machine import Rule
from ..inputs.table_reader import GivenColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...machine import Columns, DecisionMachine


def with_statistics_as_features(machine: DecisionMachine) -> DecisionMachine:
    """The machine for rows that end with the statistics of its look-up columns.

    Examples
    --------
    >>> import decision_machines as dm
    >>> machine = dm.figure_one()
    >>> with_statistics_as_features(machine) is machine
    True
    """
    columns = machine.columns
    if columns.look_ups is None:
        return machine
    is_looked_up = columns.rule == Rule.LOOK_UP
    n = columns.n_features
    feature, rule = columns.feature.copy(), columns.rule.copy()
    feature[is_looked_up] = n + np.arange(np.count_nonzero(is_looked_up))
    rule[is_looked_up] = Rule.VALUE
    return replace(
        machine,
        columns=replace(
            columns.coded(),
            n_features=n + int(np.count_nonzero(is_looked_up)),
            names=None,
            feature=feature,
            rule=rule,
            look_ups=None,
        ),
    )


class StatisticsReader:
    """Finds the statistics of rows that are given feature by feature."""

    __slots__ = ("inputs", "n_columns", "tables")

    def __init__(self, columns: Columns) -> None:
        look_ups = columns.look_ups
        assert look_ups is not None
        self.inputs, position = np.unique(look_ups.term_feature, return_inverse=True)
        self.n_columns = len(look_ups.column_table)
        self.tables = _native.look_up_tables(
            n_inputs=len(self.inputs),
            column_table=look_ups.column_table,
            column_statistic=look_ups.column_statistic,
            term_start=look_ups.term_start,
            input=position.astype(np.int32),
            kind=look_ups.term_kind,
            number=look_ups.term_number,
            missing=look_ups.term_missing,
            adds=look_ups.term_adds,
            label_start=look_ups.label_start,
            label_adds=look_ups.label_adds,
            key_start=look_ups.key_start,
            keys=look_ups.keys,
            n_statistics=look_ups.n_statistics,
            values=look_ups.values,
        )

    def read(
        self, values: Sequence[np.ndarray | GivenColumn], n_rows: int, n_threads: int
    ) -> np.ndarray:
        """(c, m) statistics of m rows, whose features are one column each."""
        x = np.empty((len(self.inputs), n_rows), np.float32)
        with np.errstate(over="ignore"):
            for own, feature in zip(x, self.inputs.tolist(), strict=True):
                given = values[feature]
                own[:] = given.floats() if isinstance(given, GivenColumn) else given
        z = np.empty((self.n_columns, n_rows), np.float32)
        self.tables.read(x, z, n_threads)
        return z
