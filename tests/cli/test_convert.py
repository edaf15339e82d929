"""`dm convert`, through the command's own entry."""

from __future__ import annotations

import json
import os
import sys
from types import SimpleNamespace
from unittest.mock import ANY

import numpy as np
import pytest
from library_models import models

import decision_machines as dm
from decision_machines.cli import main


@pytest.fixture
def run(monkeypatch, capsys):
    """Run `dm` in this process: what it prints, and its exit code."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["dm", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        printed = capsys.readouterr()
        return SimpleNamespace(
            returncode=caught.value.code or 0, stdout=printed.out, stderr=printed.err
        )

    return call


@pytest.fixture(scope="module")
def xgboost_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.ubj"
    models("xgboost")["XGBRegressor"].save_model(path)
    return path


@pytest.mark.parametrize("name", ["m.dm", "m.onnx", "m.json", "m.ubj", "M.DM"])
def test_the_suffix_says_what_is_written(run, xgboost_file, tmp_path, name):
    out = tmp_path / name
    done = run("convert", xgboost_file, "-o", out)
    assert done.returncode == 0, done.stderr
    source, found = dm.load(xgboost_file), dm.load(out)
    X = np.random.default_rng(0).normal(size=(50, 6))
    assert np.array_equal(found.predict(X).reshape(-1), source.predict(X))
    if not name.endswith("onnx"):
        assert found.equals(source)
    assert os.listdir(tmp_path) == [name]


def test_lightgbm_is_written_as_text(run, tmp_path):
    model = models("lightgbm")["LGBMRegressor"].booster_
    model.save_model(tmp_path / "in.txt")
    done = run("convert", tmp_path / "in.txt", "-o", tmp_path / "out.txt", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["kind"] == "lightgbm"
    assert found["bytes"] == (tmp_path / "out.txt").stat().st_size
    assert dm.load(tmp_path / "out.txt").equals(dm.convert(model))


def test_to_forces_the_kind(run, xgboost_file, tmp_path):
    out = tmp_path / "model.bin"
    done = run("convert", xgboost_file, "-o", out, "--to", "dm")
    assert done.returncode == 0, done.stderr
    assert dm.load(out).equals(dm.load(xgboost_file))


def test_what_may_differ_is_said(run, tmp_path):
    model = models("lightgbm")["LGBMRegressor"].booster_
    model.save_model(tmp_path / "in.txt")
    done = run("convert", tmp_path / "in.txt", "-o", tmp_path / "out.onnx")
    assert done.returncode == 0
    assert "rounded to float32" in " ".join(done.stderr.split())
    done = run(
        "convert", tmp_path / "in.txt", "-o", tmp_path / "out.onnx", "--operator", "v5", "--json"
    )
    assert json.loads(done.stdout)["warnings"] == []


def test_what_cannot_be_written_leaves_no_file(run, xgboost_file, tmp_path):
    done = run("convert", xgboost_file, "-o", tmp_path / "out.txt")
    assert done.returncode == 2
    assert "What to do" in done.stderr
    assert "Traceback" not in done.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("arguments", [["out.xyz"], ["out"], ["out.dm", "--to", "catboost"]])
def test_an_unknown_kind_is_refused_before_anything_is_read(run, tmp_path, arguments):
    done = run("convert", tmp_path / "absent", "-o", *arguments)
    assert done.returncode == 2
    assert "a kind of model that we write" in " ".join(done.stderr.split())


def test_a_machine_has_no_original_to_verify_against(run, xgboost_file, tmp_path):
    run("convert", xgboost_file, "-o", tmp_path / "m.dm")
    done = run("verify", tmp_path / "m.dm")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    done = run("inspect", tmp_path / "m.dm", "--json")
    assert json.loads(done.stdout)["trees"] == 5


def test_text_categories_go_to_onnx_with_their_labels_or_as_codes(run, tmp_path):
    import onnx
    import pandas as pd

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(size=80), "colour": rng.choice(["red", "blue"], 80)})
    model = dm.DecisionMachineClassifier(max_leaves=4, n_iterations=2).fit(X, X["colour"] == "red")
    model.machine_.save(tmp_path / "m.dm")
    done = run("convert", tmp_path / "m.dm", "-o", tmp_path / "m.onnx")
    assert done.returncode == 0, done.stderr
    found = onnx.load(tmp_path / "m.onnx").graph
    assert [given.name for given in found.input] == ["size", "colour"]
    assert [node.op_type for node in found.node][:1] == ["LabelEncoder"]
    done = run("convert", tmp_path / "m.dm", "-o", tmp_path / "m.onnx", "--labels", "codes")
    assert done.returncode == 0, done.stderr
    assert [given.name for given in onnx.load(tmp_path / "m.onnx").graph.input] == ["X"]
    assert run("convert", tmp_path / "m.dm", "-o", tmp_path / "x.onnx", "--labels", "?") == (
        SimpleNamespace(returncode=2, stdout="", stderr=ANY)
    )


def test_sql_of_a_model_without_names_asks_for_its_columns_and_takes_them(run, tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    pytest.importorskip("sqlglot", reason="sqlglot is not installed")
    model = models("sklearn")["RandomForestClassifier"]
    machine = dm.convert(model)
    machine.save(tmp_path / "m.dm")
    call = ("convert", tmp_path / "m.dm", "-o", tmp_path / "m.sql")
    refused = run(*call)
    assert refused.returncode == 2
    assert "--column" in refused.stderr
    names = [f"c {i}" for i in range(machine.n_features)]
    done = run(*call, *(part for name in names for part in ("--column", name)))
    assert done.returncode == 0, done.stderr
    X = np.random.default_rng(0).normal(size=(30, machine.n_features)) * 3
    listed = ", ".join(f'"{name}" DOUBLE' for name in names)
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE rows ({listed})")
        connection.executemany(
            f"INSERT INTO rows VALUES ({', '.join('?' * len(names))})", X.tolist()
        )
        found = connection.execute((tmp_path / "m.sql").read_text()).fetchall()
    assert [label for (label,) in found] == machine.predict(X).tolist()
    wrong = run("convert", tmp_path / "m.dm", "-o", tmp_path / "m.h", "--column", "a")
    assert wrong.returncode == 2
    assert "SQL alone" in wrong.stderr
