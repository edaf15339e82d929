"""Leaf boxes: every row lies in the box of its exit leaf and in no other, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from all_inputs import every_input
from hypothesis import given, settings
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from strategies import machines, make_machine, probe_rows, walk_all

import decision_machines as dm


@given(machines(max_trees=3, max_leaves=10))
def test_a_row_lies_in_the_box_of_its_exit_leaf_and_in_no_other(machine):
    X = probe_rows(machine, max_rows=40)
    inside = machine.boxes().contains(X)
    exits = walk_all(machine, X) + machine.trees.leaf_start[:-1]
    expected = np.zeros_like(inside)
    np.put_along_axis(expected, exits, True, axis=1)
    np.testing.assert_array_equal(inside, expected)


@settings(max_examples=30)
@given(machines(max_trees=2, max_leaves=6, n_features=1))
def test_a_leaf_is_marked_unreachable_if_and_only_if_no_input_reaches_it(machine):
    reached = np.zeros(machine.n_leaves, bool)
    exits = walk_all(machine, every_input(machine)) + machine.trees.leaf_start[:-1]
    reached[exits.reshape(-1)] = True
    np.testing.assert_array_equal(machine.boxes().reachable, reached)


@settings(max_examples=20)
@given(machines(max_trees=1, min_trees=1, max_leaves=5, n_features=3, rules=True))
def test_columns_that_share_a_feature_are_seen_to_contradict_each_other(machine):
    reached = np.zeros(machine.n_leaves, bool)
    X = every_input(machine, infinite=False)
    X = X[np.random.default_rng(0).permutation(len(X))[:60000]]
    reached[machine.apply(X)[:, 0]] = True
    assert not np.any(reached & ~machine.boxes().reachable)


def test_the_boxes_of_figure_one():
    found = dm.figure_one().boxes()
    assert found[2] == {0: (-np.inf, 1.0, False), 1: (2.0, 4.0, False), 3: (5.0, np.inf, True)}
    assert len(found) == 6
    assert found.reachable.all()
    lower, upper, missing = found.dense()
    assert lower[5].tolist() == [1.0, -np.inf, 3.0, -np.inf]
    assert upper[0].tolist() == [1.0, 2.0, np.inf, np.inf]
    assert missing[5].tolist() == [True, True, True, True]


def test_minus_infinity_lies_in_an_unbounded_box_and_not_beside_its_own_threshold():
    machine = make_machine([2], np.random.default_rng(0), n_features=1, rules=False)
    from dataclasses import replace

    machine = replace(machine, t=np.array([-np.inf]))
    found = machine.boxes().contains([[-np.inf], [0.0], [np.inf]])
    assert found.tolist() == [[True, False], [False, True], [False, True]]


def test_the_chosen_trees_alone():
    X, y = load_diabetes(return_X_y=True)
    machine = dm.convert(RandomForestRegressor(5, random_state=0).fit(X, y))
    whole, some = machine.boxes(), machine.boxes([3, 1])
    assert len(some) == sum(len(machine.boxes(i)) for i in (3, 1))
    np.testing.assert_array_equal(some.contains(X[:9]), whole.contains(X[:9])[:, some.leaf])


def test_oblique_machines_have_no_boxes():
    machine = make_machine([4], np.random.default_rng(0), rules=False, oblique=True)
    with pytest.raises(dm.UnsupportedModelError, match=r"slanted planes[\s\S]*What to do"):
        machine.boxes()
