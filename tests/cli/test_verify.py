"""`dm verify` proves the machine that `dm.load` reads, against the library's own opening."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from catboost import CatBoostClassifier, CatBoostRanker, CatBoostRegressor, Pool
from typer.testing import CliRunner

import decision_machines as dm
from decision_machines.cli.app import app
from decision_machines.libraries.originals import open_original


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture
def xgboost_file(tmp_path):
    X = np.random.default_rng(0).standard_normal((200, 3))
    model = xgb.XGBClassifier(n_estimators=3, max_depth=3).fit(X, (X[:, 0] > X[:, 1]).astype(int))
    model.save_model(tmp_path / "model.json")
    return tmp_path / "model.json"


def test_what_load_reads_wrongly_is_not_proven(xgboost_file, monkeypatch):
    """A reader of files that errs where the reader of objects does not."""
    from decision_machines.libraries.xgboost import read

    honest = read.read_xgboost_bytes

    def lying(data, source="model file"):
        machine = honest(data, source)
        return replace(machine, V=machine.V * np.float32(1.5))

    assert run("verify", xgboost_file).exit_code == 0
    assert run("bench", xgboost_file, "--rows", 50, "--seconds", 0).exit_code == 0
    monkeypatch.setattr(read, "read_xgboost_bytes", lying)
    dm.libraries.registry.formats.cache_clear()
    try:
        done = run("verify", xgboost_file, "--json")
        benched = run("bench", xgboost_file, "--rows", 50, "--seconds", 0, "--json")
    finally:
        dm.libraries.registry.formats.cache_clear()
    assert done.exit_code == 1
    assert not json.loads(done.stdout)["holds"]
    assert benched.exit_code == 1
    assert not json.loads(benched.stdout)["equal"]


def test_a_file_is_opened_as_the_class_that_saved_it(xgboost_file, tmp_path):
    original = open_original(xgboost_file)
    assert isinstance(original, xgb.XGBClassifier)
    booster = original.get_booster()
    booster.set_attr(scikit_learn=None)
    booster.save_model(tmp_path / "booster.ubj")
    assert isinstance(open_original(tmp_path / "booster.ubj"), xgb.Booster)


LABELS = ["red", "green", "blue", "a, b"]


@pytest.fixture(scope="module")
def colours():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.random(300), "colour": rng.choice(LABELS, 300)})
    return frame.assign(y=np.where((frame["colour"] == "red") ^ (frame["x"] > 0.5), "yes", "no"))


OPTIONS = {
    "iterations": 4,
    "depth": 3,
    "one_hot_max_size": 20,
    "cat_features": ["colour"],
    "verbose": 0,
    "allow_writing_files": False,
    "thread_count": 1,
}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("cls", [CatBoostClassifier, CatBoostRegressor])
def test_catboosts_text_categories_are_compared_and_timed(colours, tmp_path, cls, kind):
    X = colours[["x", "colour"]]
    y = colours["y"] if cls is CatBoostClassifier else (colours["y"] == "yes").astype(float)
    model = cls(**OPTIONS).fit(X, y)
    model.save_model(str(tmp_path / "model.cbm"))
    rows = colours.assign(colour=[*LABELS, "never seen", *colours["colour"][5:]])
    if kind == "csv":
        rows.to_csv(tmp_path / "rows.csv", index=False)
    else:
        rows.to_parquet(tmp_path / "rows.parquet")
    done = run("verify", tmp_path / "model.cbm", "--data", tmp_path / f"rows.{kind}")
    assert done.exit_code == 0, (done.output, done.exception)
    assert "equal on all 300 rows" in done.stdout
    done = run("bench", tmp_path / "model.cbm", "--data", tmp_path / f"rows.{kind}", "--seconds", 0)
    assert done.exit_code == 0, (done.output, done.exception)
    assert "predictions equal" in done.stdout
    machine = dm.convert(model)
    assert not dm.explain_mismatch(machine, model, X)
    assert not dm.explain_mismatch(machine, model, X.to_numpy(object))


def test_a_ranker_of_catboost_is_certified():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((120, 4))
    model = CatBoostRanker(iterations=5, depth=3, verbose=0, allow_writing_files=False).fit(
        Pool(X, X[:, 0] > 0, group_id=np.repeat(np.arange(12), 10))
    )
    assert dm.certify(dm.convert(model), model, X)
    assert not dm.explain_mismatch(dm.convert(model), model, X)


@pytest.mark.parametrize("grow", ["SymmetricTree", "Lossguide", "Depthwise"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_catboosts_json_is_proven_against_the_numbers_that_it_has(tmp_path, grow, outputs):
    X = np.random.default_rng(0).normal(size=(500, 4))
    y = np.stack([X[:, 0] * X[:, 1] + X[:, 2], X[:, 3]], axis=1)[:, :outputs]
    loss = "RMSE" if outputs == 1 else "MultiRMSE"
    options = {k: v for k, v in OPTIONS.items() if k not in ("cat_features", "iterations", "depth")}
    model = CatBoostRegressor(
        loss_function=loss, grow_policy=grow, iterations=20, depth=4, **options
    ).fit(X, y)
    path = tmp_path / "model.json"
    model.save_model(str(path), format="json")
    # The machine is the model that was trained, to the bit; so is what we compare it with.
    machine = dm.load(path)
    expected = model.predict(X).reshape(len(X), -1)
    assert np.array_equal(machine.margin(X), expected)
    assert np.array_equal(open_original(path).predict(X).reshape(len(X), -1), expected)
    done = run("verify", path)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("PROVEN")


def test_a_wrong_number_in_catboosts_json_is_not_mended_away(tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(200, 3))
    options = {k: v for k, v in OPTIONS.items() if k != "cat_features"}
    model = CatBoostRegressor(**options).fit(X, X[:, 0])
    path = tmp_path / "model.json"
    model.save_model(str(path), format="json")
    from decision_machines.libraries.catboost import read

    honest = read.read_catboost_bytes

    def lying(data, source):
        machine = honest(data, source)
        return replace(machine, V=machine.V[::-1].copy())  # numbers of the file, elsewhere

    monkeypatch.setattr(read, "read_catboost_bytes", lying)
    dm.libraries.registry.formats.cache_clear()
    try:
        done = run("verify", path, "--json")
    finally:
        dm.libraries.registry.formats.cache_clear()
    assert (done.exit_code, json.loads(done.stdout)["verdict"]) == (1, "differs")


def test_what_could_not_be_probed_is_told_from_what_differs(colours, tmp_path):
    model = CatBoostClassifier(**OPTIONS).fit(colours[["x", "colour"]], colours["y"])
    model.save_model(str(tmp_path / "model.cbm"))
    done = run("verify", tmp_path / "model.cbm")
    assert done.exit_code == 4
    assert done.stdout.startswith("PARTLY PROVEN")
    assert "could not be probed" in " ".join(done.stdout.split())
    done = run("verify", tmp_path / "model.cbm", "--json")
    told = json.loads(done.stdout)
    assert (done.exit_code, told["holds"], told["verdict"]) == (4, False, "partly proven")
    # A label in no row is still not known.
    rows = colours[colours["colour"] != "red"]
    rows.to_csv(tmp_path / "rows.csv", index=False)
    done = run("verify", tmp_path / "model.cbm", "--data", tmp_path / "rows.csv")
    assert done.exit_code == 4, done.stdout
    assert "equal on all" in done.stdout
