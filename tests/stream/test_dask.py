"""Dask's workers answer as this process does, also when one of them is killed."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from stream.conftest import expected, files, rows

import decision_machines as dm
from decision_machines.stream.parts import find_parts
from decision_machines.stream.records import Records
from decision_machines.stream.work import Scorer, Task

dask_dataframe = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

BOTH = ("predict", "margin")


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def folder(tmp_path):
    os.mkdir(tmp_path / "in")
    frame = rows(500)
    for i in range(5):
        frame[100 * i : 100 * i + 100].to_parquet(tmp_path / "in" / f"{i}.parquet")
    return tmp_path


def test_files_scored_on_workers_are_the_local_ones_to_the_byte(machine, folder, client):
    options = {"outputs": BOTH, "keep": "id"}
    dm.stream.score(machine, folder / "in", folder / "here", **options)
    report = dm.stream.score(
        machine, folder / "in", folder / "there", engine="dask", cluster=client, **options
    )
    assert report.rows == 500
    assert files(folder / "here") == files(folder / "there")
    for name in files(folder / "here"):
        assert (folder / "here" / name).read_bytes() == (folder / "there" / name).read_bytes()
    again = dm.stream.score(machine, folder / "in", folder / "there", engine="dask", **options)
    assert (again.found_finished, again.rows_scored) == (5, 0)


def test_shapley_values_of_workers_are_the_local_ones_to_the_byte(machine, folder, client):
    options = {"outputs": "shap", "keep": "id"}
    dm.stream.score(machine, folder / "in", folder / "here", **options)
    dm.stream.score(
        machine, folder / "in", folder / "there", engine="dask", cluster=client, **options
    )
    assert files(folder / "here") == files(folder / "there") != []
    for name in files(folder / "here"):
        assert (folder / "here" / name).read_bytes() == (folder / "there" / name).read_bytes()


def test_a_scheduler_is_found_by_its_address(machine, folder, client, monkeypatch):
    monkeypatch.setattr("decision_machines.stream.dask_cluster.CONNECT_SECONDS", 0.5)
    address = client.scheduler.address
    out = folder / "out"
    assert dm.stream.score(machine, folder / "in", out, engine="dask", cluster=address).rows == 500
    with pytest.raises(dm.InputError, match="connecting to Dask"):
        dm.stream.score(
            machine, folder / "in", folder / "b", engine="dask", cluster="tcp://127.0.0.1:1"
        )


def test_answers_come_as_a_dask_frame_in_the_order_of_the_data(machine, folder):
    found = dm.stream.score(machine, folder / "in", engine="dask", outputs=BOTH, keep="id")
    assert found.npartitions == 5
    table = pa.Table.from_pandas(found.compute(scheduler="sync"), preserve_index=False)
    want = expected(machine, rows(500))
    assert table.cast(want.schema).equals(want)


def test_a_dask_frame_is_scored_partition_by_partition(machine, client):
    frame = rows(200)
    lazy = dask_dataframe.from_pandas(frame, npartitions=3)
    found = dm.stream.dask_frame(machine, lazy, outputs=BOTH, keep="id")
    assert list(found.columns) == expected(machine, frame).column_names
    for computed in (found.compute(scheduler="sync"), client.compute(found).result()):
        table = pa.Table.from_pandas(computed, preserve_index=False)
        want = expected(machine, frame)
        assert table.cast(want.schema).equals(want)


def test_an_error_on_a_worker_names_the_file(machine, folder, client):
    frame = rows(10)
    frame["q"] = "text"
    frame.to_parquet(folder / "in" / "3.parquet")
    with pytest.raises(dm.InputError, match=r"3\.parquet, row group 0: column 'q'"):
        dm.stream.score(machine, folder / "in", folder / "out", engine="dask", cluster=client)
    assert not os.path.exists(folder / "out" / "3.parquet")


def test_a_killed_worker_loses_and_doubles_nothing(machine, tmp_path, client):
    os.mkdir(tmp_path / "in")
    n_parts, n = 8, 60_000
    for i in range(n_parts):
        frame = rows(n, seed=i)
        frame["id"] += i * n
        frame.to_parquet(tmp_path / "in" / f"{i}.parquet")
    out = tmp_path / "out"
    workers = list(client.run(os.getpid).values())
    killed = []

    def kill_one_at_work():
        while not os.path.isdir(out) or not any(".unfinished" in name for name in files(out)):
            time.sleep(0.001)
        os.kill(workers[0], signal.SIGKILL)
        killed.append(workers[0])

    thread = threading.Thread(target=kill_one_at_work, daemon=True)
    thread.start()
    options = {"outputs": BOTH, "keep": "id", "rows_at_once": 500}
    report = dm.stream.score(
        machine, tmp_path / "in", out, engine="dask", cluster=client, **options
    )
    thread.join()
    assert killed
    assert workers[0] not in client.run(os.getpid).values()
    assert report.rows == n_parts * n
    found = pyarrow.dataset.dataset(out).to_table()
    assert np.array_equal(found["id"].to_numpy(), np.arange(n_parts * n))
    dm.stream.score(machine, tmp_path / "in", tmp_path / "local.parquet", **options)
    assert found.equals(pq.read_table(tmp_path / "local.parquet"))
    # What the killed worker left is hidden from readers, and the next run clears it away.
    dm.stream.score(machine, tmp_path / "in", out, **options)
    assert files(out) == [f"{i}.parquet" for i in range(n_parts)]


@pytest.fixture
def threads():
    """A cluster in this process, whose workers can be made to hang."""
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def hung(monkeypatch):
    """Reading 3.parquet hangs until the event is set, for the first who tries."""
    released, reached = threading.Event(), threading.Event()
    part_of = Scorer.part

    def part(self, part, schema=None):
        for answers in part_of(self, part, schema):
            if part.name == "3.parquet" and not reached.is_set():
                reached.set()
                released.wait()
            yield answers

    monkeypatch.setattr(Scorer, "part", part)
    yield released
    released.set()


def test_a_hung_worker_is_given_up_and_the_next_run_goes_on(machine, folder, threads, hung):
    options = {"outputs": BOTH, "keep": "id"}
    call = {"engine": "dask", "cluster": threads, "timeout": 2.0, **options}
    with pytest.raises(dm.TimedOutError, match=r"3\.parquet are not done"):
        dm.stream.score(machine, folder / "in", folder / "out", **call)
    assert not os.path.exists(folder / "out" / "3.parquet")
    finished = [name for name in files(folder / "out") if name.endswith(".parquet")]
    assert finished == [f"{i}.parquet" for i in (0, 1, 2, 4)]
    report = dm.stream.score(machine, folder / "in", folder / "out", **options)
    assert (report.found_finished, report.rows) == (4, 500)
    written = (folder / "out" / "3.parquet").stat()
    hung.set()
    while any(threads.processing().values()):
        time.sleep(0.01)
    # The worker of the run that was given up has come too late.
    assert (folder / "out" / "3.parquet").stat().st_ino == written.st_ino
    assert pyarrow.dataset.dataset(folder / "out").count_rows() == 500


def test_a_worker_of_an_older_run_replaces_nothing_of_a_newer_one(machine, folder):
    options = {"outputs": BOTH, "keep": "id"}
    dm.stream.score(machine, folder / "in", folder / "out", **options)
    parts = find_parts(folder / "in")
    old, new = Records(str(folder / "out")), Records(str(folder / "out"))
    run = json.loads(Path(old.home, "run.json").read_text())
    run.pop("version")
    old.begin(run, fresh=False)
    new.begin(run, fresh=False)
    before = (folder / "out" / "0.parquet").read_bytes()
    other = Scorer(machine, Task(("margin",)))
    with pytest.raises(dm.InputError, match="a newer run writes there"):
        old.complete(other, parts[0], "0.parquet", "parquet")
    assert (folder / "out" / "0.parquet").read_bytes() == before
    assert not any(".unfinished" in name for name in files(folder / "out"))
    done = new.complete(Scorer(machine, Task(BOTH, ("id",))), parts[0], "0.parquet", "parquet")
    assert done.rows == 100


@pytest.mark.parametrize("timeout", [0, -1.0])
def test_what_is_no_time_is_refused(machine, folder, timeout):
    with pytest.raises(dm.InputError, match="timeout"):
        dm.stream.score(machine, folder / "in", folder / "out", engine="dask", timeout=timeout)
