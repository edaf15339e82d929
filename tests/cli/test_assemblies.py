"""Commands on models made of models, on pipelines and on Spark's folders."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from spark_folders import leaf, metadata, save, split
from typer.testing import CliRunner

import decision_machines as dm
from decision_machines.cli import app

pytest.importorskip("pyarrow", reason="tables of answers need pyarrow")
joblib = pytest.importorskip("joblib")


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory):
    """(folder, model, table): a calibration behind steps, as joblib and skops files."""
    skops = pytest.importorskip("skops.io")
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=120), "c": rng.choice(["a", "b", "é"], 120)})
    table.loc[::9, "x"] = np.nan
    said = np.where(table["x"].fillna(0) + (table["c"] == "a") > 0.3, "yes", "no")
    steps = ColumnTransformer(
        [("n", SimpleImputer(), ["x"]), ("l", OneHotEncoder(handle_unknown="ignore"), ["c"])]
    )
    forest = RandomForestClassifier(3, max_depth=3, random_state=0)
    model = make_pipeline(steps, CalibratedClassifierCV(forest, cv=2)).fit(table, said)
    folder = tmp_path_factory.mktemp("assemblies")
    joblib.dump(model, folder / "model.joblib")
    skops.dump(model, folder / "model.skops")
    rows = table.head(30).assign(id=range(30))
    rows.loc[3, "c"] = "new"
    rows.to_csv(folder / "rows.csv", index=False)
    rows.to_parquet(folder / "rows.parquet", index=False)
    return folder, model, rows


@pytest.mark.parametrize("file", ["model.joblib", "model.skops", "model.dm"])
@pytest.mark.parametrize("rows", ["rows.csv", "rows.parquet"])
def test_an_assembly_scores_files(calibrated, tmp_path, file, rows):
    folder, model, table = calibrated
    if file == "model.dm":
        assert run("convert", folder / "model.skops", "-o", folder / file).exit_code == 0
    more = ["--trust"] if file.endswith("joblib") else []
    out = tmp_path / "answers.parquet"
    found = run(
        "predict", folder / file, folder / rows, "-o", out, "--predict", "--proba", "--keep", "id",
        *more,
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    answers = pd.read_parquet(out)
    assert list(answers) == ["id", "prediction", "proba_no", "proba_yes"]
    given = table[["x", "c"]]
    assert answers["prediction"].tolist() == model.predict(given).tolist()
    assert np.array_equal(answers[["proba_no", "proba_yes"]], model.predict_proba(given))


def test_an_assembly_is_shown_and_proven_with_rows(calibrated):
    folder, _, _ = calibrated
    shown = run("inspect", folder / "model.skops").output
    assert "calibrated" in shown
    assert "SimpleImputer, OneHotEncoder folded into" in " ".join(shown.replace("│", " ").split())
    found = run("verify", folder / "model.skops", "--data", folder / "rows.csv")
    assert found.exit_code == 0, found.output
    assert "PROVEN" in found.output


@pytest.mark.parametrize("asked", ["--margin", "--leaves"])
def test_what_an_assembly_does_not_have_is_refused_before_a_row_is_read(
    calibrated, tmp_path, asked
):
    folder, _, _ = calibrated
    out = tmp_path / "a.csv"
    found = run("predict", folder / "model.skops", folder / "rows.csv", "-o", out, asked)
    assert isinstance(found.exception, dm.InputError)
    assert asked[2:] in str(found.exception)
    assert not out.exists()


def test_what_holds_one_machine_refuses_an_assembly(calibrated, tmp_path):
    folder, _, _ = calibrated
    dm.load(folder / "model.skops").save(tmp_path / "model.dm")
    for out in ("model.onnx", "model.json", "model.h"):
        found = run("convert", tmp_path / "model.dm", "-o", tmp_path / out)
        assert isinstance(found.exception, dm.UnsupportedModelError)
        assert not (tmp_path / out).exists()
    found = run("verify", tmp_path / "model.dm")
    assert isinstance(found.exception, dm.InputError)
    assert "converted from" in str(found.exception)


def test_a_folder_of_spark_is_shown_converted_and_scored(tmp_path):
    tree = split(0, [0.5], -1, leaf(1.0, [3.0, 0.0]), leaf(2.5, [1.0, 2.0]))
    stages = tmp_path / "pipe" / "stages"
    metadata(
        stages / "0_assembler",
        "feature.VectorAssembler",
        {"inputCols": ["x"], "outputCol": "features", "handleInvalid": "keep"},
    )
    save(stages / "1_trees", "regression.RandomForestRegressionModel", [tree, tree], numFeatures=1)
    metadata(tmp_path / "pipe", "PipelineModel", {"stageUids": ["assembler", "trees"]})
    (tmp_path / "rows.csv").write_text("x\n0\n0.5\n1\n\n")
    assert "Spark" in run("inspect", tmp_path / "pipe").output
    assert run("convert", tmp_path / "pipe", "-o", tmp_path / "m.dm").exit_code == 0
    for model in (tmp_path / "pipe", tmp_path / "m.dm"):
        found = run("predict", model, tmp_path / "rows.csv", "-o", tmp_path / "a.csv")
        assert found.exit_code == 0, found.output
        assert pd.read_csv(tmp_path / "a.csv")["prediction"].tolist()[:3] == [1.0, 1.0, 2.5]
