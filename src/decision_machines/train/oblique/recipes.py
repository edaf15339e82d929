"""The ways in which a soft oblique tree is trained; validation chooses among them for each task."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Recipe:
    """How steep tests become, and what keeps their weights small.

    Parameters
    ----------
    slopes
        β at the start and at the end.
    normalised
        Whether rows of W keep length 1; else their length is learned, and β multiplies it.
    """

    name: str
    slopes: tuple[float, float] = (1.0, 1.0)
    normalised: bool = False
    lr: float = 0.05
    decay: float = 0.0
    l1: float = 0.0


RECIPES = (
    Recipe("flat", slopes=(0.1, 3.0), normalised=True),
    Recipe("middling", slopes=(0.3, 10.0), normalised=True),
    Recipe("strong decay", decay=1.0),
    Recipe("light decay, growing", slopes=(1.0, 4.0), decay=0.1, lr=0.1),
    Recipe("light sparse, growing", slopes=(1.0, 4.0), l1=0.1),
    Recipe("sparse, growing", slopes=(1.0, 4.0), l1=0.3),
    Recipe("strong sparse", l1=1.0),
)
"""Measured one by one in docs/decisions/0008-oblique-trees.md: none is the best on every set."""

SLOW_RECIPES = (
    Recipe("slow decay, growing", slopes=(1.0, 4.0), decay=0.3, lr=0.02),
    Recipe("slow decay, growing little", slopes=(1.0, 2.0), decay=0.3, lr=0.02),
    Recipe("slower decay, growing", slopes=(1.0, 4.0), decay=0.3, lr=0.01),
)
"""Beside the others where rows are many: smaller steps, of which many rows allow enough."""
