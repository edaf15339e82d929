"""Optimal trees against all trees there are, on data small enough to try them all."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decision_machines import _native
from decision_machines.train.optimal import optimal_tree
from decision_machines.train.optimal.losses import leaf_values, mean_loss
from decision_machines.train.optimal.orders import orders_of
from decision_machines.train.optimal.tree import Limits
from decision_machines.train.rows import Rows


def all_tests(x, is_labels):
    """What goes left, for every test of a feature whose values are x; gaps on either side."""
    known = np.unique(x[~np.isnan(x)])
    chosen = [known[: i + 1] for i in range(len(known))]
    if is_labels:
        chosen = [
            known[[i for i in range(len(known)) if s >> i & 1]] for s in range(2 ** len(known))
        ]
    for values in chosen:
        goes_left = np.isin(x, values)
        yield from (goes_left, goes_left | np.isnan(x))


def best_of_all(rows, criterion, k, limits, label_features=()):
    """The least objective of any tree, by trying every test, gaps on either side of it."""
    X, y, w = rows.X, rows.y, rows.w
    cost = limits.leaf_penalty * w.sum()

    @functools.cache
    def best(which, depth, leaves):
        own = np.array(which)
        value = np.inf
        if len(own) >= limits.min_samples_leaf:
            zeros = np.zeros(len(own), int)
            said = leaf_values(criterion, y[own], w[own], zeros, 1, k)[zeros]
            value = mean_loss(criterion, y[own], w[own], said) * w[own].sum() + cost
        if depth == 0 or leaves == 1:
            return value
        for f, x in enumerate(X[own].T):
            for goes_left in all_tests(x, f in label_features):
                if goes_left.all() or not goes_left.any():
                    continue
                left, right = tuple(own[goes_left].tolist()), tuple(own[~goes_left].tolist())
                for n in range(1, leaves):
                    found = best(left, depth - 1, n) + best(right, depth - 1, leaves - n)
                    value = min(value, found)
        return value

    most = limits.most_leaves
    return best(tuple(range(len(y))), limits.max_depth, most) / w.sum()


@st.composite
def problems(draw, most_rows=9):
    m = draw(st.integers(1, most_rows))
    n = draw(st.integers(1, 3))
    value = st.sampled_from([0.0, 1.0, 2.0, 3.5, 7.0, np.nan])
    X = np.array(draw(st.lists(value, min_size=m * n, max_size=m * n))).reshape(m, n)
    weight = draw(st.sampled_from([[1.0], [1.0, 2.0, 5.0], [0.3, 1.0, 2.7]]))
    w = np.array(draw(st.lists(st.sampled_from(weight), min_size=m, max_size=m)))
    criterion = draw(st.sampled_from(["error", "squared_error", "absolute_error"]))
    if criterion == "error":
        k = draw(st.integers(1, 4))
        y = np.array(draw(st.lists(st.integers(0, k - 1), min_size=m, max_size=m)))
    else:
        k = draw(st.integers(1, 2))
        number = st.sampled_from([-3.0, 0.0, 0.5, 1.0, 10.0])
        y = np.array(draw(st.lists(number, min_size=m * k, max_size=m * k))).reshape(m, k)
    limits = Limits(
        max_depth=draw(st.integers(0, 4)),
        max_leaves=draw(st.sampled_from([None, 1, 2, 3, 4, 5, 7])),
        leaf_penalty=draw(st.sampled_from([0.0, 0.0, 0.05, 0.2])),
        min_samples_leaf=draw(st.sampled_from([1, 1, 2, 3])),
    )
    return Rows(X, y, w), criterion, k, limits


def solve(rows, criterion, k, limits, **more):
    n_classes = k if criterion == "error" else None
    more = {"n_threads": 1, "verbose": False} | more
    return optimal_tree(rows, n_classes=n_classes, criterion=criterion, limits=limits, **more)


@settings(max_examples=150, deadline=None)
@given(problems())
def test_no_tree_is_better(problem):
    rows, criterion, k, limits = problem
    fit = solve(*problem)
    truth = best_of_all(rows, criterion, k, limits)
    if np.isinf(truth):  # no leaf can have so many rows: one leaf for all remains
        assert fit.machine.n_leaves == 1
        return
    assert fit.report["objective"] == pytest.approx(truth, abs=1e-8)
    assert fit.report["is_optimal"]
    assert fit.report["gap"] == 0.0


def fewest_errors(X, y, depth):
    """Of any tree for two classes, by trying every cut on every level."""
    best = min(y.sum(), len(y) - y.sum())
    if depth == 0 or best == 0:
        return best
    for x in X.T:
        order = np.argsort(x)
        own, label = X[order], y[order]
        cuts = np.flatnonzero(np.diff(x[order])) + 1
        if depth == 1:
            left = np.cumsum(label)[cuts - 1]
            right, behind = label.sum() - left, len(y) - cuts
            lost = np.minimum(left, cuts - left) + np.minimum(right, behind - right)
            best = lost.min(initial=best)
            continue
        for cut in cuts:
            left = fewest_errors(own[:cut], label[:cut], depth - 1)
            if left < best:
                best = min(best, left + fewest_errors(own[cut:], label[cut:], depth - 1))
    return best


@pytest.mark.parametrize(
    ("depth", "m", "n", "digits"), [(2, 70, 4, 2), (2, 90, 3, 1), (3, 24, 3, 2), (3, 40, 5, 0)]
)
def test_no_tree_is_better_among_many_cuts(depth, m, n, digits):
    """So many that intervals are halved often, and most cuts left out."""
    for seed in range(12 if m == 24 else 30):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(m, n)).round(digits)
        y = ((X[:, 0] * X[:, 1] > 0) ^ (rng.random(m) < 0.25)).astype(int)
        fit = solve(Rows(X, y, np.ones(m)), "error", 2, Limits(depth))
        assert round(fit.report["objective"] * m) == fewest_errors(X, y, depth)
        assert fit.report["is_optimal"]


@settings(max_examples=60, deadline=None)
@given(problems(most_rows=8), st.data())
def test_no_tree_of_sets_of_labels_is_better(problem, data):
    rows, criterion, k, limits = problem
    codes = data.draw(st.lists(st.sampled_from([0.0, 1.0, 2.0, 4.0, np.nan]), min_size=len(rows),
                               max_size=len(rows)))  # fmt: skip
    rows = Rows(np.column_stack([rows.X, codes]), rows.y, rows.w)
    labels = [rows.X.shape[1] - 1]
    fit = solve(rows, criterion, k, limits, label_features=labels)
    truth = best_of_all(rows, criterion, k, limits, labels)
    assert np.isinf(truth) or fit.report["objective"] == pytest.approx(truth, abs=1e-8)


@settings(max_examples=100, deadline=None)
@given(problems(most_rows=12))
def test_no_bound_on_the_way_is_above_the_best_tree(problem):
    rows, criterion, k, limits = problem
    limits = replace(limits, max_depth=max(3, limits.max_depth), max_leaves=limits.max_leaves or 8)
    fit = solve(rows, criterion, k, limits)
    truth = fit.report["objective"]
    said = [row["bound"] for row in fit.history]
    assert all(bound <= truth + 1e-8 for bound in said)
    assert said == sorted(said)
    assert all(row["objective"] >= truth - 1e-8 for row in fit.history)


@settings(max_examples=60, deadline=None)
@given(problems())
def test_the_machine_has_the_objective_and_keeps_the_limits(problem):
    rows, criterion, _k, limits = problem
    fit = solve(*problem)
    machine = fit.machine
    said = machine.margin(rows.X)
    own = mean_loss(criterion, rows.y, rows.w, said) + limits.leaf_penalty * machine.n_leaves
    assert own == pytest.approx(fit.report["objective"], abs=1e-12)
    assert machine.depth <= limits.max_depth
    assert machine.n_leaves <= limits.most_leaves
    if machine.n_leaves > 1:
        count = np.bincount(machine.apply(rows.X)[:, 0], minlength=machine.n_leaves)
        assert count.min() >= limits.min_samples_leaf


def noisy(m=400, n=4, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n)).round(2)
    z = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + rng.normal(scale=0.5, size=m)
    y = np.digitize(z, np.quantile(z, np.arange(1, classes) / classes))
    return X, y, z


@pytest.mark.parametrize("criterion", ["error", "squared_error", "absolute_error"])
@pytest.mark.parametrize("seconds", [1e-6, 0.02, 0.1])
def test_a_bound_is_true_when_the_time_is_up(criterion, seconds):
    X, y, z = noisy(m=120 if criterion == "absolute_error" else 300)
    target = y if criterion == "error" else z[:, None]
    rows, k = Rows(X, target, np.ones(len(X))), 2 if criterion == "error" else 1
    whole = solve(rows, criterion, k, Limits(max_depth=3))
    early = solve(rows, criterion, k, Limits(max_depth=3, time_limit=seconds))
    truth = whole.report["objective"]
    assert whole.report["is_optimal"]
    assert early.report["bound"] <= truth + 1e-9 <= early.report["objective"] + 2e-9
    assert early.report["gap"] == early.report["objective"] - early.report["bound"]
    if not early.report["is_optimal"]:
        assert early.report["gap"] > 0


@pytest.mark.parametrize(("depth", "m"), [(3, 300), (4, 60)])
@pytest.mark.parametrize("criterion", ["error", "squared_error"])
def test_threads_change_nothing(criterion, depth, m):
    X, y, z = noisy(m=m, classes=3)
    target = y if criterion == "error" else z[:, None]
    rows, k = Rows(X, target, np.ones(len(X))), 3 if criterion == "error" else 1
    check_threads(rows, criterion, k, depth)


def test_threads_do_not_choose_among_trees_that_are_as_good():
    for seed in range(15):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 30, (120, 5)).astype(float)
        check_threads(Rows(X, rng.integers(0, 2, 120), np.ones(120)), "error", 2, 3)


def check_threads(rows, criterion, k, depth):
    fits = [solve(rows, criterion, k, Limits(depth), n_threads=n) for n in (1, 3)]
    assert fits[0].report["root_cuts"] == fits[1].report["root_cuts"]
    one, two = (fit.machine for fit in fits)
    assert np.array_equal(one.t, two.t)
    assert np.array_equal(one.V, two.V)
    assert np.array_equal(one.children, two.children)


@pytest.mark.parametrize("target", _native.targets())
@pytest.mark.parametrize("kind", ["two", "many", "weighted", "heavy", "squares", "two targets"])
def test_every_target_finds_the_same_tree(target, kind):
    X, y, z = noisy(m=200, classes=5 if kind == "many" else 2)
    w = np.ones(len(X))
    if kind == "weighted":
        w = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    if kind == "heavy":
        w = np.full(len(X), 1000.0)  # sums beyond 16 bits
    criterion, k = "error", int(y.max()) + 1
    if kind in ("squares", "two targets"):
        criterion, k = "squared_error", 1 + (kind == "two targets")
        y = np.stack([z, X[:, 3]][:k], axis=1)
    plain, other = (
        solve(Rows(X, y, w), criterion, k, Limits(max_depth=2), target=name).machine
        for name in ("scalar", target)
    )
    assert np.array_equal(plain.t, other.t)
    assert np.array_equal(plain.V, other.V)


def test_whole_weights_are_rows_given_often():
    X, y, _ = noisy(m=150)
    w = np.random.default_rng(3).integers(1, 4, len(X)).astype(float)
    one = solve(Rows(X, y, w), "error", 2, Limits(max_depth=3))
    often = np.repeat(np.arange(len(X)), w.astype(int))
    many = solve(Rows(X[often], y[often], np.ones(len(often))), "error", 2, Limits(max_depth=3))
    assert one.report["objective"] == pytest.approx(many.report["objective"], abs=1e-12)


def test_a_large_offset_of_the_target_changes_nothing():
    X, _, z = noisy(m=200)
    trees = [
        solve(Rows(X, (z + by)[:, None], np.ones(len(X))), "squared_error", 1, Limits(max_depth=3))
        for by in (0.0, 1e6)
    ]
    assert np.array_equal(trees[0].machine.t, trees[1].machine.t)


def test_sets_of_labels_are_all_tried():
    """The best set is no cut of any order by what labels give on average."""
    codes = np.repeat(np.arange(4.0), 6)
    number = np.tile(np.arange(6.0), 4)
    y = (np.isin(codes, [0, 3]) ^ (number > 2)).astype(int)
    rows = Rows(np.stack([codes, number], axis=1), y, np.ones(24))
    limits = Limits(max_depth=2)
    assert solve(rows, "error", 2, limits).report["objective"] > 0
    found = optimal_tree(rows, n_classes=2, limits=limits, label_features=[0], verbose=False)
    assert found.report["objective"] == 0


def test_orders_hold_every_way_to_put_gaps():
    X = np.array([[np.nan, 1.0], [2.0, 0.0], [1.0, 1.0]])
    orders, rank = orders_of(X, [], [], "testing")
    assert [(order.feature, order.missing) for order in orders] == [
        (0, "before"),
        (0, "behind"),
        (1, "none"),
    ]
    assert rank.tolist() == [[0, 2, 1], [2, 1, 0], [1, 0, 1]]
