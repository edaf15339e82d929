"""Regression trees with linear leaves: parts, honesty, and what they do with rubbish."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decision_machines.errors import InputError

pytest.importorskip("torch")

from decision_machines.train.regression import linear_leaves_tree
from decision_machines.train.regression.leaf_ridge import (
    LeafSums,
    from_root,
    ridge_from_above,
    ridge_towards,
)
from decision_machines.train.regression.machine import regression_machine
from decision_machines.train.regression.scaled_rows import Units, number_rows
from decision_machines.train.regression.search import RegressionEffort
from decision_machines.train.regression.sweeps import (
    alternate_regression,
    objective,
    sweep_nodes,
)
from decision_machines.train.regression.tree import RegressionTree
from decision_machines.train.rows import Rows

BRIEF = RegressionEffort(n_first=1, n_second=1, first_steps=40, second_steps=40)


def tree(X, y, **options):
    return linear_leaves_tree(X, y, effort=BRIEF, verbose=False, n_threads=1, **options)


def two_planes(m: int, seed: int = 0, noise: float = 0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 3))
    y = np.where(X[:, 0] > X[:, 1], 1 + X[:, 2], 3 * X[:, 0] - X[:, 2])
    return X, y + noise * rng.normal(size=m)


def random_tree(seed: int, depth: int = 3, m: int = 200, q: int = 1):
    """A tree of random tests over rows, with leaves fitted to them."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(m, 3)), rng.normal(size=(m, q))
    weight = rng.integers(1, 4, size=m).astype(float)
    units = Units.of(X, y, linear=True)
    rows = units.rows(Rows(X, y, weight))
    J = 2**depth - 1
    A = rng.normal(size=(J + 1, 4, q))
    found = RegressionTree.of_tests(
        rng.normal(size=(J, 3)), rng.normal(size=J), np.ones(J), A, rows
    )
    return found, rows, units, (X, y, weight)


# ---------------------------------------------------------------------- leaves in closed form


@given(st.integers(0, 10_000), st.floats(1e-3, 1e3))
@settings(max_examples=20, deadline=None)
def test_a_leaf_is_the_ridge_regression_of_its_rows(seed, ridge):
    rng = np.random.default_rng(seed)
    U = np.c_[rng.normal(size=(30, 2)), np.ones(30)]
    y, weight = rng.normal(size=(30, 2)), rng.uniform(0.5, 2, size=30)
    exits, prior = rng.integers(0, 2, size=30), rng.normal(size=(2, 3, 2))
    A = ridge_towards(LeafSums.of(U, y, weight, exits, 2), prior, ridge)
    for leaf in range(2):
        own = exits == leaf
        # Stacked rows: the same problem as ordinary least squares.
        root = np.sqrt(weight[own])[:, None]
        left = np.vstack([U[own] * root, np.sqrt(ridge) * np.eye(3)])
        right = np.vstack([y[own] * root, np.sqrt(ridge) * prior[leaf]])
        expected = np.linalg.lstsq(left, right, rcond=None)[0]
        np.testing.assert_allclose(A[leaf], expected, rtol=1e-6, atol=1e-8)


def test_a_strong_ridge_from_above_gives_every_leaf_one_function():
    rng = np.random.default_rng(0)
    U, y = np.c_[rng.normal(size=(90, 2)), np.ones(90)], rng.normal(size=(90, 1))
    sums = LeafSums.of(U, y, np.ones(90), rng.integers(0, 4, size=90), 4)
    A = ridge_from_above(sums, 1e12, root_ridge=0.0)
    everywhere = np.linalg.lstsq(U, y, rcond=None)[0]
    np.testing.assert_allclose(A, np.broadcast_to(everywhere, A.shape), rtol=1e-6, atol=1e-7)


