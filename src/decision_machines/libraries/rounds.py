"""A machine's trees in rounds of boosting, one tree of one value for each output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..machine import DecisionMachine
    from .limits import Limits

Slot = tuple[int, int] | float
"""A tree and the column of V that its leaves answer with, or the value of a tree of one leaf."""


def rounds_of(machine: DecisionMachine, limits: Limits, *, base_is_tree: bool) -> list[list[Slot]]:
    """For each round and output what is added to the sum, which must be one of float64.

    The sums of the outputs know nothing of each other, so that each may have its own trees: an
    output with fewer than others has zeros added to it, which changes no sum.

    Parameters
    ----------
    base_is_tree
        Whether a base score that comes first is a tree, too; one that comes last is in any case.
    """
    output = machine.output
    if output.dtype != np.float64:
        limits.refuse(
            f"its trees are summed in {output.dtype}; {limits.target} adds in float64",
            "use to_xgboost or to_onnx; or, if other last digits will do, set output.dtype to "
            "float64 with dataclasses.replace",
        )
    if output.scale != 1:
        limits.refuse(
            f"output.scale is {output.scale:g}: {limits.target} does not multiply its sums",
            "fold it into V with dataclasses.replace, if other last digits will do",
        )
    if np.any(output.base) and output.divisor != 1:
        limits.refuse(
            f"output.divisor is {output.divisor:g} beside base scores",
            "use to_onnx, or keep the machine with machine.save",
        )
    queues: list[list[Slot]] = []
    for o, base in enumerate(output.base.tolist()):
        if machine.is_narrow:
            queue: list[Slot] = [(i, 0) for i in np.flatnonzero(machine.trees.feeds == o).tolist()]
        else:
            queue = [(i, o) for i in range(machine.n_trees)]
        if base and output.base_first and base_is_tree:
            queue.insert(0, base)
        if base and not output.base_first:
            queue.append(base)
        queues.append(queue)
    n = max(map(len, queues), default=0)
    return [[queue[i] if i < len(queue) else 0.0 for queue in queues] for i in range(n)]
