"""What a tree costs: the loss of its leaves, and their values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float, Int, Num

LOSSES = {"error": "error", "squared_error": "squared", "absolute_error": "absolute"}
"""Criterion → loss of the native search."""


def leaf_values(
    criterion: str,
    y: Num[np.ndarray, "m ..."],
    w: Float[np.ndarray, "m"],
    leaf: Int[np.ndarray, "m"],
    n_leaves: int,
    k: int,
) -> Float[np.ndarray, "L k"]:
    """Shares of the classes, means or medians of the rows of each leaf; all leaves have rows."""
    if criterion == "error":
        total = np.bincount(leaf * k + y, w, n_leaves * k).reshape(n_leaves, k)
        shares: np.ndarray = total / total.sum(axis=1, keepdims=True)
        return shares
    targets = y.reshape(len(y), -1)
    found = np.empty((n_leaves, k))
    for i in range(n_leaves):
        own = leaf == i
        if criterion == "squared_error":
            found[i] = np.average(targets[own], axis=0, weights=w[own])
        else:
            found[i] = [_median(column, w[own]) for column in targets[own].T]
    return found


def _median(y: Float[np.ndarray, "m"], w: Float[np.ndarray, "m"]) -> float:
    """The least number with at least half of the weight at or below it."""
    order = np.argsort(y, kind="stable")
    weight = np.cumsum(w[order])
    return float(y[order][np.searchsorted(weight, weight[-1] / 2)])


def mean_loss(
    criterion: str,
    y: Num[np.ndarray, "m ..."],
    w: Float[np.ndarray, "m"],
    said: Float[np.ndarray, "m k"],
) -> float:
    """Share of the weight that is misclassified, or mean squared or absolute error.

    Over several targets errors are added up.
    """
    return float(row_losses(criterion, y, said) @ w / w.sum())


def loss_of_leaves(
    criterion: str,
    y: Num[np.ndarray, "m ..."],
    w: Float[np.ndarray, "m"],
    values: Float[np.ndarray, "L k"],
    leaf: Int[np.ndarray, "m"],
) -> float:
    """`mean_loss` of rows whose leaves say `values`."""
    if criterion != "error":
        return mean_loss(criterion, y, w, values[leaf])
    return float((values.argmax(axis=1)[leaf] != y) @ w / w.sum())


def row_losses(
    criterion: str, y: Num[np.ndarray, "m ..."], said: Float[np.ndarray, "m k"]
) -> Float[np.ndarray, "m"]:
    """What each row loses: 1 if it is misclassified, or its squared or absolute error."""
    if criterion == "error":
        wrong: np.ndarray = (said.argmax(axis=1) != y).astype(np.float64)
        return wrong
    error = said - y.reshape(len(y), -1)
    lost: np.ndarray = (error**2 if criterion == "squared_error" else np.abs(error)).sum(axis=1)
    return lost
