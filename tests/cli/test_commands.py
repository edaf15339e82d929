"""The `dm` command as people meet it: in a process of its own."""

from __future__ import annotations

import inspect
import json
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from typer.testing import CliRunner

from decision_machines.cli.app import app


def dm(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "decision_machines.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


@pytest.fixture(scope="module")
def forest_file(tmp_path_factory):
    X, y = load_iris(return_X_y=True)
    path = tmp_path_factory.mktemp("models") / "forest.pkl"
    path.write_bytes(pickle.dumps(RandomForestClassifier(5, random_state=0).fit(X, y)))
    return path


def test_demo_works_the_example_and_saves_a_picture(tmp_path):
    done = dm("demo", "--folder", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "v5" in done.stdout
    assert "p₄ = 0" in done.stdout
    assert "equal" in done.stdout
    assert (tmp_path / "templates.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", [c.callback.__name__ for c in app.registered_commands])
def test_paragraphs_of_a_help_page_are_broken_by_the_terminal_alone(name):
    (command,) = [c for c in app.registered_commands if c.callback.__name__ == name]
    shown = CliRunner().invoke(app, [name, "--help"], env={"TERMINAL_WIDTH": "1000"}).stdout
    lines = {" ".join(line.split()) for line in shown.splitlines()}
    for paragraph in inspect.cleandoc(command.callback.__doc__).split("\n\n"):
        words = " ".join(re.sub(r"\[/?(?:bold)?\]", "", paragraph).split())
        assert words in lines


def test_help_lists_the_commands():
    done = dm("--help")
    assert done.returncode == 0
    for command in ("demo", "inspect", "verify"):
        assert command in done.stdout


def test_inspect_counts_what_the_model_is_made_of(forest_file):
    done = dm("inspect", forest_file, "--trust", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["trees"] == 5
    assert found["tests"] == found["rank"] == found["leaves"] - 5
    assert found["classes"] == [[0, 1, 2]]
    shown = dm("inspect", forest_file, "--trust")
    assert "RandomForestClassifier" in shown.stdout


def test_a_pickle_is_not_opened_without_trust(forest_file):
    done = dm("inspect", forest_file)
    assert done.returncode == 2
    assert "What to do" in done.stderr
    assert "--trust" in done.stderr or "trust=True" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("content", [b"", b"hello", b"\x00\xff" * 100])
def test_rubbish_files_get_an_error_without_a_traceback(tmp_path, content):
    path = tmp_path / "rubbish.json"
    path.write_bytes(content)
    done = dm("inspect", path)
    assert done.returncode == 2
    assert "What to do" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_file_gets_an_error_without_a_traceback(tmp_path):
    done = dm("inspect", Path(tmp_path) / "nothing")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_verify_prints_the_certificate(forest_file):
    done = dm("verify", forest_file, "--trust")
    assert done.returncode == 0, done.stderr
    assert "PROVEN" in done.stdout


def test_verify_compares_the_rows_of_a_data_file(forest_file, tmp_path):
    data = tmp_path / "rows.csv"
    data.write_text("a,b,c,d\n5.1,3.5,1.4,0.2\n6.0,,4.0,1.3\n")
    done = dm("verify", forest_file, "--trust", "--data", data)
    assert done.returncode == 0, done.stderr
    assert "equal on all 2 rows" in done.stdout
