"""Hard oblique trees for numbers, with a linear function in every leaf."""

from __future__ import annotations

from .linear_leaves import linear_leaves_tree

__all__ = ["linear_leaves_tree"]
