"""Trees whose tests read one feature: local search over exact splits."""

from __future__ import annotations

from .tree import axis_tree

__all__ = ["axis_tree"]
