"""Machines as SQL: run in DuckDB and PostgreSQL, and compared with the machine to the bit."""

from __future__ import annotations

import csv
import glob
import io
import os
import pwd
import shutil
import subprocess
import tempfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from library_models import LIBRARIES, data, models, table
from strategies import make_machine, probe_rows

import decision_machines as dm
from decision_machines.errors import InputError, UnsupportedModelError
from decision_machines.libraries.sql import masks
from decision_machines.libraries.sql.dialects import KNOWN, Dialect

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
pytest.importorskip("sqlglot", reason="sqlglot is not installed")

REFUSED = {
    "AdaBoostRegressor": "median",
    "LGBMRegressor, linear": "linear",
    "CatBoostClassifier, labels": "hashes",
}


@pytest.fixture(params=["case", "masks"])
def form(request, monkeypatch):
    """Every tree as a CASE, or every machine whose trees are small enough as masks."""
    monkeypatch.setattr(masks, "LEAST_TESTS", {"case": 1 << 60, "masks": 1}[request.param])
    return request.param


def in_duckdb(query, **tables):
    """(m, k) what the query gives; NULL is NaN."""
    with duckdb.connect() as connection:
        for name, frame in tables.items():
            connection.register(name, frame)
        found = connection.sql(query).fetchnumpy()
    return np.stack([np.ma.filled(np.ma.asarray(v), np.nan) for v in found.values()], axis=1)


def rows_of(name, machine):
    """A table of rows that the model takes."""
    if "table" in name or "labels" in name:
        frame = table()[0]
        if "labels" in name:
            frame = frame.assign(color=frame["color"].astype(str), size=frame["size"].astype(str))
        return frame
    X = data("two" if machine.n_features == 6 else "three")[0][:, : machine.n_features]
    if name.startswith(("GradientBoosting", "AdaBoost", "Isolation")):
        X = np.nan_to_num(X)
    return pd.DataFrame(X, columns=[f"c{i}" for i in range(machine.n_features)])


def as_rows(frame, machine):
    return frame if machine.columns.names is not None else frame.to_numpy()


@pytest.mark.parametrize(
    ("library", "name"), [(library, name) for library in LIBRARIES for name in models(library)]
)
def test_models_of_every_library_in_duckdb(library, name, form):
    machine = dm.convert(models(library)[name])
    frame = rows_of(name, machine)
    if name in REFUSED:
        with pytest.raises(UnsupportedModelError, match=REFUSED[name]):
            machine.to_sql(columns=list(frame.columns))
        return
    X = frame if "table" in name else frame.to_numpy()
    found = in_duckdb(machine.to_sql(columns=list(frame.columns)), rows=frame)
    assert found.dtype == machine.output.dtype
    assert np.array_equal(found, machine.margin(X))


def test_random_machines_in_duckdb(form):
    rng = np.random.default_rng(4)
    for dtype in (np.float32, np.float64):
        for sums in (np.float32, np.float64):
            for k in (1, 3):
                machine = make_machine(
                    rng.integers(1, 12, size=6).tolist(),
                    rng,
                    dtype=dtype,
                    output_dtype=sums,
                    values="real",
                    n_outputs=k,
                    narrow=k > 1,
                )
                X = probe_rows(machine, 80).astype(np.float64)
                frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
                found = in_duckdb(machine.to_sql(columns=list(frame.columns)), rows=frame)
                assert np.array_equal(found, machine.margin(X)), machine


@pytest.mark.parametrize("seed", range(12))
def test_numbers_that_a_cast_moves_are_read_as_the_machine_reads_them(seed, form):
    rng = np.random.default_rng(seed)
    machine = make_machine(
        rng.integers(2, 30, size=4).tolist(),
        rng,
        dtype=(np.float32, np.float64)[seed % 3 == 0],
        values="real",
    )
    missing_value = (np.nan, 0.0, 1.0, -999.0)[seed % 4]
    machine = replace(machine, columns=replace(machine.columns, missing_value=missing_value))
    hair = [-1.0, 0.0, 1.0, 2.0, 3.0, float(np.float32(1e-35)), 2.0**24, 2.0**31, missing_value]
    near = np.concatenate([np.nextafter(hair, -np.inf), hair, np.nextafter(hair, np.inf)])
    near = np.concatenate([near, near * (1 + 2.0**-26), [2.0**-150, 2.0**-149, -(2.0**-150)]])
    X = np.concatenate([probe_rows(machine, 60), near[:, None] + np.zeros((1, 3))]).astype(float)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    found = in_duckdb(machine.to_sql(columns=["a", "b", "c"]), rows=frame)
    assert np.array_equal(found, machine.margin(X))


