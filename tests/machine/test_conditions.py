"""Everything that is printed of a test is true of every value that its column can hold."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from library_models import LIBRARIES, models
from one_test import one_test
from page_texts import run_module, syntax_errors
from read_conditions import conditions_of, holds
from strategies import column_value, goes_left, machines, probe_rows

import decision_machines as dm
from decision_machines.machine.conditions import conditions
from decision_machines.machine.digits import boundary, digits, percent, rounded
from decision_machines.machine.words import words_of_leaf, words_of_test
from decision_machines.show.explore import joined_modules
from decision_machines.show.page_data import page_data

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
ODD = (-math.inf, math.inf, -999.0, 0.0, 1.0, 2.5, 1e-36)


@st.composite
def odd_machines(draw, **options):
    """Machines with infinite thresholds, thresholds at the ends of the dtype, and missing marks."""
    machine = draw(machines(max_trees=3, max_leaves=8, min_trees=1, min_leaves=2, **options))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dtype = machine.columns.dtype
    ends = [np.inf, -np.inf, np.finfo(dtype).max, -np.finfo(dtype).max, float(np.float32(1e-35))]
    t = np.where(rng.random(machine.n_tests) < 0.2, rng.choice(ends, machine.n_tests), machine.t)
    columns = replace(machine.columns, missing_value=draw(st.sampled_from([np.nan, *ODD])))
    return replace(machine, columns=columns, t=t.astype(dtype))


def answers(machine, X):
    """(m, J) whether each row goes left at each test, by the plain walk."""
    found = np.empty((len(X), machine.n_tests), bool)
    mark = machine.columns.dtype.type(machine.columns.missing_value)
    for i, x in enumerate(X):
        with np.errstate(over="ignore"):
            x = np.where(x.astype(machine.columns.dtype) == mark, np.nan, x)
        z = [column_value(machine, c, x) for c in range(len(machine.columns))]
        found[i] = [goes_left(machine, j, z) for j in range(machine.n_tests)]
    return found


def probes(machine, max_rows=40):
    X = probe_rows(machine, max_rows=max_rows)
    mark = machine.columns.missing_value
    return X if math.isnan(mark) else np.concatenate([X, np.where(X == X, mark, X)[:1]])


@settings(max_examples=150)
@given(odd_machines())
def test_every_printed_test_routes_every_probe_as_the_machine_does(machine):
    X = probes(machine)
    left = answers(machine, X)
    for j in range(machine.n_tests):
        column = machine.selection[j]
        feature, name = machine.columns.feature[column], machine.columns.name(column)
        for side in (-1, 1):
            (asked,) = conditions(machine, [j], [side])
            found = [holds(asked.text, name, x, machine.columns) for x in X[:, feature]]
            np.testing.assert_array_equal(found, left[:, j] == (side < 0), asked.text)


@settings(max_examples=100)
@given(odd_machines())
def test_every_printed_rule_holds_for_the_rows_of_its_leaf_and_no_others(machine):
    X = probes(machine, max_rows=25)
    leaves = machine.apply(X)
    for rule in machine.rules():
        met = np.ones(len(X), bool)
        for text in conditions_of(rule.text):
            feature = feature_in(text, machine.columns)
            name = machine.columns.feature_name(feature)
            met &= [holds(text, name, x, machine.columns) for x in X[:, feature]]
        np.testing.assert_array_equal(met, leaves[:, rule.tree] == rule.leaf, rule.text)


def feature_in(text, columns):
    names = [columns.feature_name(f) for f in range(columns.n_features)]
    return next(f for f, name in enumerate(names) if name in text)


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_printed_test_of_the_libraries_is_true(library):
    pytest.importorskip(library, reason=f"{library} is not installed")
    for name, model in models(library).items():
        machine = dm.convert(model)
        plain = replace(
            machine.columns, names=None, categories={}, table_categories=None, label_hash=""
        )
        machine = replace(machine, columns=replace(plain, encodes_arrays=False))
        X = probes(machine, max_rows=60)
        left = answers(machine, X)
        for j in range(machine.n_tests):
            column = machine.selection[j]
            feature, called = plain.feature[column], plain.name(column)
            (asked,) = conditions(machine, [j], [-1])
            found = [holds(asked.text, called, x, plain) for x in X[:, feature]]
            np.testing.assert_array_equal(found, left[:, j], f"{name}: {asked.text}")


# -- numbers --------------------------------------------------------------------------------------

floats = st.floats(allow_nan=False, allow_infinity=False)
decimals = st.builds(lambda n, k: n / 10**k, st.integers(-(10**6), 10**6), st.integers(0, 6))
numbers = st.one_of(floats, decimals, st.integers(-(2**60), 2**60).map(float))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@given(numbers, st.booleans())
def test_a_boundary_splits_the_dtype_where_the_threshold_does(dtype, x, is_before):
    with np.errstate(over="ignore", under="ignore"):
        t = dtype.type(x)
        t = np.nextafter(t, dtype.type(-np.inf)) if is_before else t
        above = np.nextafter(t, dtype.type(np.inf))
        if not np.isfinite(t):
            return
        found = boundary(t, dtype)
        # As a float64, which most languages read it as, and in the dtype.
        for number in (float(found.number), dtype.type(float(found.number))):
            assert (t <= number) if found.is_left else (t < number)
            assert not (above <= number) if found.is_left else not (above < number)


@pytest.mark.parametrize(
    ("t", "dtype", "below"),
    [
        (np.nextafter(np.float32(30), np.float32(0)), "f4", "< 30"),
        (2365.5, "f4", "≤ 2365.5"),
        (1782.5, "f8", "≤ 1782.5"),
        (0.8, "f8", "≤ 0.8"),
        (np.nextafter(np.float32(0), np.float32(-1)), "f4", "< 0"),
        (-0.0, "f8", "≤ 0"),
        (5e-324, "f8", "≤ 5e-324"),
        (2.0**53, "f8", "≤ 9007199254740992"),
        (np.finfo(np.float32).max, "f4", "< inf"),
        (-np.inf, "f4", "≤ -inf"),
        (np.nextafter(np.float32(-2.5), np.float32(-3)), "f4", "< -2.5"),
    ],
)
def test_boundaries_have_few_digits(t, dtype, below):
    assert boundary(float(t), np.dtype(dtype)).below == below


@given(st.integers(-(10**6), 10**6), st.floats(0, 1, exclude_max=True))
def test_whole_numbers_have_whole_boundaries(n, rest):
    for dtype in FLOATS:
        t = dtype.type(n + rest)
        found = boundary(t, dtype, whole=True)
        assert float(found.number) == int(found.number)
        for x in (n - 1, n, n + 1, n + 2):
            left = x <= int(found.number) if found.is_left else x < int(found.number)
            assert left == bool(dtype.type(x) <= t)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@given(numbers)
def test_digits_read_back_as_the_same_number(dtype, x):
    with np.errstate(over="ignore", under="ignore"):
        value = dtype.type(x)
        back = dtype.type(float(digits(value, dtype)))
    assert back == value
    assert np.signbit(back) == np.signbit(value)


def test_what_is_rounded_is_marked():
    assert [rounded(x) for x in (0.25, 1782.5, 2 / 3, -1e-9 / 3)] == [
        *("0.25", "≈1783", "≈0.6667"),
        "≈-3.333e-10",
    ]
    assert [percent(x) for x in (1, 0.5, 2 / 3, 0.9999)] == ["100%", "50%", "≈67%", ">99%"]


# -- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "left", "right"),
    [
        (one_test(np.inf), "d is present", "d is missing"),
        (one_test(np.inf, missing=-1), "d is anything", "d > inf (never)"),
        (one_test(3.0, missing=-1), "d ≤ 3 or missing", "d > 3"),
        (
            one_test(3.0, rule=dm.Rule.NAN_AS_ZERO),
            *("d ≤ 3 or missing", "d > 3"),
        ),
        (
            one_test(3.0, rule=dm.Rule.ZERO_AS_NAN),
            *("d ≤ 3 and d is not zero", "d > 3 or zero or missing"),
        ),
        (one_test(3.0, missing_value=-9), "d ≤ 3 and d ≠ -9", "d > 3 or d = -9 or missing"),
        (one_test(3.0, missing_value=9), "d ≤ 3", "d > 3 or missing"),
        (one_test(np.inf, missing_value=0), "d is present and d ≠ 0", "d is 0 or missing"),
    ],
)
def test_what_is_missing_is_said(machine, left, right):
    assert (words_of_test(machine, 0, -1), words_of_test(machine, 0, 1)) == (left, right)


def test_labels_that_could_be_misread_stand_in_quotes():
    sets = dm.CategorySets([0, 2], [0, 1], [-1, -1], [1])
    machine = one_test(
        0.5, rule=dm.Rule.MEMBER, sets=sets, categories={0: ("a, b", " c", "d}", "e")}
    )
    assert words_of_test(machine, 0) == 'd in {"a, b", " c"}'
    assert words_of_test(machine, 0, 1) == 'd not in {"a, b", " c"} or missing'


def test_rules_name_every_category_and_pictures_say_how_many_there_are():
    sets = dm.CategorySets([0, 20], np.arange(20), np.full(20, -1), [1])
    machine = one_test(0.5, rule=dm.Rule.MEMBER, sets=sets)
    everything = ", ".join(map(str, range(20)))
    assert machine.rules()[0].text == f"if d in {{{everything}}} then 1"
    assert words_of_test(machine, 0) == "d in {0, 1, 2, 3, 4, 5, … 20 in all}"


def test_weights_of_an_oblique_rule_read_back_as_they_are():
    weights = np.array([[0.1 + 0.2, -1 / 3, 0.0]])
    columns = dm.Columns(3)
    machine = replace(
        one_test(2 / 3), columns=columns, selection=sp.csr_array(weights), t=np.array([2 / 3])
    )
    assert machine.rules()[0].text == (
        "if 0.30000000000000004·x[0] - 0.3333333333333333·x[1] ≤ 0.6666666666666666 then 1"
    )
    assert words_of_test(machine, 0) == "≈ 0.3333·x[1]".replace("0.3333·x[1]", "-0.3333·x[1]") + (
        " + 0.3·x[0] ≤ 0.6667"
    )


def test_values_of_leaves_read_back_as_they_are_or_are_marked():
    machine = replace(one_test(1.0), V=np.array([[1 / 3], [2.0]], np.float32))
    assert words_of_leaf(machine, 0) == "0.33333334"
    assert np.float32(words_of_leaf(machine, 0)) == np.float32(1 / 3)
    assert words_of_leaf(machine, 0, brief=True) == "≈0.3333"
    assert words_of_leaf(machine, 1, brief=True) == "2"


# -- the page -------------------------------------------------------------------------------------

PRINTED = """
const { readMachine } = await page("machine");
const { condition } = await page("conditions");
console.log(JSON.stringify(data.map((one) => {
  const machine = readMachine(one);
  return Array.from(machine.t, (_, j) => [condition(machine, j, -1), condition(machine, j, 1)]);
})));
"""


def printed_by_the_page(found, whole=()):
    parts = [page_data(m, None, None, title=None, max_rows=1)["machine"] for m in found]
    return run_module(PRINTED, [part | {"integers": list(whole)} for part in parts])


def printed_here(machine, whole=()):
    return [
        [words_of_test(machine, j, side, whole=whole) for side in (-1, 1)]
        for j in range(machine.n_tests)
    ]


def test_the_modules_of_the_page_have_no_name_twice():
    assert syntax_errors(joined_modules()) == ""
    assert "already been declared" in syntax_errors(joined_modules() + "\nconst boundary = 1;")


@settings(max_examples=5, deadline=None)
@given(
    st.lists(odd_machines(), min_size=10, max_size=10),
    st.lists(
        machines(max_trees=2, max_leaves=6, min_leaves=2, rules=True, oblique=True), max_size=5
    ),
)
def test_the_page_and_python_print_the_same_tests(plain, oblique):
    found = [*plain, *oblique]
    assert printed_by_the_page(found) == [printed_here(machine) for machine in found]
    whole = range(0, 10, 2)
    assert printed_by_the_page(plain, whole) == [printed_here(m, whole) for m in plain]


def test_the_page_of_a_table_of_integers_prints_whole_numbers():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    machine = one_test(27.5)
    table = pd.DataFrame({"d": np.arange(40)})
    for rows, said in [(table, "d ≤ 27"), (table.astype(float), "d ≤ 27.5"), (None, "d ≤ 27.5")]:
        part = page_data(machine, rows, None, title=None, max_rows=50)["machine"]
        assert run_module(PRINTED, [part])[0][0][0] == said


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_page_and_python_print_the_same_tests_of_the_libraries(library):
    pytest.importorskip(library, reason=f"{library} is not installed")
    found = [dm.convert(model) for model in models(library).values()]
    assert printed_by_the_page(found) == [printed_here(machine) for machine in found]


@settings(max_examples=10, deadline=None)
@given(st.lists(numbers, min_size=200, max_size=200))
def test_the_page_and_python_print_the_same_numbers(found):
    code = """
    const { boundary, full, short } = await page("numbers");
    console.log(JSON.stringify(data.map(([x, single]) => {
      const { number, isLeft } = boundary(x, single);
      return [number, isLeft, full(x, single), short(x)];
    })));
    """
    with np.errstate(over="ignore", under="ignore"):
        asked = [(float(dtype.type(x)), dtype) for x in found for dtype in FLOATS]
    asked = [(x, dtype) for x, dtype in asked if np.isfinite(x)]
    theirs = run_module(code, [(x, dtype == np.float32) for x, dtype in asked])
    ours = [[*boundary(x, dtype), digits(x, dtype), rounded(x)] for x, dtype in asked]
    assert theirs == ours
