"""Covers counted on rows of data, for a machine whose source stored none, or others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...machine.cover import Cover, cover_above

if TYPE_CHECKING:
    from ...machine import DecisionMachine

DOING = "counting covers"


def with_cover(
    machine: DecisionMachine, X: Any, sample_weight: Any = None, n_threads: int | None = None
) -> DecisionMachine:
    """See `DecisionMachine.with_cover`."""
    leaves = machine.apply(X, n_threads=n_threads)
    m = len(leaves)
    if not m:
        raise InputError(
            DOING, "no rows", "give the rows that the model was trained on, or like them"
        )
    if sample_weight is None:
        weight = np.ones(m)
    else:
        weight = np.asarray(sample_weight, np.float64)
        if weight.shape != (m,) or not np.all(np.isfinite(weight) & (weight >= 0)):
            raise InputError(
                DOING,
                f"sample_weight of shape {weight.shape} for {m} rows, or with a weight that is "
                "negative or not finite",
                "give one finite weight from 0 on for each row",
            )
        if not np.any(weight > 0):
            raise InputError(DOING, "weights that are all 0", "give some rows a weight above 0")
    found = np.zeros(machine.n_leaves)
    for tree in range(machine.n_trees):
        own = machine.trees.leaves(tree)
        found[own] = np.bincount(leaves[:, tree], weight, own.stop - own.start)
    return replace(machine, cover=Cover(*cover_above(found, machine.children, machine.trees)))
