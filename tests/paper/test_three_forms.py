"""Eq. `tree`, Eq. `def:LPOM` and Eq. `delta` are one function, and it is the tree's own."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import ORDERS, machines, make_machine, margins_of, probe_rows, walk_all

import decision_machines as dm
from decision_machines.run.engines import reference

FORMS = ("tree", "lpom", "delta")
ENGINES = ("auto", "walk", "reference")


def forms_agree(machine, X, array=np.asarray):
    exits, margins = walk_all(machine, X), margins_of(machine, X)
    np.testing.assert_array_equal(np.asarray(reference.apply(machine, array(X))), exits)
    for form in FORMS:
        found = np.asarray(reference.margin(machine, array(X), form))
        np.testing.assert_array_equal(found, margins, err_msg=form)
        assert found.dtype == machine.output.dtype


@given(machines())
def test_three_forms_equal_the_walk_on_every_probe(machine):
    forms_agree(machine, probe_rows(machine, max_rows=60))


@given(machines(oblique=True))
@settings(max_examples=25)
def test_three_forms_equal_the_walk_on_oblique_machines(machine):
    forms_agree(machine, probe_rows(machine, max_rows=40))


@given(machines(max_trees=3, max_leaves=40), st.integers(0, 1000))
@settings(max_examples=25)
def test_three_forms_equal_the_walk_on_random_rows(machine, seed):
    rng = np.random.default_rng(seed)
    X = 2 * rng.standard_normal((40, machine.n_features))
    X[rng.random(X.shape) < 0.2] = np.nan
    forms_agree(machine, X)


@given(machines())
@settings(max_examples=30)
def test_three_forms_run_unchanged_on_torch_tensors(machine):
    torch = pytest.importorskip("torch")
    forms_agree(machine, probe_rows(machine, max_rows=40), array=torch.from_numpy)


@given(machines(max_trees=3, oblique=True))
@settings(max_examples=10)
def test_three_forms_of_oblique_machines_run_on_torch_tensors(machine):
    torch = pytest.importorskip("torch")
    forms_agree(machine, probe_rows(machine, max_rows=20), array=torch.from_numpy)


@given(machines(), st.sampled_from(ENGINES))
def test_every_engine_equals_the_walk(machine, engine):
    X = probe_rows(machine, max_rows=60)
    np.testing.assert_array_equal(machine.apply(X, engine=engine), walk_all(machine, X))
    margins = machine.margin(X, engine=engine)
    np.testing.assert_array_equal(margins, margins_of(machine, X))
    assert margins.dtype == machine.output.dtype


@given(machines(max_trees=3, oblique=True), st.sampled_from(ENGINES))
@settings(max_examples=25)
def test_every_engine_equals_the_walk_on_oblique_machines(machine, engine):
    X = probe_rows(machine, max_rows=40)
    np.testing.assert_array_equal(machine.apply(X, engine=engine), walk_all(machine, X))
    np.testing.assert_array_equal(machine.margin(X, engine=engine), margins_of(machine, X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("t", [0.0, 1.0, -1.0, 0.1, 2.0**24, 1e-45, np.inf, -np.inf])
def test_ties_go_left_in_all_forms(t, dtype):
    machine = stump(t, missing=+1, dtype=dtype)
    t = machine.t[0]
    X = [[t], [np.nextafter(t, dtype(-np.inf))], [np.nextafter(t, dtype(np.inf))]]
    right = np.inf > t
    for form in FORMS:
        assert reference.margin(machine, np.array(X), form).ravel().tolist() == [
            -1,
            -1,
            2 * right - 1,
        ]


@pytest.mark.parametrize("t", [np.inf, -np.inf])
@pytest.mark.parametrize("form", FORMS)
def test_infinite_thresholds_compare_as_numbers_do(t, form):
    X = np.array([[np.inf], [-np.inf], [0.0], [np.nan]])
    wanted = np.where(X[:, 0] <= t, -1.0, 1.0)
    wanted[3] = -1
    assert reference.margin(stump(t, missing=-1), X, form).ravel().tolist() == wanted.tolist()


@pytest.mark.parametrize("missing", [-1, +1])
@pytest.mark.parametrize("form", FORMS)
def test_nan_takes_the_missing_answer_whatever_the_threshold(missing, form):
    for t in (0.0, np.inf, -np.inf):
        found = reference.margin(stump(t, missing), np.array([[np.nan]]), form)
        assert found.item() == missing


def test_minus_zero_and_zero_are_one_number():
    machine = stump(0.0, missing=+1)
    other = stump(-0.0, missing=+1)
    X = np.array([[0.0], [-0.0]])
    for form in FORMS:
        assert reference.margin(machine, X, form).ravel().tolist() == [-1, -1]
        assert reference.margin(other, X, form).ravel().tolist() == [-1, -1]


def test_a_column_is_cast_before_it_is_compared():
    """0.1 is below the float32 next to it, but not below the float64 threshold 0.1 minus a hair."""
    t = np.float32(0.1)
    x = np.array([[np.nextafter(float(t), np.inf)]])
    assert stump(float(t), +1, np.float64).predict(x).item() == +1
    assert stump(t, +1, np.float32).predict(x).item() == -1


@pytest.mark.parametrize("depth", [1, 2, 3, 5, 6, 7, 9, 49, 127, 128, 129, 130, 255, 256, 300])
def test_the_exit_leaf_has_similarity_exactly_one_at_any_depth(depth):
    """NOTE[PAPER]: d copies of the rounded 1/d need not sum to 1, and int8 wraps past 127."""
    machine = make_machine([depth + 1], np.random.default_rng(depth), shapes=("left",), rules=False)
    h = -np.ones((1, depth), dtype=np.int8)
    p = reference.similarities(machine, h, 0)
    assert p[0, 0] == 1
    assert np.sum(p == 1) == 1
    assert p.min() >= -1
    assert reference.delta_weights(p).tolist() == [[1.0] + [0.0] * depth]
    assert reference.simplex_weights(p).tolist() == [[1.0] + [0.0] * depth]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape", ["left", "right", "zigzag"])
def test_three_forms_agree_past_depth_127(shape, order):
    rng = np.random.default_rng(7)
    machine = make_machine([301], rng, shapes=(shape,), orders=(order,), rules=False)
    assert machine.depth == 300
    forms_agree(machine, probe_rows(machine, max_rows=10))


@pytest.mark.parametrize("array", ["numpy", "torch"])
def test_a_one_leaf_tree_always_answers_its_leaf(array):
    machine = make_machine([1, 1], np.random.default_rng(0), n_outputs=2)
    X = probe_rows(machine)
    if array == "torch":
        X = pytest.importorskip("torch").from_numpy(X)
    for form in FORMS:
        found = np.asarray(reference.margin(machine, X, form))
        np.testing.assert_array_equal(found, margins_of(machine, np.asarray(X)))
    assert not np.asarray(reference.apply(machine, X)).any()


def test_zero_rows_give_zero_margins():
    machine = make_machine([4, 1, 3], np.random.default_rng(0), n_outputs=2)
    X = np.empty((0, 3))
    for form in FORMS:
        assert reference.margin(machine, X, form).shape == (0, 2)
    assert reference.apply(machine, X).shape == (0, 3)


def test_an_unknown_form_is_refused_by_name():
    with pytest.raises(dm.DecisionMachinesError, match="attention"):
        reference.margin(stump(0.0, 1), np.zeros((1, 1)), "attention")


def stump(t, missing, dtype=np.float64):
    return dm.DecisionMachine(
        columns=dm.Columns(1, dtype),
        selection=[0],
        t=np.array([t], dtype=dtype),
        missing=[missing],
        children=[[~0, ~1]],
        V=[[-1.0], [1.0]],
        trees=dm.Trees([0, 1]),
        output=dm.Output([0.0]),
    )
