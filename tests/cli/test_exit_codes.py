"""What the exit code of `dm` means: each number one thing, for every command."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import decision_machines as dm
from decision_machines.cli import app as cli
from decision_machines.cli import main as entry


@pytest.fixture
def machine_file(tmp_path):
    dm.figure_one().save(tmp_path / "m.dm")
    return str(tmp_path / "m.dm")


def code_of(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["dm", *map(str, arguments)])
    with pytest.raises(SystemExit) as done:
        cli.main()
    return done.value.code, capsys.readouterr()


def broken(error):
    def load(*given, **options):
        raise error

    return load


def test_every_code_is_in_the_help():
    said = " ".join(CliRunner().invoke(cli.app, ["--help"], terminal_width=200).stdout.split())
    for words in (
        "0 done",
        "1 the comparison says no",
        "2 the call",
        "3 a defect",
        "4 nothing differs",
        "130",
        "141",
    ):
        assert words in said


@pytest.mark.parametrize("command", ["inspect", "verify", "diff"])
def test_a_defect_of_ours_is_3_with_its_traceback(monkeypatch, capsys, machine_file, command):
    monkeypatch.setattr("decision_machines.libraries.load", broken(KeyError("oops")))
    monkeypatch.setattr("decision_machines.libraries.originals.open_original", broken(KeyError(1)))
    arguments = [command, machine_file] + ([machine_file] if command == "diff" else [])
    code, said = code_of(monkeypatch, capsys, *arguments)
    assert code == 3
    assert "Traceback" in said.err
    assert "KeyError" in said.err
    assert "Please report it" in said.err
    assert dm.__version__ in said.err


def test_an_error_of_the_user_is_2_and_so_is_too_little_memory(monkeypatch, capsys, machine_file):
    code, said = code_of(monkeypatch, capsys, "inspect", machine_file + "x")
    assert (code, "Traceback" in said.err) == (2, False)
    code, _ = code_of(monkeypatch, capsys, "inspect")
    assert code == 2
    monkeypatch.setattr("decision_machines.libraries.load", broken(MemoryError("8 GB")))
    code, said = code_of(monkeypatch, capsys, "inspect", machine_file)
    assert (code, "Traceback" in said.err) == (2, False)
    assert "not enough memory (8 GB)" in said.err


def test_an_interrupt_is_130(monkeypatch, capsys, machine_file):
    monkeypatch.setattr("decision_machines.libraries.load", broken(KeyboardInterrupt()))
    code, said = code_of(monkeypatch, capsys, "inspect", machine_file)
    assert (code, "Traceback" in said.err) == (130, False)


def test_models_that_differ_are_1_and_equal_ones_0(monkeypatch, capsys, machine_file, tmp_path):
    assert code_of(monkeypatch, capsys, "diff", machine_file, machine_file)[0] == 0
    machine = dm.figure_one()
    replace(machine, V=machine.V + 1).save(tmp_path / "other.dm")
    assert code_of(monkeypatch, capsys, "diff", machine_file, tmp_path / "other.dm")[0] == 1


@pytest.mark.skipif(os.name == "nt", reason="pipes are closed otherwise on Windows")
def test_a_closed_pipe_is_not_taken_for_a_difference(machine_file):
    reads, writes = os.pipe()
    os.close(reads)
    done = subprocess.run(
        [sys.executable, "-m", "decision_machines.cli", "inspect", machine_file],
        stdout=writes,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writes)
    assert done.returncode == 141
    assert "Traceback" not in done.stderr


def test_an_interrupt_before_a_command_begins_is_130_without_a_traceback(monkeypatch, capsys):
    monkeypatch.setattr("decision_machines.cli.app.main", broken(KeyboardInterrupt()))
    monkeypatch.setattr(sys, "argv", ["dm", "--help"])
    with pytest.raises(SystemExit) as done:
        entry()
    said = capsys.readouterr()
    assert done.value.code == 130
    assert "interrupted" in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize("suffix", ["h", "mjs", "sql", "onnx", "dm"])
def test_an_interrupted_convert_is_130_and_leaves_no_file(
    monkeypatch, capsys, machine_file, tmp_path, suffix
):
    pytest.importorskip({"sql": "sqlglot", "onnx": "onnx"}.get(suffix, "numpy"))
    before = {*os.listdir(tmp_path)}
    call = ("convert", machine_file, "-o", tmp_path / f"out.{suffix}")
    monkeypatch.setattr(os, "fsync", broken(KeyboardInterrupt()))
    code, said = code_of(monkeypatch, capsys, *call)
    assert (code, {*os.listdir(tmp_path)}) == (130, before)
    assert "Traceback" not in said.err
    monkeypatch.undo()
    assert code_of(monkeypatch, capsys, *call)[0] == 0
