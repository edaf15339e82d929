"""The values of the leaves for every output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

    from .machine import DecisionMachine


def wide_values(machine: DecisionMachine, dtype: Any = None) -> Float[np.ndarray, "L k"]:
    """V for all outputs, 0 for those that a leaf's tree does not feed; in V's dtype by default.

    Examples
    --------
    >>> import decision_machines as dm
    >>> wide_values(dm.figure_one()).shape
    (6, 1)
    """
    V = machine.V if dtype is None else machine.V.astype(dtype, copy=False)
    if not machine.is_narrow:
        return V
    wide = np.zeros((machine.n_leaves, machine.n_outputs), V.dtype)
    wide[np.arange(machine.n_leaves), machine.trees.feeds[machine.trees.of_leaf]] = V[:, 0]
    return wide
