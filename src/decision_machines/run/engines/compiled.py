"""A machine compiled for the native engine: data is handed to its plan where it lies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..inputs.accepted import is_guarded
from ..inputs.features import is_table, read_features
from ..inputs.sparse_matrices import sparse_rows
from ..inputs.table_reader import GivenColumn, TableReader
from ..inputs.tables import TableColumns, table_columns
from .look_ups import StatisticsReader, with_statistics_as_features
from .native import compile_plan
from .processor import cpu_count, target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...machine import DecisionMachine

ROWS_FOR_THREADS = 2048
"""Fewer rows than this are done before a second thread has started."""
ROWS_AT_ONCE = 65536
ROWS_WITH_STATISTICS = 8192
"""Rows whose statistics stay in a cache until they are tested."""


class Compiled:
    """A machine's plan, and what a call needs to know of the machine, looked up once.

    It holds parts of the machine and not the machine itself, which keeps it: both go together,
    as soon as nothing else holds the machine.
    """

    __slots__ = (
        "columns",
        "dtype",
        "is_plain",
        "n_outputs",
        "n_trees",
        "plan",
        "statistics",
        "tables",
        "width",
    )

    def __init__(self, machine: DecisionMachine) -> None:
        columns = machine.columns
        self.plan = compile_plan(with_statistics_as_features(machine), target=target())
        self.columns = columns
        self.tables = TableReader(columns)
        self.statistics = None if columns.look_ups is None else StatisticsReader(columns)
        self.is_plain = not (columns.encodes_arrays or is_guarded(columns))
        """Whether numbers can be handed over as they are given."""
        needs_reading = not self.is_plain or columns.look_ups is not None
        self.width = -1 if needs_reading else columns.n_features
        """Columns of an array that can be handed over as it is; -1 where none can."""
        self.n_outputs = machine.n_outputs
        self.n_trees = machine.n_trees
        self.dtype = machine.output.dtype

    @property
    def row(self) -> Callable[[Any], np.ndarray | None]:
        """What gives the margins of one row of an array, and None for any other X."""
        return no_row if self.width < 0 else self.plan.row

    def run(self, X: Any, n_threads: int | None, leaves: bool) -> np.ndarray:
        """(m, n_trees) exit leaves, or (m, k) margins, of any X.

        X is read where it lies if the engine can, else turned into floats a block at a time.
        """
        plan, columns = self.plan, self.columns
        if self.statistics is not None:
            return self._with_statistics(self.statistics, X, n_threads, leaves)
        if sp.issparse(X) and self.is_plain:
            rows = sparse_rows(X, columns)
            out = self._empty(rows.shape[0], leaves)
            threads = _threads(len(out), n_threads)
            if plan.sparse(rows.data, rows.indices, rows.indptr, out, leaves, threads):
                return out
        elif is_table(X):
            n_rows, values = self._table(X)
            out = self._empty(n_rows, leaves)
            threads = _threads(len(out), n_threads)
            if plan.features(values, n_rows, out, leaves, threads):
                return out
        elif type(X) is np.ndarray and X.ndim == 2 and X.shape[1] == self.width:
            out = self._empty(len(X), leaves)
            threads = _threads(len(out), n_threads)
            if plan.array(X, out, leaves, threads):
                return out
        return self._in_blocks(X, n_threads, leaves)

    def _table(self, X: Any) -> TableColumns:
        """The features of a table, each an array."""
        read = self.tables.read(X)
        return table_columns(X, self.columns) if read is None else TableColumns(*read)

    def _with_statistics(
        self, statistics: StatisticsReader, X: Any, n_threads: int | None, leaves: bool
    ) -> np.ndarray:
        """The same where columns are looked up: a block's statistics are found, then its leaves."""
        if is_table(X):
            n_rows, values = self._table(X)
        else:
            rows = read_features(X, self.columns)
            n_rows, values = rows.n_rows, list(np.asarray(rows.block(0, rows.n_rows)).T)
        return self._features(statistics, values, n_rows, n_threads, leaves)

    def coded(self, x: np.ndarray, leaves: bool) -> np.ndarray:
        """Exit leaves or margins of rows of features, labels as codes, in the columns' dtype."""
        if self.statistics is not None:
            return self._features(self.statistics, list(x.T), len(x), 1, leaves)
        out = self._empty(len(x), leaves)
        is_read = self.plan.array(x, out, leaves, 1)
        assert is_read, "the engine reads every contiguous array of floats"
        return out

    def _features(
        self,
        statistics: StatisticsReader,
        values: Sequence[np.ndarray | GivenColumn],
        n_rows: int,
        n_threads: int | None,
        leaves: bool,
    ) -> np.ndarray:
        out = self._empty(n_rows, leaves)
        for start in range(0, n_rows, ROWS_WITH_STATISTICS):
            stop = min(start + ROWS_WITH_STATISTICS, n_rows)
            threads = _threads(stop - start, n_threads)
            block = [
                column.part(start, stop) if isinstance(column, GivenColumn) else column[start:stop]
                for column in values
            ]
            block += list(statistics.read(block, stop - start, threads))
            is_read = self.plan.features(block, stop - start, out[start:stop], leaves, threads)
            assert is_read, "the engine reads every array of numbers"
        return out

    def _in_blocks(self, X: Any, n_threads: int | None, leaves: bool) -> np.ndarray:
        rows = read_features(X, self.columns)
        out = self._empty(rows.n_rows, leaves)
        for start in range(0, rows.n_rows, ROWS_AT_ONCE):
            stop = min(start + ROWS_AT_ONCE, rows.n_rows)
            block = np.ascontiguousarray(rows.block(start, stop), self.columns.dtype)
            threads = _threads(stop - start, n_threads)
            is_read = self.plan.array(block, out[start:stop], leaves, threads)
            assert is_read, "the engine reads every contiguous array of floats"
        return out

    def _empty(self, n_rows: int, leaves: bool) -> np.ndarray:
        width = self.n_trees if leaves else self.n_outputs
        return np.empty((n_rows, width), np.int32 if leaves else self.dtype)


def no_row(X: Any) -> None:
    """The margins of one row where no array can be handed to a plan as it is."""
    return None


def _threads(n_rows: int, n_threads: int | None) -> int:
    if n_threads is None:
        return 1 if n_rows < ROWS_FOR_THREADS else cpu_count()
    return int(n_threads)
