"""Proximities against counting by hand, and forests as weighted means of their training rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeRegressor
from strategies import machines, make_machine, probe_rows, walk_all

import decision_machines as dm
from decision_machines.run.engines import reference


@settings(max_examples=30)
@given(machines(min_trees=1, max_trees=4, max_leaves=8))
def test_proximity_is_the_share_of_trees_in_which_rows_share_a_leaf(machine):
    X, Y = probe_rows(machine, max_rows=12), probe_rows(machine, max_rows=9, seed=1)
    a, b = walk_all(machine, X), walk_all(machine, Y)
    expected = (a[:, None] == b[None]).mean(axis=2)
    np.testing.assert_allclose(machine.proximity(X, Y).toarray(), expected)
    own = machine.proximity(X).toarray()
    np.testing.assert_allclose(own, own.T)
    np.testing.assert_allclose(np.diag(own), 1)


@settings(max_examples=30)
@given(machines(min_trees=1, max_trees=3, max_leaves=8))
def test_by_code_is_the_papers_distance_of_zero(machine):
    """δ(‖h, hᵢ‖_B) with ‖h, k‖_B = ‖B(h - k)‖₂, from B itself."""
    X = probe_rows(machine, max_rows=12)
    z = machine.columns.read(machine.features(X))
    expected = np.zeros((len(X), len(X)))
    for tree in range(machine.n_trees):
        h = reference.test_results(machine, z, tree)
        B = machine.templates(tree).toarray().astype(float)
        distance = np.linalg.norm((h[:, None] - h[None]) @ B.T, axis=2)
        expected += distance == 0
    found = machine.proximity(X, by="code").toarray()
    np.testing.assert_allclose(found, expected / machine.n_trees)
    assert np.all(found <= machine.proximity(X).toarray() + 1e-12)


def test_by_value_weighs_leaves_by_the_size_of_their_values():
    machine = dm.direct_sum([dm.figure_one(), dm.figure_one().subtree(2)])
    a, b = [2.0, 1, 2, 2], [0.0, 1, 2, 2]  # leaves of 5 and 5, of 1 and 5
    assert machine.proximity([a], [b], by="value").toarray().tolist() == [[0.5]]
    assert machine.proximity([b], [a], by="value").toarray() == pytest.approx(5 / 6)
    assert machine.proximity([a], [a], by="value").toarray().tolist() == [[1.0]]


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeRegressor(max_depth=4, random_state=0),
        ExtraTreesRegressor(12, min_samples_leaf=3, random_state=0),
        RandomForestRegressor(12, bootstrap=False, max_features=3, max_depth=5, random_state=0),
    ],
    ids=lambda m: type(m).__name__,
)
def test_trees_of_means_are_weighted_means_of_their_training_rows(model):
    X, y = load_diabetes(return_X_y=True)
    model.fit(X, y)
    found = dm.convert(model).nearest(X[:40], X, y)
    assert found.reproduces
    np.testing.assert_allclose(found.weights @ y, model.predict(X[:40]), rtol=1e-10)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1)


def test_a_bootstrapped_forest_is_reproduced_with_its_counts_and_not_without():
    X, y = load_diabetes(return_X_y=True)
    model = RandomForestRegressor(10, random_state=0).fit(X, y)
    counts = np.stack(
        [np.bincount(rows, minlength=len(X)) for rows in model.estimators_samples_], axis=1
    )
    machine = dm.convert(model)
    assert machine.nearest(X[:30], X, y, counts=counts).reproduces
    without = machine.nearest(X[:30], X, y)
    assert not without.reproduces
    assert "residual" in repr(without)
    np.testing.assert_allclose(
        without.residual[:, 0], model.predict(X[:30]) - without.weights @ y, atol=1e-9
    )


def test_class_probabilities_are_reproduced():
    X, y = load_iris(return_X_y=True)
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    model = ExtraTreesClassifier(10, min_samples_leaf=4, random_state=0).fit(X, labels)
    found = dm.convert(model).nearest(X, X, labels)
    assert found.reproduces
    np.testing.assert_allclose(found.weighted, model.predict_proba(X), atol=1e-12)


def test_the_top_rows_are_those_that_weigh_most():
    X, y = load_diabetes(return_X_y=True)
    machine = dm.convert(ExtraTreesRegressor(10, random_state=0).fit(X, y))
    rows, weights = machine.nearest(X[7:8], X).top(0, 5)
    assert rows[0] == 7
    assert np.all(np.diff(weights) <= 0)


def test_boosted_trees_get_a_similarity_and_an_honest_residual():
    X, y = load_diabetes(return_X_y=True)
    machine = dm.convert(GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, y))
    found = machine.nearest(X[:9], X, y)
    assert found.by == "value"
    assert not found.reproduces
    np.testing.assert_allclose(found.weights.sum(axis=1), 1)


def test_oblique_machines_compare_rows_too():
    machine = make_machine([5, 4], np.random.default_rng(0), rules=False, oblique=True)
    X = np.random.default_rng(1).standard_normal((8, 3))
    a = walk_all(machine, X)
    expected = (a[:, None] == a[None]).mean(axis=2)
    np.testing.assert_allclose(machine.proximity(X).toarray(), expected)
    assert np.all(machine.proximity(X, by="code").toarray() <= expected)


@pytest.mark.parametrize(
    "wrong",
    [
        {"by": "tree"},
        {"counts": [[1]]},
        {"y_train": [1.0]},
        {"y_train": ["a", "b"]},
    ],
    ids=str,
)
def test_rubbish_is_refused_in_words(wrong):
    rows = [[2, 1, 2, 2], [0, 1, 2, 2]]
    with pytest.raises(dm.InputError, match="What to do"):
        dm.figure_one().nearest(rows, rows, **wrong)
    with pytest.raises(dm.InputError, match="What to do"):
        dm.figure_one().proximity(rows, by="nothing")
