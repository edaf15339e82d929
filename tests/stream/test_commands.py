"""`dm predict` and `dm bench` in a process of their own."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from stream.conftest import NAMES, expected, rows, run_dm

import decision_machines as dm


def test_predict_says_what_it_did(machine, model_file, tmp_path):
    frame = rows(100)
    frame.to_csv(tmp_path / "in.csv", index=False)
    out = tmp_path / "out.parquet"
    done = run_dm(
        *("predict", model_file, tmp_path / "in.csv", "-o", out, "--json"),
        *("--predict", "--margin", "--keep", "id", "--n-threads", "1"),
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert json.loads(done.stdout)["rows"] == 100
    want = expected(machine, frame).drop_columns("id")
    assert pq.read_table(out).drop_columns("id").equals(want)
    shown = run_dm("predict", model_file, tmp_path / "in.csv", "-o", out)
    assert "100 rows of 1 file" in shown.stdout


def test_predict_finds_columns_for_a_model_without_names(tmp_path):
    from sklearn.tree import DecisionTreeRegressor

    frame = rows(50)
    model = DecisionTreeRegressor(max_depth=3).fit(frame[NAMES].to_numpy(), frame["p"])
    dm.convert(model).save(tmp_path / "tree.dm")
    frame.to_parquet(tmp_path / "in.parquet")
    call = ["predict", tmp_path / "tree.dm", tmp_path / "in.parquet", "-o"]
    done = run_dm(*call, tmp_path / "a.csv")
    assert done.returncode == 2
    assert "--column" in done.stderr
    chosen = [word for name in NAMES for word in ("--column", name)]
    done = run_dm(*call, tmp_path / "a.csv", *chosen)
    assert done.returncode == 0, done.stderr
    # Not by pandas: before its release 3 it rounds the last digit of what it reads.
    found = csv.read_csv(tmp_path / "a.csv")["prediction"]
    assert np.array_equal(found, model.predict(frame[NAMES].to_numpy()))


def test_predict_runs_on_dask(model_file, tmp_path):
    pytest.importorskip("dask.dataframe")
    (tmp_path / "in").mkdir()
    for i in range(2):
        rows(20, seed=i).to_parquet(tmp_path / "in" / f"{i}.parquet")
    call = ["predict", model_file, tmp_path / "in", "-o"]
    assert run_dm(*call, tmp_path / "here").returncode == 0
    done = run_dm(*call, tmp_path / "there", "--engine", "dask")
    assert done.returncode == 0, done.stderr
    for i in range(2):
        name = f"{i}.parquet"
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("nothing.parquet", "-o", "out"), "nothing is there"),
        (("in.csv", "-o", "in.csv"), "it is the data"),
        (("in.csv", "-o", "out", "--keep", "nothing"), "no column 'nothing'"),
        (("in.csv", "-o", "out", "--engine", "abacus"), "abacus"),
        (("in.csv",), "--output"),
        (("in.csv", "-o", "/proc/nowhere/out.parquet"), "cannot be written"),
    ],
)
def test_wrong_calls_end_with_2_and_no_traceback(model_file, tmp_path, arguments, says):
    rows(5).to_csv(tmp_path / "in.csv", index=False)
    done = run_dm("predict", model_file, *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_help_teaches_by_example():
    done = run_dm("predict", "--help")
    assert done.returncode == 0
    for words in ("--keep", "dm predict model.txt rows.parquet", "Exit codes"):
        assert words in done.stdout


def test_bench_compares_before_it_times(forest_file):
    done = run_dm(
        "bench", forest_file, "--trust", "--rows", 500, "--n-threads", 1, "--seconds", 0.1, "--json"
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["equal"]
    assert [timing["rows"] for timing in found["timings"]] == [1, 500]
    for timing in found["timings"]:
        assert timing["ratio"] == pytest.approx(timing["library"] / timing["ours"])


def test_bench_takes_the_rows_of_a_file(forest_file, tmp_path):
    rows(30)[NAMES].to_csv(tmp_path / "in.csv", index=False)
    done = run_dm("bench", forest_file, "--trust", "--data", tmp_path / "in.csv", "--seconds", 0.1)
    assert done.returncode == 0, done.stderr
    assert "times as fast" in done.stdout


def test_bench_says_no_where_the_answers_differ(forest, monkeypatch):
    from decision_machines.cli import speeds as bench

    class Liar:
        def __call__(self, X, threads):
            found = forest.predict(pd.DataFrame(X, columns=NAMES))
            found[0] = "cyan" if found[0] != "cyan" else "blue"
            return found

    monkeypatch.setattr(bench, "_rival", lambda model: (Liar(), "a liar"))
    found = bench.bench(forest, rows(40)[NAMES], seconds=0)
    assert not found.equal
    assert found.timings == ()
    assert "differ 1 times" in found.compared


def test_only_what_is_equal_to_the_bit_is_called_equal():
    from decision_machines.cli.speeds import compare

    x = np.array([1.0, np.nan, 0.0])
    assert compare(x, x) == (True, True, "equal to the bit")
    assert compare(x, x.astype(np.float32)) == (True, True, "equal to the bit as float32")
    assert compare(x, np.array([1.0, 3.0, 0.0]))[:2] == (False, False)
    assert compare(x, np.array([1.0, np.nan, np.inf]))[:2] == (False, False)
    one_ulp = compare(x, np.nextafter(x, 2))
    assert compare(x[:1], x[:1] + 1e-12)[:2] == (False, False)
    assert compare(x[:1], np.nextafter(x[:1], 2)) == (
        False,
        True,
        "NOT equal to the bit: 1 of 1 differ, at most 1 ulp apart",
    )
    assert not one_ulp.equal


def test_bench_times_what_is_one_ulp_apart_but_does_not_call_it_equal(monkeypatch):
    from sklearn.ensemble import RandomForestRegressor

    from decision_machines.cli import speeds

    frame = rows(200)
    model = RandomForestRegressor(3, random_state=0).fit(frame[NAMES], frame["p"] * frame["q"])

    def rival(X, threads):
        return np.nextafter(model.predict(pd.DataFrame(X, columns=NAMES)), np.inf)

    monkeypatch.setattr(speeds, "_rival", lambda model: (rival, "one above"))
    found = speeds.bench(model, frame[NAMES], seconds=0)
    assert not found.equal
    assert "NOT equal to the bit: 200 of 200 differ, at most 1 ulp apart" in found.compared
    assert len(found.timings) == 2


def test_a_file_of_a_kind_that_is_not_written_does_not_become_a_folder(model_file, tmp_path):
    rows(5).to_csv(tmp_path / "in.csv", index=False)
    for name in ("out.xlsx", "out.json", "out.parq"):
        done = run_dm("predict", model_file, "in.csv", "-o", name, cwd=tmp_path)
        assert done.returncode == 2
        assert "not a kind of table" in done.stderr
        assert not (tmp_path / name).exists()
    done = run_dm("predict", model_file, "in.csv", "-o", "answers.v2/", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "answers.v2" / "in.parquet").is_file()


def test_a_tsv_is_written_with_tabs(machine, model_file, tmp_path):
    rows(5).to_csv(tmp_path / "in.csv", index=False)
    done = run_dm("predict", model_file, "in.csv", "-o", "out.tsv", "--keep", "id", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = pd.read_csv(tmp_path / "out.tsv", sep="\t")
    assert found["prediction"].tolist() == machine.predict(rows(5)[NAMES]).tolist()
