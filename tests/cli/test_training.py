"""`dm train` and `dm tune` on files as people have them, and on files as nobody should."""

from __future__ import annotations

import json
import os

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import decision_machines as dm
from decision_machines.cli.app import app
from decision_machines.errors import DecisionMachinesError

M = 80


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    import lightgbm

    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(M, 2)), columns=["a", "b"])
    z = np.sin(2 * table["a"]) + table["b"]
    found = tmp_path_factory.mktemp("training")
    model = lightgbm.LGBMRegressor(
        n_estimators=3, num_leaves=5, min_child_samples=5, n_jobs=1, verbose=-1
    )
    model.fit(table, z).booster_.save_model(found / "model.txt")
    table["colour"] = rng.choice(["red", "green"], M)
    table["id"] = [f"row {i}" for i in range(M)]
    table["price"], table["sold"] = z, np.where(z > 0, "yes", "no")
    table["one"], table["weight"] = "same", rng.uniform(0, 2, M)
    table["nothing"], table["zero"] = None, 0.0
    table.loc[::7, "a"] = np.nan
    table.loc[::9, "colour"] = None
    table.to_csv(found / "rows.csv", index=False)
    table.to_parquet(found / "rows.parquet")
    table.assign(day=pd.date_range("2020-01-01", periods=M)).to_parquet(found / "dates.parquet")
    table.assign(b=np.where(np.arange(M) == 50, np.inf, table["b"])).to_csv(
        found / "infinity.csv", index=False
    )
    (found / "empty.csv").write_bytes(b"")
    (found / "bytes.csv").write_bytes(b"\x80\x81,b\n1,2\n")
    (found / "ragged.csv").write_text("a,b\n1,2\n1\n")
    return found