@pytest.mark.parametrize("t", [0.5, 0.0, -0.0, 1.0, -1.0, np.inf])
def test_models_of_categories_alone(t, form):
    rng = np.random.default_rng(1)
    machine = make_machine([9] * 4, rng, n_features=1, values="real")
    rule = np.full(len(machine.columns.rule), dm.Rule.MEMBER)
    n = len(rule)
    sets = dm.CategorySets(
        start=np.arange(n + 1) * 2,
        members=np.tile([1, 4], n),
        answer=rng.choice([-1, 0, 1], size=2 * n),
        outside=rng.choice([-1, 0, 1], size=n),
    )
    machine = replace(
        machine,
        columns=replace(machine.columns, rule=rule, sets=sets),
        t=np.full_like(machine.t, t),
    )
    X = np.array([*range(6), np.nan, 4.5, -1.0, 1e300])[:, None]
    found = in_duckdb(machine.to_sql(columns=["a"]), rows=pd.DataFrame(X, columns=["a"]))
    assert np.array_equal(found, machine.margin(X))


def test_more_trees_than_one_stage_adds_are_added_in_order(form):
    machine = make_machine([3] * 250, np.random.default_rng(0), values="real", rules=False)
    X = np.random.default_rng(1).standard_normal((50, machine.n_features))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    found = in_duckdb(machine.to_sql(columns=["a", "b", "c"]), rows=frame)
    assert np.array_equal(found, machine.margin(X))


def test_large_models_are_masks_unless_a_tree_has_too_many_leaves():
    columns = {"columns": ["a", "b", "c"]}
    rng = np.random.default_rng(0)
    small = make_machine([64] * 10, rng, values="real", rules=False)
    large = make_machine([64] * 10 + [66], rng, values="real", rules=False)
    for machine, is_masks in ((small, True), (large, False)):
        query = machine.to_sql(**columns)
        assert ("bit_count" in query) == is_masks
        assert "bit_count" not in machine.to_sql("postgres", **columns)
        X = probe_rows(machine, 50).astype(np.float64)
        found = in_duckdb(query, rows=pd.DataFrame(X, columns=["a", "b", "c"]))
        assert np.array_equal(found, machine.margin(X))


finite = st.floats(allow_nan=False, width=64)


@settings(max_examples=25, deadline=None)
@given(st.lists(finite, min_size=1, max_size=40), st.lists(finite, max_size=10))
def test_ranks_are_the_numbers_of_thresholds_below(t, values):
    t = np.unique(t)
    search = masks.Search.among(t)
    with np.errstate(over="ignore"):
        values = np.array([*values, *t, *np.nextafter(t, np.inf), *np.nextafter(t, -np.inf)])
    spoken = Dialect.named("duckdb")
    ranks = f"{search.first(spoken, 'z')} AS r"
    lists = [masks.listed(search.padded(), "DOUBLE"), masks.listed(search.start or [0], "INTEGER")]
    query = f"SELECT z, t, {ranks} FROM rows, (SELECT {lists[0]} AS t, {lists[1]} AS b)"
    for step in range(search.steps - 1, -1, -1):
        above = f"CAST(z > list_extract(t, r + {1 << step}) AS INTEGER)"
        query = f"SELECT z, t, r + {1 << step} * {above} AS r FROM ({query})"
    found = in_duckdb(f"SELECT r FROM ({query})", rows=pd.DataFrame({"z": values}))
    assert np.array_equal(found[:, 0], np.searchsorted(t, values))


def test_rows_come_in_the_order_of_the_table(form):
    machine = make_machine([20] * 20, np.random.default_rng(0), values="real", rules=False)
    for n in (1, 3, 5000):
        X = np.random.default_rng(1).standard_normal((n, machine.n_features))
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        found = in_duckdb(machine.to_sql(columns=["a", "b", "c"]), rows=frame)
        assert np.array_equal(found, machine.margin(X))


