"""Rows made ready: equal ones merged, order forgotten, a part held out."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from decision_machines.estimators.distinct_rows import distinct_rows
from decision_machines.train.hold_out import hold_out

FEW = st.sampled_from([0.0, -0.0, 1.0, 1e300, -1e-300, np.nan])


@given(
    X=hnp.arrays(np.float64, st.tuples(st.integers(1, 30), st.integers(1, 3)), elements=FEW),
    seed=st.integers(0, 99),
)
def test_no_two_distinct_rows_are_equal_and_no_weight_is_lost(X, seed):
    rng = np.random.default_rng(seed)
    y, w = rng.integers(0, 2, len(X)), rng.integers(0, 3, len(X)).astype(float)
    w[0] = 1.0
    rows = distinct_rows(X, y, w)

    def seen(X, y):
        plain = np.nan_to_num(X, nan=7.0) + 0.0
        return {(*row.tolist(), int(code)) for row, code in zip(plain, y, strict=True)}

    found, given_rows = seen(rows.X, rows.y), seen(X[w > 0], y[w > 0])
    assert found == given_rows
    assert len(rows) == len(given_rows)
    np.testing.assert_allclose(np.sort(rows.w * w.sum() / len(rows)).sum(), w.sum())


@given(seed=st.integers(0, 200))
def test_order_and_repetition_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 4, (20, 2)).astype(float), rng.integers(0, 2, 20)
    w = rng.integers(0, 4, 20)
    w[0] = 2
    weighted = distinct_rows(X, y, w.astype(float))
    order = rng.permutation(w.sum())
    repeated = distinct_rows(
        np.repeat(X, w, axis=0)[order], np.repeat(y, w)[order], np.ones(w.sum())
    )
    np.testing.assert_array_equal(weighted.X, repeated.X)
    np.testing.assert_array_equal(weighted.y, repeated.y)
    np.testing.assert_allclose(weighted.w, repeated.w)


def test_every_class_keeps_a_row_to_learn_from_and_gives_its_share():
    rng = np.random.default_rng(0)
    y = np.array([0] * 100 + [1] * 50 + [2])
    rows = distinct_rows(rng.normal(size=(151, 2)), y, np.ones(151))
    own, held = hold_out(rows, 0.2, 0, is_classes=True)
    assert np.bincount(own.y).tolist() == [80, 40, 1]
    assert len(own) + len(held) == 151
    assert not {*map(bytes, own.X)} & {*map(bytes, held.X)}


def test_too_few_rows_are_not_divided():
    rows = distinct_rows(np.arange(10.0)[:, None], np.arange(10) % 2, np.ones(10))
    assert hold_out(rows, 0.2, 0, is_classes=True) == (rows, None)
