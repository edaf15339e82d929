"""Sets of categories in every kernel on every target equal the plain descent, bit for bit."""

from dataclasses import replace

import numpy as np
import pytest
from kernel_checks import TARGETS, check, expected, run, same_bits
from strategies import make_machine

import decision_machines as dm
from decision_machines.run.engines import native

NUMBER = 2
"""The feature that is not one of categories."""


def machine_of_sets(members, rng, *, n_trees=6, n_leaves=20, dtype=np.float64, **rules):
    """Trees over two features of categories with these sets, and one of numbers."""
    n_sets = len(members)
    sets = dm.CategorySets(
        start=np.cumsum([0, *map(len, members)]),
        members=np.concatenate([np.asarray(m, np.int64) for m in members]),
        answer=rng.choice([-1, 0, 1], sum(map(len, members))),
        outside=rng.choice([-1, 0, 1], n_sets),
        **rules,
    )
    columns = dm.Columns(
        3,
        dtype,
        feature=[*rng.integers(0, 2, n_sets), NUMBER],
        rule=[*[dm.Rule.MEMBER] * n_sets, dm.Rule.VALUE],
        sets=sets,
    )
    machine = make_machine([n_leaves] * n_trees, rng, n_features=3, rules=False, dtype=dtype)
    selection = rng.integers(0, n_sets + 1, machine.n_tests)
    # Thresholds below, at, between and above the values 0 and 1 of a set's column.
    t = rng.choice([-0.5, 0, 0.5, 0.5, 0.5, 1, 1.5], machine.n_tests)
    t = np.where(selection < n_sets, t, rng.standard_normal(machine.n_tests))
    return replace(machine, columns=columns, selection=selection, t=t.astype(dtype))


def rows_of(highest, rng, n=300, dtype=np.float64):
    """Categories, those beyond the highest, fractions, negative and endless numbers, and NaN."""
    X = rng.integers(0, highest + 3, (n, 3)).astype(np.float64)
    X[:, NUMBER] = rng.standard_normal(n)
    odd = [-1, -0.5, -0.0, 0.5, 2.5, np.nan, np.inf, -np.inf, 2.0**31, 2.0**31 - 128, 1e300, 4096]
    is_odd = rng.random((n, 2)) < 0.2
    X[:, :2][is_odd] = rng.choice(odd, is_odd.sum())
    with np.errstate(over="ignore"):
        return X.astype(dtype)


def random_sets(n_sets, n_labels, most, rng):
    return [np.unique(rng.integers(0, n_labels, rng.integers(0, most + 1))) for _ in range(n_sets)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n_labels", "most"), [(3, 2), (60, 30), (125, 60), (250, 99), (700, 99), (3_000_000_000, 30)]
)
def test_any_number_of_labels_is_exact(n_labels, most, dtype):
    rng = np.random.default_rng(n_labels % 1000)
    machine = machine_of_sets(random_sets(40, n_labels, most, rng), rng, dtype=dtype)
    X = rows_of(n_labels, rng, dtype=dtype)
    some = np.concatenate([machine.columns.sets.members, [0]])
    X[:100, :2] = some[rng.integers(len(some), size=(100, 2))]
    check(machine, X)


