"""`dm convert`, as people meet it: in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from library_models import models

import decision_machines as dm


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "decision_machines.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def xgboost_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.ubj"
    models("xgboost")["XGBRegressor"].save_model(path)
    return path


@pytest.mark.parametrize("name", ["m.dm", "m.onnx", "m.json", "m.ubj", "M.DM"])
def test_the_suffix_says_what_is_written(xgboost_file, tmp_path, name):
    out = tmp_path / name
    done = run("convert", xgboost_file, "-o", out)
    assert done.returncode == 0, done.stderr
    source, found = dm.load(xgboost_file), dm.load(out)
    X = np.random.default_rng(0).normal(size=(50, 6))
    assert np.array_equal(found.predict(X).reshape(-1), source.predict(X))
    if not name.endswith("onnx"):
        assert found.equals(source)
    assert os.listdir(tmp_path) == [name]


def test_lightgbm_is_written_as_text(tmp_path):
    model = models("lightgbm")["LGBMRegressor"].booster_
    model.save_model(tmp_path / "in.txt")
    done = run("convert", tmp_path / "in.txt", "-o", tmp_path / "out.txt", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["kind"] == "lightgbm"
    assert found["bytes"] == (tmp_path / "out.txt").stat().st_size
    assert dm.load(tmp_path / "out.txt").equals(dm.convert(model))


def test_to_forces_the_kind(xgboost_file, tmp_path):
    out = tmp_path / "model.bin"
    done = run("convert", xgboost_file, "-o", out, "--to", "dm")
    assert done.returncode == 0, done.stderr
    assert dm.load(out).equals(dm.load(xgboost_file))


def test_what_may_differ_is_said(tmp_path):
    model = models("lightgbm")["LGBMRegressor"].booster_
    model.save_model(tmp_path / "in.txt")
    done = run("convert", tmp_path / "in.txt", "-o", tmp_path / "out.onnx")
    assert done.returncode == 0
    assert "rounded to float32" in " ".join(done.stderr.split())
    done = run(
        "convert", tmp_path / "in.txt", "-o", tmp_path / "out.onnx", "--operator", "v5", "--json"
    )
    assert json.loads(done.stdout)["warnings"] == []


def test_what_cannot_be_written_leaves_no_file(xgboost_file, tmp_path):
    done = run("convert", xgboost_file, "-o", tmp_path / "out.txt")
    assert done.returncode == 2
    assert "What to do" in done.stderr
    assert "Traceback" not in done.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("arguments", [["out.xyz"], ["out"], ["out.dm", "--to", "catboost"]])
def test_an_unknown_kind_is_refused_before_anything_is_read(tmp_path, arguments):
    done = run("convert", tmp_path / "absent", "-o", *arguments)
    assert done.returncode == 2
    assert "no kind of model" in " ".join(done.stderr.split())


def test_a_machine_has_no_original_to_verify_against(xgboost_file, tmp_path):
    run("convert", xgboost_file, "-o", tmp_path / "m.dm")
    done = run("verify", tmp_path / "m.dm")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    done = run("inspect", tmp_path / "m.dm", "--json")
    assert json.loads(done.stdout)["trees"] == 5
