"""How much each feature does for a machine's answers on the rows it was learned from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from ..machine import DecisionMachine


def feature_importances(
    machine: DecisionMachine,
    X: Float[np.ndarray, "m n"],
    w: Float[np.ndarray, "m"],
    leaf: Int[np.ndarray, "m T"] | None = None,
) -> Float[np.ndarray, "n"]:
    """Shares, adding up to 1, of what the tests add to the variance of the trees' answers.

    A test between rows of weights a and b, whose mean values below it are u and v, adds
    a b / (a + b) · |u - v|². Where leaves hold the means of their rows this is the impurity
    decrease of CART (squared error, or Gini). An oblique test shares it out by weight times
    deviation of each feature. Linear leaves count by their mean answers. `leaf` is what
    `machine.apply` gives, where it is known.
    """
    gain = _gains(machine, X, w, machine.apply(X) if leaf is None else leaf)
    if machine.is_oblique:
        shares = abs(machine.S)
        z = machine.columns.read(X)
        z = np.where(np.isnan(z).all(axis=0), 0.0, z)  # columns of nothing deviate by nothing
        scale = np.nanmax(np.abs(z), axis=0)
        deviation = np.nanstd(z / np.where(scale > 0, scale, 1.0), axis=0) * scale
        shares = shares * deviation[None]
        total = np.asarray(shares.sum(axis=1)).ravel()
        shares = shares / np.where(total > 0, total, 1.0)[:, None]
        by_column = np.asarray(shares.T @ gain).ravel()
    else:
        by_column = np.bincount(machine.selection, gain, len(machine.columns))
    found = np.bincount(machine.columns.feature, by_column, machine.n_features)
    total = found.sum()
    return found / total if total > 0 else found


def _gains(
    machine: DecisionMachine,
    X: Float[np.ndarray, "m n"],
    w: Float[np.ndarray, "m"],
    leaf: Int[np.ndarray, "m T"],
) -> Float[np.ndarray, "J"]:
    """What each test adds to the variance of its tree's values over the rows."""
    leaf = leaf + machine.trees.leaf_start[:-1]
    weight = np.bincount(leaf.ravel(), np.repeat(w, machine.n_trees), machine.n_leaves)
    V = machine.V
    if machine.linear is not None:
        V = _mean_answers(machine, X, leaf[:, 0], w)
    largest = float(np.abs(V).max(initial=0.0)) or 1.0
    total = weight[:, None] * (V / largest)
    # Leaves below a test are a run: sums over runs are differences of one cumulated sum, but those
    # of small runs would drown in rounding; leaves to parents does not.
    node_weight = np.zeros(machine.n_tests)
    node_total = np.zeros((machine.n_tests, V.shape[1]))
    gain = np.zeros(machine.n_tests)
    for test in range(machine.n_tests - 1, -1, -1):
        (a, u), (b, v) = (
            (node_weight[node], node_total[node]) if node >= 0 else (weight[~node], total[~node])
            for node in machine.children[test]
        )
        node_weight[test], node_total[test] = a + b, u + v
        if a > 0 and b > 0:
            gain[test] = a * b / (a + b) * np.sum((u / a - v / b) ** 2)
    return gain


def _mean_answers(
    machine: DecisionMachine,
    X: Float[np.ndarray, "m n"],
    leaf: Int[np.ndarray, "m"],
    w: Float[np.ndarray, "m"],
) -> Float[np.ndarray, "L k"]:
    """The mean of a single tree's answers in each of its leaves."""
    margin = machine.margin(X) - machine.output.base
    total = np.zeros((machine.n_leaves, margin.shape[1]))
    np.add.at(total, leaf, margin * w[:, None])
    return total / np.maximum(np.bincount(leaf, w, machine.n_leaves), 1e-300)[:, None]