@pytest.mark.parametrize("negative_fractions", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_every_rule_of_what_is_a_category_is_exact(negative_fractions, whole):
    rng = np.random.default_rng(3)
    machine = machine_of_sets(
        random_sets(20, 9, 6, rng), rng, negative_fractions=negative_fractions, whole=whole
    )
    check(machine, rows_of(9, rng))


def test_deep_trees_of_sets_are_exact():
    rng = np.random.default_rng(5)
    machine = machine_of_sets(random_sets(300, 40, 20, rng), rng, n_trees=3, n_leaves=700)
    check(machine, rows_of(40, rng))


@pytest.mark.parametrize("n_rows", [0, 1, 2, 23, 24, 63, 64, 65, 1023, 1025, 4097])
def test_tails_of_sets_are_exact(n_rows):
    rng = np.random.default_rng(7)
    machine = machine_of_sets(random_sets(30, 300, 200, rng), rng)
    X = rows_of(300, rng, 4097)
    margins, leaves = expected(machine, X)
    for target in TARGETS:
        plan = native.compile_plan(machine, target=target)
        assert same_bits(run(plan, machine, X[:n_rows]), margins[:n_rows])
        assert same_bits(run(plan, machine, X[:n_rows], leaves=True), leaves[:n_rows])


def test_equal_sets_are_one_test():
    rng = np.random.default_rng(11)
    machine = machine_of_sets([[1, 4]] * 50, rng)
    sets = replace(machine.columns.sets, answer=np.tile([-1, -1], 50), outside=np.full(50, 1))
    columns = replace(machine.columns, sets=sets)
    machine = replace(
        machine,
        columns=columns,
        selection=rng.integers(0, 50, machine.n_tests),
        t=np.full(machine.n_tests, 0.5),
        missing=np.ones(machine.n_tests, np.int8),
    )
    plan = native.compile_plan(machine, target="auto", kernel="select").describe()
    assert plan.n_distinct_tests == 2  # one for each of two features
    check(machine, rows_of(5, rng))


def test_categories_that_no_set_tells_apart_share_a_code():
    """One set of 100 000 members, as XGBoost may write it, needs three codes."""
    rng = np.random.default_rng(13)
    machine = machine_of_sets([np.arange(0, 200_000, 2)], rng, n_trees=2)
    X = rows_of(200_000, rng)
    plan = native.compile_plan(machine, target="auto").describe()
    assert plan.n_sections == 1
    assert plan.n_bytes < 2_000_000
    check(machine, X, TARGETS[-1:])


def test_more_labels_than_one_code_has_are_coded_in_sections():
    """Sets that tell 130 000 categories from each other, in 17 trees."""
    rng = np.random.default_rng(17)
    bits = [np.flatnonzero(np.arange(131_072) >> bit & 1) for bit in range(17)]
    machine = machine_of_sets(bits, rng, n_trees=17, n_leaves=2)
    sets = replace(
        machine.columns.sets,
        answer=np.ones_like(machine.columns.sets.answer),
        outside=np.full(17, -1),
    )
    columns = replace(machine.columns, sets=sets, feature=[*[0] * 17, NUMBER])
    machine = replace(
        machine, columns=columns, selection=np.arange(17), t=np.full(17, 0.5, machine.t.dtype)
    )
    assert native.compile_plan(machine, target="auto").describe().n_sections == 2
    check(machine, rows_of(131_072, rng), TARGETS[-1:])


def test_sets_too_many_for_one_table_cost_bounded_memory():
    """17 000 sets of one label each: a table of all by all would grow with their square."""
    rng = np.random.default_rng(19)
    n = 17_000
    machine = machine_of_sets([[i] for i in range(n)], rng, n_trees=300, n_leaves=60)
    columns = replace(machine.columns, feature=[*[0] * n, NUMBER])
    machine = replace(machine, columns=columns, selection=np.arange(machine.n_tests) % n)
    plan = native.compile_plan(machine, target="auto").describe()
    assert plan.n_sections > 1
    assert plan.n_bytes < 30_000_000
    X = rows_of(n, rng, 30)
    raw = native.compile_plan(machine, target="auto", kernel="raw")
    assert same_bits(machine.margin(X), run(raw, machine, X))
    assert same_bits(machine.margin(X[:1]), run(raw, machine, X[:1]))


def test_members_beyond_every_category_are_found_nowhere():
    rng = np.random.default_rng(23)
    machine = machine_of_sets([[1, 2**31 - 1, 2**31, 2**40], [2**62]], rng)
    X = rows_of(3, rng)
    X[:9, 0] = [2.0**31 - 1, 2.0**31, 2.0**40, 2.0**62, 1, 1.5, 2.0**31 - 1.5, 2.0**31 - 0.5, 0]
    check(machine, X)
