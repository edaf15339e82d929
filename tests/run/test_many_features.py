"""A machine costs what it uses, however many features it declares."""

import resource
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from strategies import make_machine

import decision_machines as dm
from decision_machines.errors import InputError

MOST = 2**31 - 1


def spread(machine, features, n_features):
    """The same machine, whose columns are far apart among many features."""
    columns = replace(machine.columns, n_features=n_features, feature=np.array(features)[
        machine.columns.feature
    ])  # fmt: skip
    return replace(machine, columns=columns)


def most_memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize(
    ("n_features", "features"),
    [
        (10_000_000, (3, 70, 9_999_999)),
        (10_000_000, (3, 70, 500)),
        (MOST, (0, 2**20, MOST - 1)),
    ],
)
@pytest.mark.parametrize("n_rows", [1, 5, 700])
def test_sparse_rows_of_many_features_are_exact_and_cost_what_is_used(n_features, features, n_rows):
    rng = np.random.default_rng(0)
    small = make_machine([8] * 6, rng, n_features=3, rules=False, values="real")
    large = spread(small, features, n_features)
    x = rng.choice([-1.0, 0.0, 0.1, 0.5, 1.0, 2.0, np.nan], (n_rows, 3))
    at = np.tile(features, n_rows)
    start = np.arange(n_rows + 1) * 3
    rows = sp.csr_matrix((x.ravel(), at, start), (n_rows, n_features))
    before = most_memory()
    assert np.array_equal(large.margin(rows), small.margin(x))
    assert np.array_equal(large.apply(rows), small.apply(x))
    assert most_memory() - before < 100e6


def test_a_function_of_one_row_of_too_many_features_is_refused():
    rng = np.random.default_rng(0)
    small = make_machine([8], rng, n_features=3, rules=False)
    with pytest.raises(InputError, match="2147483647 features"):
        spread(small, (0, 1, 2), MOST).row_function()


def test_a_function_of_one_row_of_more_features_than_stand_at_hand_is_exact():
    rng = np.random.default_rng(0)
    small = make_machine([8] * 6, rng, n_features=3, rules=False, values="real")
    large = spread(small, (0, 70, 199), 200)
    assert isinstance(large, dm.DecisionMachine)
    x = rng.standard_normal((20, 200))
    answer = large.row_function("margin")
    for row in x:
        assert np.array_equal(answer(row.tolist()), small.margin(row[None, [0, 70, 199]])[0])
