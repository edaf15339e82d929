"""Ray's workers answer as this process does."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest
from stream.conftest import NAMES, expected, files, rows

import decision_machines as dm
from decision_machines.stream import ray_cluster
from decision_machines.stream.records import UNFINISHED, Records
from decision_machines.stream.signs import Signs

ray = pytest.importorskip("ray", reason="ray is not installed")
pytest.importorskip("ray.data", reason="ray.data is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")
BOTH = ("predict", "margin")


@pytest.fixture(scope="module")
def cluster():
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=100 << 20,
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ray")
    os.mkdir(folder / "in")
    frame = rows(400)
    for i in range(4):
        frame[100 * i : 100 * i + 100].to_parquet(folder / "in" / f"{i}.parquet", index=False)
    return folder


def test_files_scored_by_tasks_are_the_local_ones_to_the_byte(machine, folder, cluster):
    options = {"outputs": BOTH, "keep": "id"}
    dm.stream.score(machine, folder / "in", folder / "here", **options)
    report = dm.stream.score(machine, folder / "in", folder / "there", engine="ray", **options)
    assert (report.rows, report.found_finished) == (400, 0)
    assert files(folder / "here") == files(folder / "there") != []
    for name in files(folder / "here"):
        if name.endswith(".parquet"):
            assert (folder / "here" / name).read_bytes() == (folder / "there" / name).read_bytes()
    again = dm.stream.score(machine, folder / "in", folder / "there", engine="ray", **options)
    assert again.found_finished == 4


def test_without_an_output_the_answers_are_a_dataset(machine, folder, cluster):
    found = dm.stream.score(machine, folder / "in", engine="ray", outputs=BOTH, keep="id")
    got = found.to_pandas().sort_values("id").reset_index(drop=True)
    wanted = expected(machine, rows(400)).to_pandas()
    assert got.equals(wanted.astype(got.dtypes.to_dict()))


def test_a_dataset_is_answered_block_by_block(machine, cluster):
    frame = rows(300)
    frame.loc[5, "q"] = np.nan
    dataset = ray.data.from_pandas([frame[:120], frame[120:]])
    found = dm.stream.ray_dataset(machine, dataset, outputs="proba", keep="id").to_pandas()
    got = found.sort_values("id").drop(columns="id").to_numpy()
    assert np.array_equal(got, machine.predict_proba(frame[NAMES]))
    with pytest.raises(dm.InputError, match="'s'"):
        dm.stream.ray_dataset(machine, dataset.drop_columns(["s"]))
    with pytest.raises(dm.InputError, match="read_parquet"):
        dm.stream.ray_dataset(machine, frame)


def test_a_broken_file_is_named_and_the_others_stay(machine, folder, cluster, tmp_path):
    os.mkdir(tmp_path / "in")
    rows(50).to_parquet(tmp_path / "in" / "a.parquet")
    whole = (tmp_path / "in" / "a.parquet").read_bytes()
    (tmp_path / "in" / "b.parquet").write_bytes(whole[:-20] + b"x" * 20)
    with pytest.raises(dm.DecisionMachinesError, match=r"b\.parquet"):
        dm.stream.score(machine, tmp_path / "in", tmp_path / "out", engine="ray")


@pytest.mark.parametrize("engine", ["ray", "spark"])
@pytest.mark.parametrize("timeout", [0, -1.0])
def test_what_is_no_time_is_refused(machine, folder, engine, timeout):
    with pytest.raises(dm.InputError, match="timeout"):
        dm.stream.score(machine, folder / "in", folder / "no", engine=engine, timeout=timeout)


def test_workers_that_show_nothing_are_given_up(machine, folder, cluster, monkeypatch):
    monkeypatch.setattr(ray_cluster, "_score", lambda *given: time.sleep(600))
    call = {"engine": "ray", "timeout": 1.0}
    with pytest.raises(dm.TimedOutError, match=r"0\.parquet and 3 more files are not done"):
        dm.stream.score(machine, folder / "in", folder / "stuck", **call)


def test_a_file_that_grows_is_a_sign(tmp_path):
    records = Records(str(tmp_path))
    signs = Signs(records, 0.2, "Ray")
    for n in range(4):
        (tmp_path / f".a{UNFINISHED}").write_bytes(b"x" * n)
        time.sleep(0.15)
        signs.look(False, ["a"])
    time.sleep(0.3)
    with pytest.raises(dm.TimedOutError, match=r"for 0\.2 s; a are not done"):
        signs.look(False, ["a"])
