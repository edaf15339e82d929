"""A function of one row answers as the method of its name does for a table of that row."""

import copy
import pickle
from collections import OrderedDict
from dataclasses import replace
from types import MappingProxyType

import lightgbm
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import machines, probe_rows

import decision_machines as dm

METHODS = ("predict", "predict_proba", "response", "margin", "apply")
COLOURS = ("red", "blue", "green")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "colour": pd.Categorical(rng.choice([*COLOURS, None], 400), COLOURS),
            "size": np.where(rng.random(400) < 0.1, np.nan, rng.standard_normal(400)),
            "hours per week": rng.integers(0, 60, 400),
        }
    )


@pytest.fixture(scope="module")
def machine(table):
    y = (table["colour"] == "red") ^ (table["size"] > 0.3) ^ (table["hours per week"] > 30)
    model = lightgbm.LGBMClassifier(n_estimators=20, min_child_samples=5, verbose=-1)
    return dm.convert(model.fit(table, y))


def rows_of(table):
    """Rows of plain values: text, numbers, None."""
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    return [dict(row) for row in rows]


@pytest.mark.parametrize("outputs", METHODS)
def test_a_mapping_is_answered_as_a_table_of_its_row(machine, table, outputs):
    answer = machine.row_function(outputs)
    wanted = getattr(machine, outputs)(table)
    for row, expected in zip(rows_of(table)[:60], wanted, strict=False):
        found = answer(row)
        assert np.array_equal(found, expected)
        assert np.asarray(found).dtype == wanted.dtype
        assert np.array_equal(answer(list(row.values())), expected)
        assert np.array_equal(answer(tuple(row.values())), expected)


@settings(max_examples=40, deadline=None)
@given(machines(max_trees=3, max_leaves=9), st.sampled_from(["margin", "apply"]))
def test_any_machine_answers_a_list_as_a_row_of_an_array(machine, outputs):
    X = probe_rows(machine, max_rows=12)
    answer = machine.row_function(outputs)
    for x, expected in zip(X, getattr(machine, outputs)(X), strict=True):
        assert answer(x.tolist()).tobytes() == expected.tobytes()
        assert answer(x).tobytes() == expected.tobytes()


def test_the_order_and_the_kind_of_a_mapping_do_not_matter(machine, table):
    answer = machine.row_function("margin")
    row = rows_of(table)[0]
    expected = machine.margin(table.iloc[[0]])[0]
    turned = dict(reversed(row.items()))
    for one in (row, turned, OrderedDict(turned), MappingProxyType(turned), pd.Series(row)):
        assert np.array_equal(answer(one), expected)


def test_names_may_be_spelt_as_the_model_keeps_them_or_as_the_data_had_them(machine, table):
    answer = machine.row_function("margin")
    row = rows_of(table)[0]
    spelt = {name.replace(" ", "_"): value for name, value in row.items()}
    for one in (row, spelt, row):
        assert np.array_equal(answer(one), machine.margin(table.iloc[[0]])[0])


@pytest.mark.parametrize("none", [None, float("nan"), np.nan, pd.NA, np.float32("nan")])
def test_none_and_nan_are_missing_values(machine, table, none):
    answer = machine.row_function("margin")
    row = {"colour": none, "size": none, "hours per week": 7}
    wanted = table.iloc[[0]].assign(**{"colour": pd.Categorical([None], COLOURS), "size": np.nan})
    wanted["hours per week"] = 7
    assert np.array_equal(answer(row), machine.margin(wanted)[0])


@pytest.mark.parametrize("number", [True, 3, 3.5, np.int8(3), np.float32(3.5), np.array(3.5)])
def test_numbers_of_every_kind_are_read(machine, number):
    answer = machine.row_function("margin")
    row = {"colour": "red", "size": number, "hours per week": number}
    expected = answer({"colour": "red", "size": float(number), "hours per week": float(number)})
    assert np.array_equal(answer(row), expected)


def test_a_label_that_the_model_does_not_know_is_what_a_table_makes_of_it(machine):
    answer = machine.row_function("margin")
    row = {"size": 0.5, "hours per week": 7}
    new, none = answer({"colour": "mauve", **row}), answer({"colour": None, **row})
    assert np.array_equal(new, none)  # LightGBM reads both as missing