def test_a_leaf_without_rows_has_its_parents_function():
    rng = np.random.default_rng(0)
    U, y = np.c_[rng.normal(size=(60, 2)), np.ones(60)], rng.normal(size=(60, 1))
    sums = LeafSums.of(U, y, np.ones(60), rng.integers(0, 2, size=60) * 2, 4)
    A = from_root(sums, np.zeros((1, 3, 1)), 1.0)
    parents = from_root(sums.above(), np.zeros((1, 3, 1)), 1.0)
    np.testing.assert_allclose(A[1::2], parents)


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.1, 0.3]))
@settings(max_examples=20, deadline=None)
def test_ranges_are_quantiles_of_each_leafs_answers_by_weight(seed, share):
    found, rows, _, _ = random_tree(seed, depth=2)
    exits = found.exit_leaves(rows.Z)
    low, high = found.ranges(exits, rows).without(share)
    answer = found.predict(rows)[:, 0]
    for leaf in np.unique(exits):
        own = exits == leaf
        weight = rows.weight[own]
        below = weight[answer[own] < low[leaf] - 1e-12].sum()
        above = weight[answer[own] > high[leaf] + 1e-12].sum()
        assert max(below, above) <= share * weight.sum() + 1e-9
        assert low[leaf] in answer[own] or np.isclose(answer[own], low[leaf]).any()
        if share == 0:
            np.testing.assert_allclose(
                [low[leaf], high[leaf]], [answer[own].min(), answer[own].max()]
            )


# ---------------------------------------------------------------------- sweeps


@given(st.integers(0, 10_000), st.integers(1, 2))
@settings(max_examples=10, deadline=None)
def test_a_sweep_over_nodes_never_raises_the_error(seed, q):
    found, rows, _, _ = random_tree(seed, q=q)
    swept = sweep_nodes(found, rows)
    assert rows.loss(swept.predict(rows)) <= rows.loss(found.predict(rows)) * (1 + 1e-9)


@given(st.integers(0, 10_000))
@settings(max_examples=8, deadline=None)
def test_alternation_never_raises_its_objective(seed):
    found, rows, _, _ = random_tree(seed)
    before = objective(found, rows, found.A, 3.0)
    for n_sweeps in (1, 2, 3):
        swept = alternate_regression(found, rows, found.A, ridge=3.0, n_sweeps=n_sweeps)
        now = objective(swept, rows, found.A, 3.0)
        assert now <= before * (1 + 1e-9)
        before = now


def test_a_sweep_finds_the_test_between_two_planes():
    X, y = two_planes(400, noise=0.0)
    units = Units.of(X, y[:, None], linear=True)
    rows = units.rows(Rows(X, y[:, None], np.ones(len(X))))
    is_right = X[:, 0] > X[:, 1]
    A = ridge_towards(
        LeafSums.of(rows.U, rows.y, rows.weight, is_right.astype(int), 2), np.zeros((2, 4, 1)), 1e-9
    )
    wrong = RegressionTree.of_tests(np.array([[0.0, 0.0, 1.0]]), np.zeros(1), np.ones(1), A, rows)
    swept = sweep_nodes(wrong, rows)
    assert rows.loss(swept.predict(rows)) < 0.05 < 0.2 < rows.loss(wrong.predict(rows))


# ---------------------------------------------------------------------- into a machine


@given(st.integers(0, 10_000), st.integers(1, 2), st.booleans(), st.booleans())
@settings(max_examples=20, deadline=None)
def test_the_machine_answers_as_the_tree_in_training(seed, q, low, high):
    found, rows, units, (X, _, _) = random_tree(seed, q=q)
    if q == 1:
        found = found.capped(found.ranges(found.exit_leaves(rows.Z), rows), 0.05, low, high)
    machine, slope = regression_machine(found, units, "test")
    assert len(slope) == machine.n_tests
    answer = machine.margin(X)
    expected = units.centre + units.spread * found.predict(rows)
    np.testing.assert_allclose(answer, expected, rtol=1e-9, atol=1e-9)
    for engine in ("walk", "reference"):
        np.testing.assert_allclose(machine.margin(X, engine=engine), answer, rtol=1e-12)


