"""Partial dependence, curves and importance by delta scoring are those of scoring everything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.tree import DecisionTreeRegressor
from strategies import machines, make_machine, probe_rows

import decision_machines as dm
from decision_machines.explain.effects.delta import Delta

REGRESSION = make_regression(300, 6, n_informative=4, noise=1.0, random_state=0)
CLASSES = make_classification(300, 6, n_informative=4, n_classes=3, random_state=0)
TWO = make_classification(300, 6, n_informative=4, random_state=0)


def redone(machine, X, features, points):
    """(m, G, k) margins of rows whose features are set to the points, one after the other."""
    found = []
    for point in points:
        changed = machine.features(X).astype(np.float64)
        changed[:, features] = point
        found.append(machine.margin(changed))
    return np.stack(found, axis=1)


@settings(max_examples=60)
@given(machines(min_trees=1, max_trees=5, max_leaves=10, values="whole"), st.data())
def test_every_curve_is_that_of_scoring_every_changed_row(machine, data):
    n = machine.n_features
    features = data.draw(st.sampled_from([[0], [n - 1], [0, n - 1] if n > 1 else [0]]))
    X = probe_rows(machine, max_rows=15)
    rows = probe_rows(machine, max_rows=12, seed=1)[:, features]
    points = np.unique(rows, axis=0)
    expected = redone(machine, X, features, points)
    delta = Delta(machine, features, points)
    x = machine.features(X)
    np.testing.assert_allclose(delta.margins(x), expected, rtol=1e-6, atol=1e-6)
    weight = np.full(len(x), 1 / len(x))
    np.testing.assert_allclose(
        delta.mean_margins(x, weight), expected.mean(axis=0), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("by_point", [True, False])
def test_both_ways_to_score_a_grid_are_the_same(by_point, monkeypatch):
    machine = make_machine([9] * 6, np.random.default_rng(3), n_outputs=2, values="real")
    X = machine.features(probe_rows(machine, max_rows=30))
    points = np.linspace(-2, 2, 40)[:, None]
    expected = redone(machine, X, [0], points)
    monkeypatch.setattr(Delta, "by_point", by_point)
    found = Delta(machine, [0], points).margins(X)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (DecisionTreeRegressor(max_depth=5, random_state=0), REGRESSION),
        (RandomForestRegressor(10, max_leaf_nodes=20, random_state=0), REGRESSION),
        (GradientBoostingRegressor(n_estimators=20, random_state=0), REGRESSION),
        (RandomForestClassifier(10, random_state=0), CLASSES),
        (GradientBoostingClassifier(n_estimators=10, random_state=0), CLASSES),
        (HistGradientBoostingClassifier(max_iter=15, random_state=0), TWO),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("features", [[1], [0, 2]], ids=str)
def test_partial_dependence_is_scikit_learns(model, data, features):
    X, y = data
    model.fit(X, y)
    n_grid = 30 if len(features) == 1 else 6
    theirs = partial_dependence(
        model, X, features, method="brute", grid_resolution=n_grid, kind="both"
    )
    ours = dm.convert(model).partial_dependence(X, features, n_grid=n_grid, individual=True)
    for a, b in zip(ours.grid, theirs["grid_values"], strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(ours.average, theirs["average"], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(ours.individual, theirs["individual"], rtol=1e-10, atol=1e-10)


def test_a_grid_value_that_means_missing_is_missing():
    from dataclasses import replace

    machine = dm.figure_one()
    columns = replace(machine.columns, missing_value=0.0)
    found = replace(machine, columns=columns).ice([[2, 1, 2, 2]], 2, grid=[0.0, 1.0])
    assert found.individual.tolist() == [[[6.0, 5.0]]]


def test_two_classes_of_a_forest_are_both_there():
    X, y = TWO
    model = RandomForestClassifier(10, random_state=0).fit(X, y)
    ours = dm.convert(model).partial_dependence(X, 1, n_grid=20)
    theirs = partial_dependence(model, X, [1], method="brute", grid_resolution=20)
    np.testing.assert_allclose(ours.average[1:], theirs["average"], rtol=1e-12)
    np.testing.assert_allclose(ours.average.sum(axis=0), 1)


def test_oblique_and_weighted_means_are_scored_too():
    machine = make_machine([6, 5], np.random.default_rng(0), rules=False, oblique=True)
    X = np.random.default_rng(1).standard_normal((20, 3))
    weight = np.arange(20.0)
    found = machine.partial_dependence(X, 1, grid=[-1.0, 0.5], sample_weight=weight)
    expected = np.average(redone(machine, X, [1], [[-1.0], [0.5]]), axis=0, weights=weight)
    np.testing.assert_allclose(found.average, expected.T)


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (GradientBoostingRegressor(n_estimators=30, max_depth=2, random_state=0), REGRESSION),
        (RandomForestClassifier(10, random_state=0), CLASSES),
        (HistGradientBoostingClassifier(max_iter=15, max_depth=2, random_state=0), TWO),
    ],
    ids=lambda value: type(value).__name__,
)
def test_permutation_importance_is_scikit_learns(model, data):
    X, y = data
    model.fit(X, y)
    theirs = permutation_importance(model, X, y, n_repeats=3, random_state=7)
    ours = dm.convert(model).importance(X, y, n_repeats=3, seed=7)
    np.testing.assert_allclose(ours.drops, theirs.importances, rtol=1e-9, atol=1e-9)
    assert ours.score == pytest.approx(model.score(X, y))


def test_counts_are_those_of_the_tests():
    X, y = REGRESSION
    machine = dm.convert(RandomForestRegressor(5, max_leaf_nodes=8, random_state=0).fit(X, y))
    found = machine.importance()
    assert found.splits.tolist() == np.bincount(machine.selection, minlength=6).tolist()
    assert found.splits.sum() == machine.n_tests
    assert np.all(found.trees <= 5)
    assert found.mean.sum() == pytest.approx(1)
    assert "tests" in repr(found)


def test_a_metric_of_ones_own():
    X, y = REGRESSION
    machine = dm.convert(DecisionTreeRegressor(max_depth=3).fit(X, y))
    found = machine.importance(X, y, metric=lambda y, p: -np.abs(y - p).mean())
    assert found.score == pytest.approx(-np.abs(y - machine.predict(X)).mean())


@pytest.mark.parametrize(
    ("verb", "wrong"),
    [
        ("partial_dependence", {"features": 9}),
        ("partial_dependence", {"features": [0, 1, 2]}),
        ("partial_dependence", {"features": [0, 0]}),
        ("partial_dependence", {"features": 0, "output": "odds"}),
        ("partial_dependence", {"features": 0, "n_grid": 1}),
        ("partial_dependence", {"features": 0, "percentiles": (0.9, 0.1)}),
        ("partial_dependence", {"features": 0, "grid": ["a"]}),
        ("partial_dependence", {"features": [0, 1], "grid": [1.0, 2.0]}),
        ("partial_dependence", {"features": 0, "sample_weight": [1.0]}),
        ("partial_dependence", {"features": 0, "sample_weight": [1.0, np.inf]}),
        ("partial_dependence", {"features": 0, "sample_weight": [0.0, 0.0]}),
        ("with_cover", {"sample_weight": [1.0, -1.0]}),
        ("nearest", {"X_train": [[2, 1, 2, 2]], "counts": [[-1]]}),
        ("importance", {}),
        ("importance", {"y": [1.0]}),
        ("importance", {"y": [1.0, 2.0], "n_repeats": 0}),
    ],
    ids=str,
)
def test_rubbish_is_refused_in_words(verb, wrong):
    with pytest.raises(dm.InputError, match="What to do"):
        getattr(dm.figure_one(), verb)([[2, 1, 2, 2], [0, 1, 2, 2]], **wrong)
