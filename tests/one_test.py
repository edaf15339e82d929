"""Machines of one test and two leaves, worth 1 on the left and 2 on the right."""

from __future__ import annotations

import numpy as np

import decision_machines as dm


def one_test(t, *, missing=1, rule=dm.Rule.VALUE, dtype=np.float64, name="d", **columns):
    """A test of one feature at t; NaN goes right."""
    return dm.DecisionMachine(
        dm.Columns(1, dtype, rule=np.array([rule]), names=(name,), **columns),
        np.array([0]),
        np.array([t]),
        np.array([missing]),
        np.array([[~0, ~1]]),
        np.array([[1.0], [2.0]]),
        dm.Trees(np.array([0, 1])),
        dm.Output(np.zeros(1)),
    )


def colour_test(**columns):
    """Red and blue go left; green, all else and NaN right."""
    sets = dm.CategorySets([0, 2], [0, 2], [-1, -1], [1])
    labels = {0: ("red", "green", "blue")}
    return one_test(
        0.5, rule=dm.Rule.MEMBER, name="colour", sets=sets, categories=labels, **columns
    )
