"""A machine compiled for the native engine: data is handed to its plan where it lies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..inputs.accepted import is_guarded
from ..inputs.features import is_table, read_features
from ..inputs.sparse_matrices import sparse_rows
from ..inputs.tables import table_columns
from .native import compile_plan
from .processor import cpu_count, target

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...machine import DecisionMachine

ROWS_FOR_THREADS = 2048
"""Fewer rows than this are done before a second thread has started."""
ROWS_AT_ONCE = 65536


class Compiled:
    """A machine's plan, and what a call needs to know of the machine, looked up once.

    It holds parts of the machine and not the machine itself, which keeps it: both go together,
    as soon as nothing else holds the machine.
    """

    __slots__ = ("columns", "dtype", "is_plain", "n_outputs", "n_trees", "plan", "width")

    def __init__(self, machine: DecisionMachine) -> None:
        columns = machine.columns
        self.plan = compile_plan(machine, target=target())
        self.columns = columns
        self.is_plain = not (columns.encodes_arrays or is_guarded(columns))
        """Whether numbers can be handed over as they are given."""
        self.width = columns.n_features if self.is_plain else -1
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
        if sp.issparse(X) and self.is_plain:
            rows = sparse_rows(X, columns)
            out = self._empty(rows.shape[0], leaves)
            threads = _threads(len(out), n_threads)
            if plan.sparse(rows.data, rows.indices, rows.indptr, out, leaves, threads):
                return out
        elif is_table(X):
            table = table_columns(X, columns)
            out = self._empty(table.n_rows, leaves)
            threads = _threads(len(out), n_threads)
            if plan.features(table.values, table.n_rows, out, leaves, threads):
                return out
        elif type(X) is np.ndarray and X.ndim == 2 and X.shape[1] == self.width:
            out = self._empty(len(X), leaves)
            threads = _threads(len(out), n_threads)
            if plan.array(X, out, leaves, threads):
                return out
        return self._in_blocks(X, n_threads, leaves)

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
