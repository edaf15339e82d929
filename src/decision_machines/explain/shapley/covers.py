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
        is_weight = np.isfinite(weight) & (weight >= 0)
        if weight.shape != (m,) or not np.all(is_weight):
            raise InputError(
                DOING,
                f"sample_weight of shape {weight.shape} for {m} rows"
                if weight.shape != (m,)
                else f"sample_weight[{np.argmin(is_weight)}] = {weight[np.argmin(is_weight)]}",
                "give one finite weight of at least 0 for each row",
            )
        if not np.any(weight > 0):
            raise InputError(
                DOING,
                f"all {m} rows have weight 0",
                "give at least one row a weight above 0",
            )
    found = np.zeros(machine.n_leaves)
    for tree in range(machine.n_trees):
        own = machine.trees.leaves(tree)
        found[own] = np.bincount(leaves[:, tree], weight, own.stop - own.start)
    return replace(machine, cover=Cover(*cover_above(found, machine.children, machine.trees)))
