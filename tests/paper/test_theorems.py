"""Theorem `rank`: B has full column rank. Theorem `correctness`: one template matches."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import ORDERS, SHAPES, children_arrays, machines, make_machine, templates_of

import decision_machines as dm
from decision_machines.run.engines import reference


def exact_rank(matrix):
    """Rank by Bareiss' elimination without fractions, in Python integers."""
    rows = [[int(entry) for entry in row] for row in np.asarray(matrix)]
    rank, previous = 0, 1
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        head = rows[rank]
        for i in range(rank + 1, len(rows)):
            lead = rows[i][column]
            rows[i] = [
                (head[column] * a - lead * b) // previous
                for a, b in zip(rows[i], head, strict=True)
            ]
        previous = head[column]
        rank += 1
    return rank


def one_tree(children):
    n_tests = len(children)
    return dm.DecisionMachine(
        columns=dm.Columns(max(n_tests, 1)),
        selection=np.arange(n_tests),
        t=np.zeros(n_tests),
        missing=np.ones(n_tests),
        children=children,
        V=np.arange(n_tests + 1.0)[:, None],
        trees=dm.Trees([0, n_tests]),
        output=dm.Output([0.0]),
    )


def test_the_exact_rank_used_here_knows_singular_matrices():
    assert exact_rank([[1, 1], [1, 1], [-1, -1]]) == 1
    assert exact_rank([[0, 2, 1], [0, 0, 3], [0, 2, 4]]) == 2
    assert exact_rank([[0, 1], [1, 0]]) == 2
    assert exact_rank(np.zeros((3, 2))) == 0


@given(children_arrays(max_leaves=24))
def test_templates_have_full_column_rank(children):
    machine = one_tree(children)
    B = templates_of(children)
    np.testing.assert_array_equal(machine.B.toarray(), B)
    assert exact_rank(B) == len(children)
    assert dm.column_rank(machine).tolist() == [len(children)]


@given(machines(max_trees=4, max_leaves=7))
@settings(max_examples=30)
def test_rank_of_a_forest_is_the_sum_over_its_trees(machine):
    ranks = dm.column_rank(machine)
    assert ranks.shape == (machine.n_trees,)
    assert ranks.sum() == exact_rank(machine.B.toarray()) == machine.n_tests
    for tree in range(machine.n_trees):
        assert ranks[tree] == exact_rank(machine.templates(tree).toarray())


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_rank_is_proven_for_large_trees_of_every_shape(shape, order):
    rng = np.random.default_rng(3)
    machine = make_machine([1200, 1, 300], rng, shapes=(shape,), orders=(order,))
    assert dm.column_rank(machine).tolist() == [1199, 0, 299]
    assert dm.exit_is_unique(machine).tolist() == [True, True, True]


@given(children_arrays(max_leaves=9))
@settings(max_examples=40)
def test_every_vector_of_answers_matches_one_template(children):
    """All 2^J vectors h: one similarity is 1, and it is the leaf that the answers lead to."""
    n_tests = len(children)
    B = templates_of(children).astype(int)
    h = np.array(list(product([-1, 1], repeat=n_tests)), dtype=int).reshape(2**n_tests, n_tests)
    matches = h @ B.T == np.abs(B).sum(axis=1)
    assert (matches.sum(axis=1) == 1).all()
    for answers, leaf in zip(h.tolist(), matches.argmax(axis=1).tolist(), strict=True):
        node = 0 if n_tests else ~0
        while node >= 0:
            node = int(children[node][(answers[node] + 1) // 2])
        assert ~node == leaf
    machine = one_tree(children)
    assert dm.exit_is_unique(machine).tolist() == [True]
    p = reference.similarities(machine, h, 0)
    np.testing.assert_array_equal(p == 1, matches)
    np.testing.assert_array_equal(reference.exit_leaf(p), matches.argmax(axis=1))
    assert (np.abs(p) <= 1).all()


def test_uniqueness_holds_by_brute_force_for_ten_tests():
    children = one_tree_of_ten_tests()
    B = templates_of(children).astype(int)
    h = np.array(list(product([-1, 1], repeat=10)))
    assert ((h @ B.T == np.abs(B).sum(axis=1)).sum(axis=1) == 1).all()
    assert dm.exit_is_unique(one_tree(children)).all()


def one_tree_of_ten_tests():
    machine = make_machine([11], np.random.default_rng(10), shapes=("random",))
    return machine.children


@given(machines())
@settings(max_examples=25)
def test_theorem_checks_answer_for_each_tree_of_any_machine(machine):
    assert dm.column_rank(machine).tolist() == [int(n) for n in np.diff(machine.trees.test_start)]
    assert dm.exit_is_unique(machine).tolist() == [True] * machine.n_trees


@given(children_arrays(max_leaves=30, min_leaves=2))
def test_sibling_templates_differ_at_their_parent_alone(children):
    """The paper's remark before Theorem `rank`: the difference is parallel to a one-hot vector."""
    B = one_tree(children).B.toarray()
    for test, (left, right) in enumerate(children.tolist()):
        if left < 0 and right < 0:
            difference = B[~right] - B[~left]
            assert difference[test] == 2
            assert np.count_nonzero(difference) == 1


@given(children_arrays(max_leaves=30, min_leaves=2))
def test_one_column_has_no_zero_and_all_have_both_signs(children):
    """The paper's remark: the root tests every leaf, and every test has two results."""
    B = one_tree(children).B.toarray()
    assert np.all(B != 0, axis=0).tolist() == [True] + [False] * (len(children) - 1)
    assert (B == 1).any(axis=0).all()
    assert (B == -1).any(axis=0).all()
