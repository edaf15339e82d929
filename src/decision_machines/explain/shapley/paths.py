"""Shapley values by paths: a machine's trees prepared for the native kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _native
from ...run.engines.processor import target
from .shares import factor, shares, test_features
from .symmetric import Symmetric, symmetric_trees

if TYPE_CHECKING:
    from jaxtyping import Float, Num

    from ...machine import DecisionMachine


class ColumnsRead:
    """The columns that tests read, as the kernels compare them with thresholds in one dtype.

    In float32, columns of float64 become their ranks among the column's thresholds, which compare
    as the numbers themselves do.
    """

    def __init__(self, machine: DecisionMachine, dtype: Any) -> None:
        self.columns = machine.columns
        self.dtype = np.dtype(dtype)
        used, column = np.unique(machine.selection, return_inverse=True)
        self.used = used
        self.column = column.reshape(-1).astype(np.int32)
        self.bounds: list[np.ndarray] | None = None
        t = machine.t.astype(np.float64)
        if self.dtype == np.float32 and machine.columns.dtype == np.float64:
            self.bounds = []
            for c in range(len(used)):
                own = self.column == c
                bounds = np.unique(t[own])
                t[own] = np.searchsorted(bounds, t[own])
                self.bounds.append(bounds)
        self.t = t

    def read(self, x: Num[np.ndarray, "m n"]) -> Float[np.ndarray, "m c"]:
        """(m, used columns) in the kernels' dtype."""
        z = self.columns.read(x)[:, self.used]
        if self.bounds is not None:
            ranks = np.empty(z.shape, np.float32)
            for c, bounds in enumerate(self.bounds):
                ranks[:, c] = np.searchsorted(bounds, z[:, c])
                ranks[np.isnan(z[:, c]), c] = np.nan
            return ranks
        return np.ascontiguousarray(z, self.dtype)


class ForestRead:
    """A machine's trees as the native code takes them, and the features that they test."""

    def __init__(
        self, machine: DecisionMachine, dtype: Any, share: Float[np.ndarray, "J"] | None
    ) -> None:
        self.read = ColumnsRead(machine, dtype)
        features, slot = np.unique(test_features(machine), return_inverse=True)
        self.features = features.astype(np.int32)
        self.slot = slot.reshape(-1).astype(np.int32)
        self.forest = _native.ShapleyForest(
            children=machine.children,
            test_start=machine.trees.test_start,
            column=self.read.column,
            slot=self.slot,
            t=self.read.t,
            missing=machine.missing,
            share=np.zeros(machine.n_tests) if share is None else share,
            values=machine.V.astype(np.float64),
            feeds=machine.trees.feeds,
            n_columns=len(self.read.used),
            n_slots=len(features),
            n_outputs=machine.n_outputs,
        )


class PathValues:
    """Values of rows by paths; with `pairs`, interactions too.

    Symmetric trees are looked up in tables; all others go through the tree form. With `point`, the
    form is evaluated there instead of integrated: 1/2 gives Banzhaf values, 0 those of first order.
    """

    def __init__(
        self, machine: DecisionMachine, dtype: Any, pairs: bool, point: float | None = None
    ) -> None:
        self.dtype = np.dtype(dtype)
        self.shape = (machine.n_features, machine.n_outputs)
        self.factor = factor(machine)
        self.pairs = pairs
        share = shares(machine)
        looked_up = np.empty(0, np.int64) if pairs else symmetric_trees(machine)
        self.tables: Symmetric | None = None
        if len(looked_up):
            self.tables = Symmetric(machine, looked_up, share, self.dtype, point)
            kept = np.setdiff1d(np.arange(machine.n_trees), looked_up)
            whole = replace(machine, output=replace(machine.output, weights=None))
            share = share[np.isin(machine.trees.of_test, kept)]
            machine = whole.mask(looked_up)
        self.trees: ForestRead | None = None
        if machine.n_tests:
            self.trees = ForestRead(machine, self.dtype, share)
            kind = _native.ShapleyPlan32 if self.dtype == np.float32 else _native.ShapleyPlan64
            self.plan = kind(self.trees.forest, pairs, point)

    def values(
        self, x: Num[np.ndarray, "m n"], n_threads: int
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """(m, n, k) values and, if wanted, (m, n, n, k) interactions."""
        n, k = self.shape
        out = np.zeros((len(x), n, k), self.dtype)
        pairs = np.zeros((len(x), n, n, k), self.dtype) if self.pairs else None
        if self.tables is not None and len(x):
            self.tables.add(x, self.factor, n_threads, out)
        if self.trees is not None and len(x):
            z = self.trees.read.read(x)
            self.plan.values(target(), z, self.trees.features, self.factor, n_threads, out, pairs)
        return out, pairs