def test_caps_hold_the_answers_of_far_rows_within_those_of_training():
    found, rows, units, (X, _, _) = random_tree(3)
    ranges = found.ranges(found.exit_leaves(rows.Z), rows)
    capped, _ = regression_machine(found.capped(ranges, 0.0, True, True), units, "test")
    open_, _ = regression_machine(found, units, "test")
    seen, far = capped.predict(X), 100 * X
    np.testing.assert_allclose(seen, open_.predict(X), rtol=1e-9, atol=1e-9)
    assert np.ptp(capped.predict(far)) <= np.ptp(seen) * (1 + 1e-9)
    assert np.ptp(open_.predict(far)) > 10 * np.ptp(seen)


def test_a_test_that_divides_no_rows_is_not_in_the_machine():
    found, rows, units, (X, _, _) = random_tree(5, depth=2)
    t = found.t.copy()
    t[0] = 1e6
    closed = replace(found, t=t).settled(rows)
    machine, _ = regression_machine(closed, units, "test")
    assert machine.n_tests == 1
    expected = units.centre + units.spread * closed.predict(rows)
    np.testing.assert_allclose(machine.margin(X), expected, rtol=1e-9)


# ---------------------------------------------------------------------- the whole


def test_a_tree_of_linear_leaves_beats_one_linear_function_and_constants():
    X, y = two_planes(600)
    X_test, y_test = two_planes(600, seed=1, noise=0.0)
    effort = RegressionEffort(n_first=2, n_second=2, first_steps=150, second_steps=200)
    fit = linear_leaves_tree(X, y, depth=2, effort=effort, verbose=False, n_threads=1)
    ours = np.mean((fit.machine.predict(X_test) - y_test) ** 2)
    U = np.c_[X, np.ones(len(X))]
    line = np.c_[X_test, np.ones(len(X))] @ np.linalg.lstsq(U, y, rcond=None)[0]
    constant = tree(X, y, depth=2, leaves="constant").machine
    assert constant.linear is None
    assert ours < 0.2 * np.mean((line - y_test) ** 2)
    assert ours < 0.2 * np.mean((constant.predict(X_test) - y_test) ** 2)


def test_the_report_tells_the_error_of_the_machine_on_the_given_validation_rows():
    X, y = two_planes(300)
    valid = two_planes(100, seed=1)
    fit = tree(X, y, depth=3, validation=valid)
    error = np.sqrt(np.mean((fit.machine.predict(valid[0]) - valid[1]) ** 2))
    assert fit.report["validation RMSE"] == pytest.approx(error, rel=1e-9)
    assert fit.machine.depth <= 3


def test_the_same_seed_gives_the_same_tree():
    X, y = two_planes(200)
    assert tree(X, y, depth=2, seed=3).machine.equals(tree(X, y, depth=2, seed=3).machine)


def test_units_of_features_and_targets_do_not_matter():
    X, y = two_planes(300)
    plain = tree(X, y, depth=2).machine.predict(X)
    scale, shift = np.array([1e-30, 1e30, 1.0]), np.array([0.0, 1e30, -5.0])
    turned = tree(X * scale + shift, 1e25 * y + 1e25, depth=2).machine.predict(X * scale + shift)
    np.testing.assert_allclose(turned / 1e25 - 1, plain, atol=0.35)
    assert np.corrcoef(turned, plain)[0, 1] > 0.99


def test_a_weight_of_0_is_a_row_left_out():
    X, y = two_planes(200)
    rubbish = np.where(np.arange(200) % 4 == 0, 1e6, y)
    weight = (np.arange(200) % 4 != 0).astype(float)
    valid = two_planes(50, seed=1)
    kept = weight > 0
    weighted = tree(X, rubbish, depth=2, sample_weight=weight, validation=valid).machine
    without = tree(X[kept], y[kept], depth=2, validation=valid).machine
    np.testing.assert_allclose(weighted.predict(X), without.predict(X))


def test_several_targets_are_learned_by_one_tree():
    X, y = two_planes(300)
    both = np.c_[y, 1000 * X[:, 2] + 7]
    machine = tree(X, both, depth=2).machine
    answer = machine.predict(X)
    assert answer.shape == both.shape
    assert np.all(((answer - both) ** 2).mean(0) < 0.5 * both.var(0))


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_holes_in_the_features_are_answered_with_sense(share):
    rng = np.random.default_rng(0)
    X, y = two_planes(500)
    X[rng.random(X.shape) < share] = np.nan
    machine = tree(X, y, depth=3).machine
    answer = machine.predict(X)
    assert np.isfinite(answer).all()
    assert np.mean((answer - y) ** 2) < 0.8 * y.var()
    assert np.isfinite(machine.predict(np.full((1, 3), np.nan))).all()


