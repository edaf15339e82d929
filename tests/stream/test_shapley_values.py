"""Shapley values of files: `dm explain`, and `score` with outputs="shap"."""

import json

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from typer.testing import CliRunner

import decision_machines as dm
from decision_machines.cli import app as cli
from decision_machines.stream import score

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(300, 4)), columns=["a", "b", "c", "d"])
Y = np.where(X["a"] * X["b"] > 0, "yes", "no")


@pytest.fixture
def machine():
    return dm.convert(RandomForestClassifier(5, max_depth=5, random_state=0).fit(X, Y))


def test_files_hold_the_values_of_memory(machine, tmp_path):
    X.assign(id=np.arange(300)).to_parquet(tmp_path / "rows.parquet")
    out = tmp_path / "shap.parquet"
    score(machine, tmp_path / "rows.parquet", out, outputs="shap", keep="id", rows_at_once=77)
    found = pd.read_parquet(out)
    names = [f"shap_{f}_{label}" for f in X.columns for label in ("no", "yes")]
    assert found.columns.tolist() == ["id", "shap_base_no", "shap_base_yes", *names]
    expected = machine.shap_values(X).reshape(300, -1)
    assert np.array_equal(found[names].to_numpy(), expected)
    total = found[[n for n in found if n.endswith("_yes")]].sum(axis=1)
    np.testing.assert_allclose(total, machine.margin(X)[:, 1], atol=1e-12)


@pytest.mark.parametrize("outputs", ["shap", ("predict", "proba", "margin", "leaves")])
def test_a_batch_answered_in_steps_is_the_batch(machine, tmp_path, monkeypatch, outputs):
    rows = pd.concat([X, X, X]).reset_index(drop=True)
    rows.to_parquet(tmp_path / "rows.parquet")
    tables = []
    for steps in (1, 10**12):
        monkeypatch.setattr("decision_machines.stream.work.STEPS_AT_ONCE", steps)
        score(machine, tmp_path / "rows.parquet", tmp_path / f"{steps}.parquet", outputs=outputs)
        tables.append(pd.read_parquet(tmp_path / f"{steps}.parquet"))
    assert len(tables[0]) == 900
    pd.testing.assert_frame_equal(*tables, check_exact=True)


def test_polars_and_arrow_functions_hold_the_values_of_memory(machine):
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    expected = machine.shap_values(X).reshape(300, -1)
    found = pl.from_pandas(X).select(dm.expr(machine, output="shap")).unnest("shap")
    assert np.array_equal(found.to_numpy()[:, 2:], expected)
    batch = pa.RecordBatch.from_pandas(X, preserve_index=False)
    answered = dm.stream.arrow_function(machine, outputs="shap")(batch).to_pandas()
    assert np.array_equal(answered.to_numpy()[:, 2:], expected)


def test_dm_explain_writes_values_and_says_what_it_did(machine, tmp_path):
    machine.save(tmp_path / "m.dm")
    X.to_csv(tmp_path / "rows.csv", index=False)
    out = tmp_path / "shap.csv"
    given = ["explain", str(tmp_path / "m.dm"), str(tmp_path / "rows.csv"), "-o", str(out)]
    done = CliRunner().invoke(cli.app, [*given, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["rows"] == 300
    assert len(pd.read_csv(out)) == 300


def test_dm_explain_counts_covers_where_the_model_has_none(machine, tmp_path):
    from dataclasses import replace

    replace(machine, cover=None).save(tmp_path / "m.dm")
    X.to_parquet(tmp_path / "rows.parquet")
    out, rows = tmp_path / "shap.parquet", str(tmp_path / "rows.parquet")
    given = ["explain", str(tmp_path / "m.dm"), rows, "-o", str(out)]
    refused = CliRunner().invoke(cli.app, given)
    assert refused.exit_code != 0
    assert "with_cover" in str(refused.exception)
    assert not out.exists()
    done = CliRunner().invoke(cli.app, [*given, "--cover", rows])
    assert done.exit_code == 0, done.output
    expected = machine.with_cover(X).shap_values(X)[0, 0, 0]
    assert pd.read_parquet(out)["shap_a_no"][0] == expected
