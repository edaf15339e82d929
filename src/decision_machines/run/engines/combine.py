"""From the trees' values to margins: the sum in the source's own order, and what follows it."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine import ALL_OUTPUTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jaxtyping import Float

    from ...machine import DecisionMachine, Output


def combine(
    machine: DecisionMachine,
    values: Iterable[Float[Any, "m k"]],
    n_rows: int,
    xp: Any,
    device: Any = None,
) -> Float[Any, "m k"]:
    """The margins of rows whose exit leaves hold `values`, tree after tree.

    Paper: Eq. `forest` and the additive trees before it.
    """
    output = machine.output
    dtype = getattr(xp, output.dtype.name)
    base = xp.asarray(output.base.copy(), device=device)
    zero = xp.zeros((n_rows, len(output)), dtype=dtype, device=device)
    if output.aggregate == "median":
        return _median(output, list(values), zero, xp)
    is_sum = output.aggregate == "sum"
    total = zero + base if is_sum and output.base_first else zero
    if not is_sum and machine.n_trees:
        total = zero + (float("inf") if output.aggregate == "min" else -float("inf"))
    add = {"sum": operator.add, "min": xp.minimum, "max": xp.maximum}[output.aggregate]
    for feed, value in zip(machine.trees.feeds, values, strict=True):
        value = xp.astype(value, dtype)
        at = slice(None) if feed == ALL_OUTPUTS else slice(int(feed), int(feed) + 1)
        total[:, at] = add(total[:, at], value)
    if output.divisor != 1.0:
        total = total / output.dtype.type(output.divisor)
    if output.scale != 1.0:
        total = total * output.dtype.type(output.scale)
    return total if is_sum and output.base_first else total + base


def _median(
    output: Output, values: list[Float[Any, "m k"]], zero: Float[Any, "m k"], xp: Any
) -> Float[Any, "m k"]:
    """The weighted median over trees, the lowest value that half of the weight does not exceed."""
    if not values:
        return zero
    stacked = xp.stack([v[:, 0] for v in values], axis=1)
    weights = xp.asarray(np.ones(len(values)) if output.weights is None else output.weights.copy())
    order = xp.argsort(stacked, axis=1)
    share = xp.cumulative_sum(xp.take(weights, order), axis=1)
    above = share >= 0.5 * share[:, -1:]
    first = xp.argmax(xp.astype(above, xp.int8), axis=1)
    at = xp.take_along_axis(order, first[:, None], axis=1)
    return xp.astype(xp.take_along_axis(stacked, at, axis=1), zero.dtype)
