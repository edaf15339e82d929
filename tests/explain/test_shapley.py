"""Shapley values: equal to the definition, and additive, whatever the machine."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import make_machine

import decision_machines as dm
from decision_machines import _native
from decision_machines.errors import InputError, UnsupportedModelError
from decision_machines.explain.shapley import reference
from decision_machines.machine import Columns, Output, Trees

DTYPES = st.sampled_from([np.float32, np.float64])


def covered(seed, n_outputs=1, dtype=np.float64, narrow=True):
    """A small forest of columns of every rule, with covers, and rows with gaps to explain."""
    rng = np.random.default_rng(seed)
    machine = make_machine(
        rng.integers(1, 11, 3).tolist(),
        rng,
        n_features=4,
        n_outputs=n_outputs,
        narrow=narrow,
        dtype=dtype,
        values="real",
    )
    rows = np.where(
        rng.random((40, 4)) < 0.5, rng.integers(-1, 4, (40, 4)), rng.normal(size=(40, 4))
    )
    X = rows[rng.permutation(40)[:5]].copy()
    X[0, rng.integers(4)] = np.nan
    return machine.with_cover(rows), X, rows


def close(found, expected):
    size = max(float(np.max(np.abs(expected), initial=0.0)), 1e-3)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * size)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), DTYPES, st.booleans())
def test_values_and_interactions_by_paths_are_those_of_all_coalitions(seed, k, dtype, narrow):
    machine, X, _ = covered(seed, k, dtype, narrow)
    x = machine.features(X)
    found, pairs = machine.shap_values(X), machine.shap_interaction_values(X)
    for i in range(len(X)):
        phi, between = reference.by_coalitions(machine, reference.path_game(machine, x[i]))
        close(found[i].reshape(phi.shape), phi)
        close(pairs[i].reshape(between.shape), between)
        close(reference.by_templates(machine, x[i]), phi)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 2), DTYPES, st.booleans())
def test_values_and_interactions_by_background_are_those_of_all_coalitions(seed, k, dtype, narrow):
    machine, X, rows = covered(seed, k, dtype, narrow)
    background = rows[:6]
    x, others = machine.features(X), machine.features(background)
    found = machine.shap_values(X, background)
    pairs = machine.shap_interaction_values(X, background)
    for i in range(len(X)):
        game = reference.background_game(machine, x[i], others)
        phi, between = reference.by_coalitions(machine, game)
        close(found[i].reshape(phi.shape), phi)
        close(pairs[i].reshape(between.shape), between)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 2), st.booleans())
def test_banzhaf_and_first_order_values_are_those_of_all_coalitions(seed, k, narrow):
    machine, X, _ = covered(seed, k, np.float64, narrow)
    x = machine.features(X)
    every = [frozenset(np.flatnonzero(np.array(S)).tolist()) for S in np.ndindex(2, 2, 2, 2)]
    banzhaf, first = machine.banzhaf_values(X), machine.first_order_values(X)
    for i in range(len(X)):
        game = reference.path_game(machine, x[i])
        worth = {S: game(S) for S in every}
        for f in range(4):
            adds = [worth[S | {f}] - worth[S] for S in every if f not in S]
            close(np.atleast_1d(banzhaf[i, f]), np.mean(adds, axis=0))
            close(np.atleast_1d(first[i, f]), worth[frozenset([f])] - worth[frozenset()])


def deep_chain(depth, n_features):
    """A tree that is one long path, its features one after the other."""
    children = np.stack([~np.arange(depth), np.arange(1, depth + 1)], axis=1)
    children[-1, 1] = ~depth
    return dm.DecisionMachine(
        columns=Columns(n_features),
        selection=np.arange(depth) % n_features,
        t=-1.0 - (np.arange(depth) // n_features) * 0.001,
        missing=np.ones(depth),
        children=children,
        V=np.random.default_rng(0).normal(size=(depth + 1, 1)),
        trees=Trees(np.array([0, depth]), np.array([0])),
        output=Output(np.zeros(1)),
    )


@pytest.mark.parametrize("n_features", [3, 40, 500])
def test_values_add_up_on_a_chain_of_depth_500(n_features):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(400, n_features)) * 0.4
    machine = deep_chain(500, n_features).with_cover(rows)
    margin = machine.margin(rows[:20])[:, 0]
    total = machine.shap_values(rows[:20]).sum(axis=1) + machine.shap_base()
    close(total, margin)
    against = machine.shap_values(rows[:20], rows[:7]).sum(axis=1) + machine.shap_base(rows[:7])
    close(against, margin)


def big_forest(seed=0):
    rng = np.random.default_rng(seed)
    machine = make_machine([40] * 8, rng, n_features=12, n_outputs=2, values="real")
    rows = rng.normal(size=(300, 12))
    return machine.with_cover(rows), rows


@pytest.mark.parametrize("against", [False, True])
def test_bits_are_the_same_whatever_the_threads_and_batches(against):
    machine, rows = big_forest()
    background = rows[:9] if against else None
    whole = machine.shap_values(rows, background, n_threads=1)
    assert np.array_equal(machine.shap_values(rows, background, n_threads=3), whole)
    parts = [machine.shap_values(rows[i : i + 7], background) for i in range(0, 300, 7)]
    assert np.array_equal(np.concatenate(parts), whole)
    ones = [machine.shap_values(rows[i : i + 1], background)[0] for i in range(300)]
    assert np.array_equal(ones, whole)
    pairs = machine.shap_interaction_values(rows[:50], background, n_threads=1)
    parts = [machine.shap_interaction_values(rows[i : i + 7], background) for i in range(0, 50, 7)]
    assert np.array_equal(np.concatenate(parts)[:50], pairs)


@pytest.mark.parametrize("target", _native.targets())
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_bits_do_not_depend_on_a_row_s_place(target, dtype, monkeypatch):
    monkeypatch.setenv("DECISION_MACHINES_TARGET", target)
    machine, rows = big_forest(5)
    whole = machine.shap_values(rows, n_threads=1, dtype=dtype)
    for start, n in ((0, 131), (1, 131), (3, 131), (298, 2), (5, 1), (299, 1), (7, 4), (20, 5)):
        found = machine.shap_values(rows[start : start + n], n_threads=1, dtype=dtype)
        assert np.array_equal(found, whole[start : start + n])


@pytest.mark.parametrize("target", _native.targets())
def test_a_row_alone_has_its_bits_on_a_tree_of_many_points(target, monkeypatch):
    monkeypatch.setenv("DECISION_MACHINES_TARGET", target)
    rows = np.random.default_rng(2).normal(size=(60, 45)) * 0.4
    machine = deep_chain(60, 45).with_cover(rows)
    whole = machine.shap_values(rows, n_threads=1)
    assert np.array_equal([machine.shap_values(rows[i : i + 1])[0] for i in range(40)], whole[:40])


@pytest.mark.parametrize("target", _native.targets())
def test_every_target_gives_the_values_of_the_scalar_twin(target, monkeypatch):
    machine, rows = big_forest(1)
    monkeypatch.setenv("DECISION_MACHINES_TARGET", "scalar")
    expected = machine.shap_values(rows[:33])
    pairs = machine.shap_interaction_values(rows[:5])
    against = machine.shap_values(rows[:33], rows[:20])
    monkeypatch.setenv("DECISION_MACHINES_TARGET", target)
    fresh = replace(machine)
    close(fresh.shap_values(rows[:33]), expected)
    close(fresh.shap_interaction_values(rows[:5]), pairs)
    close(fresh.shap_values(rows[:33], rows[:20]), against)


def test_float32_terms_are_float32_close():
    machine, rows = big_forest(2)
    single, double = machine.shap_values(rows, dtype="float32"), machine.shap_values(rows)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, double, atol=2e-5 * np.abs(double).max())


def test_rows_of_every_kind_have_the_same_values():
    pd = pytest.importorskip("pandas")
    machine, rows = big_forest(3)
    names = [f"f{i}" for i in range(12)]
    machine = replace(machine, columns=replace(machine.columns, names=names))
    rows = np.where(np.abs(rows) < 0.7, 0.0, rows)
    expected = machine.shap_values(rows)
    table = pd.DataFrame(rows, columns=names)
    assert np.array_equal(machine.shap_values(table[names[::-1]]), expected)
    assert np.array_equal(machine.shap_values(sp.csr_array(rows)), expected)
    assert np.array_equal(machine.shap_values(np.asfortranarray(rows)), expected)
    assert np.array_equal(machine.shap_values(rows.tolist()), expected)
    assert machine.shap_values(rows[:0]).shape == (0, 12, 2)


def test_symmetric_trees_have_the_values_of_their_tree_form():
    rng = np.random.default_rng(4)
    levels = 5
    tests = (1 << levels) - 1
    inner = np.arange(tests)
    below = np.stack([2 * inner + 1, 2 * inner + 2], axis=1)
    children = np.where(below < tests, below, ~(below - tests))
    level = np.frexp(inner + 1.0)[1] - 1
    feature = np.array([0, 1, 2, 1, 3])
    machine = dm.DecisionMachine(
        columns=Columns(5),
        selection=feature[level],
        t=rng.normal(size=levels)[level],
        missing=np.where(rng.random(levels) < 0.5, -1, 1)[level],
        children=children,
        V=rng.normal(size=(tests + 1, 3)),
        trees=Trees(np.array([0, tests])),
        output=Output(np.zeros(3), divisor=3.0),
    )
    rows = rng.normal(size=(80, 5))
    rows[3, 1] = np.nan
    machine = machine.with_cover(rows)
    found = machine.shap_values(rows)
    x = machine.features(rows)
    for i in range(0, 80, 9):
        phi, _ = reference.by_coalitions(machine, reference.path_game(machine, x[i]))
        close(found[i], phi)
    total = found.sum(axis=1) + machine.shap_base()
    close(total, machine.margin(rows))


def test_a_test_that_nothing_reached_is_no_trouble():
    machine, X, _ = covered(11)
    empty = replace(
        machine,
        cover=replace(machine.cover, leaves=np.where(machine.cover.leaves < 4, 0, 9.0)),
    )
    found = empty.shap_values(X)
    assert np.all(np.isfinite(found))
    close(found.sum(axis=1) + empty.shap_base(), empty.margin(X)[:, 0])


def test_probabilities_add_up_to_probabilities():
    machine, X, rows = covered(5)
    logistic = replace(machine, output=replace(machine.output, link="expit"))
    found = logistic.shap_values(X, rows, output="probability")
    base = logistic.shap_base(rows, output="probability")
    response = np.asarray(logistic.response(X)).reshape(len(X), -1)[:, -1]
    close(found.sum(axis=1) + base, response)


# ---------------------------------------------------------------------- refusals


def test_without_covers_and_background_the_error_says_how_to_get_either():
    machine = replace(covered(0)[0], cover=None)
    with pytest.raises(InputError, match=r"background=rows.*with_cover"):
        machine.shap_values(np.zeros((1, 4)))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dtype": "float16"}, "float16"),
        ({"dtype": object()}, "dtype"),
        ({"n_threads": 0}, "n_threads=0"),
        ({"output": "log_odds"}, "log_odds"),
        ({"output": "probability"}, "without a background"),
        ({"background": np.zeros((0, 4))}, "without rows"),
        ({"background": np.zeros((2, 3))}, "3"),
    ],
)
def test_what_cannot_be_computed_is_refused_by_name(given, said):
    machine, X, _ = covered(0)
    with pytest.raises(InputError, match=said):
        machine.shap_values(X, **given)


def test_bad_rows_are_refused_as_by_predict():
    machine, X, _ = covered(0)
    for bad in (X[:, :2], "rows", np.array([["a"] * 4])):
        with pytest.raises(InputError) as expected:
            machine.predict(bad)
        with pytest.raises(InputError) as found:
            machine.shap_values(bad)
        assert str(found.value) == str(expected.value)


def test_medians_are_refused_with_the_reason():
    machine, X, _ = covered(0)
    median = replace(machine, output=replace(machine.output, aggregate="median"))
    with pytest.raises(UnsupportedModelError, match="median"):
        median.shap_values(X)


def test_the_native_code_refuses_arrays_that_do_not_fit():
    machine, _, _ = covered(0)
    share = np.full(machine.n_tests, 0.5)
    given = {
        "children": machine.children,
        "test_start": machine.trees.test_start,
        "column": machine.selection,
        "slot": machine.selection,
        "t": machine.t.astype(np.float64),
        "missing": machine.missing,
        "share": share,
        "values": machine.V.astype(np.float64),
        "feeds": machine.trees.feeds,
        "n_columns": 4,
        "n_slots": 4,
        "n_outputs": 1,
    }
    _native.ShapleyForest(**given)
    for wrong in (
        {"share": share + 1},
        {"n_columns": 1},
        {"n_slots": 1},
        {"values": given["values"][:-1]},
        {"feeds": machine.trees.feeds + 5},
        {"children": machine.children[::-1].copy()},
        {"test_start": machine.trees.test_start[:-1]},
    ):
        with pytest.raises(ValueError):
            _native.ShapleyForest(**(given | wrong))
