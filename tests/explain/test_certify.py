"""Certificates hold for equal models, and one changed number anywhere breaks them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, make_regression
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier
from strategies import machines

import decision_machines as dm
from decision_machines.explain.prove.probes import probe_tree


@pytest.fixture(scope="module")
def forest():
    X, y = load_breast_cancer(return_X_y=True)
    X = X.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    return RandomForestClassifier(8, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def machine(forest):
    return dm.convert(forest)


def path_to(machine, first, last):
    """(test, side) of the tests above the leaves from `first` up to `last`, of one tree."""
    found, path = machine.structure, []
    for j in range(machine.n_tests):
        low, high = found.first_leaf[j], found.first_leaf[j] + found.n_leaves[j]
        if low <= first and last <= high and (low, high) != (first, last):
            right = machine.children[j, 1]
            middle = ~right if right < 0 else found.first_leaf[right]
            path.append((j, -1 if first < middle else 1))
    return path


def nan_reaches(machine, j):
    """Whether a NaN in test j's column reaches it: no test above turns it away."""
    first = machine.structure.first_leaf[j]
    return all(
        machine.selection[above] != machine.selection[j] or machine.missing[above] == side
        for above, side in path_to(machine, first, first + machine.structure.n_leaves[j])
    )


def is_reached(machine, leaf):
    """Whether an input reaches the leaf: of every column a number, or NaN, passes its path."""
    path = path_to(machine, leaf, leaf + 1)
    for column in {machine.selection[j] for j, _ in path}:
        asked = [(j, side) for j, side in path if machine.selection[j] == column]
        low = max((machine.t[j] for j, side in asked if side > 0), default=-np.inf)
        high = min((machine.t[j] for j, side in asked if side < 0), default=np.inf)
        takes_nan = all(machine.missing[j] == side for j, side in asked)
        if not (low < high or takes_nan):
            return False
    return True


def test_a_converted_forest_is_proven(forest, machine):
    certificate = dm.certify(machine, forest)
    assert certificate.holds
    assert bool(certificate)
    assert certificate.proven == machine.n_tests == certificate.tests
    assert certificate.probes > 2 * machine.n_tests
    assert certificate.first_disagreement is None
    assert "PROVEN" in str(certificate)


@pytest.mark.parametrize(
    "model", [RandomForestRegressor(3), ExtraTreesRegressor(3), DecisionTreeClassifier()], ids=repr
)
def test_every_kind_of_tree_model_is_proven(model):
    X, y = make_regression(200, 6, n_targets=2, random_state=0)
    model.fit(X, (y > 0).astype(int) if hasattr(model, "predict_proba") else y)
    assert dm.certify(dm.convert(model), model)


@settings(deadline=None, max_examples=15)
@given(st.data())
def test_one_threshold_moved_by_one_step_is_found(forest, machine, data):
    j = data.draw(st.integers(0, machine.n_tests - 1))
    towards = data.draw(st.sampled_from([np.float32(np.inf), np.float32(-np.inf)]))
    assume(np.isfinite(machine.t[j]))  # a threshold of infinity asks only what is missing
    t = machine.t.copy()
    t[j] = np.nextafter(t[j], towards)
    certificate = dm.certify(replace(machine, t=t), forest)
    assert not certificate
    assert certificate.first_disagreement.tree == machine.trees.of_test[j]
    assert certificate.first_disagreement.test == machine.trees.test_ids[j]


@settings(deadline=None, max_examples=15)
@given(st.data())
def test_one_missing_answer_turned_round_is_found(forest, machine, data):
    j = data.draw(st.integers(0, machine.n_tests - 1))
    missing = machine.missing.copy()
    missing[j] *= -1
    found = dm.certify(replace(machine, missing=missing), forest)
    assert bool(found) == (not nan_reaches(machine, j))


