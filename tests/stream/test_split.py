"""One large Parquet file, cut between row groups: nothing lost, nothing doubled."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stream.conftest import expected, rows

import decision_machines as dm
from decision_machines.stream.parts import find_parts, split_parts


@settings(max_examples=20, deadline=None)
@given(n=st.integers(0, 300), group=st.integers(1, 120), piece=st.integers(1, 400))
def test_pieces_hold_every_row_once_and_in_order(tmp_path_factory, n, group, piece):
    path = tmp_path_factory.mktemp("data") / "in.parquet"
    pq.write_table(pa.table({"x": range(n)}), path, row_group_size=group)
    pieces = split_parts(find_parts(path), piece)
    file = pq.ParquetFile(path)
    found = []
    for part in pieces:
        groups = range(*(part.groups or (0, file.num_row_groups)))
        got = file.read_row_groups(list(groups))["x"].to_pylist() if groups else []
        assert len(groups) <= 1 or len(got) <= piece
        found += got
    assert found == list(range(n))
    assert sum(part.share for part in pieces) == pytest.approx(1.0)
    assert len({part.name for part in pieces}) == len(pieces)


def test_a_split_file_has_the_answers_of_the_whole(machine, tmp_path):
    frame = rows(500)
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "in.parquet", row_group_size=70)
    told = []
    report = dm.stream.score(
        machine,
        tmp_path / "in.parquet",
        tmp_path / "out",
        outputs=("predict", "margin"),
        keep="id",
        split_rows=150,
        progress=lambda rows, share: told.append((rows, share)),
    )
    names = sorted(os.listdir(tmp_path / "out"))
    assert names == [f"in.{i:05d}.parquet" for i in range(4)]
    found = pa.concat_tables([pq.read_table(tmp_path / "out" / name) for name in names])
    assert found.equals(expected(machine, frame))
    assert (report.rows, report.parts) == (500, 4)
    assert told[-1] == (500, pytest.approx(1.0))


def test_a_run_stopped_within_a_file_goes_on_there(machine, tmp_path):
    frame = rows(400)
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "in.parquet", row_group_size=100)

    def stop(rows, share):
        if share > 0.6:
            raise KeyboardInterrupt

    call = (machine, tmp_path / "in.parquet", tmp_path / "out")
    with pytest.raises(KeyboardInterrupt):
        dm.stream.score(*call, keep="id", split_rows=100, progress=stop)
    report = dm.stream.score(*call, keep="id", split_rows=100)
    assert 0 < report.found_finished < 4
    ids = [
        i
        for name in sorted(os.listdir(tmp_path / "out"))
        for i in pq.read_table(tmp_path / "out" / name)["id"].to_pylist()
    ]
    assert ids == list(range(400))


def test_dask_shares_out_one_file(machine, tmp_path):
    pytest.importorskip("dask.dataframe")
    frame = rows(300)
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "in.parquet", row_group_size=100)
    answers = dm.stream.score(
        machine, tmp_path / "in.parquet", engine="dask", keep="id", split_rows=100
    )
    assert answers.npartitions == 3
    found = answers.compute(scheduler="synchronous")
    assert found["id"].tolist() == list(range(300))
    assert found["prediction"].tolist() == machine.predict(frame.drop(columns="id")).tolist()


def test_pieces_of_no_rows_are_refused(machine, tmp_path):
    rows(10).to_parquet(tmp_path / "in.parquet")
    with pytest.raises(dm.InputError, match="at least 1"):
        dm.stream.score(machine, tmp_path / "in.parquet", split_rows=0)
