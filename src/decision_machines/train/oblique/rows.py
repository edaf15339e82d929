"""Rows and class codes as a user passes them, checked; and rows held out of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InputError
from ..given import checked_weights, refuse_infinities

DOING = "training an oblique tree"
HELD_OUT = 0.25
"""Share of the rows that is held out to choose by, where no validation rows are given."""
LEAST_TO_HOLD_OUT = 20
"""Fewer rows choose by themselves."""

Given = tuple[np.ndarray, np.ndarray, np.ndarray]
"""X float64, y codes, weights."""


def class_rows(X: Any, y: Any, weight: Any, n_classes: int, name: str) -> Given:
    """Rows as float64, codes and weights, checked."""
    X = np.asarray(X, np.float64)
    y = np.asarray(y)
    if X.ndim != 2 or y.shape != (len(X),) or not len(X) or not X.shape[1]:
        raise InputError(
            DOING,
            f"{name} of shape {X.shape} with y of shape {y.shape}",
            "give X the shape (rows, features) and y a code for each row",
        )
    refuse_infinities(X, name, DOING)
    if not (np.issubdtype(y.dtype, np.integer) or np.all(np.mod(y.astype(float), 1) == 0)):
        raise InputError(
            DOING, f"classes of dtype {y.dtype}", "give codes 0 to n_classes - 1, np.unique's"
        )
    y = y.astype(np.int64)
    if y.min() < 0 or y.max() >= n_classes:
        raise InputError(
            DOING,
            f"codes from {y.min()} to {y.max()} for n_classes={n_classes}",
            "give codes 0 to n_classes - 1",
        )
    weight = None if weight is None else np.asarray(weight, np.float64)
    return X, y, checked_weights(weight, len(X), DOING)


def hold_out(given: Given, seed: int) -> tuple[Given, Given]:
    """Rows to train on and rows to choose by, each class divided alike."""
    X, y, weight = given
    rng = np.random.default_rng(seed)
    if len(X) < LEAST_TO_HOLD_OUT:
        return given, given
    # Shuffled within each class, then every fourth row of the classes one after the other.
    order = rng.permutation(len(X))
    order = order[np.argsort(y[order], kind="stable")]
    is_held = np.zeros(len(X), bool)
    is_held[order[int(0.5 / HELD_OUT) :: int(1 / HELD_OUT)]] = True
    return (X[~is_held], y[~is_held], weight[~is_held]), (X[is_held], y[is_held], weight[is_held])
