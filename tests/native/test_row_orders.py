"""Ranks of columns and distinct rows, against NumPy's."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decision_machines import _native

MANY = 3000
SKEWED = np.random.default_rng(0).normal(size=MANY)
COLUMNS = {
    "numbers": SKEWED,
    "few": np.round(SKEWED),
    "one far away": np.append(SKEWED[1:], 1e300),
    "close to each other": 1.0 + SKEWED.argsort() * 2.0**-52,
    "tiny and of both signs": SKEWED * 5e-320,
    "gaps": np.where(SKEWED > 0, SKEWED, np.nan),
    "nothing known": np.full(MANY, np.nan),
    "one value": np.ones(MANY),
}


def ranks(X):
    rank = np.empty(X.shape[::-1], np.int32)
    values, start = _native.column_ranks(np.ascontiguousarray(X), rank)
    return rank, [values[a:b] for a, b in pairwise(start)]


def check_ranks(X):
    rank, values = ranks(X)
    for x, own, found in zip(X.T, rank, values, strict=True):
        known = ~np.isnan(x)
        expected, inverse = np.unique(x[known], return_inverse=True)
        assert np.array_equal(found, expected)
        assert not np.signbit(found[found == 0]).any()
        assert np.array_equal(own[known], inverse)
        assert np.all(own[~known] == -1)


def test_many_rows_have_the_ranks_of_their_values():
    check_ranks(np.stack(list(COLUMNS.values()) + [SKEWED[::-1]] * 3, axis=1))


@given(
    st.integers(0, 12).flatmap(
        lambda m: st.lists(st.lists(st.floats(), min_size=m, max_size=m), min_size=1, max_size=10)
    )
)
def test_any_floats_have_the_ranks_of_their_values(columns):
    check_ranks(np.array(columns).T)


@pytest.mark.parametrize("n", [1, 3])
def test_rows_are_alike_where_all_values_are(n):
    rng = np.random.default_rng(n)
    X = rng.choice([-1.0, -0.0, 0.0, 2.5, np.nan], size=(MANY, n))
    y = rng.integers(0, 3, (MANY, 1)).astype(float)
    order, first = _native.distinct_rows(X, y)
    assert np.array_equal(np.sort(order), np.arange(MANY))
    both = np.nan_to_num(np.concatenate([X, y], axis=1) + 0.0, nan=99.0)
    assert len(first) == len(np.unique(both, axis=0))
    for rows in np.split(order, first[1:]):
        assert np.all(both[rows] == both[rows[0]])
        assert np.array_equal(rows, np.sort(rows))  # so the first of each is the first given


def test_the_order_of_rows_does_not_depend_on_theirs():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(MANY, 2)), np.zeros((MANY, 1))
    shuffled = rng.permutation(MANY)
    one, two = (_native.distinct_rows(own, y)[0] for own in (X, X[shuffled]))
    assert np.array_equal(one, shuffled[two])
