"""Shapley values against a background: unknown features are those of rows that people choose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _native
from ...run.engines.processor import target
from .paths import ForestRead
from .shares import factor

if TYPE_CHECKING:
    from jaxtyping import Float, Num

    from ...machine import DecisionMachine


class BackgroundValues:
    """Values of rows against background rows, whose patterns are counted once.

    The kernels work in float64, whatever dtype is asked for.
    """

    def __init__(
        self, machine: DecisionMachine, rows: Num[np.ndarray, "r n"], dtype: Any, pairs: bool
    ) -> None:
        self.dtype = np.dtype(dtype)
        self.shape = (machine.n_features, machine.n_outputs)
        self.factor = factor(machine)
        self.pairs = pairs
        self.trees = ForestRead(machine, np.float64, None)
        self.plan = _native.ShapleyBackground(self.trees.forest, self.trees.read.read(rows))

    def values(
        self, x: Num[np.ndarray, "m n"], n_threads: int
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """(m, n, k) values and, if wanted, (m, n, n, k) interactions."""
        n, k = self.shape
        out = np.zeros((len(x), n, k))
        pairs = np.zeros((len(x), n, n, k)) if self.pairs else None
        if len(x):
            z = self.trees.read.read(x)
            self.plan.values(target(), z, self.trees.features, self.factor, n_threads, out, pairs)
        if pairs is not None:
            own = np.arange(n)
            pairs[:, own, own] = out - pairs.sum(axis=2)
            pairs = pairs.astype(self.dtype, copy=False)
        return out.astype(self.dtype, copy=False), pairs


def mean_margin(machine: DecisionMachine, rows: Num[np.ndarray, "r n"]) -> Float[np.ndarray, "k"]:
    """The mean margin of the background rows, in float64 throughout."""
    from ...machine.coded import coded
    from .shares import over_outputs

    exits = coded(machine).apply(rows) + machine.trees.leaf_start[:-1]
    V = machine.V.astype(np.float64)
    return over_outputs(machine, V[exits].mean(axis=0) if len(exits) else V[:0])