def test_a_missing_or_unknown_name_is_refused_with_both(machine):
    answer = machine.row_function()
    with pytest.raises(dm.InputError, match=r"missing 'size'; unknown 'width'") as error:
        answer({"colour": "red", "width": 1, "hours per week": 2})
    assert "reading one row" in str(error.value)
    assert "give a value for each feature" in str(error.value)
    with pytest.raises(dm.InputError, match="unknown 'width'"):
        answer({"colour": "red", "size": 1, "hours per week": 2, "width": 3})
    with pytest.raises(dm.InputError, match="missing"):
        answer({})


@pytest.mark.parametrize(
    "row",
    [
        {"colour": "red", "size": "large", "hours per week": 2},
        {"colour": "red", "size": [1, 2], "hours per week": 2},
        {"colour": ["red"], "size": 1, "hours per week": 2},
        ["red", 1],
        ["red", 1, 2, 3],
        [["red", 1, 2], ["red", 1, 2]],
        None,
        7,
        "red",
    ],
)
def test_what_is_not_a_row_of_the_model_is_refused_in_words(machine, row):
    with pytest.raises(dm.InputError):
        machine.row_function()(row)


def test_a_label_that_is_refused_is_named(machine):
    columns = replace(
        machine.columns,
        table_categories=None,
        categories={0: COLOURS},
        refuses_new_labels=True,
    )
    answer = replace(machine, columns=columns).row_function()
    with pytest.raises(dm.InputError, match="'mauve' for colour"):
        answer({"colour": "mauve", "size": 1, "hours per week": 2})


def test_no_label_is_refused_by_name_where_labels_go_by_their_hash(machine):
    columns = replace(
        machine.columns, table_categories=None, categories={0: COLOURS}, label_hash="catboost"
    )
    answer = replace(machine, columns=columns).row_function("margin")
    row = {"size": 1, "hours per week": 2}
    assert answer({"colour": "red", **row}).shape == (1,)
    for none in (None, float("nan"), 1.0):
        with pytest.raises(dm.InputError, match="colour holds"):
            answer({"colour": none, **row})


def test_an_output_that_there_is_not_is_refused(machine):
    with pytest.raises(dm.InputError, match=r"(?s)'proba'.*predict_proba"):
        machine.row_function("proba")
    with pytest.raises(dm.InputError, match="no classes"):
        dm.figure_one().row_function("predict_proba")


def test_a_row_function_can_be_copied_and_pickled(machine, table):
    answer = machine.row_function("predict_proba")
    row = rows_of(table)[3]
    for one in (copy.copy(answer), pickle.loads(pickle.dumps(answer))):
        assert np.array_equal(one(row), answer(row))


def test_a_machine_that_only_the_walk_runs_answers_too():
    machine = dm.figure_one()
    machine = replace(machine, output=replace(machine.output, aggregate="median"))
    x = [2, 1, 2, 2]
    assert np.array_equal(machine.row_function("margin")(x), machine.margin([x])[0])
    assert np.array_equal(machine.row_function("apply")(x), machine.apply([x])[0])


@pytest.mark.parametrize("link", ["expit", "xgboost_sigmoid"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_probabilities_of_two_classes_are_those_of_the_table_at_every_margin(link, dtype):
    margins = (-1e30, -800.0, -104.0, -88.8, -88.7, -17.5, -0.0, 0.0, 0.1, 40.0, 800.0, np.nan)
    machine = dm.figure_one()
    columns = replace(machine.columns)
    for margin in margins:
        value = np.full((machine.n_leaves, 1), margin, dtype)
        output = replace(
            machine.output,
            link=link,
            link_params=(2.0,) if link == "expit" else (),
            decision="above",
            classes=(np.array([3, 7]),),
            dtype=np.dtype(dtype),
        )
        try:
            made = replace(machine, V=value, output=output, columns=columns)
        except dm.errors.InvariantError:  # a value that no machine may have
            assert np.isnan(margin)
            continue
        row = [1.0, 2.0, 3.0, 4.0]
        for outputs in ("predict", "predict_proba", "response"):
            found = made.row_function(outputs)(row)
            expected = getattr(made, outputs)(np.array([row]))[0]
            assert np.array_equal(found, expected, equal_nan=True), (margin, outputs)
            assert np.asarray(found).dtype == np.asarray(expected).dtype
