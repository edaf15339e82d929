"""What is asked of rows, weights and depths before a tree is trained."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError


def refuse_infinities(X: np.ndarray, name: str, doing: str) -> None:
    """Name the first infinite entry; NaN is missing and stays."""
    if np.isinf(X).any():
        row, column = np.argwhere(np.isinf(X))[0]
        raise InputError(
            doing,
            f"{name}[{row}, {column}] is {X[row, column]}",
            "replace infinities by large numbers, or by NaN where the value is missing",
        )


def checked_weights(weight: np.ndarray | None, n_rows: int, doing: str) -> np.ndarray:
    """A finite weight from 0 for each row; 1 where none are given."""
    weight = np.ones(n_rows) if weight is None else weight
    if weight.shape != (n_rows,) or not np.isfinite(weight).all() or weight.min() < 0:
        raise InputError(
            doing,
            f"weights of shape {weight.shape} for {n_rows} rows, or a weight that is negative "
            "or not finite",
            "give each row a weight of 0 or more",
        )
    return weight


def check_depth(depth: Any, least: int, most: int, doing: str) -> None:
    """Refuse what is no whole number of levels."""
    is_whole = isinstance(depth, (int, np.integer)) and not isinstance(depth, bool)
    if not is_whole or not least <= depth <= most:
        raise InputError(doing, f"depth={depth!r}", f"use a whole number from {least} to {most}")
