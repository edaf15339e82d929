"""Covers: kept by every reader that finds them, and by all that makes machines of machines."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from strategies import make_machine

import decision_machines as dm
from decision_machines.errors import InvariantError
from decision_machines.machine import Cover, direct_sum

RNG = np.random.default_rng(3)
X = RNG.normal(size=(300, 5))
Y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)


def models():
    yield "forest", lambda: RandomForestClassifier(4, max_depth=5, random_state=0)
    yield "boosting", lambda: GradientBoostingRegressor(n_estimators=4, random_state=0)
    yield "hist", lambda: HistGradientBoostingClassifier(max_iter=4)

    def xgboost():
        return pytest.importorskip("xgboost").XGBClassifier(n_estimators=4, max_depth=4)

    def lightgbm():
        return pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=4, verbose=-1)

    def catboost(**more):
        return pytest.importorskip("catboost").CatBoostClassifier(
            iterations=4, depth=4, verbose=0, allow_writing_files=False, **more
        )

    yield "xgboost", xgboost
    yield "lightgbm", lightgbm
    yield "catboost", catboost
    yield "catboost, any shape", lambda: catboost(grow_policy="Lossguide")


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in models()])
def test_a_library_covers_are_kept_and_add_up(make):
    machine = dm.convert(make().fit(X, Y))
    cover = machine.cover
    below = [
        sum(cover.tests[c] if c >= 0 else cover.leaves[~c] for c in pair)
        for pair in machine.children.tolist()
    ]
    np.testing.assert_allclose(below, cover.tests, rtol=1e-6)
    assert np.all(cover.tests[machine.trees.test_start[:-1]] > 0)


def covered(seed=0):
    machine = make_machine([5, 1, 8, 3], np.random.default_rng(seed), n_features=4)
    return machine.with_cover(np.random.default_rng(1).normal(size=(200, 4)))


def test_covers_of_rows_count_the_rows_that_come_by():
    machine = covered()
    rows = np.random.default_rng(1).normal(size=(200, 4))
    counts = np.zeros(machine.n_leaves)
    leaves = machine.apply(rows) + machine.trees.leaf_start[:-1]
    np.add.at(counts, leaves.ravel(), 1)
    assert np.array_equal(machine.cover.leaves, counts)
    roots = machine.trees.test_start[:-1][np.diff(machine.trees.test_start) > 0]
    assert np.all(machine.cover.tests[roots] == 200)


def test_covers_of_weighted_rows_are_sums_of_weights():
    machine, rows = covered(), np.random.default_rng(1).normal(size=(200, 4))
    double = machine.with_cover(rows, sample_weight=np.full(200, 2.0))
    assert np.array_equal(double.cover.tests, 2 * machine.cover.tests)


def test_parts_of_machines_keep_their_covers():
    machine = covered()
    tree = machine.tree(2)
    own = machine.trees.tests(2)
    assert np.array_equal(tree.cover.tests, machine.cover.tests[own])
    both = direct_sum([machine, tree])
    assert np.array_equal(both.cover.tests[: machine.n_tests], machine.cover.tests)
    assert direct_sum([machine, replace(tree, cover=None)]).cover is None
    assert machine.mask([0]).cover.leaves.size == machine.mask([0]).n_leaves
    root = int(own.start)
    assert machine.subtree(root).cover.tests[0] == 200


def test_a_simplified_machine_keeps_what_reaches_each_node():
    machine = covered(2)
    machine = replace(machine, V=np.zeros_like(machine.V))
    small = machine.simplify()
    assert small.n_tests == 0
    assert small.cover.leaves.tolist() == [200.0] * machine.n_trees


def test_a_file_keeps_covers_to_the_bit(tmp_path):
    machine = covered()
    machine.save(tmp_path / "m.dm")
    found = dm.load(tmp_path / "m.dm").cover
    assert np.array_equal(found.tests, machine.cover.tests)
    assert np.array_equal(found.leaves, machine.cover.leaves)


@pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf])
def test_covers_that_are_no_weights_are_refused(wrong):
    machine = covered()
    leaves = machine.cover.leaves.copy()
    leaves[1] = wrong
    with pytest.raises(InvariantError, match=r"cover\.leaves\[1\]"):
        Cover(machine.cover.tests, leaves)


def test_covers_of_other_trees_are_refused():
    machine = covered()
    with pytest.raises(InvariantError, match="covers of 3 tests"):
        replace(machine, cover=Cover(np.ones(3), np.ones(4)))


def test_zeros_are_no_covers():
    pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    machine = make_machine([5, 8], rng, n_features=4, rules=False, plain_output=True)
    machine = replace(machine, output=replace(machine.output, divisor=1.0))
    assert dm.convert(replace(machine, t=machine.t + 0.375).to_lightgbm()).cover is None
