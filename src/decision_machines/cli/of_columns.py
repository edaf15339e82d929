"""Options that say something of single columns: COLUMN=COST, and columns with a direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

DOING = "choosing how to train"


def costs_of(given: Sequence[str] | None, names: Sequence[str]) -> dict[str, float]:
    """Column → cost, from texts like "age=0.01".

    Examples
    --------
    >>> costs_of(["a=b=0.5"], ["a=b", "c"])
    {'a=b': 0.5}
    """
    found = {}
    for text in given or ():
        name, sign, number = text.rpartition("=")
        try:
            cost = float(number)
        except ValueError:
            cost = float("nan")
        if not sign or not 0 <= cost < float("inf"):
            raise InputError(DOING, f"--feature-cost {text}", "give COLUMN=COST, a cost from 0 up")
        _check(name, "--feature-cost", names)
        found[name] = cost
    return found


def directions_of(
    increasing: Sequence[str] | None, decreasing: Sequence[str] | None, names: Sequence[str]
) -> dict[str, int]:
    """Column → 1 or -1."""
    found: dict[str, int] = {}
    sides = (("--increasing", increasing, 1), ("--decreasing", decreasing, -1))
    for option, columns, sign in sides:
        for name in columns or ():
            _check(name, option, names)
            if found.get(name, sign) != sign:
                raise InputError(
                    DOING, f"{name} is both --increasing and --decreasing", "give one of them"
                )
            found[name] = sign
    return found


def _check(name: str, option: str, names: Sequence[str]) -> None:
    if name not in names:
        known = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
        raise InputError(DOING, f"{option}: there is no feature {name!r}", f"use one of {known}")
