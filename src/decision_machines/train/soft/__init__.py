"""Soft oblique trees, trained for their soft answer."""

from __future__ import annotations

from .tree import soft_tree

__all__ = ["soft_tree"]
