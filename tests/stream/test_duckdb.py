"""A machine as a function of DuckDB: equal to its own methods, NULL as missing, labels as texts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from library_models import models, table
from stream.conftest import LABELS, NAMES, rows

import decision_machines as dm

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")


@pytest.fixture
def connection():
    with duckdb.connect() as found:
        yield found


def asked(connection, query, frame):
    connection.register("rows", frame)
    return [row[0] for row in connection.execute(query).fetchall()]


def test_predictions_are_the_machines_over_several_batches(connection, machine):
    frame = rows(5000)
    assert dm.stream.duckdb_function(connection, machine, "score") == "VARCHAR"
    want = machine.predict(frame[NAMES]).tolist()
    assert asked(connection, "SELECT score(p, q, r, s) FROM rows", frame) == want
    assert asked(connection, "SELECT score(rows) FROM rows", frame) == want  # by names
    one = frame[:1]
    assert asked(connection, "SELECT score(p, q, r, s) FROM rows", one) == want[:1]
    assert asked(connection, "SELECT score(p, q, r, s) FROM rows WHERE p > 1e9", frame) == []


def test_several_columns_are_a_struct(connection, machine):
    frame = rows(100)
    dm.stream.duckdb_function(connection, machine, "chance", output="proba")
    dm.stream.duckdb_function(connection, machine, "leaves", output="leaves")
    connection.register("rows", frame)
    found = connection.execute("SELECT unnest(chance(rows)) FROM rows").fetchnumpy()
    assert list(found) == [f"proba_{label}" for label in LABELS]
    proba = np.stack(list(found.values()), axis=1)
    assert np.array_equal(proba, machine.predict_proba(frame[NAMES]))
    found = connection.execute("SELECT unnest(leaves(rows)) FROM rows").fetchnumpy()
    assert np.array_equal(np.stack(list(found.values()), 1), machine.apply(frame[NAMES]))


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "catboost", "sklearn"])
def test_models_of_labels_and_gaps_answer_to_the_bit(connection, library):
    for name, model in models(library).items():
        if "table" not in name and "labels" not in name:
            continue
        machine, frame = dm.convert(model), table()[0]
        if "labels" in name:
            frame = frame.assign(color=frame["color"].astype(str), size=frame["size"].astype(str))
        dm.stream.duckdb_function(connection, machine, "f", output="margin", replace=True)
        connection.register("rows", frame)
        found = connection.execute("SELECT f(rows) FROM rows").fetchall()
        margins = [list(m.values()) if isinstance(m, dict) else [m] for (m,) in found]
        assert np.array_equal(np.array(margins, machine.output.dtype), machine.margin(frame)), name


def test_null_and_nan_are_missing_and_numbers_of_all_types_are_read(connection):
    machine = dm.figure_one()
    dm.stream.duckdb_function(connection, machine, "f")
    for values in ("2, 1, 2, 2", "2.0, 1.5, 2, 2::TINYINT", "2::FLOAT, 1, 2::HUGEINT, 2"):
        found = connection.execute(f"SELECT f({values})").fetchall()[0][0]
        assert found == machine.predict([[2.0, 1.0, 2.0, 2.0]])[0]
    frame = pd.DataFrame([[np.nan] * 4, [2.0, np.nan, 1.0, 1.0]], columns=list("abcd"))
    assert asked(connection, "SELECT f(a, b, c, d) FROM rows", frame) == (
        machine.predict(frame.to_numpy()).tolist()
    )
    assert asked(connection, "SELECT f(NULL, NULL, NULL, NULL)", frame) == (
        machine.predict(np.full((1, 4), np.nan)).tolist()
    )


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "catboost", "sklearn"])
def test_gaps_of_a_stored_table_are_missing_whatever_the_types(connection, library):
    name = {"sklearn": "HistGradientBoosting"}.get(library)
    model = models(library)[name] if name else next(iter(models(library).values()))
    machine = dm.convert(model)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, machine.n_features)).round(3) * 20
    X[rng.random(X.shape) < 0.2] = np.nan
    names = [f"c{i}" for i in range(X.shape[1])]
    connection.register("given", pd.DataFrame(X, columns=names))
    for output in ("margin", "leaves"):
        dm.stream.duckdb_function(connection, machine, output, output=output)
    first = f"CAST({names[0]} AS FLOAT) AS {names[0]}"
    gaps = ", ".join(f"nullif({c}, 'nan') AS {c}" for c in names[1:])
    connection.execute(f"CREATE TABLE doubles AS SELECT {names[0]}, {gaps} FROM given")
    connection.execute(f"CREATE TABLE mixed AS SELECT {first}, {gaps} FROM given")
    single = X.copy()
    single[:, 0] = single[:, 0].astype(np.float32)
    for kept, rows_ in (("doubles", X), ("mixed", single)):
        call = f"({', '.join(names)}) FROM {kept}"
        (found,) = connection.execute(f"SELECT margin{call}").fetchnumpy().values()
        assert np.array_equal(np.ma.getdata(found), machine.margin(rows_)[:, 0])
        found = connection.execute(f"SELECT unnest(leaves{call.replace(' FROM', ') FROM')}")
        leaves = np.stack([np.ma.getdata(v) for v in found.fetchnumpy().values()], axis=1)
        assert np.array_equal(leaves, machine.apply(rows_))


def test_wrong_calls_say_what_to_do(connection, machine):
    dm.stream.duckdb_function(connection, machine, "f")
    with pytest.raises(dm.InputError, match="replace=True"):
        dm.stream.duckdb_function(connection, machine, "f")
    dm.stream.duckdb_function(connection, machine, "f", output="leaves", replace=True)
    with pytest.raises(duckdb.Error, match="2 arguments; the machine reads 4 features"):
        connection.execute("SELECT f(1.0, 2.0)").fetchall()
    with pytest.raises(duckdb.Error, match="'q'"):
        connection.execute("SELECT f({'p': 1.0})").fetchall()
    with pytest.raises(dm.InputError, match="each output"):
        dm.stream.duckdb_function(connection, machine, "g", output=["predict"])


def test_hostile_labels_stay_labels(connection):
    from sklearn.tree import DecisionTreeClassifier

    labels = ['"); DROP TABLE rows; --', "it's", "💥", "a b"]
    X = np.arange(8.0)[:, None]
    machine = dm.convert(DecisionTreeClassifier().fit(X, np.repeat(labels, 2)))
    dm.stream.duckdb_function(connection, machine, "f")
    dm.stream.duckdb_function(connection, machine, "p", output="proba")
    frame = pd.DataFrame({"x": X[:, 0]})
    assert asked(connection, "SELECT f(x) FROM rows", frame) == machine.predict(X).tolist()
    (first, *_) = asked(connection, "SELECT p(x) FROM rows", frame)
    assert set(first) == {f"proba_{label}" for label in labels}
