"""Weighted sums of machines: several learners, each tuned, and how much of each to take."""

from __future__ import annotations

from .fit import sum_of_machines
from .goal import SumGoal

__all__ = ["SumGoal", "sum_of_machines"]