@settings(deadline=None, max_examples=15)
@given(st.data())
def test_one_value_changed_in_its_last_bit_is_found(forest, machine, data):
    """A leaf that no input reaches has no value to compare; scikit-learn 1.6 grows such leaves."""
    i = data.draw(st.integers(0, machine.n_leaves - 1))
    certificate = dm.certify(with_another_value(machine, i), forest)
    assert bool(certificate) != is_reached(machine, i)
    if not certificate:
        assert certificate.first_disagreement.what == "margin"


def with_another_value(machine, leaf):
    V = machine.V.copy()
    V[leaf, 0] = np.nextafter(V[leaf, 0], 2.0)
    return replace(machine, V=V)


def test_of_a_leaf_behind_a_test_that_always_answers_the_same_nothing_is_compared():
    """Thresholds copied from parents to children: every leaf that can be reached is compared."""
    X, y = load_breast_cancer(return_X_y=True)
    X[::7] = np.nan
    model = DecisionTreeClassifier(random_state=0, max_depth=5).fit(X, y)
    tree = model.tree_
    for parent in range(tree.node_count):
        for child in (tree.children_left[parent], tree.children_right[parent]):
            if tree.children_left[parent] >= 0 and tree.children_left[child] >= 0:
                tree.feature[child] = tree.feature[parent]
                tree.threshold[child] = tree.threshold[parent]
                break
    machine = dm.convert(model)
    certificate = dm.certify(machine, model)
    assert certificate
    assert certificate.one_sided > 1
    assert "no input reaches what is behind their other side" in str(certificate)
    reached = [is_reached(machine, leaf) for leaf in range(machine.n_leaves)]
    assert 0 < sum(reached) < machine.n_leaves
    for leaf in range(machine.n_leaves):
        changed = with_another_value(machine, leaf)
        assert bool(dm.certify(changed, model)) != reached[leaf]


def test_another_base_score_is_found(forest, machine):
    output = replace(machine.output, base=machine.output.base + 1.0)
    certificate = dm.certify(replace(machine, output=output), forest)
    assert not certificate
    assert certificate.first_disagreement.tree is None
    assert "the whole model" in str(certificate)


def test_a_model_with_other_trees_is_refused(machine):
    X, y = load_breast_cancer(return_X_y=True)
    other = RandomForestClassifier(3, random_state=0).fit(X, y)
    with pytest.raises(dm.InputError, match="8 trees, the model 3"):
        dm.certify(machine, other)


def test_an_object_that_is_no_model_is_refused(machine):
    with pytest.raises(dm.UnsupportedModelError, match="What to do"):
        dm.certify(machine, object())


@settings(deadline=None, max_examples=60)
@given(machines(max_trees=2, max_leaves=12))
def test_every_probe_reaches_the_test_it_probes(machine):
    for tree in range(machine.n_trees):
        found = probe_tree(machine, tree)
        leaves = machine.tree(tree).apply(found.X)[:, 0] + machine.trees.leaf_start[tree]
        is_probe = found.test >= 0
        tests = found.test[is_probe]
        first = machine.structure.first_leaf[tests]
        below = (leaves[is_probe] >= first) & (
            leaves[is_probe] < first + machine.structure.n_leaves[tests]
        )
        assert below.all()


def test_a_path_that_contradicts_itself_is_reported_as_unreachable():
    """x ≤ 1, then x > 2: nothing reaches the test below."""
    machine = dm.DecisionMachine(
        columns=dm.Columns(1),
        selection=np.zeros(3, int),
        t=np.array([1.0, 2.0, 5.0]),
        missing=np.array([-1, -1, -1]),
        children=np.array([[1, ~3], [~0, 2], [~1, ~2]]),
        V=np.arange(4.0)[:, None],
        trees=dm.Trees(np.array([0, 3])),
        output=dm.Output(np.zeros(1)),
    )
    found = probe_tree(machine, 0)
    assert found.reached.tolist() == [True, True, False]
    assert found.both_sides.tolist() == [True, False, False]
