"""How well a machine does, in the measure of a criterion: a number for each row, more is better.

The mean over rows, by weight, is what people know: accuracy, AUC, macro F1, R² or D² (the part of
the loss of a constant that is explained). A number for each row gives the mean a standard error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..train.optimal.losses import leaf_values, mean_loss, row_losses

if TYPE_CHECKING:
    from jaxtyping import Float

    from ..machine import DecisionMachine
    from ..train.rows import Rows
    from ..train.sizes import Scores

NAMES = {
    "accuracy": "accuracy",
    "log_loss": "D²",
    "auc": "AUC",
    "balanced": "balanced accuracy",
    "f1": "macro F1",
    "squared_error": "R²",
}
"""Of the mean; others are "D²"."""
LEAST_SHARE = 1e-6


def row_scores(criterion: str, rows: Rows, quantile: float = 0.5) -> tuple[str, Scores]:
    """The name of the mean score and the function that scores rows held out.

    Parameters
    ----------
    criterion
        A name that `axis_tree` or the optimal trees take.
    rows
        Those whose best constant is compared with.

    Examples
    --------
    >>> from decision_machines.train.rows import Rows
    >>> row_scores("auc", Rows(np.zeros((2, 1)), np.array([0, 1]), np.ones(2)))[0]
    'AUC'
    """
    name = NAMES.get(criterion, "D²")
    of_classes = {"accuracy": _right, "error": _right, "auc": _placed, "balanced": _evenly_right}
    if criterion in of_classes or criterion == "f1":
        measure = of_classes.get(criterion, _credits)
        if criterion == "error":
            name = "accuracy"
        return name, lambda machine, held: measure(_said(machine, held), held)
    share = rows.w / rows.w.sum()
    if criterion == "log_loss":
        prior = np.bincount(rows.y, rows.w) / rows.w.sum()
        entropy = float(-np.log(np.maximum(prior, LEAST_SHARE))[rows.y] @ share) or 1.0
        return name, lambda machine, held: 1 - _surprise(_said(machine, held), held) / entropy
    one = np.zeros(len(rows), np.int64)
    targets = rows.y.reshape(len(rows), -1)
    if criterion in ("quantile", "poisson"):
        if criterion == "quantile":
            constant = np.array([_quantile(y, rows.w, quantile) for y in targets.T])
        else:
            constant = share @ targets
        whole = float(_number_losses(criterion, targets, constant, quantile) @ share) or 1.0

        def of_numbers(machine: DecisionMachine, held: Rows) -> Float[np.ndarray, "m"]:
            y = held.y.reshape(len(held), -1)
            return 1 - _number_losses(criterion, y, _said(machine, held), quantile) / whole

        return name, of_numbers
    values = leaf_values(criterion, rows.y, rows.w, one, 1, targets.shape[1])
    whole = mean_loss(criterion, rows.y, rows.w, values[one]) or 1.0
    return (
        name,
        lambda machine, held: 1 - row_losses(criterion, held.y, _said(machine, held)) / whole,
    )


def _said(machine: DecisionMachine, rows: Rows) -> Float[np.ndarray, "m k"]:
    return machine.margin(rows.X).reshape(len(rows), -1)


def _right(said: np.ndarray, rows: Rows) -> np.ndarray:
    """1 for each row whose class is found."""
    found: np.ndarray = said.argmax(axis=1) == rows.y
    return found.astype(np.float64)


def _evenly_right(said: np.ndarray, rows: Rows) -> np.ndarray:
    """The same, so weighed that all classes of these rows count alike."""
    weight = np.bincount(rows.y, rows.w)
    factor = rows.w.sum() / (np.maximum(weight, 1e-300) * np.count_nonzero(weight))
    found: np.ndarray = _right(said, rows) * factor[rows.y]
    return found


def _credits(said: np.ndarray, rows: Rows) -> np.ndarray:
    """What each row that is right adds to the mean of the classes' F1."""
    k = said.shape[1]
    chosen = said.argmax(axis=1)
    both = np.bincount(chosen, rows.w, k) + np.bincount(rows.y, rows.w, k)
    n = np.count_nonzero(both)
    found: np.ndarray = (chosen == rows.y) * 2 * rows.w.sum() / (n * both[rows.y])
    return found


def _placed(said: np.ndarray, rows: Rows) -> np.ndarray:
    """For each row, how often it stands on the right side of a row of another class."""
    k = said.shape[1]
    total = np.zeros(len(rows))
    weight = np.bincount(rows.y, rows.w, k)
    present = [c for c in range(k) if 0 < weight[c] < rows.w.sum()]
    present = [1] if k == 2 and present else present
    for c in present:
        _, group = np.unique(said[:, c], return_inverse=True)
        is_own = rows.y == c
        own, other = (np.bincount(group, rows.w * side) for side in (is_own, ~is_own))
        below = (np.cumsum(other) - other / 2) / other.sum()
        above = 1 - (np.cumsum(own) - own / 2) / own.sum()
        share = np.where(is_own, weight[c], rows.w.sum() - weight[c]) / rows.w.sum()
        total += np.where(is_own, below[group], above[group]) / (2 * share * len(present))
    return total if present else np.full(len(rows), 0.5)


def _surprise(said: np.ndarray, rows: Rows) -> np.ndarray:
    shares = np.maximum(said, LEAST_SHARE)
    found: np.ndarray = -np.log(shares[np.arange(len(rows)), rows.y] / shares.sum(axis=1))
    return found


def _number_losses(criterion: str, y: np.ndarray, said: np.ndarray, quantile: float) -> np.ndarray:
    if criterion == "quantile":
        above = y - said
        pinball: np.ndarray = np.maximum(quantile * above, (quantile - 1) * above).sum(axis=1)
        return pinball
    mean = np.maximum(said, 1e-12)
    logs = np.log(np.where(y > 0, y, 1.0) / np.where(y > 0, mean, 1.0))
    deviance: np.ndarray = (y * logs - y + mean).sum(axis=1)
    return deviance


def _quantile(y: np.ndarray, w: np.ndarray, quantile: float) -> float:
    order = np.argsort(y, kind="stable")
    weight = np.cumsum(w[order])
    return float(y[order][np.searchsorted(weight, quantile * weight[-1] * (1 - 1e-12))])
