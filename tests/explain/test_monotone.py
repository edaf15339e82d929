"""Monotonicity: proofs hold for all inputs, refutations are shown by the machine itself."""

from __future__ import annotations

import numpy as np
import pytest
from all_inputs import values_of
from hypothesis import given, settings
from hypothesis import strategies as st
from one_test import colour_test
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from strategies import machines

import decision_machines as dm


def is_monotone_over_all(machine, feature, sign):
    """Whether no pair of all inputs refutes it, values whole and sums exact."""
    others = [values_of(machine, f) for f in range(machine.n_features) if f != feature]
    along = values_of(machine, feature, missing=False)
    grid = np.meshgrid(*others, along, indexing="ij")
    flat = np.stack([g.reshape(-1) for g in grid], axis=1)
    X = np.insert(flat[:, :-1], feature, flat[:, -1], axis=1)
    margins = machine.margin(X)[:, 0].reshape(-1, len(along))
    return bool(np.all(sign * np.diff(margins, axis=1) >= 0))


@settings(max_examples=60)
@given(
    machines(
        min_trees=1,
        max_trees=3,
        max_leaves=6,
        n_features=3,
        rules=False,
        values="whole",
        n_outputs=1,
    ),
    st.integers(0, 2),
    st.sampled_from(["increasing", "decreasing"]),
)
def test_the_verdict_is_that_of_all_inputs(machine, feature, direction):
    found = machine.is_monotone(feature, direction)
    sign = 1 if direction == "increasing" else -1
    assert bool(found) == is_monotone_over_all(machine, feature, sign)
    assert found.verdict in ("proven", "refuted")
    if found.X is not None:
        a, b = machine.margin(found.X)[:, 0]
        assert sign * (b - a) < 0
        low, high = found.X
        assert low[feature] < high[feature]
        same = np.arange(3) != feature
        np.testing.assert_array_equal(low[same], high[same])


def test_constrained_models_are_proven_and_free_ones_refuted():
    X, y = load_diabetes(return_X_y=True)
    model = HistGradientBoostingRegressor(
        max_iter=30, monotonic_cst=[0, 0, 1, -1] + [0] * 6, random_state=0
    )
    machine = dm.convert(model.fit(X, y))
    assert machine.is_monotone(2).in_each_tree
    assert machine.is_monotone(3, "decreasing")
    assert machine.is_monotone(8).verdict == "refuted"


def test_a_small_budget_says_that_it_does_not_know():
    X, y = load_diabetes(return_X_y=True)
    model = HistGradientBoostingRegressor(max_iter=30, monotonic_cst=[0, 0, 1] + [0] * 7)
    found = dm.convert(model.fit(X, y)).is_monotone(2, budget=50)
    assert found.verdict == "unknown"
    assert not found
    assert found.proven < found.steps


def test_a_sum_can_rise_where_its_trees_fall():
    one = dm.figure_one().subtree(2)
    from dataclasses import replace

    rises, falls = (
        replace(one, V=np.array([[0.0], [3.0]])),
        replace(one, V=np.array([[2.0], [1.0]])),
    )
    both = dm.direct_sum([rises, falls])
    assert both.is_monotone("x[3]")
    assert not both.is_monotone("x[3]").in_each_tree
    assert not dm.direct_sum([rises, falls], [1.0, 4.0]).is_monotone("x[3]")


def test_a_feature_without_tests_is_monotone_both_ways():
    machine = dm.figure_one().subtree(2)
    assert machine.is_monotone(0)
    assert machine.is_monotone(0, "decreasing")


@pytest.mark.parametrize(
    "wrong",
    [
        {"feature": 9},
        {"feature": "age"},
        {"feature": 0, "direction": "up"},
        {"feature": 0, "output": 3},
        {"feature": 0, "budget": -1},
    ],
    ids=str,
)
def test_rubbish_is_refused_in_words(wrong):
    with pytest.raises(dm.InputError, match="What to do"):
        dm.figure_one().is_monotone(**wrong)


def test_categories_have_no_order():
    machine = colour_test()
    with pytest.raises(dm.InputError, match="categories have no order"):
        machine.is_monotone(0)


def test_a_verdict_names_the_feature_and_the_class():
    from sklearn.datasets import load_iris
    from sklearn.tree import DecisionTreeClassifier

    data = load_iris(as_frame=True)
    words = data.target_names[data.target]
    machine = dm.convert(DecisionTreeClassifier(max_depth=2, random_state=0).fit(data.data, words))
    found = machine.is_monotone("petal width (cm)", "decreasing", output="setosa")
    assert found.output == 0
    assert repr(found).startswith("Monotonicity(")
    assert "decreasing in petal width (cm), margin of setosa" in repr(found)
    with pytest.raises(dm.InputError, match="or a label: 'setosa'"):
        machine.is_monotone("petal width (cm)", output="rose")
