"""The exact split search, against every split there is; features as ranks and back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decision_machines import _native
from decision_machines.train.axis.ranks import MISSING, Ranks

GINI, ENTROPY, ERROR = np.eye(6)[:3] + 0.5 * np.eye(6)[5]
MIXED = np.array([0.3, 0.2, 1.0, 0.0, 0.0, 0.5])


# -- the split search against every split ---------------------------------------------------------


POISSON, QUANTILE = np.array([1, 0, 0, 0, 1, 0.5]), np.array([1, 0, 0, 0, 2, 0.3])


def leaf_loss(label, y, w, k, objective):
    gini, entropy, error, ridge, number, q = objective
    W = w.sum()
    if label is None and number == 1:  # half the deviance from the mean
        mean = w @ y / W
        logs = np.log(np.where(y > 0, y, 1) / np.where(y > 0, mean, 1))
        return (w[:, None] * (y * logs - y + mean)).sum()
    if label is None and number == 2:  # the best of all numbers that occur
        return sum(min(w @ np.maximum(q * (c - v), (q - 1) * (c - v)) for v in c) for c in y.T)
    if label is None:
        totals = w @ y
        return (w[:, None] * y**2).sum() - (totals**2).sum() / (W + ridge)
    p = np.bincount(label, w, k) / W
    logs = np.log(np.where(p > 0, p, 1))
    return W * (gini * (1 - (p**2).sum()) - entropy * (p * logs).sum() + error * (1 - p.max()))


def every_split(rank, ids):
    """(feature, cut, missing_left, left) of every test that parts the rows."""
    for feature, column in enumerate(rank[:, ids]):
        known = column != MISSING
        for cut in np.unique(column[known]):
            for missing_left in (False, True):
                left = np.where(known, column <= cut, missing_left)
                if 0 < left.sum() < len(ids):
                    yield feature, int(cut), missing_left, left


@st.composite
def ranked_rows(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m, n = draw(st.integers(2, 60)), draw(st.integers(1, 3))
    # Few values, so that ties abound, or many; few ranks take the way over bins.
    X = np.round(rng.standard_normal((m, n)), draw(st.integers(0, 3)))
    X[rng.random((m, n)) < draw(st.sampled_from([0.0, 0.2]))] = np.nan
    w = rng.choice([1.0, 2.0, 0.25], m) if draw(st.booleans()) else np.ones(m)
    k = draw(st.integers(1, 3))
    label = y = None
    if draw(st.booleans()):
        label = rng.integers(k, size=m).astype(np.int32)
    else:
        y = np.round(rng.standard_normal((m, k)), 2)
    ids = rng.permutation(m)[: rng.integers(2, m + 1)].astype(np.int32)
    return Ranks.of(X), label, y, w, k, ids, rng


@settings(max_examples=150, deadline=None)
@given(
    ranked_rows(),
    st.sampled_from(["gini", "entropy", "error", "mixed", "ridge", "poisson", "quantile"]),
    st.integers(1, 3),
)
def test_the_purest_split_is_the_best_of_all(given_rows, aim, least):
    ranks, label, y, w, k, ids, _ = given_rows
    objective = {"gini": GINI, "entropy": ENTROPY, "error": ERROR, "mixed": MIXED,
                 "ridge": np.array([1, 0, 0, 2.5, 0, 0.5]), "poisson": POISSON,
                 "quantile": QUANTILE}[aim]  # fmt: skip
    if y is not None and aim == "poisson":
        y = np.maximum(y, 0)
    searches = _native.TreeSearches(ranks.rank, ranks.n_ranks, label, y, w, k)
    loss, feature, cut, missing_left = searches.best_test(ids, None, least, objective)

    def loss_of(left):
        parts = (ids[left], ids[~left])
        return sum(
            leaf_loss(
                None if label is None else label[p], None if y is None else y[p], w[p], k, objective
            )
            for p in parts
        )

    legal = [s for s in every_split(ranks.rank, ids) if least <= s[3].sum() <= len(ids) - least]
    if not legal:
        assert feature == -1
        return
    best = min(loss_of(s[3]) for s in legal)
    assert loss == pytest.approx(best, abs=1e-9)
    column = ranks.rank[feature, ids]
    found = np.where(column == MISSING, missing_left, column <= cut)
    assert loss_of(found) == pytest.approx(best, abs=1e-9)


@settings(max_examples=150, deadline=None)
@given(ranked_rows(), st.integers(1, 3))
def test_the_preferred_split_has_the_least_sum_of_all(given_rows, least):
    ranks, label, y, w, k, ids, rng = given_rows
    lean = np.round(rng.standard_normal(len(ids)), 2)
    searches = _native.TreeSearches(ranks.rank, ranks.n_ranks, label, y, w, k)
    loss, feature, cut, missing_left = searches.best_test(ids, lean, least, GINI)
    sums = [
        lean[left].sum()
        for *_, left in every_split(ranks.rank, ids)
        if least <= left.sum() <= len(ids) - least
    ]
    assert (feature == -1) == (not sums)
    if sums:
        column = ranks.rank[feature, ids]
        left = np.where(column == MISSING, missing_left, column <= cut)
        assert loss == pytest.approx(min(sums), abs=1e-9)
        assert lean[left].sum() == pytest.approx(min(sums), abs=1e-9)


def test_many_rows_of_few_ranks_split_as_by_hand():
    rng = np.random.default_rng(0)
    X, label = rng.integers(4, size=(500, 2)).astype(float), rng.integers(3, size=500)
    X[rng.random(X.shape) < 0.1] = np.nan
    ranks, ids = Ranks.of(X), np.arange(500, dtype=np.int32)
    searches = _native.TreeSearches(
        ranks.rank, ranks.n_ranks, label.astype(np.int32), None, np.ones(500), 3
    )
    for objective in (GINI, ENTROPY, ERROR, MIXED):
        best = min(
            leaf_loss(label[left], None, np.ones(left.sum()), 3, objective)
            + leaf_loss(label[~left], None, np.ones((~left).sum()), 3, objective)
            for *_, left in every_split(ranks.rank, ids)
        )
        assert searches.best_test(ids, None, 1, objective)[0] == pytest.approx(best)


@settings(max_examples=40, deadline=None)
@given(ranked_rows(), st.sampled_from([GINI, ENTROPY, ERROR, MIXED]), st.integers(1, 2))
def test_two_levels_are_the_best_of_all_where_values_are_few(given_rows, objective, least):
    ranks, label, y, w, k, ids, rng = given_rows
    # Some values are rare, and are cut at like the others.
    few = rng.choice(np.arange(5.0), ranks.rank.shape, p=rng.dirichlet(np.full(5, 0.5)))
    few[rng.random(few.shape) < 0.1] = np.nan
    ranks = Ranks.of(few.T)
    searches = _native.TreeSearches(ranks.rank, ranks.n_ranks, label, y, w, k)

    def loss_of(rows):
        own = None if label is None else label[rows], None if y is None else y[rows]
        return leaf_loss(*own, w[rows], k, objective)

    def sides(rows):
        # Missing values go right: the steps that follow a move find their place.
        for _, _, missing_left, left in every_split(ranks.rank, rows):
            if not missing_left:
                yield rows[left], rows[~left]

    def best_below(rows):
        if len(rows) < least:
            return np.inf
        parted = (loss_of(a) + loss_of(b) for a, b in sides(rows) if min(len(a), len(b)) >= least)
        return min([loss_of(rows), *parted])

    best = min([best_below(a) + best_below(b) for a, b in sides(ids)], default=np.inf)
    _, tests = searches.best_two_levels(ids, least, objective)
    assert (tests[0] < 0) == np.isinf(best)
    if np.isinf(best):
        return

    def goes_left(rows, feature, cut):
        column = ranks.rank[feature, rows]
        return (column != MISSING) & (column <= cut)

    left = goes_left(ids, *tests[:2])
    found = 0.0
    for rows, (feature, cut) in ((ids[left], tests[2:4]), (ids[~left], tests[4:])):
        inner = goes_left(rows, feature, cut) if feature >= 0 else np.zeros(len(rows), bool)
        found += sum(loss_of(part) for part in (rows[inner], rows[~inner]) if len(part))
    assert found == pytest.approx(best, abs=1e-9)


# -- ranks ----------------------------------------------------------------------------------------


def test_more_values_than_ranks_become_runs_in_order():
    x = np.random.default_rng(0).permutation(200_000).astype(float)
    ranks = Ranks.of(x[:, None])
    order = np.argsort(x)
    assert ranks.n_ranks[0] <= MISSING
    assert np.all(np.diff(ranks.rank[0][order].astype(int)) >= 0)
    assert np.bincount(ranks.rank[0]).max() <= 5
    at = ranks.threshold(0, 10, 11)
    assert np.array_equal(x <= at, ranks.rank[0] <= 10)


@pytest.mark.parametrize(
    ("low", "high"),
    [(1.0, np.nextafter(1.0, 2)), (-1e308, 1e308), (1e308, 1.7e308), (5e-324, 1e-323),
     (-np.inf, 0.0), (0.0, np.inf), (-np.inf, np.inf), (-0.0, 5e-324)],
)  # fmt: skip
def test_a_threshold_parts_its_neighbours_however_close_or_far(low, high):
    t = Ranks.of(np.array([[low], [high]])).threshold(0, 0, 1)
    assert low <= t < high
