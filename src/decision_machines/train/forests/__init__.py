"""Many trees: each learns what the others have left, or the same from other rows."""

from __future__ import annotations

from .bagged import average, bagged_trees
from .boosted import boosted_trees

__all__ = ["average", "bagged_trees", "boosted_trees"]
