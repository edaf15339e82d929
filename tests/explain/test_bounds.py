"""Bounds over boxes: never wrong, exact where they say so."""

from __future__ import annotations

import numpy as np
import pytest
from all_inputs import every_input
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from strategies import machines, make_machine

import decision_machines as dm


@settings(max_examples=40)
@given(machines(min_trees=0, max_trees=3, max_leaves=6, n_features=3, rules=False))
def test_bounds_over_all_inputs_are_the_extremes_of_all_inputs(machine):
    margins = machine.margin(every_input(machine))
    found = machine.bounds(missing=True)
    assert np.all(found.lower <= margins.min(axis=0))
    assert np.all(found.upper >= margins.max(axis=0))
    assert found.exact
    np.testing.assert_array_equal(found.lower, margins.min(axis=0))
    np.testing.assert_array_equal(found.upper, margins.max(axis=0))


@settings(max_examples=40)
@given(machines(min_trees=1, max_trees=4, max_leaves=8), st.integers(0, 99), st.integers(1, 20))
def test_no_input_of_a_box_is_outside_its_bounds_whatever_the_budget(machine, seed, budget):
    rng = np.random.default_rng(seed)
    low, high = np.sort(np.round(2 * rng.standard_normal((2, machine.n_features)), 1), axis=0)
    X = rng.uniform(low, high, (300, machine.n_features))
    X[:50], X[50:100] = low, high
    X[rng.random(X.shape) < 0.1] = np.nan
    margins = machine.margin(X)
    found = machine.bounds(low, high, missing=True, budget=budget)
    assert np.all(found.lower <= margins.min(axis=0))
    assert np.all(found.upper >= margins.max(axis=0))
    k = np.arange(machine.n_outputs)
    np.testing.assert_array_equal(machine.margin(found.least)[k, k], found.found_lower)
    np.testing.assert_array_equal(machine.margin(found.most)[k, k], found.found_upper)
    for rows in (found.least, found.most):
        assert np.all(np.isnan(rows) | ((rows >= low) & (rows <= high)))


@given(machines(min_trees=1, max_trees=1, max_leaves=10))
def test_one_tree_is_bounded_exactly(machine):
    assert machine.bounds(missing=True).exact


def test_a_larger_budget_never_widens_the_bounds():
    X, y = load_diabetes(return_X_y=True)
    machine = dm.convert(GradientBoostingRegressor(n_estimators=30, random_state=0).fit(X, y))
    wide, tight = machine.bounds(budget=2), machine.bounds(budget=1500)
    assert wide.lower <= tight.lower <= tight.found_lower
    assert tight.found_upper <= tight.upper <= wide.upper
    assert wide.upper - wide.lower > tight.upper - tight.lower


def test_a_feature_is_missing_where_both_limits_are_nan():
    machine = dm.figure_one()
    assert machine.bounds([np.nan] * 4, [np.nan] * 4).lower.tolist() == [6.0]
    assert machine.bounds({0: np.nan}, {0: np.nan}).lower.tolist() == [5.0]


def test_limits_are_cast_as_inputs_are():
    machine = make_machine([2], np.random.default_rng(0), n_features=1, rules=False, dtype="f4")
    from dataclasses import replace

    t = np.float32(0.1)
    machine = replace(machine, t=np.array([t]), V=np.array([[0.0], [1.0]]))
    x = float(t) + 1e-12  # above t as a float64, t itself as a float32
    assert machine.bounds([x], [x]).upper == machine.margin([[x]])[0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"lower": [0, 0]},
        {"lower": [1, 1, 1, 1], "upper": [0, 0, 0, 0]},
        {"lower": "low"},
        {"upper": {"x[9]": 1}},
        {"missing": ["x[9]"]},
        {"budget": 0},
        {"lower": {0: np.nan}},
    ],
    ids=str,
)
def test_rubbish_is_refused_in_words(wrong):
    with pytest.raises(dm.InputError, match="What to do"):
        dm.figure_one().bounds(**wrong)
