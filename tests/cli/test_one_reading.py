"""All commands read the same awkward table alike, in every format that it can be written in."""

from __future__ import annotations

import csv
import gzip
import json
import re

import lightgbm as lgb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from typer.testing import CliRunner

import decision_machines as dm
from decision_machines.cli.app import app
from decision_machines.files.tables import read_features, read_table

FORMATS = ("csv", "csv.gz", "tsv", "tsv.gz", "parquet", "arrow", "feather")
FEATURES = ["size", "rooms", "city", "is_new"]
CITIES = ["New\nYork", 'the "Hague"', "Aix, en Provence", "12"]


def awkward(n=120):
    """Gaps in every kind of column, text that must be quoted, and columns that no model reads."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "id": [f"row, {i}" for i in range(n)],
            "size": rng.normal(100, 30, n).round(2),
            "rooms": rng.integers(1, 6, n).astype(float),
            "city": rng.choice(CITIES, n),
            "is_new": rng.integers(0, 2, n).astype(float),
            "remark": ["", "2024-01-01"] * (n // 2),
        }
    )
    price = frame["size"] * 3 + 40 * frame["rooms"] + 50 * (frame["city"] == CITIES[0])
    frame["price"] = (price + rng.normal(0, 5, n)).round(3)
    for i, name in enumerate(("size", "rooms", "city", "is_new")):
        frame[name] = frame[name].astype(object)
        frame.loc[i :: 11 + i, name] = None
    frame["weight"] = rng.integers(1, 4, n)
    return frame[["weight", "city", "id", "size", "price", "is_new", "rooms", "remark"]]


def write(frame, path):
    """As other programs do: text with quotes where they are needed and where they are not."""
    kind = path.name.split(".", 1)[1]
    if kind in ("parquet", "arrow", "feather"):
        table = pa.table({name: list(frame[name]) for name in frame})
        empty = table["remark"].to_pylist()
        at = table.column_names.index("remark")
        table = table.set_column(at, "remark", pa.array([cell or None for cell in empty]))
        if kind == "parquet":
            parquet.write_table(table, path, row_group_size=50)
        else:
            feather.write_feather(table, path, compression="uncompressed", chunksize=50)
        return path
    opener = gzip.open if kind.endswith("gz") else open
    separator = "\t" if "tsv" in kind else ","
    with opener(path, "wt", newline="") as file:
        plain = csv.writer(file, delimiter=separator)
        quoted = csv.writer(file, delimiter=separator, quoting=csv.QUOTE_ALL)
        plain.writerow(frame.columns)
        for i, row in enumerate(frame.itertuples(index=False)):
            cells = ["" if cell is None or cell != cell else cell for cell in row]
            (quoted if i % 2 else plain).writerow(cells)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("awkward.tsv")
    frame = awkward()
    for kind in FORMATS:
        write(frame, folder / f"rows.{kind}")
        write(frame.drop(columns="rooms"), folder / f"short.{kind}")
    X = features(frame)
    options = {"n_estimators": 4, "num_leaves": 5, "min_child_samples": 3, "verbose": -1}
    lgb.LGBMRegressor(**options, n_jobs=1).fit(X, frame["price"]).booster_.save_model(
        folder / "model.txt"
    )
    return folder


def features(frame):
    numbers = dict.fromkeys(("size", "rooms", "is_new"), "float64")
    return frame[FEATURES].astype({**numbers, "city": "category"})


def run(folder, *arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=True)


def test_the_reader_gives_the_same_table_in_every_format(folder):
    machine = dm.load(folder / "model.txt")
    want = machine.features(features(awkward()), dtype=np.float64)
    for kind in FORMATS:
        found = read_features(folder / f"rows.{kind}", machine.columns, keep=["price"])
        assert np.array_equal(machine.features(found.X, dtype=np.float64), want, equal_nan=True)
        assert found.ignored == ("weight", "id", "remark")
        assert found.kept["price"].to_pylist() == awkward()["price"].tolist()
        whole = read_table(folder / f"rows.{kind}")
        cities = [city if isinstance(city, str) else None for city in awkward()["city"]]
        assert whole["city"].to_pylist() == cities


def predict(folder, rows, out):
    done = run(folder, "predict", folder / "model.txt", rows, "-o", out / "answers.parquet")
    answers = parquet.read_table(out / "answers.parquet") if done.exit_code == 0 else None
    return done, answers and answers["prediction"].to_pylist()


def verify(folder, rows, out):
    done = run(folder, "verify", folder / "model.txt", "--data", rows, "--json")
    found = json.loads(done.stdout) if done.stdout else {}
    return done, {name: found.get(name) for name in ("holds", "probes", "rows that differ")}


def bench(folder, rows, out):
    done = run(folder, "bench", folder / "model.txt", "--data", rows, "--seconds", 0, "--json")
    found = json.loads(done.stdout) if done.stdout else {}
    return done, {name: found.get(name) for name in ("equal", "compared")}


def explore(folder, rows, out):
    page = out / "page.html"
    done = run(
        folder, "explore", folder / "model.txt", "--data", rows, "--target", "price", "-o", page
    )
    data = re.search(r'type="application/json"[^>]*>(.*?)</script>', page.read_text(), re.S)
    return done, data and data[1]


def train(folder, rows, out):
    options = ["--drop", "id", "--drop", "remark", "--leaves", 4, "--iterations", 5, "--json"]
    options += ["--target", "price", "--weight", "weight", "--n-threads", 1]
    done = run(folder, "train", rows, *options, "-o", out / "trained.dm")
    report = json.loads(done.stdout) if done.stdout else {}
    return done, (report.get("scores"), (out / "trained.dm").read_bytes())


def tune(folder, rows, out):
    pytest.importorskip("torch", reason="tuning needs torch")
    options = ["--target", "price", "--weight", "weight", "--epochs", 1, "--n-threads", 1]
    done = run(folder, "tune", folder / "model.txt", rows, *options, "-o", out / "tuned.dm")
    return done, (out / "tuned.dm").read_bytes()


COMMANDS = {
    "predict": predict,
    "verify": verify,
    "bench": bench,
    "explore": explore,
    "train": train,
    "tune": tune,
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_does_the_same_with_every_format(folder, tmp_path, command):
    found = {}
    for kind in FORMATS:
        out = tmp_path / kind
        out.mkdir()
        done, found[kind] = COMMANDS[command](folder, folder / f"rows.{kind}", out)
        assert done.exit_code == 0, (kind, done.output, done.exception)
        if command != "train":  # which reads every column that is not dropped
            ignored = {"explore": "'weight', 'id', 'remark'", "tune": "'id', 'remark'"}
            expected = ignored.get(command, "'weight', 'id', 'price', 'remark'")
            assert f"that the model does not read: {expected}" in done.stderr
    assert all(found[kind] == found["parquet"] for kind in FORMATS)
    if command == "predict":
        machine = dm.load(folder / "model.txt")
        assert found["csv"] == machine.predict(features(awkward())).tolist()
    if command == "verify":
        assert found["csv"]["holds"]
        assert found["csv"]["rows that differ"] == []
    if command == "bench":
        assert found["csv"]["equal"]


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "train"])
@pytest.mark.parametrize("kind", ["csv", "tsv.gz", "parquet"])
def test_a_missing_column_is_refused_by_name(folder, tmp_path, command, kind):
    (tmp_path / "page.html").touch()
    (tmp_path / "tuned.dm").touch()
    done, _ = COMMANDS[command](folder, folder / f"short.{kind}", tmp_path)
    assert isinstance(done.exception, dm.InputError)
    assert "'rooms'" in str(done.exception)


@pytest.mark.parametrize("command", ["predict", "verify", "bench", "explore", "tune"])
def test_text_where_numbers_are_needed_is_refused_with_its_column_and_row(
    folder, tmp_path, command
):
    frame = awkward().astype({"rooms": object})
    frame.loc[17, "rooms"] = "three"
    write(frame, tmp_path / "rows.csv")
    options = {"n_estimators": 2, "num_leaves": 4, "min_child_samples": 3, "verbose": -1}
    X = features(awkward()).drop(columns="city")
    model = lgb.LGBMRegressor(**options, n_jobs=1).fit(X, awkward()["price"])
    model.booster_.save_model(tmp_path / "model.txt")
    (tmp_path / "page.html").touch()
    (tmp_path / "tuned.dm").touch()
    done, _ = COMMANDS[command](tmp_path, tmp_path / "rows.csv", tmp_path)
    assert isinstance(done.exception, dm.InputError)
    assert re.search(r"column 'rooms' has 'three' in row 19", str(done.exception), re.S)