def run(folder, *arguments):
    """The command's result; an error of ours as `main` would print it, any other as it is."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    finally:
        os.chdir(before)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


FEW = ["--drop", "id", "--leaves", "3", "--iterations", "5", "--n-threads", "1"]


@pytest.mark.parametrize("file", ["rows.csv", "rows.parquet"])
def test_text_targets_missing_cells_and_columns_of_nothing_are_trained_on(folder, file, tmp_path):
    out = tmp_path / "model.dm"
    done = run(
        folder, "train", file, "--target", "sold", *FEW, "--drop", "price", "-o", out, "--json"
    )
    report = json.loads(done.stdout)
    assert report["classes"] == ["no", "yes"]
    assert report["rows learned from"] + report["rows kept apart"] == M
    table = pd.read_parquet(folder / "rows.parquet").drop(columns=["id", "price", "sold"])
    assert set(dm.load(out).predict(table)) == {"no", "yes"}


def test_a_file_for_onnx_is_written_with_a_word_and_no_traceback(folder, tmp_path):
    out = tmp_path / "model.onnx"
    text = ["--drop", "colour", "--drop", "sold", "--drop", "one", "--drop", "nothing"]
    done = run(folder, "train", "rows.csv", "--target", "price", *FEW, *text, "-o", out)
    assert done.exit_code == 0
    assert out.stat().st_size
    assert "warning The ONNX model may differ" in done.stderr
    assert "InexactWarning" not in done.stderr


REFUSED_BY_TRAIN = {
    "no folder": (["rows.csv", "-o", "no/such/model.dm"], "there is no folder"),
    "weights of text": (["rows.csv", "--weight", "colour"], "--weight colour holds no numbers"),
    "weights of 0": (["rows.csv", "--weight", "zero"], "--weight zero is 0 in every row"),
    "negative weights": (["rows.csv", "--weight", "b"], "--weight b is -"),
    "dates": (["dates.parquet"], "'day' holds dates"),
    "infinity": (["infinity.csv"], "'b' contains infinity in 1 row"),
    "the target dropped": (["rows.csv", "--drop", "price"], "--drop price, which is the target"),
    "balanced numbers": (["rows.csv", "--balanced"], "--balanced for numbers"),
    "linear alone": (["rows.csv", "--linear"], "--linear without --oblique"),
    "no file": (["none.csv"], "there is no such file"),
    "an empty file": (["empty.csv"], "not a readable table"),
    "bytes": (["bytes.csv"], "not a readable table"),
    "a ragged file": (["ragged.csv"], "not a readable table"),
}


@pytest.mark.parametrize("case", REFUSED_BY_TRAIN)
def test_train_refuses_in_words(folder, case):
    arguments, words = REFUSED_BY_TRAIN[case]
    with pytest.raises(DecisionMachinesError, match=words):
        run(folder, "train", *arguments, "--target", "price", *FEW)


def test_linear_leaves_for_classes_are_refused_in_the_commands_words(folder):
    with pytest.raises(DecisionMachinesError, match="--linear for classes"):
        run(folder, "train", "rows.csv", "--target", "sold", "--linear", "--oblique", *FEW)


TUNE = ["tune", "model.txt"]
QUICK = ["--epochs", "1", "--n-threads", "1", "--quiet"]


@pytest.mark.parametrize("suffix", ["dm", "txt", "onnx"])
def test_tune_writes_what_the_suffix_says(folder, tmp_path, suffix):
    out = tmp_path / f"tuned.{suffix}"
    done = run(
        folder, *TUNE, "rows.csv", "--target", "price", "--weight", "weight", "-o", out, *QUICK
    )
    assert done.exit_code == 0
    assert "Tuned for squared on 64 rows, judged on 16" in done.stdout
    assert "InexactWarning" not in done.stderr
    assert dm.load(out).n_features == 2


REFUSED_BY_TUNE = {
    "no folder": (["rows.csv", "-o", "no/such/model.dm"], "there is no folder"),
    "a kind that cannot hold it": (["rows.csv", "-o", "tuned.json"], "XGBoost model compares"),
    "weights of text": (["rows.csv", "--weight", "id"], "sample_weight is not an array of numbers"),
    "weights of 0": (["rows.csv", "--weight", "zero"], "have weights of 0"),
    "text for numbers": (["rows.csv", "--target", "sold"], "such as '(yes|no)'"),
    "oblique tests": (["rows.csv", "-o", "tuned.txt", "--oblique"], "may not hold"),
    "no file": (["none.csv"], "there is no such file"),
    "no checkpoint": (["rows.csv", "--checkpoint", "rows.csv", "--resume"], "not a checkpoint"),
}


@pytest.mark.parametrize("case", REFUSED_BY_TUNE)
def test_tune_refuses_in_words_and_writes_nothing(folder, tmp_path, case):
    arguments, words = REFUSED_BY_TUNE[case]
    out = tmp_path / "tuned.dm"
    given = ["--target", "price", "-o", out, *arguments[1:]]
    before = set(folder.iterdir())
    with pytest.raises(DecisionMachinesError, match=words):
        run(folder, *TUNE, arguments[0], *given, *QUICK)
    assert not out.exists()
    assert set(folder.iterdir()) == before


def test_a_kind_that_cannot_hold_the_machine_is_refused_before_training(folder, monkeypatch):
    import decision_machines.train.tune as room

    monkeypatch.setattr(room, "tune", lambda *_, **__: pytest.fail("it was trained"))
    for out in ("tuned.json", "no/such/tuned.dm"):
        with pytest.raises(DecisionMachinesError):
            run(folder, *TUNE, "rows.csv", "--target", "price", "-o", out, *QUICK)


def test_scores_and_what_a_constant_would_score_are_weighted_alike(tmp_path):
    """One heavy row of the rare class makes it the commonest by weight."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.random(100), "y": ["often"] * 90 + ["rare"] * 10})
    frame["w"] = np.where(frame["y"] == "rare", 90.0, 1.0)
    frame["number"] = np.where(frame["y"] == "rare", 10.0, 0.0)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    few = ["--leaves", "1", "--iterations", "0", "--n-threads", "1", "--json"]
    done = run(
        tmp_path, "train", "rows.csv", "--target", "y", "--weight", "w", "--drop", "number", *few
    )
    scores = json.loads(done.stdout)["scores"]
    assert scores["accuracy"] == scores["accuracy of the commonest class"]
    assert scores["accuracy"] == pytest.approx(900 / 990, abs=0.03)
    done = run(
        tmp_path, "train", "rows.csv", "--target", "number", "--weight", "w", "--drop", "y",
        "--kind", "regression", *few,
    )  # fmt: skip
    scores = json.loads(done.stdout)["scores"]
    assert scores["RMSE of the mean"] == pytest.approx(scores["RMSE"], abs=0.1)
    assert scores["RMSE of the mean"] < 3.5  # 9 off for most rows, were the mean unweighted


def test_the_best_of_several_learners_is_written_soft(folder):
    done = run(
        folder, "train", "rows.csv", "--target", "price", "--drop", "id", "--drop", "sold",
        "--best", "--time-limit", "3", "--validation", "0", "-o", "best.dm", "--json", "--quiet",
    )  # fmt: skip
    report = json.loads(done.stdout)
    assert {"a constant"} < {candidate["name"] for candidate in report["tried"]}
    soft = dm.load(folder / "best.dm")
    rows = pd.read_csv(folder / "rows.csv").drop(columns=["id", "price", "sold"])
    assert np.isfinite(soft.predict(rows)).all()
    for options in (["--leaves", "4"], ["--optimal"], ["--oblique"], ["--leaf-cost", "1"]):
        with pytest.raises(DecisionMachinesError, match="--best"):
            run(folder, "train", "rows.csv", "--target", "price", "--best", *options)
