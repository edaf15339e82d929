"""Tables read where they lie give what the plain way through narwhals gives, whatever they are."""

import gc
import threading
import weakref
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from strategies import make_machine

import decision_machines as dm
from decision_machines.run.inputs.table_reader import TableReader

COLOURS = ("red", "blue", "dark green", "", "höher", "a label of more than sixteen bytes")
FRUIT = tuple(f"fruit {i}" for i in range(300))
ROWS = 1300
TEXT = "str" if int(pd.__version__.split(".")[0]) >= 3 else "string[pyarrow]"
"""pandas' own text: before 3 a "str" has no gaps, and None becomes the word "None"."""


@pytest.fixture(scope="module")
def rng():
    return np.random.default_rng(1)


def machine_of(**given):
    """A machine of two features of labels and two of numbers."""
    rng = np.random.default_rng(3)
    n_sets = 24
    members = [
        np.sort(rng.choice(len(labels), rng.integers(1, 5), replace=False))
        for labels in [COLOURS] * 12 + [FRUIT] * 12
    ]
    sets = dm.CategorySets(
        start=np.cumsum([0, *map(len, members)]),
        members=np.concatenate(members),
        answer=np.full(sum(map(len, members)), -1),
        outside=np.ones(n_sets),
    )
    labels = {"categories": {0: COLOURS, 1: FRUIT}}
    if given.pop("by_order", False):
        labels = {"table_categories": (COLOURS, FRUIT)}
    columns = dm.Columns(
        4,
        feature=[0] * 12 + [1] * 12 + [2, 3],
        rule=[dm.Rule.MEMBER] * n_sets + [dm.Rule.VALUE] * 2,
        names=("colour", "fruit", "size", "count"),
        sets=sets,
        **(labels | given),
    )
    machine = make_machine([16] * 12, rng, n_features=4, rules=False, values="real")
    selection = rng.integers(0, n_sets + 2, machine.n_tests)
    t = np.where(selection < n_sets, 0.5, rng.integers(0, 50, machine.n_tests) / 10)
    return replace(machine, columns=columns, selection=selection, t=t)


def values(rng, *, new=False, none=True):
    """Columns as lists: labels, some of them new or none, and numbers, some of them none."""
    kinds = [*COLOURS, *(["green"] if new else [])], [*FRUIT, *(["durian"] if new else [])]
    found = {
        "colour": rng.choice(kinds[0], ROWS).tolist(),
        "fruit": rng.choice(kinds[1], ROWS).tolist(),
        "size": (rng.integers(0, 50, ROWS) / 10).tolist(),
        "count": rng.integers(0, 6, ROWS).tolist(),
    }
    if none:
        for column in found.values():
            for at in rng.choice(ROWS, 50, replace=False):
                column[at] = None
    return found


def pandas_of(found, kind, numbers="nullable"):
    made = {}
    for name, column in found.items():
        if name in ("colour", "fruit"):
            made[name] = pd.Series(column, dtype=object).astype(kind)
        elif numbers == "nullable":
            made[name] = pd.array(column, dtype="Float64" if name == "size" else "Int64")
        else:
            made[name] = pd.array(column, dtype="float64[pyarrow]")
    return pd.DataFrame(made)


def arrow_of(found, index=None, text=None):
    made = {}
    for name, column in found.items():
        array = pa.array(column)
        if name in ("colour", "fruit") and text is not None:
            array = array.cast(text)
        if name in ("colour", "fruit") and index is not None:
            array = array.dictionary_encode().cast(pa.dictionary(index, text or pa.string()))
        made[name] = array
    return pa.table(made)


KINDS = {
    "pandas categories": lambda found: pandas_of(found, "category"),
    "pandas objects": lambda found: pandas_of(found, object),
    "pandas text": lambda found: pandas_of(found, TEXT),
    "pandas python text": lambda found: pandas_of(found, "string[python]"),
    "pandas arrow numbers": lambda found: pandas_of(found, "category", "arrow"),
    "arrow text": arrow_of,
    "arrow large text": lambda found: arrow_of(found, text=pa.large_string()),
    "arrow dictionary": lambda found: arrow_of(found, pa.int32()),
    "arrow unsigned dictionary": lambda found: arrow_of(found, pa.uint16(), pa.large_string()),
    "arrow batch": lambda found: arrow_of(found).to_batches()[0],
    "arrow in pieces": lambda found: pa.concat_tables(
        [arrow_of(found).slice(0, 7), arrow_of(found).slice(7)]
    ),
    "arrow dictionaries in pieces": lambda found: pa.concat_tables(
        [
            arrow_of({name: column[:7] for name, column in found.items()}, pa.int32()),
            arrow_of({name: column[7:] for name, column in found.items()}, pa.int32()),
        ]
    ),
    "arrow slice": lambda found: arrow_of(found, pa.int16()).slice(5, 900),
    "arrow text slice": lambda found: arrow_of(found).slice(5, 900),
    "polars text": pl.DataFrame,
    "polars categories": lambda found: pl.DataFrame(found).with_columns(
        pl.col("colour", "fruit").cast(pl.Categorical)
    ),
    "polars enum": lambda found: pl.DataFrame(found).with_columns(
        pl.col("colour").cast(pl.Enum([*COLOURS[::-1], "green"]))
    ),
}


