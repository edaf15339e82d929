"""Defaults that training has wherever it is called from: functions, estimators, the command."""

from __future__ import annotations

MAX_LEAVES = 32
"""Leaves of a tree whose tests read one feature, and of each boosted tree."""