@pytest.mark.parametrize("outputs", ["response", "predict_proba", "predict"])
@pytest.mark.parametrize(
    ("library", "name"),
    [
        ("lightgbm", "LGBMClassifier"),
        ("lightgbm", "LGBMClassifier, 3"),
        ("xgboost", "XGBClassifier, 3"),
        ("sklearn", "RandomForestClassifier"),
        ("catboost", "CatBoostClassifier"),
    ],
)
def test_answers(library, name, outputs):
    machine = dm.convert(models(library)[name])
    frame = rows_of(name, machine)
    X = frame.to_numpy()
    query = machine.to_sql(columns=list(frame.columns), outputs=outputs)
    with duckdb.connect() as connection:
        connection.register("rows", frame)
        found = connection.sql(query).df()
    expected = np.asarray(getattr(machine, outputs)(X)).reshape(len(X), -1)
    if outputs == "predict":
        assert found["prediction"].astype(str).tolist() == expected[:, 0].astype(str).tolist()
        return
    tolerance = 1e-6 if machine.output.dtype == np.float32 else 1e-14
    np.testing.assert_allclose(found.to_numpy(float), expected, rtol=tolerance, atol=1e-12)
    if outputs == "predict_proba":
        labels = machine.output.classes[0].tolist()
        assert list(found.columns) == [f"probability_{label}" for label in labels]


def test_kept_columns_come_first_and_names_can_differ():
    machine = dm.figure_one()
    frame = pd.DataFrame({"id": [7, 8], "a": [2, 0], "b": [1, 0], "c": [2, 0], "d": [2, 9]})
    query = machine.to_sql(table="people", columns=["a", "b", "c", "d"], keep=["id"])
    with duckdb.connect() as connection:
        connection.register("people", frame)
        found = connection.sql(query).df()
    assert list(found.columns) == ["id", "margin"]
    assert found["id"].tolist() == [7, 8]
    assert (
        found["margin"].tolist() == machine.predict(frame[["a", "b", "c", "d"]].to_numpy()).tolist()
    )


def test_what_the_machine_refuses_is_null():
    machine = dm.convert(models("xgboost")["XGBClassifier, table"])
    frame = table()[0].head(3).astype({"color": object})
    frame.loc[1, "color"] = "ultraviolet"
    frame.loc[2, "color"] = None
    found = in_duckdb(machine.to_sql(), rows=frame)
    assert np.isnan(found[1]).all()
    known = frame.iloc[[0, 2]]
    assert np.array_equal(found[[0, 2]], machine.margin(known))


HOSTILE = ['a"b', "a'b", "a;--", "a`b", "select", "雪🌲", "a\\", "a\nb", "{x}", "%s"]


@pytest.mark.parametrize("dialect", KNOWN)
def test_hostile_names_stay_names(dialect):
    import sqlglot

    machine = make_machine([8] * 4, np.random.default_rng(0), n_features=len(HOSTILE), rules=False)
    machine = replace(
        machine,
        columns=replace(machine.columns, names=tuple(HOSTILE), categories={}),
        output=replace(machine.output, dtype=np.float64),
    )
    name = "x\"'; drop table y"
    query = machine.to_sql(dialect, table=name, keep=['k"; --'])
    (parsed,) = sqlglot.parse(query, read=dialect)  # one statement, whatever the names hold
    assert [table.name for table in parsed.find_all(sqlglot.exp.Table)].count(name) == 1
    read = {HOSTILE[f] for f in machine.selection.tolist()}
    assert {c.name for c in parsed.find_all(sqlglot.exp.Column)} >= {*read, 'k"; --'}
    if dialect == "duckdb":
        frame = pd.DataFrame(np.random.default_rng(1).standard_normal((9, 10)), columns=HOSTILE)
        frame['k"; --'] = 1.0
        with duckdb.connect() as connection:
            connection.register(name, frame)
            found = connection.sql(query).df()
        assert found["margin"].tolist() == machine.margin(frame[HOSTILE])[:, 0].tolist()


def test_columns_that_differ_in_case_alone_are_told_apart_or_refused():
    machine = make_machine([8] * 4, np.random.default_rng(0), rules=False, names=("a", "A", "b"))
    machine = replace(machine, output=replace(machine.output, dtype=np.float64))
    for dialect in KNOWN:
        if dialect in ("postgres", "snowflake"):
            assert '"A"' in machine.to_sql(dialect)
            continue
        with pytest.raises(InputError, match="'a' and 'A'"):
            machine.to_sql(dialect)
    X = np.random.default_rng(1).standard_normal((50, 3))
    frame = pd.DataFrame(X, columns=["a", "a2", "b"])
    found = in_duckdb(machine.to_sql(columns={"A": "a2"}), rows=frame)
    assert np.array_equal(found, machine.margin(X))


