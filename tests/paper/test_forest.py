"""A sum of trees is one machine with a block-diagonal B; a masked tree is projected away."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import machines, make_machine, margins_of, probe_rows, walk_all

import decision_machines as dm
from decision_machines.run.engines import reference

WEIGHTS = st.sampled_from([1.0, -0.5, 2.0, 0.0, 0.25, -1.0])


def same_kind(max_parts=3, **options):
    """Machines over the same three features, in float64, with whole values: sums are exact."""
    return st.integers(1, 3).flatmap(
        lambda k: st.lists(
            machines(
                n_features=3,
                dtype=np.float64,
                n_outputs=k,
                values="whole",
                negative_fractions=False,
                **options,
            ),
            min_size=1,
            max_size=max_parts,
        )
    )


def delta_sum(machine, h, projection=None):
    """Eq. `forest`: the sum over all leaves of δ(1 - p) v, with p = B h / ‖B‖² in whole numbers.

    NOTE[PAPER]: a one-leaf tree has 0/0 there; its leaf counts.
    """
    B = machine.B.toarray().astype(np.int64)
    product = (B if projection is None else B @ projection) @ h.T
    weights = (np.abs(B).sum(axis=1) == product.T).astype(float)
    V = np.zeros((machine.n_leaves, machine.n_outputs))
    for tree in range(machine.n_trees):
        leaves, feeds = machine.trees.leaves(tree), machine.trees.feeds[tree]
        V[leaves, slice(None) if feeds < 0 else slice(feeds, feeds + 1)] = machine.V[leaves]
    return weights @ V


def answers(machine, X):
    z = machine.columns.read(X)
    h = [reference.test_results(machine, z, tree) for tree in range(machine.n_trees)]
    return np.concatenate([np.empty((len(X), 0)), *h], axis=1).astype(np.int64)


# -- the direct sum -------------------------------------------------------------------------------


@given(machines(max_trees=4, values="whole", plain_output=True))
def test_forest_is_one_instance_of_the_delta_form(machine):
    X = probe_rows(machine, max_rows=30)
    np.testing.assert_array_equal(delta_sum(machine, answers(machine, X)), machine.margin(X))


@given(machines(min_trees=1, max_trees=2), machines(min_trees=1, max_trees=2))
@settings(max_examples=20)
def test_direct_sum_stacks_tests_and_templates(one, two):
    two = dm.DecisionMachine(
        columns=one.columns,
        selection=np.zeros(two.n_tests, dtype=int),
        t=two.t.astype(one.t.dtype),
        missing=two.missing,
        children=two.children,
        V=np.ones((two.n_leaves, one.n_outputs), one.V.dtype),
        trees=dm.Trees(two.trees.test_start),
        output=one.output,
    )
    both = dm.direct_sum([one, two], [2.0, -0.5])
    np.testing.assert_array_equal(both.t, np.concatenate([one.t, two.t]))
    np.testing.assert_array_equal(both.missing, np.concatenate([one.missing, two.missing]))
    np.testing.assert_array_equal(both.B.toarray(), sp.block_diag([one.B, two.B]).toarray())
    X = probe_rows(one, max_rows=20)
    np.testing.assert_array_equal(both.apply(X), np.hstack([one.apply(X), two.apply(X)]))


def test_direct_sum_of_the_figure_has_the_matrices_of_eq_forest():
    one = dm.figure_one()
    both = dm.direct_sum([one, one], [3.0, -0.5])
    S, t, B, none = one.S.toarray(), one.t, one.B.toarray(), np.zeros((6, 5))
    np.testing.assert_array_equal(both.t, np.concatenate([t, t]))
    np.testing.assert_array_equal(both.B.toarray(), np.block([[B, none], [none, B]]))
    np.testing.assert_array_equal(both.V, np.concatenate([3.0 * one.V, -0.5 * one.V]))
    np.testing.assert_array_equal(both.S.toarray(), np.vstack([S, S]))


@given(same_kind(plain_output=True), st.data())
def test_direct_sum_adds_weighted_margins_and_keeps_every_exit(parts, data):
    weights = data.draw(st.lists(WEIGHTS, min_size=len(parts), max_size=len(parts)))
    whole = dm.direct_sum(parts, weights)
    X = np.concatenate([probe_rows(part, max_rows=20) for part in parts])
    wanted = sum(w * part.margin(X).astype(float) for w, part in zip(weights, parts, strict=True))
    np.testing.assert_array_equal(whole.margin(X), wanted)
    np.testing.assert_array_equal(whole.apply(X), np.hstack([part.apply(X) for part in parts]))
    np.testing.assert_array_equal(whole.apply(X), walk_all(whole, X))


@given(same_kind(), st.data())
def test_direct_sum_respects_bases_averages_and_scales(parts, data):
    weights = data.draw(st.lists(WEIGHTS, min_size=len(parts), max_size=len(parts)))
    whole = dm.direct_sum(parts, weights)
    X = np.concatenate([probe_rows(part, max_rows=20) for part in parts])
    wanted = sum(w * part.margin(X).astype(float) for w, part in zip(weights, parts, strict=True))
    np.testing.assert_array_equal(whole.margin(X), wanted)
    np.testing.assert_array_equal(whole.margin(X), margins_of(whole, X))


def test_direct_sum_without_weights_is_the_plain_sum():
    rng = np.random.default_rng(0)
    parts = [make_machine(leaves, rng, n_outputs=2, rules=False) for leaves in ([4, 3], [1, 6])]
    X = probe_rows(parts[0])
    wanted = parts[0].margin(X) + parts[1].margin(X)
    np.testing.assert_array_equal(dm.direct_sum(parts).margin(X), wanted)


def test_direct_sum_of_one_machine_has_its_margin():
    machine = make_machine([5, 2, 1], np.random.default_rng(1), n_outputs=3)
    X = probe_rows(machine)
    np.testing.assert_array_equal(dm.direct_sum([machine]).margin(X), machine.margin(X))


def test_direct_sum_with_an_empty_forest_adds_its_base():
    rng = np.random.default_rng(2)
    full, empty = (make_machine(leaves, rng, rules=False) for leaves in ([5], []))
    X = probe_rows(full)
    wanted = full.margin(X) + empty.margin(X)
    np.testing.assert_array_equal(dm.direct_sum([full, empty]).margin(X), wanted)
    np.testing.assert_array_equal(dm.direct_sum([empty, full]).margin(X), wanted)


@pytest.mark.parametrize("first_narrow", [False, True])
def test_direct_sum_of_narrow_and_wide_machines_adds_margins(first_narrow):
    rng = np.random.default_rng(3)
    parts = [
        make_machine([4, 5], rng, n_outputs=3, narrow=narrow, rules=False)
        for narrow in (first_narrow, not first_narrow)
    ]
    X = probe_rows(parts[0])
    wanted = parts[0].margin(X) + parts[1].margin(X)
    np.testing.assert_array_equal(dm.direct_sum(parts).margin(X), wanted)


def test_direct_sum_of_oblique_and_plain_machines_adds_margins():
    rng = np.random.default_rng(4)
    parts = [
        make_machine([4, 5], rng, oblique=True, rules=False),
        make_machine([6], rng, rules=False),
    ]
    X = probe_rows(parts[0])
    wanted = parts[0].margin(X) + parts[1].margin(X)
    np.testing.assert_array_equal(dm.direct_sum(parts).margin(X), wanted)
    np.testing.assert_array_equal(dm.direct_sum(parts[::-1]).margin(X), wanted)


def test_direct_sum_of_linear_leaves_is_refused_or_right():
    machine = linear_stump()
    X = [[-1.0, 2.0], [1.0, 2.0], [-1.0, np.nan]]
    np.testing.assert_array_equal(machine.margin(X), [[3 + 0.5 * 2], [7.0], [10.0]])
    try:
        whole = dm.direct_sum([machine, machine], [1.0, -0.25])
    except dm.DecisionMachinesError as refused:
        reason = str(refused)
    else:
        reason = "linear"
        np.testing.assert_array_equal(whole.margin(X), 0.75 * machine.margin(X))
    assert "linear" in reason


def linear_stump():
    return dm.DecisionMachine(
        columns=dm.Columns(2),
        selection=[0],
        t=[0.0],
        missing=[1],
        children=[[~0, ~1]],
        V=[[10.0], [20.0]],
        trees=dm.Trees([0, 1]),
        output=dm.Output([0.0]),
        linear=dm.LinearLeaves([[3.0], [7.0]], [0, 1, 1], [1], [[0.5]]),
    )


@pytest.mark.parametrize(
    "other",
    [
        {"n_features": 4},
        {"dtype": np.float32},
        {"n_outputs": 2},
    ],
)
def test_direct_sum_of_machines_that_do_not_fit_is_refused(other):
    rng = np.random.default_rng(5)
    with pytest.raises(dm.InputError, match="What to do"):
        dm.direct_sum([make_machine([3], rng), make_machine([3], rng, **other)])


@pytest.mark.parametrize("weights", [[1.0], [1.0, 2.0, 3.0], ["a", "b"]])
def test_direct_sum_with_bad_weights_is_refused(weights):
    with pytest.raises(dm.DecisionMachinesError, match="What to do"):
        dm.direct_sum([dm.figure_one(), dm.figure_one()], weights)


def test_direct_sum_of_nothing_is_refused():
    with pytest.raises(dm.InputError, match="What to do"):
        dm.direct_sum([])


@pytest.mark.parametrize("aggregate", ["min", "max", "median"])
def test_direct_sum_of_machines_that_do_not_sum_is_refused_or_right(aggregate):
    """A margin that is a minimum is no sum of leaf values, so no direct sum can hold it."""
    base = make_machine([3, 3, 3], np.random.default_rng(6), plain_output=True, rules=False)
    machine = dataclasses.replace(base, output=dm.Output([0.0], aggregate=aggregate))
    X = probe_rows(machine)
    try:
        whole = dm.direct_sum([machine, base])
    except dm.DecisionMachinesError as refused:
        reason = str(refused)
    else:
        reason = aggregate
        np.testing.assert_array_equal(whole.margin(X), machine.margin(X) + base.margin(X))
    assert aggregate in reason


# -- the mask -------------------------------------------------------------------------------------


@given(machines(min_trees=1, min_leaves=2, values="whole", plain_output=True), st.data())
def test_mask_is_the_projection_by_w_b(machine, data):
    """B W^B h with δ: a leaf of a masked tree has similarity 0 and adds nothing."""
    trees = data.draw(st.sets(st.integers(0, machine.n_trees - 1)))
    W = machine.mask_projection(trees).toarray()
    X = probe_rows(machine, max_rows=30)
    projected = delta_sum(machine, answers(machine, X), W)
    np.testing.assert_array_equal(machine.mask(trees).margin(X), projected)


@given(machines(min_trees=1), st.data())
def test_mask_projection_is_square_over_tests_and_idempotent(machine, data):
    """NOTE[PAPER]: W^B is printed with the wrong shape."""
    trees = data.draw(st.sets(st.integers(0, machine.n_trees - 1)))
    W = machine.mask_projection(trees).toarray()
    assert W.shape == (machine.n_tests, machine.n_tests)
    np.testing.assert_array_equal(W @ W, W)
    np.testing.assert_array_equal(W, np.diag(~np.isin(machine.trees.of_test, list(trees))))


@given(machines(min_trees=1, values="whole"), st.data())
def test_mask_leaves_out_what_the_masked_trees_add(machine, data):
    trees = data.draw(st.sets(st.integers(0, machine.n_trees - 1)))
    kept = [tree for tree in range(machine.n_trees) if tree not in trees]
    X = probe_rows(machine, max_rows=30)
    masked = machine.mask(trees)
    assert masked.n_trees == len(kept)
    assert masked.n_outputs == machine.n_outputs
    np.testing.assert_array_equal(masked.apply(X), machine.apply(X)[:, kept])
    V = np.where(np.isin(machine.trees.of_leaf, kept)[:, None], machine.V, 0)
    silenced = dataclasses.replace(machine, V=V)  # the masked trees add 0
    np.testing.assert_array_equal(masked.margin(X), silenced.margin(X))


def test_masking_no_tree_changes_nothing():
    machine = make_machine([3, 1, 4], np.random.default_rng(7), n_outputs=2)
    assert machine.mask([]).equals(machine)


@pytest.mark.parametrize("narrow", [False, True])
def test_masking_every_tree_leaves_the_base(narrow):
    machine = make_machine([3, 1, 4], np.random.default_rng(8), n_outputs=2, narrow=narrow)
    masked = machine.mask(range(3))
    assert masked.n_trees == 0
    X = probe_rows(machine)
    np.testing.assert_array_equal(masked.margin(X), margins_of(masked, X))


def test_masking_twice_is_masking_once():
    machine = make_machine([3, 1, 4, 2], np.random.default_rng(9))
    assert machine.mask([1, 1, 3]).equals(machine.mask([3]).mask([1]))


@pytest.mark.parametrize("trees", [[3], [-4], [0, 7], ["a"], [0.5]])
def test_masking_a_tree_that_is_not_there_is_refused(trees):
    machine = make_machine([3, 1, 4], np.random.default_rng(10))
    for method in (machine.mask, machine.mask_projection):
        with pytest.raises(dm.InputError, match="What to do"):
            method(trees)
