"""The tree and its templates B determine each other."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import (
    ORDERS,
    SHAPES,
    children_arrays,
    machines,
    make_children,
    templates_of,
)

import decision_machines as dm


def refusal(B):
    with pytest.raises(dm.NotATreeError) as caught:
        dm.tree_of_templates(B)
    text = str(caught.value)
    assert text.startswith("While ")
    assert "What to do: " in text
    return text.lower()


# -- there and back -------------------------------------------------------------------------------


@given(children_arrays(max_leaves=500))
@settings(max_examples=40)
def test_tree_to_templates_to_tree_is_the_identity(children):
    B = templates_of(children)
    found, order = dm.tree_of_templates(B)
    np.testing.assert_array_equal(found, children)
    np.testing.assert_array_equal(order, np.arange(len(children)))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_trees_of_500_leaves_come_back_from_sparse_templates(shape, order):
    children = make_children(500, np.random.default_rng(5), shape, order)
    found, columns = dm.tree_of_templates(sp.csr_array(templates_of(children)))
    np.testing.assert_array_equal(found, children)
    np.testing.assert_array_equal(columns, np.arange(499))


@given(children_arrays(max_leaves=120), st.integers(0, 2**32 - 1))
def test_permuted_columns_are_put_in_order(children, seed):
    permuted = templates_of(children)[:, np.random.default_rng(seed).permutation(len(children))]
    found, order = dm.tree_of_templates(permuted)
    assert sorted(order.tolist()) == list(range(len(children)))
    np.testing.assert_array_equal(templates_of(found), permuted[:, order])


@given(machines())
def test_machine_templates_are_block_diagonal_and_lead_back_to_children(machine):
    blocks = [machine.templates(tree).toarray() for tree in range(machine.n_trees)]
    B = machine.B
    assert B.shape == (machine.n_leaves, machine.n_tests)
    assert B.dtype == np.int8
    np.testing.assert_array_equal(B.toarray(), sp.block_diag([*blocks, np.zeros((0, 0))]).toarray())
    for tree, block in enumerate(blocks):
        tests, first = machine.trees.tests(tree), machine.trees.leaf_start[tree]
        own = machine.children[tests]
        own = np.where(own >= 0, own - tests.start, own + first)
        np.testing.assert_array_equal(block, templates_of(own))
        np.testing.assert_array_equal(dm.tree_of_templates(block)[0].reshape(-1, 2), own)


@given(machines(min_trees=2), st.data())
@settings(max_examples=25)
def test_templates_of_a_range_of_trees_are_a_block_of_b(machine, data):
    first = data.draw(st.integers(0, machine.n_trees - 1))
    last = data.draw(st.integers(first, machine.n_trees))
    leaves, tests = machine.trees.leaf_start, machine.trees.test_start
    wanted = machine.B.toarray()[leaves[first] : leaves[last], tests[first] : tests[last]]
    np.testing.assert_array_equal(machine.templates(first, last).toarray(), wanted)


@pytest.mark.parametrize(
    "kind",
    [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_matrix, sp.coo_array, np.ndarray.tolist],
)
@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float64])
def test_templates_may_be_dense_sparse_or_lists(kind, dtype):
    machine = dm.figure_one()
    found, order = dm.tree_of_templates(kind(machine.B.toarray().astype(dtype)))
    np.testing.assert_array_equal(found, machine.children)
    assert order.tolist() == [0, 1, 2, 3, 4]


def test_one_leaf_is_a_tree_without_tests():
    children, order = dm.tree_of_templates(np.zeros((1, 0)))
    assert children.shape == (0, 2)
    assert order.shape == (0,)


# -- subtrees -------------------------------------------------------------------------------------


@given(machines(max_trees=3, max_leaves=12))
def test_subtree_has_the_sub_matrix_of_its_tests_and_leaves(machine):
    B = machine.B.toarray()
    for test in range(machine.n_tests):
        leaves = np.flatnonzero(B[:, test])
        # A test is below or at `test` where it is asked of these leaves only.
        tests = [j for j in range(machine.n_tests) if set(np.flatnonzero(B[:, j])) <= set(leaves)]
        np.testing.assert_array_equal(machine.subtree(test).B.toarray(), B[np.ix_(leaves, tests)])


# -- refusals -------------------------------------------------------------------------------------


def test_a_matrix_without_a_root_column_is_refused():
    assert "root" in refusal([[-1, 0, -1], [1, 0, -1], [0, -1, 1], [0, 1, 0]])


def test_a_subtree_without_a_root_column_is_refused():
    """The root parts 1 leaf from 4; over the four, no column is free of zeros."""
    B = [[-1, 0, 0, 0], [1, -1, 0, 0], [1, 1, 0, -1], [1, 0, -1, 1], [1, 0, 1, 0]]
    assert "no column" in refusal(B)


def test_a_column_without_both_signs_is_refused():
    assert "sign" in refusal([[-1, -1], [-1, 1], [-1, 0]])
    assert "sign" in refusal([[-1, -1], [-1, 0], [1, 0]])


def test_a_column_of_zeros_is_refused():
    text = refusal([[-1, -1, 0, 0], [-1, 1, 0, 0], [1, 0, -1, 0], [1, 0, 1, 0], [1, 0, 0, 0]])
    assert "sign" in text


@pytest.mark.parametrize(
    "B",
    [
        [[1], [1]],
        [[-1, -1], [-1, -1], [1, 0]],
        [[-1, 1, 0], [-1, 1, 0], [-1, -1, -1], [1, 0, 0]],
        [[-1, -1, 1], [-1, 1, 0], [1, 0, -1], [1, 0, -1]],
    ],
)
def test_duplicate_rows_are_refused(B):
    assert "duplicate" in refusal(B)


def test_leaves_out_of_order_are_refused():
    B = dm.figure_one().B.toarray()
    for rows in ([5, 4, 3, 2, 1, 0], [1, 0, 2, 3, 4, 5], [0, 1, 2, 4, 3, 5], [4, 0, 1, 2, 3, 5]):
        text = refusal(B[rows])
        assert "order" in text or "left to right" in text


def test_interleaved_leaves_are_refused():
    assert "order" in refusal([[-1, -1, 0], [1, 0, -1], [-1, 1, 0], [1, 0, 1]])


@pytest.mark.parametrize("shape", [(3, 3), (3, 1), (2, 2), (0, 0), (1, 1), (5, 0)])
def test_a_matrix_of_the_wrong_shape_is_refused_with_its_shape(shape):
    text = refusal(np.ones(shape, dtype=np.int8))
    assert str(shape) in text or (f"{shape[0]}" in text and f"{shape[1]}" in text)


@pytest.mark.parametrize("B", [np.array([-1, 1]), np.zeros((2, 1, 1)), np.int8(1)])
def test_what_is_no_matrix_is_refused(B):
    refusal(B)


@pytest.mark.parametrize("entry", [2, -2, 0.5, np.nan, np.inf, 127, 255, 256 + 1])
def test_entries_that_are_not_ternary_are_refused(entry):
    text = refusal(np.array([[-1.0], [entry]]))
    assert "-1" in text
    refusal(sp.csr_array(np.array([[-1.0], [entry]])))


@pytest.mark.parametrize("B", [[["a"], ["b"]], [[None], [1]], [[-1], [1, 2]], None, "B"])
def test_what_is_no_matrix_of_numbers_is_refused(B):
    with pytest.raises(dm.DecisionMachinesError, match="What to do"):
        dm.tree_of_templates(B)


def refused_or_recovered(B):
    try:
        children, order = dm.tree_of_templates(B)
    except dm.NotATreeError:
        return False
    np.testing.assert_array_equal(templates_of(children), np.asarray(B)[:, order])
    return True


def test_of_all_ternary_matrices_exactly_the_trees_are_accepted():
    """Catalan(L - 1) trees of L leaves, times the orders of their columns."""
    for n_leaves, trees in ((2, 1), (3, 2 * 2)):
        shape = (n_leaves, n_leaves - 1)
        every = product([-1, 0, 1], repeat=shape[0] * shape[1])
        assert sum(refused_or_recovered(np.array(B).reshape(shape)) for B in every) == trees


@given(
    st.integers(2, 6).flatmap(
        lambda L: st.lists(
            st.lists(st.sampled_from([-1, 0, 1]), min_size=L - 1, max_size=L - 1),
            min_size=L,
            max_size=L,
        )
    )
)
@settings(max_examples=150)
def test_a_random_ternary_matrix_is_refused_or_recovered(B):
    refused_or_recovered(np.array(B))


@given(children_arrays(max_leaves=12, min_leaves=2), st.data())
@settings(max_examples=150)
def test_a_tree_with_one_entry_changed_is_refused_or_recovered(children, data):
    B = templates_of(children)
    row, column = (data.draw(st.integers(0, n - 1)) for n in B.shape)
    B[row, column] = data.draw(st.sampled_from([-1, 0, 1]))
    refused_or_recovered(B)


@given(children_arrays(max_leaves=12, min_leaves=2), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_a_tree_with_its_rows_shuffled_is_refused_or_recovered(children, seed):
    B = templates_of(children)
    refused_or_recovered(B[np.random.default_rng(seed).permutation(len(B))])
