"""Alternating optimisation of a regression tree: node by node, then leaf by leaf.

At a node the rest of the tree is held fixed. Each row that reaches it has a loss on its left and on
its right; the row's wish is the smaller one, and as strong as they differ. A logistic regression
weighted by that strength gives a direction, and the exact best cut along it, or along the direction
there was, is taken where it makes the loss fall. Then the leaves' functions are fitted again, drawn
to where they came from. Squared error plus that pull, the `objective`, never rises.
(After Carreira-Perpiñán and Tavallali, "Alternating optimization of decision trees", 2018.)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..logistic import best_cuts, ridge_logistic
from .leaf_ridge import LeafSums, ridge_towards

if TYPE_CHECKING:
    from jaxtyping import Float

    from .scaled_rows import ScaledRows
    from .tree import RegressionTree

LEAST_FALL = 1e-9
"""Of the loss, relative: what falls by less is rounding."""


def alternate_regression(
    tree: RegressionTree,
    rows: ScaledRows,
    prior: Float[np.ndarray, "L p q"],
    *,
    ridge: float,
    logistic_ridge: float = 1.0,
    n_sweeps: int = 3,
) -> RegressionTree:
    """The tree after sweeps over nodes and leaves, until neither changes it.

    Parameters
    ----------
    prior, ridge
        Leaves' functions are drawn to `prior`, which is worth `ridge` rows.
    logistic_ridge
        Of the regressions at the nodes.
    """
    for _ in range(n_sweeps):
        before = objective(tree, rows, prior, ridge)
        tree = sweep_nodes(tree, rows, logistic_ridge)
        sums = LeafSums.of(
            rows.U[rows.is_whole],
            rows.y[rows.is_whole],
            rows.weight[rows.is_whole],
            tree.exit_leaves(rows.Z)[rows.is_whole],
            len(tree.V),
        )
        tree = replace(tree, A=ridge_towards(sums, prior, ridge))
        if objective(tree, rows, prior, ridge) > before * (1 - 1e-4):
            break
    return tree


def objective(
    tree: RegressionTree, rows: ScaledRows, prior: Float[np.ndarray, "L p q"], ridge: float
) -> float:
    """Σ weight (y - answer)² + ridge Σ |A - prior|²."""
    error = ((tree.predict(rows) - rows.y) ** 2).sum(1)
    return float((error * rows.weight).sum() + ridge * ((tree.A - prior) ** 2).sum())


def sweep_nodes(
    tree: RegressionTree, rows: ScaledRows, logistic_ridge: float = 1.0
) -> RegressionTree:
    """The tree after one sweep over its tests from the bottom up; its leaves stay."""
    W, t, slope = tree.W.copy(), tree.t.copy(), tree.slope.copy()
    is_right = tree.answers(rows.Z)
    n_levels, each = tree.n_levels, np.arange(len(rows))
    reached = [np.zeros(len(rows), np.int64)]
    for level in range(n_levels):
        reached.append(2 * reached[-1] + is_right[2**level - 1 + reached[-1], each])
    cost = leaf_costs(tree, rows)
    for level in reversed(range(n_levels)):
        first, at = 2**level - 1, reached[level]
        left, right = cost[0::2], cost[1::2]
        gain = left[at, each] - right[at, each]
        for place in np.unique(at):
            j, own = first + int(place), at == place
            wish, goes = gain[own], is_right[j, own]
            found = _better_test(rows.Z[own], wish, goes, W[j], logistic_ridge)
            if found is None:
                continue
            length = np.linalg.norm(W[j])
            W[j], t[j] = found
            now = np.linalg.norm(W[j])
            slope[j] *= length / now if length > 0 else 1.0
            is_right[j] = rows.Z @ W[j] > t[j]
        tests = slice(first, 2 * first + 1)
        cost = np.where(is_right[tests], right, left)
    return replace(tree, W=W, t=t, slope=slope).settled(rows)


def leaf_costs(tree: RegressionTree, rows: ScaledRows) -> Float[np.ndarray, "L m"]:
    """The weighted squared error of every row in every leaf."""
    cost = np.empty((len(tree.V), len(rows)))
    for leaf in range(len(tree.V)):
        answer = tree.answers_of(np.full(len(rows), leaf), rows)
        cost[leaf] = rows.weight * ((answer - rows.y) ** 2).sum(1)
    return cost


def _better_test(
    Z: np.ndarray, wish: np.ndarray, goes: np.ndarray, w: np.ndarray, logistic_ridge: float
) -> tuple[np.ndarray, float] | None:
    """A direction and a cut that lose less than the test does now; None where none is found."""
    strength, want = np.abs(wish), wish > 0
    lost = float(strength[want != goes].sum())
    total = float(strength.sum())
    if lost <= LEAST_FALL * total or total <= 0 or not np.isfinite(total):
        return None
    weight = strength / (total / len(strength))
    found = ridge_logistic(Z[None], want[None], weight[None], logistic_ridge)[0]
    best: tuple[np.ndarray, float] | None = None
    for direction, near in ((found[:-1], -found[-1]), (w, 0.0)):
        length = float(np.linalg.norm(direction))
        if not 1e-9 < length < np.inf:
            continue
        unit = direction / length
        cut, wrong = best_cuts(
            (Z @ unit)[None], want[None], weight[None], np.array([near / length])
        )
        wrong_now = float(wrong[0]) * total / len(strength)
        if wrong_now < lost - LEAST_FALL * total:
            best, lost = (unit, float(cut[0])), wrong_now
    return best
