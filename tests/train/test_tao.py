"""Alternating optimisation: its regressions, its cuts, and errors that never rise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from decision_machines.train.fold import class_output, machine_of
from decision_machines.train.logistic import best_cuts, ridge_logistic
from decision_machines.train.oblique.tao import HardTrees, alternate, errors
from decision_machines.train.scaling import Scaling


def random_trees(rng, n_trees, depth, n_features, n_classes):
    n_tests = 2**depth - 1
    return HardTrees(
        rng.normal(size=(n_trees, n_tests, n_features)),
        rng.normal(size=(n_trees, n_tests)),
        rng.integers(n_classes, size=(n_trees, n_tests + 1)),
        rng.random((n_trees, n_tests)) < 0.5,
        np.ones((n_trees, n_tests)),
    )


def random_rows(rng, m, n, n_classes, missing=0.0):
    X = rng.normal(size=(m, n))
    X[rng.random((m, n)) < missing] = np.nan
    return X, rng.integers(n_classes, size=m), rng.exponential(size=m) * (rng.random(m) < 0.9)


# ---------------------------------------------------------------------- the cut along a direction

WEIGHTS = st.sampled_from([0.0, 0.5, 1.0, 2.0])


@given(st.data())
def test_cut_has_the_least_weight_on_the_wrong_side_of_all_cuts(data):
    c = data.draw(st.integers(1, 12))
    q = data.draw(hnp.arrays(float, (2, c), elements=st.integers(-4, 4).map(lambda k: k / 3)))
    is_right = data.draw(hnp.arrays(bool, (2, c)))
    weight = data.draw(hnp.arrays(float, (2, c), elements=WEIGHTS))
    t, wrong = best_cuts(q, is_right, weight, near=np.zeros(2))
    for b in range(2):
        cuts = [-np.inf, *q[b]]  # right where q > t: every division of the rows there is
        tried = [np.sum(weight[b] * ((q[b] > cut) != is_right[b])) for cut in cuts]
        assert wrong[b] == pytest.approx(min(tried))
        assert np.sum(weight[b] * ((q[b] > t[b]) != is_right[b])) == pytest.approx(min(tried))


def test_cut_is_the_one_nearest_to_where_it_was_wanted():
    q = np.array([[0.0, 1.0, 2.0, 3.0]])
    is_right = np.array([[False, True, False, True]])
    weight = np.ones((1, 4))
    assert best_cuts(q, is_right, weight, near=np.array([0.0]))[0] == 0.5
    assert best_cuts(q, is_right, weight, near=np.array([4.0]))[0] == 2.5


def test_rows_without_weight_do_not_move_a_cut():
    q = np.array([[0.0, 10.0, 1.0]])
    t, _ = best_cuts(q, q > 0.5, np.array([[1.0, 0.0, 1.0]]), near=np.zeros(1))
    assert t == 0.5


# ---------------------------------------------------------------------- the direction


@pytest.mark.parametrize("ridge", [0.1, 1.0, 30.0])
def test_regressions_are_those_of_scikit_learn(ridge):
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, 40, 4))
    is_right = X[:, :, 0] + rng.normal(size=(3, 40)) > 0.3
    weight = rng.exponential(size=(3, 40))
    weight[2, 25:] = 0
    found = ridge_logistic(X, is_right, weight, ridge, n_iterations=30)
    for b in range(3):
        model = linear_model.LogisticRegression(C=1 / ridge, tol=1e-10, max_iter=1000)
        model.fit(X[b], is_right[b], sample_weight=weight[b])
        assert found[b, :4] == pytest.approx(model.coef_[0], abs=5e-3)
        assert found[b, 4] == pytest.approx(model.intercept_[0], abs=5e-3)


def test_many_features_give_the_regression_of_few(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2, 60, 5))
    is_right = X[:, :, 0] > rng.normal(size=(2, 60))
    weight = np.ones((2, 60))
    newton = ridge_logistic(X, is_right, weight, 1.0, n_iterations=30)
    monkeypatch.setattr("decision_machines.train.logistic.MOST_FOR_NEWTON", 0)
    assert ridge_logistic(X, is_right, weight, 1.0, 30) == pytest.approx(newton, abs=1e-3)


def test_a_regression_of_separable_rows_stays_finite():
    X = np.linspace(-1, 1, 20)[None, :, None] * 1e3
    found = ridge_logistic(X, X[:, :, 0] > 0, np.ones((1, 20)), ridge=1e-6, n_iterations=50)
    assert np.all(np.isfinite(found))
    assert found[0, 0] > 0


# ---------------------------------------------------------------------- sweeps


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 3),
    st.integers(2, 4),
    st.sampled_from([0.0, 0.05, 0.5]),
    st.integers(1, 3),
)
def test_training_errors_never_rise(seed, depth, n_classes, missing, n_sweeps):
    rng = np.random.default_rng(seed)
    trees = random_trees(rng, 3, depth, 3, n_classes)
    X, y, weight = random_rows(rng, 40, 3, n_classes, missing)
    before = errors(trees, X, y, weight)
    for _ in range(n_sweeps):
        trees = alternate(trees, X, y, weight, n_classes=n_classes, n_sweeps=1)
        after = errors(trees, X, y, weight)
        assert np.all(after <= before + 1e-9)
        before = after


def test_sweeps_end_where_nothing_gets_better():
    rng = np.random.default_rng(3)
    X, y, weight = random_rows(rng, 60, 3, 3)
    trees = random_trees(rng, 4, 3, 3, 3)
    done = alternate(trees, X, y, weight, n_classes=3, n_sweeps=100)
    again = alternate(done, X, y, weight, n_classes=3, n_sweeps=1)
    for part, same in zip(done.parts(), again.parts(), strict=True):
        np.testing.assert_array_equal(part, same)


def test_trees_swept_together_are_the_trees_swept_alone():
    rng = np.random.default_rng(4)
    X, y, weight = random_rows(rng, 80, 4, 3)
    trees = random_trees(rng, 3, 2, 4, 3)
    together = alternate(trees, X, y, weight, n_classes=3)
    for r in range(3):
        alone = alternate(trees.keep([r]), X, y, weight, n_classes=3)
        np.testing.assert_allclose(together.W[r], alone.W[0], atol=1e-9)
        np.testing.assert_array_equal(together.label[r], alone.label[0])


def test_a_sweep_finds_the_plane_that_divides_two_classes():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 3))
    y = (X @ [1.0, -2.0, 0.5] > 0.3).astype(int)
    trees = random_trees(rng, 2, 1, 3, 2)
    trees = HardTrees(trees.W, trees.t, np.array([[0, 1], [1, 0]]), trees.goes_right, trees.slope)
    done = alternate(trees, X, y, np.ones(200), n_classes=2, ridge=1e-3)
    assert np.all(errors(done, X, y, np.ones(200)) <= 2)


def test_rows_with_nan_choose_the_missing_side():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    X[:12, 1], y[:12] = np.nan, 1
    tree = HardTrees(
        np.array([[[1.0, 1.0]]]),
        np.zeros((1, 1)),
        np.array([[0, 1]]),
        np.array([[False]]),
        np.ones((1, 1)),
    )
    done = alternate(tree, X, y, np.ones(60), n_classes=2)
    assert done.goes_right[0, 0]
    assert errors(done, X, y, np.ones(60))[0] <= 2


# ---------------------------------------------------------------------- the tree as a machine


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.sampled_from([0.0, 0.2]))
def test_a_folded_tree_answers_as_the_tree_of_scaled_features(seed, depth, missing):
    rng = np.random.default_rng(seed)
    trees = random_trees(rng, 1, depth, 4, 3)
    trees.W[rng.random(trees.W.shape) < 0.3] = 0
    X, _, _ = random_rows(rng, 50, 4, 3, missing)
    X = X * 10.0 ** rng.integers(-3, 4, size=4) + rng.normal(size=4)
    scaling = Scaling.of(X)
    P = np.eye(3)[trees.label[0]]
    machine = machine_of(
        trees.W[0], trees.t[0], trees.goes_right[0], P, scaling, output=class_output(3)
    )
    np.testing.assert_array_equal(machine.predict(X), trees.predict(scaling(X))[0])
    np.testing.assert_array_equal(machine.apply(X)[:, 0], trees.exit_leaves(scaling(X))[0])
