"""A machine for rows whose labels have been looked up already."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .machine import DecisionMachine


def coded(machine: DecisionMachine) -> DecisionMachine:
    """The machine for rows in which labels are codes, as `machine.features` gives them.

    The machine itself, with all that it keeps, where it knows no labels.

    Examples
    --------
    >>> import decision_machines as dm
    >>> machine = dm.figure_one()
    >>> coded(machine) is machine
    True
    """
    columns = machine.columns.coded()
    return machine if columns is machine.columns else replace(machine, columns=columns)
