"""Trees to start from: CART over features of unit scale, as they are or randomly turned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..machine import layout

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@dataclass(frozen=True)
class Start:
    """A tree over scaled features: tests W z ≤ t, and where they lead."""

    W: Float[np.ndarray, "J n"]
    t: Float[np.ndarray, "J"]
    children: Int[np.ndarray, "J 2"]


def cart_start(
    Z: Float[np.ndarray, "m n"],
    y: Any,
    *,
    n_classes: int | None,
    max_leaves: int,
    max_depth: int | None,
    sample_weight: Float[np.ndarray, "m"] | None,
    rng: np.random.Generator | None,
    seed: int,
) -> Start:
    """A CART tree over the features; with `rng`, over as many random directions among them."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    n = Z.shape[1]
    if n == 0 or max_leaves < 2 or max_depth == 0:
        return Start(np.zeros((0, n)), np.zeros(0), np.zeros((0, 2), np.int32))
    turn = np.eye(n) if rng is None else np.linalg.qr(rng.standard_normal((n, n)))[0]
    kind = DecisionTreeRegressor if n_classes is None else DecisionTreeClassifier
    tree = kind(max_leaf_nodes=max_leaves, max_depth=max_depth, random_state=seed)
    if n_classes is None:
        y = np.asarray(y, np.float64).reshape(len(y), -1)
        largest = np.abs(y).max(initial=0.0)
        y = y / largest if largest > 0 else y
    found = tree.fit(Z @ turn, y, sample_weight).tree_
    order = layout(found.children_left, found.children_right, np.array([0, found.node_count]))
    return Start(turn.T[found.feature[order.tests]], found.threshold[order.tests], order.children)


def without_empty_leaves(
    children: Int[np.ndarray, "J 2"], count: Int[np.ndarray, "L"]
) -> tuple[Int[np.ndarray, "j"], Int[np.ndarray, "j 2"], Int[np.ndarray, "L"]]:
    """The tree without the leaves that no row reaches, and without the tests that led there.

    Returns
    -------
    kept
        The tests that stay, parents first.
    children
        Of these.
    leaf
        The new number of each leaf; -1 for one that is gone.
    """
    is_full = np.asarray(count) > 0
    leaf = np.where(is_full, np.cumsum(is_full) - 1, -1)
    # A test's stand-in: itself, its one child that rows reach, or nothing. Children come later.
    n_tests = len(children)
    stand_in: list[int | None] = [None] * n_tests

    def after(node: int) -> int | None:
        if node < 0:
            return node if is_full[~node] else None
        return stand_in[node]

    for test in range(n_tests - 1, -1, -1):
        left, right = (after(int(node)) for node in children[test])
        stand_in[test] = (
            test if left is not None and right is not None else (right if left is None else left)
        )
    kept = np.array([test for test in range(n_tests) if stand_in[test] == test], np.int64)
    number = {test: i for i, test in enumerate(kept.tolist())}

    def int_after(node: int) -> int:
        found = after(node)
        assert found is not None
        return found

    new = [
        [number[node] if node >= 0 else ~int(leaf[~node]) for node in map(int_after, pair)]
        for pair in children[kept].tolist()
    ]
    return kept, np.array(new, np.int32).reshape(-1, 2), leaf
