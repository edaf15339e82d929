"""Non-greedy training: never worse than its start on held-out rows, and better where it can be."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier

from decision_machines import NonGreedyTreeClassifier, NonGreedyTreeRegressor
from decision_machines.train.non_greedy import non_greedy_tree
from decision_machines.train.starts import without_empty_leaves


def slanted(m=400, seed=0):
    """Rows on the two sides of a slanted line: one oblique test, many axis-aligned ones."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 4))
    return X, (X @ [1.0, -2.0, 1.0, 0.5] > 0.2).astype(int)


def test_one_oblique_test_is_learned_from_a_greedy_start():
    X, y = slanted()
    X_new, y_new = slanted(seed=1)
    tree = NonGreedyTreeClassifier(max_leaves=2, n_epochs=15).fit(X, y)
    cart = DecisionTreeClassifier(max_leaf_nodes=2, random_state=0).fit(X, y)
    assert tree.machine_.n_leaves == 2
    assert tree.score(X_new, y_new) > cart.score(X_new, y_new) + 0.15


def test_the_bound_falls():
    X, y = slanted()
    curve = [
        row["bound"]
        for row in NonGreedyTreeClassifier(max_leaves=4, n_epochs=15).fit(X, y).history_
    ]
    assert curve[-1] < 0.9 * curve[0]


def test_digits_are_told_apart_better_than_by_cart():
    X, y = load_digits(return_X_y=True)
    new = np.arange(len(X)) % 4 == 0
    tree = NonGreedyTreeClassifier(max_leaves=16, n_epochs=8).fit(X[~new], y[~new])
    cart = DecisionTreeClassifier(max_leaf_nodes=16, random_state=0).fit(X[~new], y[~new])
    assert tree.score(X[new], y[new]) > cart.score(X[new], y[new]) + 0.03


@pytest.mark.parametrize("seed", range(3))
def test_never_worse_than_cart_on_validation(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(120, 3)), rng.integers(0, 3, 120)
    found = non_greedy_tree(
        X[:80], y[:80], n_classes=3, validation=(X[80:], y[80:]), max_leaves=6, n_epochs=5
    )
    assert found.report["validation loss"] <= found.report["validation loss of the CART start"]


def test_axis_aligned_tests_read_one_feature_each():
    X, y = slanted()
    tree = NonGreedyTreeClassifier(max_leaves=6, axis_aligned=True, n_epochs=5).fit(X, y)
    assert np.all(np.diff(tree.machine_.S.indptr) == 1)
    assert np.all(tree.machine_.S.data > 0)


def test_leaves_hold_the_means_of_their_rows():
    X, y = slanted()
    target = np.stack([y, X[:, 0]], axis=1)
    tree = NonGreedyTreeRegressor(max_leaves=5, n_epochs=3).fit(X, target)
    leaf = tree.apply(X)[:, 0]
    for i in range(tree.machine_.n_leaves):
        np.testing.assert_allclose(tree.machine_.V[i], target[leaf == i].mean(axis=0))


def test_features_and_targets_of_any_scale_give_the_same_tree():
    X, y = slanted(200)
    scale = np.array([1e-200, 1e200, 1.0, 1e-5])
    plain = non_greedy_tree(X, y * 1.0, max_leaves=4, n_epochs=3).machine
    scaled = non_greedy_tree(X * scale, y * 1e250, max_leaves=4, n_epochs=3).machine
    np.testing.assert_allclose(scaled.predict(X * scale) / 1e250, plain.predict(X), atol=0.05)


def test_empty_leaves_are_cut_off_with_their_tests():
    children = np.array([[1, 2], [~0, ~1], [~2, 3], [~3, ~4]])
    kept, new, leaf = without_empty_leaves(children, np.array([3, 0, 1, 0, 2]))
    assert kept.tolist() == [0, 2]
    assert new.tolist() == [[~0, 1], [~1, ~2]]
    assert leaf.tolist() == [0, -1, 1, -1, 2]


def test_a_seed_reproduces_and_rows_may_come_in_any_order():
    X, y = slanted(150)
    order = np.random.default_rng(3).permutation(150)
    one = NonGreedyTreeClassifier(n_epochs=3, random_state=7).fit(X, y).machine_
    two = NonGreedyTreeClassifier(n_epochs=3, random_state=7).fit(X[order], y[order]).machine_
    assert one.equals(two)
