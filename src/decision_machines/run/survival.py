"""Risks, survival functions and cumulative hazards, computed as scikit-survival computes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .assemblies import Asked

RISK, HAZARD, SURVIVAL = range(3)
"""The members of a survival forest."""


def forest_risk(asked: Asked) -> np.ndarray:
    """The mean over trees of a leaf's hazards, added up over the times of events.

    NumPy adds the hazards of a single row in another order than those of several rows: leaves
    hold both sums.
    """
    margin = asked.margin(RISK)
    return margin[:, -1] if len(margin) == 1 else margin[:, 0]


def forest_hazard(asked: Asked) -> np.ndarray:
    return asked.margin(HAZARD)


def forest_survival(asked: Asked) -> np.ndarray:
    return asked.margin(SURVIVAL)


def proportional_risk(asked: Asked) -> np.ndarray:
    return asked.predict(0)


def proportional_hazard(asked: Asked) -> np.ndarray:
    """The hazard that all share, times the exponential of the risk."""
    factor = np.exp(asked.predict(0))
    found: np.ndarray = factor[:, None] * asked.numbers("hazard") + 0.0
    return found


def proportional_survival(asked: Asked) -> np.ndarray:
    """The survival that all share, to the power of the exponential of the risk."""
    factor, shared = np.exp(asked.predict(0)), asked.numbers("survival")
    found = np.empty((len(factor), len(shared)))
    for row, one in zip(found, factor, strict=True):
        # Row by row: a power of two arrays need not round as that of an array and a number does.
        row[:] = np.power(shared, one)
    return found
