"""Which numbers the tests of a C model read: columns, some of them twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...machine import Rule

if TYPE_CHECKING:
    from jaxtyping import Int

    from ...machine import DecisionMachine


@dataclass(frozen=True)
class Slots:
    """The slots of a row, and the slot that each test (or each term of an oblique one) reads.

    A column has a slot where its NaN goes right, and another where it goes left. Oblique tests
    have a missing answer of their own and read every column as it is.
    """

    column: Int[np.ndarray, "s"]
    missing_left: Int[np.ndarray, "s"]
    of_test: Int[np.ndarray, "J"]


def slots_of(machine: DecisionMachine) -> Slots:
    """The slots that a machine's tests read, each once.

    Examples
    --------
    >>> import decision_machines as dm
    >>> slots_of(dm.figure_one()).column.tolist()
    [0, 1, 2, 3]
    """
    if machine.is_oblique:
        columns = np.arange(len(machine.columns))
        return Slots(columns, np.zeros_like(columns), np.asarray(machine.S.indices))
    is_left = (machine.missing < 0) & can_be_missing(machine)[machine.selection]
    keys, of_test = np.unique(2 * machine.selection.astype(np.int64) + is_left, return_inverse=True)
    return Slots(keys // 2, keys % 2, of_test)


def can_be_missing(machine: DecisionMachine) -> np.ndarray:
    """(n,) whether a column can be NaN: all but those that read NaN as 0."""
    found: np.ndarray = machine.columns.rule != Rule.NAN_AS_ZERO
    return found
