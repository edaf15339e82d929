"""Small trees that are proven to be the best: branch and bound over exact cuts."""

from __future__ import annotations

from .tree import optimal_tree

__all__ = ["optimal_tree"]
