"""Shapley values by their definition, and by the template form: slow, obvious, the oracle.

`by_coalitions` adds over all coalitions of features; `by_templates` is the integral over templates
with plain Gauss-Legendre quadrature, leaf by leaf. Both take one row after the other, and a game:
what a coalition of known features is worth. By paths, a test on an unknown feature sends the row
to both sides by their shares of cover; against a background, unknown features are those of a
background row.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from ...machine.values import wide_values
from .shares import factor, shares, test_features

if TYPE_CHECKING:
    from jaxtyping import Float

    from ...machine import DecisionMachine

Game = Callable[[frozenset[int]], np.ndarray]
"""From the features that are known to the (k,) margins, scaled, without the base score."""


def goes_left(machine: DecisionMachine, x: Float[np.ndarray, "n"]) -> np.ndarray:
    """(J,) whether the row goes left at each test."""
    z = machine.columns.read(x[None])[0][machine.selection]
    return np.where(np.isnan(z), machine.missing < 0, z <= machine.t)


def path_game(machine: DecisionMachine, x: Float[np.ndarray, "n"]) -> Game:
    """Where a feature is unknown, both sides count by their shares of cover."""
    left, c, feature = goes_left(machine, x), shares(machine), test_features(machine)
    return _game(machine, lambda j, known: float(left[j]) if feature[j] in known else float(c[j]))


def background_game(
    machine: DecisionMachine, x: Float[np.ndarray, "n"], background: Float[np.ndarray, "r n"]
) -> Game:
    """Where a feature is unknown, it is that of a background row; the mean over these rows."""
    own, feature = goes_left(machine, x), test_features(machine)
    others = [goes_left(machine, row) for row in background]

    def worth(known: frozenset[int]) -> np.ndarray:
        total = np.zeros(machine.n_outputs)
        for other in others:

            def share(j: int, S: frozenset[int], other: np.ndarray = other) -> float:
                return float((own if feature[j] in S else other)[j])

            total += _game(machine, share)(known)
        return total / len(others)

    return worth


def _game(machine: DecisionMachine, share: Callable[[int, frozenset[int]], float]) -> Game:
    V = wide_values(machine, np.float64)

    def below(node: int, known: frozenset[int]) -> np.ndarray:
        if node < 0:
            return np.asarray(V[~node])
        part = share(node, known)
        low, high = machine.children[node].tolist()
        found = np.zeros(machine.n_outputs)
        if part > 0:
            found = found + part * below(low, known)
        if part < 1:
            found = found + (1 - part) * below(high, known)
        return found

    def worth(known: frozenset[int]) -> np.ndarray:
        total = np.zeros(machine.n_outputs)
        for tree in range(machine.n_trees):
            own = machine.trees.tests(tree)
            root = own.start if own.stop > own.start else ~machine.trees.leaves(tree).start
            total += below(root, known)
        return total * factor(machine)

    return worth


def by_coalitions(machine: DecisionMachine, game: Game) -> tuple[np.ndarray, np.ndarray]:
    """(n, k) values and (n, n, k) interactions over all coalitions of the features tested.

    The definition: phi_i is the mean, over sizes and then over coalitions S of that size without
    i, of v(S + i) - v(S). Interactions are Shapley's interaction index, half to each of a pair,
    the rest on the diagonal, as shap has them.
    """
    features = np.unique(test_features(machine)).tolist()
    n, k = machine.n_features, machine.n_outputs
    worth = {
        frozenset(S): game(frozenset(S))
        for size in range(len(features) + 1)
        for S in combinations(features, size)
    }
    phi, pairs = np.zeros((n, k)), np.zeros((n, n, k))
    d = len(features)
    for i in features:
        for S in worth:
            if i not in S:
                phi[i] += (worth[S | {i}] - worth[S]) / (d * comb(d - 1, len(S)))
    for i, j in combinations(features, 2):
        for S in worth:
            if i not in S and j not in S:
                change = worth[S | {i, j}] - worth[S | {i}] - worth[S | {j}] + worth[S]
                pairs[i, j] += change / ((d - 1) * comb(d - 2, len(S))) / 2
        pairs[j, i] = pairs[i, j]
    for i in range(n):
        pairs[i, i] = phi[i] - pairs[i].sum(axis=0)
    return phi, pairs


def by_templates(machine: DecisionMachine, x: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n k"]:
    """Values by paths, from templates alone.

    A leaf's template asks d features for answers. With o_i whether x gives all that are asked of
    feature i, and z_i the product of the shares of cover of that feature's tests on the path,
    phi_j = v (o_j - z_j) times the integral over y of the product of z_i (1 - y) + o_i y over all
    other features: a polynomial of degree d - 1, which ⌈d / 2⌉ Gauss-Legendre points integrate
    exactly.
    """
    left, c, feature = goes_left(machine, x), shares(machine), test_features(machine)
    V = wide_values(machine, np.float64)
    phi = np.zeros((machine.n_features, machine.n_outputs))
    B = machine.B
    for leaf in range(machine.n_leaves):
        at = slice(B.indptr[leaf], B.indptr[leaf + 1])
        tests, asked = B.indices[at], B.data[at] < 0
        share = np.where(asked, c[tests], 1 - c[tests])
        own = np.unique(feature[tests])
        z = np.array([np.prod(share[feature[tests] == f]) for f in own])
        o = np.array([np.all((left[tests] == asked)[feature[tests] == f]) for f in own], float)
        points, weights = np.polynomial.legendre.leggauss(max((len(own) + 1) // 2, 1))
        y, w = (points + 1) / 2, weights / 2
        g = z[:, None] * (1 - y) + o[:, None] * y
        for i, f in enumerate(own):
            integral = w @ np.prod(np.delete(g, i, axis=0), axis=0)
            phi[f] += V[leaf] * (o[i] - z[i]) * integral
    return phi * factor(machine)
