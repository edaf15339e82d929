"""Hard trees whose tests weigh all features, for classes: descent, then node by node."""

from __future__ import annotations

from .tree import oblique_tree

__all__ = ["oblique_tree"]
