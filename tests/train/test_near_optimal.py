"""Trees near the best against all trees there are with a given first feature."""

from __future__ import annotations

import functools
import pickle
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from decision_machines import OptimalTreeClassifier, OptimalTreeRegressor
from decision_machines.errors import InputError
from decision_machines.train.optimal import near
from decision_machines.train.optimal.losses import mean_loss
from decision_machines.train.optimal.near import Problem, near_optimal_trees
from decision_machines.train.optimal.tree import Limits, tree_machine

from .test_optimal import best_of_all, problems


def best_with(feature, rows, criterion, k, limits):
    """The least objective of a tree that tests this feature first, by trying every one."""
    x, w = rows.X[:, feature], rows.w
    value = np.inf

    @functools.cache
    def side(which, leaves):
        own = rows.take(np.array(which))
        part = own.w.sum() / w.sum()
        below = Limits(
            limits.max_depth - 1, leaves, limits.leaf_penalty / part, limits.min_samples_leaf
        )
        return best_of_all(own, criterion, k, below) * part

    for cut in np.unique(x[~np.isnan(x)]):
        for goes_left in (x <= cut, (x <= cut) | np.isnan(x)):
            if goes_left.all() or not goes_left.any() or limits.max_depth == 0:
                continue
            left, right = (tuple(np.flatnonzero(s).tolist()) for s in (goes_left, ~goes_left))
            for n in range(1, limits.most_leaves):
                value = min(value, side(left, n) + side(right, limits.most_leaves - n))
    return value


@settings(max_examples=60, deadline=None)
@given(problems(most_rows=8))
def test_each_tree_is_the_best_with_its_first_feature(given_problem):
    rows, criterion, k, limits = given_problem
    n_classes = k if criterion == "error" else None
    limits = Limits(min(limits.max_depth, 3), *list(vars(limits).values())[1:])
    best = best_of_all(rows, criterion, k, limits)
    if np.isinf(best):
        return
    whole = best_of_all(rows, criterion, k, Limits(0))
    problem = Problem(rows, n_classes, criterion, limits, n_threads=1)
    found = near_optimal_trees(problem, best, 0.4)
    limit = best + 0.4 * whole
    truth = {f: best_with(f, rows, criterion, k, limits) for f in range(rows.X.shape[1])}
    assert [t.report["objective"] for t in found] == sorted(t.report["objective"] for t in found)
    seen = set()
    for tree in found:
        objective = tree.report["objective"]
        assert objective <= limit + 1e-8
        machine = tree_machine(tree, rows.X.shape[1], n_classes)
        said = machine.margin(rows.X)
        own = mean_loss(criterion, rows.y, rows.w, said) + limits.leaf_penalty * machine.n_leaves
        assert own == pytest.approx(objective, abs=1e-8)
        assert machine.depth <= limits.max_depth
        assert machine.n_leaves <= limits.most_leaves
        if machine.n_leaves > 1:
            assert objective == pytest.approx(truth[int(tree.nodes.feature[0])], abs=1e-8)
        seen.add(said.argmax(axis=1).tobytes() if n_classes else np.round(said, 6).tobytes())
    assert len(seen) == len(found)
    assert found[0].report["objective"] == pytest.approx(best, abs=1e-8)
    with mock.patch.object(near, "_different", lambda trees, _: trees):
        every = near_optimal_trees(problem, best, 0.4)
    there = {int(t.nodes.feature[0]) for t in every if t.nodes.n_leaves > 1}
    assert there >= {feature for feature, value in truth.items() if value < limit - 1e-8}


def twins(m=120):
    """Two features that say nearly the same, one of labels, and gaps."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=m)
    table = pd.DataFrame(
        {
            "x": x,
            "like x": x + rng.normal(scale=0.1, size=m),
            "colour": rng.choice(["red", "green", "blue", None], m),
        }
    )
    table.loc[::9, "like x"] = np.nan
    return table, np.where((x > 0) ^ (table["colour"] == "red"), "yes", "no")


def test_tables_give_machines_that_read_tables():
    table, y = twins()
    tree = OptimalTreeClassifier(2).fit(table, y)
    trees = tree.near_optimal(5, tolerance=0.4)
    assert len(trees) >= 2
    assert trees[0].objective == tree.objective_
    for other in trees:
        wrong = np.mean(other.machine.predict(table) != y)
        assert wrong == pytest.approx(other.objective)
    said = [tuple(other.machine.predict(table)) for other in trees]
    assert len(set(said)) == len(said)
    assert [other.feature for other in tree.near_optimal(1)] == [trees[0].feature]
    assert f"{trees[0].feature} first: objective" in repr(trees[0])


def test_numbers_and_a_chosen_size():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 3))
    z = X[:, 0] + 0.9 * X[:, 1] + rng.normal(scale=0.1, size=100)
    tree = OptimalTreeRegressor(2, max_leaves="auto").fit(X, z)
    trees = tree.near_optimal(tolerance=0.2)
    assert [other.feature for other in trees[:2]] in ([0, 1], [1, 0])
    assert trees[0].objective == pytest.approx(tree.objective_)
    assert all(other.machine.n_leaves <= tree.path_.chosen for other in trees)


def test_what_cannot_be_searched_is_refused():
    table, y = twins(60)
    tree = OptimalTreeClassifier(2).fit(table, y)
    with pytest.raises(InputError, match="tolerance = -1"):
        tree.near_optimal(tolerance=-1)
    with pytest.raises(InputError, match="n = 0"):
        tree.near_optimal(0)
    loaded = pickle.loads(pickle.dumps(tree))
    assert (loaded.predict(table) == tree.predict(table)).all()
    with pytest.raises(InputError, match="fit again"):
        loaded.near_optimal()
    rng = np.random.default_rng(0)
    early = OptimalTreeClassifier(5, time_limit=0.01).fit(
        rng.normal(size=(2000, 20)), rng.integers(0, 2, 2000)
    )
    assert not early.is_optimal_
    with pytest.raises(InputError, match="not proven"):
        early.near_optimal()
