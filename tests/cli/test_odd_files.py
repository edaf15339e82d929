"""Whatever file a command is given or told to write: words in three parts, code 2, nothing lost."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import decision_machines as dm
from decision_machines import cli

RUBBISH = np.random.default_rng(0).bytes(3000)
FILES = {
    "empty": b"",
    "header.csv": b"a,b,y\n",
    "rubbish.csv": RUBBISH,
    "rubbish.parquet": RUBBISH,
    "rubbish.dm": RUBBISH,
    "twice.csv": b"a,a,b,y\n1,2,3,0\n1,2,4,1\n",
    "text.csv": b"a,b,y\n1,red,0\n2,blue,1\n",
    "ragged.csv": b"a,b,y\n1,2,0\n1,2\n",
    "wide.csv": "a,b,y\n1,2,0\n".encode("utf-16"),
    "good.csv": b"a,b,y\n1,2,0\n2,3,1\n3,1,0\n4,2,1\n",
}
MODELS = ["missing.dm", "folder", "empty", "rubbish.dm", "good.csv"]
DATA = ["missing.csv", "folder", "empty", "header.csv", "rubbish.csv", "rubbish.parquet"]
DATA += ["twice.csv", "text.csv", "ragged.csv", "wide.csv"]
OF_MODELS = [
    "inspect {}",
    "verify {}",
    "bench {}",
    "convert {} -o new.onnx",
    "explain {} good.csv -o new.csv",
    "tune {} good.csv --target y -o new.dm",
    "explore {} -o new.html",
    "diff m.dm {}",
    "diff {} m.dm",
]
OF_DATA = [
    "verify m.json --data {}",
    "bench m.json --data {}",
    "explain m.dm {} -o new.csv",
    "explain m.dm good.csv --cover {} -o new.csv",
    "train {} --target y -o new.dm",
    "tune m.dm {} --target y -o new.dm",
    "explore m.dm --data {} -o new.html",
]
OUTPUTS = [
    "explain m.dm good.csv -o {}",
    "train good.csv --target y -o {}",
    "tune m.dm good.csv --target y -o {}",
    "convert m.dm -o {}",
    "explore m.dm --data good.csv -o {}",
]
FINE = {("explain m.dm {} -o new.csv", "header.csv"), ("train {} --target y -o new.dm", "text.csv")}
"""No rows are explained in a file of no rows; a column of text is learned from."""


@pytest.fixture
def place(tmp_path, monkeypatch):
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    pytest.importorskip("torch", reason="torch is not installed")
    X = np.random.default_rng(0).random((40, 2))
    model = xgboost.XGBClassifier(n_estimators=2, max_depth=2, n_jobs=1)
    model.fit(X, X[:, 0] > 0.5)
    model.get_booster().feature_names = ["a", "b"]
    model.save_model(tmp_path / "m.json")
    dm.load(tmp_path / "m.json").save(tmp_path / "m.dm")
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    for name in ("folder", "folder.dm", "folder.html", "folder.onnx"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def refused(place, monkeypatch, capfd):
    """Runs a command in the same process; it must refuse in three parts and leave all as it was."""

    def run(line, *given):
        before = contents(place)
        monkeypatch.setattr(sys, "argv", ["dm", *(a.format(*given) for a in line.split(" "))])
        with pytest.raises(SystemExit) as done:
            cli.main()
        said = capfd.readouterr().err
        assert (done.value.code, contents(place) == before) == (2, True), (line, given, said)
        assert "error While " in said, (line, given)
        assert "What to do: " in said
        assert "Traceback" not in said
        return said

    return run


def contents(place):
    return {
        str(path.relative_to(place)): path.read_bytes() if path.is_file() else None
        for path in place.rglob("*")
    }


def test_what_is_not_a_model_is_refused_by_every_command(refused):
    for line in OF_MODELS:
        for given in MODELS:
            assert given in refused(line, given)


def test_what_is_not_a_table_is_refused_by_every_command(refused):
    for line in OF_DATA:
        for given in DATA:
            if (line, given) not in FINE:
                refused(line, given)


def test_text_where_numbers_are_read_is_named_with_its_place(refused):
    for line in OF_DATA:
        if (line, "text.csv") not in FINE:
            said = refused(line, "text.csv")
            assert (
                "column 'b' has 'red' in row 2 (the header is row 1), where a number is read"
                in said
            )


@pytest.mark.parametrize("output", ["new.xyz", "/proc/new{suffix}", "{self}", "folder{suffix}"])
def test_an_output_that_cannot_be_is_refused_before_the_work(refused, monkeypatch, output):
    def too_late(*given, **options):
        raise AssertionError("the work was begun")

    monkeypatch.setattr("decision_machines.train.tune.tune", too_late)
    monkeypatch.setattr("decision_machines.estimators.DecisionMachineClassifier.fit", too_late)
    for line in OUTPUTS:
        command, first, second, *_ = line.split(" ")
        suffix = {"explain": ".csv", "explore": ".html", "convert": ".onnx"}.get(command, ".dm")
        own = second if command == "explain" else first
        if output.startswith("folder") and command == "explain":
            continue  # a folder of answers
        refused(line, output.format(suffix=suffix, self=own))


def test_the_data_are_never_written_over(refused):
    assert "it is the data" in refused("explain m.dm good.csv -o good.csv")
    assert "--cover" in refused("explain m.dm text.csv --cover good.csv -o good.csv")
    assert "the command reads this file" in refused("tune m.dm good.csv --target y -o m.dm")
    assert "no name" in refused("explain m.dm good.csv -o {}", "")