@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_table_read_where_it_lies_is_the_table_read_plainly(kind, new, rng):
    machine = machine_of()
    table = KINDS[kind](values(rng, new=new))
    assert TableReader(machine.columns).read(table) is not None
    assert np.array_equal(machine.margin(table), machine.margin(table, engine="walk"))
    one = table[:1] if not isinstance(table, pd.DataFrame) else table.iloc[[0]]
    assert np.array_equal(machine.margin(one), machine.margin(one, engine="walk"))
    none = table[:0] if not isinstance(table, pd.DataFrame) else table.iloc[:0]
    assert machine.margin(none).shape == (0, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_labels_by_the_order_of_labelled_columns_are_read_alike(kind, rng):
    machine = machine_of(by_order=True)
    table = KINDS[kind](values(rng, new=True))
    assert np.array_equal(machine.margin(table), machine.margin(table, engine="walk"))


@pytest.mark.parametrize("kind", KINDS)
def test_labels_by_their_hash_are_read_alike(kind, rng):
    machine = machine_of(label_hash="catboost")
    table = KINDS[kind](values(rng, new=True, none=False))
    assert TableReader(machine.columns).read(table) is not None
    assert np.array_equal(machine.margin(table), machine.margin(table, engine="walk"))


@pytest.mark.parametrize("kind", KINDS)
def test_no_label_is_refused_where_labels_go_by_their_hash(kind, rng):
    machine = machine_of(label_hash="catboost")
    with pytest.raises(dm.InputError, match="not a category for CatBoost"):
        machine.margin(KINDS[kind](values(rng)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_label_is_refused_by_name_where_the_model_refuses_it(kind, rng):
    machine = machine_of(refuses_new_labels=True)
    table = KINDS[kind](values(rng))
    assert np.array_equal(machine.margin(table), machine.margin(table, engine="walk"))
    found = values(rng)
    found["colour"][11] = "green"
    with pytest.raises(dm.InputError, match="'colour' holds 'green'"):
        machine.margin(KINDS[kind](found))


def test_a_refused_label_that_no_row_has_is_no_error(rng):
    machine = machine_of(refuses_new_labels=True)
    table = pandas_of(values(rng), "category")
    table["colour"] = table["colour"].cat.add_categories("green")
    assert np.array_equal(machine.margin(table), machine.margin(table, engine="walk"))


def test_a_dictionary_that_changes_is_read_anew(rng):
    machine = machine_of()
    table = pandas_of(values(rng), "category")
    other = table.copy()
    other["colour"] = other["colour"].cat.reorder_categories(
        other["colour"].cat.categories[::-1].tolist()
    )
    for one in (table, other, table):
        assert np.array_equal(machine.margin(one), machine.margin(table, engine="walk"))


def test_columns_in_another_order_are_matched_by_name_each_time(rng):
    machine = machine_of()
    table = pandas_of(values(rng), "category")
    for one in (table, table[["count", "size", "fruit", "colour"]], table):
        assert np.array_equal(machine.margin(one), machine.margin(table, engine="walk"))


def test_whole_numbers_are_labels_of_their_digits_where_labels_go_by_their_hash():
    machine = machine_of(label_hash="catboost")
    columns = replace(machine.columns, categories={0: ("1", "-2"), 1: FRUIT})
    machine = replace(machine, columns=columns)
    table = pd.DataFrame({"colour": [1, -2, 3], "fruit": "fruit 3", "size": 1.0, "count": 2})
    text = table.assign(colour=["1", "-2", "3"])
    assert TableReader(columns).read(table) is not None
    assert np.array_equal(machine.margin(table), machine.margin(text, engine="walk"))


def test_more_new_labels_than_are_remembered_are_read(rng):
    machine = machine_of()
    found = {name: (column * 80)[:90_000] for name, column in values(rng, none=False).items()}
    found["colour"] = [f"colour {i}" for i in range(89_999)] + ["blue"]
    table = arrow_of(found)
    objects = pandas_of(found, object)
    assert np.array_equal(machine.margin(table), machine.margin(objects))
    few = table.slice(89_000)
    assert np.array_equal(machine.margin(table)[89_000:], machine.margin(few, engine="walk"))


def test_threads_with_different_tables_do_not_disturb_each_other(rng):
    machine = machine_of()
    table = pandas_of(values(rng), "category")
    tables = [table, table[["count", "size", "fruit", "colour"]], arrow_of(values(rng))]
    wanted = [machine.margin(one, engine="walk") for one in tables]
    wrong = []

    def work(own):
        for i in range(60):
            at = (own + i) % 3
            if not np.array_equal(machine.margin(tables[at], n_threads=1), wanted[at]):
                wrong.append(at)

    workers = [threading.Thread(target=work, args=(own,)) for own in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_a_machine_that_has_read_tables_is_freed(rng):
    machine = machine_of(label_hash="catboost")
    machine.margin(pandas_of(values(rng, none=False), "category"))
    row = {"colour": "red", "fruit": "fruit 1", "size": 1, "count": 2}
    machine.row_function("margin")(row)
    readers = [weakref.ref(machine), weakref.ref(machine.columns)]
    del machine
    gc.collect()
    assert [one() for one in readers] == [None, None]