def test_a_nan_met_first_when_predicting_gives_a_number_within_reason():
    X, y = two_planes(300)
    machine = tree(X, y, depth=2).machine
    X = X.copy()
    X[:, 1] = np.nan
    answer = machine.predict(X)
    assert np.isfinite(answer).all()
    assert y.min() <= answer.min()
    assert answer.max() <= y.max()


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.ones((30, 2)), np.arange(30.0)),
        (np.arange(30.0)[:, None], np.full(30, 7.0)),
        (np.array([[0.0], [1.0]]), np.array([1.0, 3.0])),
        (np.array([[2.0, 3.0]]), np.array([4.0])),
        (np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0), np.repeat([0.0, 1.0], 20)),
        (np.c_[np.arange(40.0), np.full(40, np.nan)], np.arange(40.0)),
        (np.full((25, 2), np.nan), np.arange(25.0)),
    ],
    ids=[
        "constant features",
        "constant target",
        "two rows",
        "one row",
        "duplicates",
        "a hole",
        "holes",
    ],
)
@pytest.mark.parametrize("leaves", ["linear", "constant"])
def test_rubbish_gives_a_tree_all_the_same(X, y, leaves):
    answer = tree(X, y, depth=3, leaves=leaves).machine.predict(X)
    assert np.isfinite(answer).all()
    assert y.min() - 1 <= answer.min()
    assert answer.max() <= y.max() + 1


def test_the_soft_module_answers_near_the_machine():
    import torch

    X, y = two_planes(300)
    fit = tree(X, y, depth=2)
    with torch.no_grad():
        soft = fit.soft(torch.from_numpy(X)).numpy().reshape(-1)
    assert np.isfinite(soft).all()
    assert np.corrcoef(soft, fit.machine.predict(X))[0, 1] > 0.9
    assert fit.soft.harden().equals(fit.machine)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"depth": -1}, "depth=-1"),
        ({"depth": 2.5}, "depth=2.5"),
        ({"leaves": "cubic"}, "cubic"),
        ({"X": np.array([[np.inf], [0.0]])}, "is inf"),
        ({"y": np.array([np.nan, 0.0])}, "nan"),
        ({"y": np.zeros(3)}, "shape"),
        ({"X": np.zeros((2, 0))}, "0 features"),
        ({"sample_weight": np.array([1.0, -1.0])}, "weight"),
        ({"sample_weight": np.zeros(2)}, "weight 0"),
        ({"X": np.array([["a"], ["b"]])}, "not an array of numbers"),
        ({"validation": (np.zeros((2, 3)), np.zeros(2))}, "3 features"),
    ],
)
def test_what_cannot_be_learned_from_is_refused_in_words(change, words):
    arguments = {"X": np.array([[0.0], [1.0]]), "y": np.array([0.0, 1.0])} | change
    with pytest.raises(InputError, match=words):
        tree(arguments.pop("X"), arguments.pop("y"), **arguments)


def test_checked_rows_keep_their_order():
    rows = number_rows([[1, 2], [3, 4], [5, 6]], [1, 2, 3], [1, 0, 2])
    assert rows.X.tolist() == [[1, 2], [5, 6]]
    assert rows.y.tolist() == [[1], [3]]
    assert rows.w.tolist() == [0.5, 1.0]


def test_oblique_tree_hands_its_effort_on():
    from decision_machines.train.oblique import oblique_tree

    X, y = two_planes(100)
    effort = RegressionEffort(n_first=1, n_second=1, first_steps=1, second_steps=1)
    fits = [
        made(X, y, depth=2, effort=effort, leaves="linear", n_threads=1, verbose=False)
        for made in (oblique_tree, linear_leaves_tree)
    ]
    assert len(fits[0].history) == len(fits[1].history)
    np.testing.assert_array_equal(*(fit.machine.predict(X) for fit in fits))
