"""The worked example of Fig. 1: S, t, B, and x = (2, 1, 2, 2) all the way to v5."""

from fractions import Fraction

import numpy as np
import pytest
from strategies import templates_of, walk_one

import decision_machines as dm
from decision_machines.run.engines import reference

X = np.array([[2.0, 1.0, 2.0, 2.0]])
H = np.array([[1, -1, -1, -1, -1]])
B = [
    [-1, -1, 0, -1, 0],
    [-1, -1, 0, +1, -1],
    [-1, -1, 0, +1, +1],
    [-1, +1, 0, 0, 0],
    [+1, 0, -1, 0, 0],
    [+1, 0, +1, 0, 0],
]
P_PRINTED = [Fraction(1, 3), 0, Fraction(-1, 2), 0, 1, 0]
P = [Fraction(1, 3), 0, Fraction(-1, 2), -1, 1, 0]


@pytest.fixture(scope="module")
def machine():
    return dm.figure_one()


def test_selection_matrix_is_as_printed(machine):
    assert machine.S.toarray().tolist() == [
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 1, 0, 0],
        [0, 0, 0, 1],
    ]


def test_thresholds_are_as_printed(machine):
    assert machine.t.tolist() == [1, 4, 3, 2, 5]


def test_template_matrix_is_as_printed(machine):
    assert machine.B.toarray().tolist() == B
    assert machine.templates(0).toarray().tolist() == B
    assert machine.B.dtype == np.int8


def test_template_matrix_follows_from_the_drawn_tree(machine):
    assert machine.children.tolist() == [[1, 2], [3, ~3], [~4, ~5], [~0, 4], [~1, ~2]]
    assert templates_of(machine.children).tolist() == B


def test_template_of_the_third_leaf_is_as_the_text_says(machine):
    assert machine.B.toarray()[2].tolist() == [-1, -1, 0, +1, +1]


def test_affine_query_is_as_printed(machine):
    assert (machine.S @ X[0] - machine.t).tolist() == [1, -3, -1, -1, -3]
    assert reference.selected(machine, X, slice(0, 5)).tolist() == [[2, 1, 2, 1, 2]]


def test_test_results_are_as_printed(machine):
    assert reference.test_results(machine, X, 0).tolist() == H.tolist()
    assert reference.signum(X @ machine.S.toarray().T - machine.t).tolist() == H.tolist()


def test_signum_sends_zero_to_minus_one():
    assert reference.signum(np.array([-2.0, -0.0, 0.0, 5e-324, 3.0])).tolist() == [-1, -1, -1, 1, 1]


def test_similarities_are_as_defined_in_exact_fractions(machine):
    """NOTE[PAPER]: p is printed with 0 in fourth place; its definition gives -1 there."""
    rows = machine.B.toarray().astype(int).tolist()
    products = [sum(b * h for b, h in zip(row, H[0].tolist(), strict=True)) for row in rows]
    exact = [
        Fraction(product, sum(b * b for b in row))
        for product, row in zip(products, rows, strict=True)
    ]
    assert exact == P
    assert [i for i in range(6) if exact[i] != P_PRINTED[i]] == [3]
    p = reference.similarities(machine, H, 0)
    assert p.tolist() == [[float(fraction) for fraction in exact]]


def test_similarity_reaches_minus_one(machine):
    """NOTE[PAPER]: the interval is printed half open, (-1, 1]."""
    assert reference.similarities(machine, H, 0).min() == -1


def test_exit_leaf_is_the_fifth(machine):
    p = reference.similarities(machine, H, 0)
    assert reference.exit_leaf(p).tolist() == [4]
    assert reference.simplex_weights(p).tolist() == [[0, 0, 0, 0, 1, 0]]
    assert reference.delta_weights(p).tolist() == [[0, 0, 0, 0, 1, 0]]
    assert walk_one(machine, X[0]) == [4]
    assert machine.apply(X).tolist() == [[4]]


@pytest.mark.parametrize("form", ["tree", "lpom", "delta"])
def test_result_is_v5_in_every_form(machine, form):
    assert reference.margin(machine, X, form).tolist() == [[5.0]]
    assert machine.predict(X).tolist() == [5.0]


def test_every_region_of_the_figure_is_reached(machine):
    """One row inside each of the six regions, and rows on borders, which belong to the left."""
    inside = [[0, 1, 9, 9], [0, 3, 9, 1], [0, 3, 9, 9], [0, 9, 9, 9], [2, 9, 0, 9], [2, 9, 9, 9]]
    border = [[1, 2, 9, 9], [1, 4, 9, 5], [1, 4, 9, 5.5], [1, 4.5, 9, 9], [1.5, 9, 3, 9]]
    assert machine.predict(inside).tolist() == [1, 2, 3, 4, 5, 6]
    assert machine.predict(border).tolist() == [1, 2, 3, 4, 5]


def test_figure_obeys_both_theorems(machine):
    assert dm.column_rank(machine).tolist() == [5]
    assert dm.exit_is_unique(machine).tolist() == [True]


def test_left_subtree_has_the_printed_sub_matrix(machine):
    left = machine.subtree(1)
    assert left.B.toarray().tolist() == [[-1, -1, 0], [-1, 1, -1], [-1, 1, 1], [1, 0, 0]]
    assert left.t.tolist() == [4, 2, 5]
    assert left.V.ravel().tolist() == [1, 2, 3, 4]
