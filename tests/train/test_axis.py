"""Hard axis-aligned trees: the search, and what comes of it."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine, make_friedman1
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from strategies import margins_of, probe_rows, walk_all

import decision_machines as dm
from decision_machines.train.axis import axis_tree
from decision_machines.train.axis.ranks import Ranks
from decision_machines.train.axis.search import Limits, Searches, Setting, out_of_bag, principal
from decision_machines.train.axis.standard_rows import standard_rows

QUICK = {"n_iterations": 40, "n_threads": 1, "verbose": False}


# -- the search -----------------------------------------------------------------------------------


def searches_on(X, y, n_classes, setting, max_leaves=8, max_depth=None):
    rows = standard_rows(X, y, None, n_classes)
    return Searches(rows, Ranks.of(rows.X), [setting], Limits(max_leaves, max_depth, 0, 1))


def wines():
    X, y = load_wine(return_X_y=True)
    return np.where(np.random.default_rng(0).random(X.shape) < 0.05, np.nan, X), y


@pytest.mark.parametrize("aim", [{}, {"gini": 0, "entropy": 1}, {"gini": 0.3, "error": 1}])
def test_the_loss_never_rises_and_the_leaves_are_never_too_many(aim):
    X, y = wines()
    found = searches_on(X, y % 2, 2, Setting(**aim, least=2, n_moves=60, temperature=0.1), 5)
    list(found.grow())
    losses = [found.loss(0)]
    for part in np.linspace(0, 1, 13)[1:]:
        list(found.advance(part))
        losses.append(found.loss(0))
        nodes = found.nodes(0)
        assert nodes.n_leaves <= 5
        sizes = np.bincount(nodes.exits(found.rows.X), minlength=len(nodes.left))
        assert sizes[nodes.left < 0].min() >= 2
    assert np.all(np.diff(losses) <= 1e-12)
    assert losses[-1] < losses[0]


def test_the_loss_reported_is_that_of_the_tree():
    X, y = load_diabetes(return_X_y=True)
    found = searches_on(X, y, None, Setting(n_moves=30))
    list(found.grow())
    list(found.advance(1.0))
    nodes, rows = found.nodes(0), found.rows
    exits = nodes.exits(rows.X)
    said = nodes.values(rows.y, rows.w, exits)[0][exits]
    assert found.loss(0) == pytest.approx(np.mean((said - rows.y) ** 2))


def test_another_search_goes_on_from_an_adopted_tree():
    X, y = wines()
    first = searches_on(X, y, 3, Setting(n_moves=20))
    list(first.grow())
    list(first.advance(1.0))
    second = searches_on(X, y, 3, Setting(gini=0, error=1, n_moves=20))
    second.adopt(0, first.nodes(0))
    nodes = second.nodes(0)
    for name in ("left", "right", "feature", "t", "missing_left"):
        assert np.array_equal(getattr(nodes, name), getattr(first.nodes(0), name)), name
    exits = nodes.exits(first.rows.X)
    said = nodes.values(first.rows.answers(), first.rows.w, exits)[0][exits]
    errors = np.mean(said.argmax(axis=1) != y)
    assert second.loss(0) == pytest.approx(errors)
    list(second.advance(1.0))
    assert second.loss(0) <= errors


def teach(rows, ranks, limits):
    *_, said = out_of_bag(rows, ranks, limits, 48)
    return said


def test_a_forest_says_nothing_of_a_row_that_it_learned_from_that_row():
    X, y = wines()
    ranks, limits = Ranks.of(X), Limits(8, None, 5, 1)
    other = np.where(np.arange(len(y)) == 7, 2, y)
    first, second = (standard_rows(X, target, None, 3) for target in (y, other))
    said, again = (teach(rows, ranks, limits) for rows in (first, second))
    assert y[7] != other[7]
    assert np.array_equal(said[7], again[7])
    assert not np.array_equal(said, again)
    assert np.mean(said.argmax(axis=1) == y) > 0.9
    assert np.array_equal(teach(first, ranks, Limits(8, None, 5, 3)), said)


def test_principal_directions_keep_distances_where_there_are_few():
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((50, 3)) @ rng.standard_normal((3, 9))
    narrow = principal(wide)
    assert narrow.shape == (50, 6)
    assert np.linalg.norm(wide[0] - wide[1]) == pytest.approx(np.linalg.norm(narrow[0] - narrow[1]))


@given(st.integers(0, 2**32 - 1), st.floats(0, 100))
def test_shrunken_values_stay_between_and_keep_the_mean_of_a_stump(seed, shrink):
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(size=(40, 1)), rng.standard_normal((40, 1))
    found = searches_on(X, y, None, Setting(), 2)
    list(found.grow())
    nodes, rows = found.nodes(0), found.rows
    plain, shrunk = nodes.values(rows.y, rows.w, nodes.exits(X), (0.0, shrink))
    assert np.all(np.abs(shrunk - plain[0]) <= np.abs(plain - plain[0]) + 1e-12)
    assert np.average(shrunk[nodes.exits(X)]) == pytest.approx(np.average(rows.y), abs=1e-9)


def test_greedy_growth_does_as_well_as_scikit_learns():
    X, y = load_breast_cancer(return_X_y=True)
    found = searches_on(X, y, 2, Setting(), 12)
    list(found.grow())
    theirs = DecisionTreeClassifier(max_leaf_nodes=12, random_state=0).fit(X, y)
    p = theirs.predict_proba(X)
    assert found.nodes(0).n_leaves == 12
    assert found.loss(0) == pytest.approx(np.mean(1 - (p**2).sum(axis=1)), rel=0.02)
    X, y = load_diabetes(return_X_y=True)
    found = searches_on(X, y, None, Setting(least=7), 12, max_depth=4)
    list(found.grow())
    theirs = DecisionTreeRegressor(max_leaf_nodes=12, min_samples_leaf=7, max_depth=4).fit(X, y)
    assert found.loss(0) == pytest.approx(1 - theirs.score(X, y), rel=1e-6)


def test_the_search_finds_what_greed_cannot():
    # A chessboard of 4 × 4: no single test helps, 16 leaves tell all.
    X = np.random.default_rng(3).uniform(size=(1500, 2))
    y = (np.floor(X * 4).sum(axis=1) % 2).astype(int)
    greedy = axis_tree(X, y, n_classes=2, max_leaves=16, **QUICK | {"n_iterations": 0})
    fit = axis_tree(X, y, n_classes=2, max_leaves=16, **QUICK | {"n_iterations": 300})
    assert np.mean(fit.machine.predict(X) == y) > 0.95 > np.mean(greedy.machine.predict(X) == y)


# -- what comes of it -----------------------------------------------------------------------------


@pytest.mark.parametrize("max_leaves", [1, 2, 5, 16])
def test_the_machine_is_the_tree(max_leaves):
    X, y = wines()
    fit = axis_tree(X, y, n_classes=3, max_leaves=max_leaves, **QUICK)
    machine = fit.machine
    assert machine.n_leaves <= max_leaves
    assert np.allclose(machine.V.sum(axis=1), 1)
    assert machine.V.min() >= 0
    assert np.array_equal(machine.apply(X), walk_all(machine, X))
    assert set(np.unique(machine.predict(X))) <= {0, 1, 2}
    assert fit.report["leaves"] == machine.n_leaves


def test_it_equals_its_own_plain_walk_at_every_threshold_and_beside():
    X, y = wines()
    machine = axis_tree(X, y, n_classes=3, max_leaves=8, **QUICK).machine
    probes = probe_rows(machine)
    assert np.array_equal(machine.apply(probes), walk_all(machine, probes))
    assert np.array_equal(machine.margin(probes), margins_of(machine, probes))


def test_it_pickles_and_names_its_classes():
    X, y = wines()
    machine = axis_tree(X, y, classes=["a", "b", "c"], max_leaves=6, **QUICK).machine
    again = pickle.loads(pickle.dumps(machine))
    assert np.array_equal(again.predict(X), machine.predict(X))
    assert set(machine.predict(X)) == {"a", "b", "c"}


def test_limits_are_kept():
    X, y = make_friedman1(300, random_state=0)
    fit = axis_tree(X, y, max_leaves=20, max_depth=3, min_samples_leaf=15, **QUICK)
    assert fit.machine.n_leaves <= 8
    assert fit.machine.structure.leaf_depth.max() <= 3
    assert np.bincount(fit.machine.apply(X)[:, 0]).min() >= 15


def test_the_same_seed_gives_the_same_tree_on_any_number_of_threads():
    X, y = wines()
    one, two, other = (
        axis_tree(X, y, n_classes=3, max_leaves=6, **QUICK | {"n_threads": n, "seed": seed}).machine
        for n, seed in ((1, 4), (3, 4), (1, 5))
    )
    for name in ("selection", "t", "children", "V", "missing"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
    assert not np.array_equal(one.V, other.V)


def test_validation_decides_and_is_never_worse_than_greed():
    X, y = make_friedman1(600, noise=2.0, random_state=1)
    fit = axis_tree(X[:400], y[:400], validation=(X[400:], y[400:]), max_leaves=16, **QUICK)
    assert fit.report["valid"] <= fit.report["valid_greedy"]
    assert [row["step"] for row in fit.history] == list(range(1, len(fit.history) + 1))


def test_weights_count_as_rows_do():
    X, y = make_friedman1(60, random_state=2)
    twice = np.arange(60) % 3 == 0
    options = {"max_leaves": 6, "n_iterations": 0, "verbose": False, "n_threads": 1}
    validation = make_friedman1(60, random_state=3)
    weighed = axis_tree(X, y, sample_weight=1.0 + twice, validation=validation, **options)
    repeated = axis_tree(
        np.concatenate([X, X[twice]]),
        np.concatenate([y, y[twice]]),
        validation=validation,
        **options,
    )
    if weighed.report["setting"]["least"] == 1 == repeated.report["setting"]["least"]:
        assert np.allclose(weighed.machine.predict(X), repeated.machine.predict(X))


def test_rows_of_no_weight_are_not_there():
    X, y = wines()
    w = np.ones(len(y))
    w[y == 2] = 0
    fit = axis_tree(X, y, n_classes=3, sample_weight=w, max_leaves=4, **QUICK)
    assert np.all(fit.machine.predict_proba(X)[:, 2] == 0)


def test_several_outputs_share_one_tree():
    X, y = make_friedman1(300, random_state=0)
    Y = np.stack([y, 1e6 * X[:, 5] - 3e5], axis=1)
    fit = axis_tree(X, Y, max_leaves=16, **QUICK)
    assert fit.machine.predict(X).shape == (300, 2)
    assert np.corrcoef(fit.machine.predict(X)[:, 1], Y[:, 1])[0, 1] > 0.9


def test_missing_values_go_where_they_help():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(400, 2))
    X[rng.random(400) < 0.3, 0] = np.nan
    y = np.where(np.isnan(X[:, 0]), 1, 0)
    machine = axis_tree(X, y, n_classes=2, max_leaves=2, **QUICK).machine
    assert np.array_equal(machine.predict(X), y)
    assert machine.predict([[1e300, 0.5]])[0] == 0  # no value is a missing one


@pytest.mark.parametrize("sign", [1, -1])
def test_of_tests_that_part_rows_alike_the_widest_gap_is_taken(sign):
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    narrow = y + 0.9 * rng.uniform(size=200)
    wide = sign * (100 * y + rng.uniform(size=200))
    machine = axis_tree(np.stack([narrow, wide], axis=1), y, n_classes=2, **QUICK).machine
    assert machine.selection.tolist() == [1]
    assert 1 < abs(machine.t[0]) < 100
    assert machine.predict([[0.5, sign * 100], [1.5, 0]]).tolist() == [1, 0]


def test_it_can_be_interrupted(monkeypatch):
    X, y = wines()
    calls = []

    def interrupt(self, part, which=None):
        calls.append(part)
        if len(calls) == 2:
            raise KeyboardInterrupt
        yield

    monkeypatch.setattr(Searches, "advance", interrupt)
    options = {"n_classes": 3, "max_leaves": 6, **QUICK}
    fit = axis_tree(X, y, **options, keep_best_on_interrupt=True)
    assert fit.report["interrupted"]
    assert len(calls) == 2
    assert np.mean(fit.machine.predict(X) == y) > 0.8
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        axis_tree(X, y, **options)


# -- odd data -------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [-990, -40, 40, 990])
def test_targets_and_features_of_any_scale_give_the_same_tree(power):
    X, y = make_friedman1(200, random_state=0)
    scale = 2.0**power  # exact, so that the search takes the same way
    plain = axis_tree(X, y, max_leaves=6, **QUICK).machine
    scaled = axis_tree(X * scale, y * scale, max_leaves=6, **QUICK).machine
    assert np.array_equal(plain.children, scaled.children)
    assert np.array_equal(plain.t * scale, scaled.t)
    assert np.allclose(scaled.V / scale, plain.V, rtol=1e-12)


def test_a_target_far_from_zero_is_learned_as_well():
    X, y = make_friedman1(200, random_state=0)
    said = axis_tree(X, y + 1e9, max_leaves=16, **QUICK).machine.predict(X) - 1e9
    assert 1 - np.var(said - y) / np.var(y) > 0.75


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.zeros((30, 2)), np.arange(30) % 2),
        (np.arange(60.0).reshape(30, 2), np.zeros(30, int)),
        (np.array([[0.0], [1.0]]), np.array([0, 1])),
        (np.array([[0.0]]), np.array([0])),
        (np.full((30, 2), np.nan), np.arange(30) % 2),
        (np.tile([[1.0, 2.0], [3.0, 4.0]], (20, 1)), np.tile([0, 1], 20)),
        (np.where(np.arange(500)[:, None] == 7, 9.0, 1.0), (np.arange(500) == 7).astype(int)),
        (np.array([[-np.inf], [0.0], [np.inf]] * 10), np.array([0, 1, 0] * 10)),
        (np.full((4, 1), 1.7e308) * [[1], [-1], [0.5], [0]], np.array([0, 1, 0, 1])),
    ],
    ids=["constant", "one class", "two rows", "one row", "all missing", "duplicates", "imbalance",
         "infinite", "overflow"],
)  # fmt: skip
def test_odd_data_work(X, y):
    for target, n_classes in ((y, 2), (y.astype(float), None)):
        machine = axis_tree(X, target, n_classes=n_classes, max_leaves=4, **QUICK).machine
        said = machine.predict(X)
        assert np.all(np.isfinite(machine.V))
        distinct = {tuple(np.nan_to_num(x, nan=0.5)): t for x, t in zip(X, y, strict=True)}
        if len(y) <= 40 and len(distinct) > 1 and len(set(y)) == 2:
            assert np.mean(np.round(said) == y) == 1.0


def test_a_target_that_grows_without_end_does_not_end_the_stack():
    x = np.arange(3000.0)[:, None]
    machine = axis_tree(x, 1.3 ** -x[:, 0], max_leaves=3000, **QUICK | {"n_iterations": 1}).machine
    assert machine.n_leaves > 20


def test_a_constant_target_is_one_leaf():
    X, _ = make_friedman1(100, random_state=0)
    fit = axis_tree(X, np.full(100, -2.5e-7), **QUICK)
    assert fit.machine.n_leaves == 1
    assert fit.machine.predict(X[:3]).tolist() == [-2.5e-7] * 3


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"X": [1.0, 2.0]}, "X has shape"),
        ({"X": np.empty((0, 3))}, "X has shape"),
        ({"X": [["a"], ["b"]]}, "not an array of numbers"),
        ({"y": [0.0, np.nan]}, "y[1] is nan"),
        ({"y": [0.0]}, "y of shape"),
        ({"y": [0, 2], "n_classes": 2}, "codes from 0 to 2"),
        ({"y": [0.5, 1.0], "n_classes": 2}, "dtype float64"),
        ({"sample_weight": [1.0, -1.0]}, "weights from -1.0"),
        ({"sample_weight": [0.0, 0.0]}, "all 2 rows have weight 0"),
        ({"sample_weight": [1.0]}, "sample_weight of shape"),
        ({"max_leaves": 0}, "max_leaves = 0"),
        ({"n_iterations": 1.5}, "n_iterations = 1.5"),
        ({"seed": -1}, "seed = -1"),
        ({"validation": ([[1.0, 2.0]], [0.0])}, "the validation rows have 2 features"),
        ({"validation": 3}, "validation is a int"),
        ({"classes": ["a"], "n_classes": 2, "y": [0, 1]}, "1 labels for 2 classes"),
    ],
)
def test_rubbish_is_refused_in_three_parts(change, says):
    call = {"X": [[1.0], [2.0]], "y": [0.0, 1.0]} | change
    with pytest.raises(dm.InputError) as error:
        axis_tree(call.pop("X"), call.pop("y"), **call)
    assert says in error.value.found
    assert "axis-aligned tree" in str(error.value)
    assert "What to do:" in str(error.value)