@pytest.mark.parametrize(
    "given",
    [
        {"dialect": "oracle"},
        {"outputs": "all"},
        {"columns": ["a"]},
        {"columns": {"nobody": "a"}},
        {"columns": "abcd"},
        {"keep": "id"},
    ],
)
def test_rubbish_is_refused_in_words(given):
    with pytest.raises(InputError, match="While writing a machine as SQL"):
        dm.figure_one().to_sql(**given)


def test_features_without_names_need_columns():
    machine = make_machine([3], np.random.default_rng(0), rules=False)
    with pytest.raises(InputError, match="no names of features"):
        machine.to_sql()


def test_a_database_without_float32_refuses_float32_sums():
    machine = dm.convert(models("xgboost")["XGBRegressor"])
    with pytest.raises(UnsupportedModelError, match="float32"):
        machine.to_sql("sqlite", columns=[f"c{i}" for i in range(6)])


def test_sqlite_runs_it():
    import sqlite3

    machine = dm.convert(models("lightgbm")["LGBMRegressor"])
    frame = rows_of("LGBMRegressor", machine)
    with sqlite3.connect(":memory:") as connection:
        frame.to_sql("rows", connection, index=False)
        found = pd.read_sql(machine.to_sql("sqlite", columns=list(frame.columns)), connection)
    np.testing.assert_allclose(found["margin"], machine.margin(frame.to_numpy())[:, 0], rtol=1e-12)


# -- PostgreSQL -----------------------------------------------------------------------------------


def _server():
    """Where PostgreSQL's programs are, and who may run them; None where it is not installed."""
    places = [
        os.path.dirname(shutil.which("initdb") or ""),
        *glob.glob("/usr/lib/postgresql/*/bin"),
    ]
    found = [p for p in places if p and os.path.exists(f"{p}/initdb")]
    user = None
    if os.geteuid() == 0:
        known = {entry.pw_name for entry in pwd.getpwall()}
        user = next((name for name in ("postgres", "nobody") if name in known), None)
        if user is None:
            return None
    return (found[-1], user) if found and shutil.which("psql") else None


@pytest.fixture(scope="module")
def postgres(tmp_path_factory):
    server = _server()
    if server is None:
        pytest.skip("PostgreSQL's server is not installed")
    programs, user = server
    folder = tempfile.mkdtemp(prefix="sql-")  # not pytest's: a socket's path is short
    if user:
        shutil.chown(folder, user)
    options = {"check": True, "capture_output": True, "user": user, "cwd": "/"}

    def query(text, data=None):
        command = [
            "psql",
            "-X",
            "-q",
            "--csv",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            folder,
            "-d",
            "postgres",
        ]
        done = subprocess.run(
            command, input=text if data is None else text + data, text=True, **options
        )
        return list(csv.reader(io.StringIO(done.stdout)))

    try:
        subprocess.run([f"{programs}/initdb", "-D", f"{folder}/data", "-A", "trust"], **options)
        start = ["-o", f"-k {folder} -h ''", "-l", f"{folder}/log", "-w", "start"]
        subprocess.run([f"{programs}/pg_ctl", "-D", f"{folder}/data", *start], **options)
        yield query
    finally:
        stop = [f"{programs}/pg_ctl", "-D", f"{folder}/data", "-m", "immediate", "stop"]
        subprocess.run(stop, **(options | {"check": False}))
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize(
    ("library", "name"),
    [
        ("lightgbm", "LGBMClassifier, 3"),
        ("xgboost", "XGBClassifier, table"),
        ("xgboost", "XGBRegressor"),
        ("sklearn", "HistGradientBoosting, table"),
        ("sklearn", "RandomForestClassifier"),
        ("catboost", "CatBoostRegressor"),
    ],
)
def test_postgres_gives_the_same_bits(postgres, library, name):
    machine = dm.convert(models(library)[name])
    frame = rows_of(name, machine)
    X = frame if "table" in name else frame.to_numpy()
    kinds = [
        f'"{c}" {"text" if isinstance(frame[c].iloc[0], str) else "double precision"}'
        for c in frame.columns
    ]
    lines = frame.to_csv(index=True, header=False, na_rep="")
    postgres(
        f"drop table if exists rows; create table rows (id integer, {', '.join(kinds)});\n"
        "copy rows from stdin with (format csv);\n" + lines + "\\.\n"
    )
    query = machine.to_sql("postgres", columns=list(frame.columns), keep=["id"])
    found = postgres(f"select * from ({query}) as answers order by id;")[1:]
    numbers = np.array([row[1:] for row in found], dtype=machine.output.dtype)
    assert np.array_equal(numbers, machine.margin(X))
