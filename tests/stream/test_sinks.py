"""A file that is being written is never taken for what a killed process left."""

from __future__ import annotations

import contextlib
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decision_machines.files import atomic
from decision_machines.stream import sinks

pytest.importorskip("fcntl")
TABLE = pa.table({"x": [1.0, 2.0, 3.0]})


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "out.parquet")


def write(path):
    with sinks.sink(path, TABLE.schema, "parquet") as take:
        for batch in TABLE.to_batches():
            take(batch)


def check_only_the_answer_is_there(path):
    assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]
    assert pq.read_table(path).equals(TABLE)


def at_the_first_hold(monkeypatch, happens):
    """Let something happen when the new file has its name, and is not yet held."""
    hold = atomic._hold

    def late(descriptor):
        monkeypatch.setattr(atomic, "_hold", hold)
        happens()
        hold(descriptor)

    monkeypatch.setattr(atomic, "_hold", late)


def test_a_sweep_between_name_and_hold_costs_a_second_file_and_nothing_else(path, monkeypatch):
    folder, name = os.path.split(path)
    seen = []

    def sweep():
        seen.append(os.listdir(folder))
        atomic._sweep(folder, name)
        seen.append(os.listdir(folder))

    at_the_first_hold(monkeypatch, sweep)
    write(path)
    assert [len(files) for files in seen] == [1, 0]
    check_only_the_answer_is_there(path)


def test_a_sweep_that_holds_the_new_file_and_removes_it_later_does_no_harm(path, monkeypatch):
    folder, _ = os.path.split(path)
    held = []
    with contextlib.ExitStack() as sweeping:

        def begin_to_sweep():
            (left,) = os.listdir(folder)
            file = sweeping.enter_context(open(os.path.join(folder, left), "rb"))
            atomic._hold(file.fileno())
            held.append(file.name)
            sweeping.callback(os.remove, file.name)

        at_the_first_hold(monkeypatch, begin_to_sweep)
        write(path)
        assert held
        assert pq.read_table(path).equals(TABLE)
    check_only_the_answer_is_there(path)


def test_a_sweep_while_rows_are_written_leaves_the_file_alone(path):
    with sinks.sink(path, TABLE.schema, "parquet") as take:
        atomic._sweep(*os.path.split(path))
        take(TABLE.to_batches()[0])
    check_only_the_answer_is_there(path)


def test_a_sweep_just_before_the_file_gets_its_name_leaves_it_alone(path, monkeypatch):
    replace = os.replace

    def late(source, target):
        atomic._sweep(*os.path.split(path))
        replace(source, target)

    monkeypatch.setattr(atomic.os, "replace", late)
    write(path)
    check_only_the_answer_is_there(path)


def test_where_files_cannot_be_held_they_are_written_and_none_is_swept_away(path, monkeypatch):
    def refuse(descriptor):
        raise OSError("no locks on this disk")

    monkeypatch.setattr(atomic, "_hold", refuse)
    left = f"{os.path.dirname(path)}/.out.parquet.0{atomic.UNFINISHED}"
    open(left, "w").close()
    write(path)
    assert pq.read_table(path).equals(TABLE)
    assert os.path.exists(left)


def test_a_failure_leaves_what_stood_there_and_no_hidden_file(path):
    write(path)
    with pytest.raises(RuntimeError), sinks.sink(path, TABLE.schema, "parquet"):
        raise RuntimeError
    check_only_the_answer_is_there(path)
