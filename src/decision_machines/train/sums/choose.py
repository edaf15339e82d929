"""How much of each machine a sum takes: greedily, with replacement, on rows that none has seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..hold_out import folds

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float, Int

MOST_STEPS = 40
"""Machines taken, those taken twice counted twice: weights are multiples of about a fortieth."""
LEAST_GAIN = 1e-5
"""A step that lowers the loss by less, relative to the sum before it, is the last."""
PARTS = 5


def greedy_weights(
    margins: Float[np.ndarray, "c m k"],
    loss: Callable[[Float[np.ndarray, "m k"]], float],
) -> Float[np.ndarray, "c"]:
    """Weights that sum to 1: each step takes the machine that makes the mean of those taken best.

    Examples
    --------
    >>> y = np.array([[0.0], [1.0]])
    >>> margins = np.stack([y + 1, y - 1, y + 5])
    >>> greedy_weights(margins, lambda margin: float(((margin - y) ** 2).mean()))
    array([0.5, 0.5, 0. ])
    """
    n = len(margins)
    counts, total = np.zeros(n), np.zeros(margins.shape[1:])
    best, least = counts, np.inf
    for step in range(1, MOST_STEPS + 1):
        tried = [loss((total + margin) / step) for margin in margins]
        chosen = int(np.argmin(tried))
        counts = counts.copy()
        counts[chosen] += 1
        total = total + margins[chosen]
        if tried[chosen] < least:
            # A small gain is not worth a larger sum, but may lead to a greater one.
            is_first, gain = not np.isfinite(least), least - tried[chosen]
            if is_first or gain > LEAST_GAIN * abs(least):
                best, least = counts, tried[chosen]
        elif step > 2 * best.sum() + 4:
            break
    if not best.any():
        best = np.eye(n)[0]
    found: np.ndarray = best / best.sum()
    return found


def unseen_margins(
    margins: Float[np.ndarray, "c m k"],
    losses: Callable[[Float[np.ndarray, "m k"], Int[np.ndarray, "r"]], Float[np.ndarray, "r"]],
    w: Float[np.ndarray, "m"],
    seed: int,
    classes: Int[np.ndarray, "m"] | None,
) -> Float[np.ndarray, "m k"]:
    """What sums answer for rows that their weights were not chosen by.

    The rows are cut into parts; each part is answered with weights chosen on the others.
    """
    m = margins.shape[1]
    part = folds(m, min(PARTS, m), seed, classes)
    found = np.empty(margins.shape[1:])
    for p in range(int(part.max()) + 1):
        others, own = np.flatnonzero(part != p), part == p
        weights = greedy_weights(margins[:, others], mean_loss(losses, w, others))
        found[own] = np.tensordot(weights, margins[:, own], 1)
    return found


def mean_loss(
    losses: Callable[[Float[np.ndarray, "m k"], Int[np.ndarray, "r"]], Float[np.ndarray, "r"]],
    w: Float[np.ndarray, "m"],
    which: Int[np.ndarray, "r"],
) -> Callable[[Float[np.ndarray, "r k"]], float]:
    """The weighted mean loss of margins of these rows."""
    share = w[which] / w[which].sum()

    def mean(margin: Float[np.ndarray, "r k"]) -> float:
        found = float(losses(margin, which) @ share)
        return found if np.isfinite(found) else np.inf

    return mean
