"""Faults brought about for real: nothing lost, nothing doubled, no half file."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import subprocess
import time

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from stream.conftest import NAMES, command, expected, files, rows, run_dm

import decision_machines as dm

N_PARTS, N_ROWS = 10, 3000
WORDS = ("--predict", "--margin", "--keep", "id")
OPTIONS = {"outputs": ("predict", "margin"), "keep": "id"}


def write_parts(folder, n_parts=N_PARTS, n=N_ROWS, group=1000):
    frame = rows(n_parts * n)
    os.makedirs(folder)
    for i in range(n_parts):
        table = pa.Table.from_pandas(frame[n * i : n * i + n], preserve_index=False)
        pq.write_table(table, folder / f"{i}.parquet", row_group_size=group, compression="none")
    return frame


@pytest.fixture
def data(tmp_path):
    frame = write_parts(tmp_path / "in")
    return tmp_path, frame


def check_whole(machine, out, frame, n_parts=N_PARTS):
    assert files(out) == [f"{i}.parquet" for i in range(n_parts)]
    assert pyarrow.dataset.dataset(out).to_table().equals(expected(machine, frame))


def check_finished_parts_are_whole(machine, out, frame, n):
    """Whatever has its final name is complete."""
    for name in files(out):
        if name.endswith(".parquet"):
            i = int(name.split(".")[0])
            part = frame[n * i : n * i + n].reset_index(drop=True)
            assert pq.read_table(out / name).equals(expected(machine, part))
        else:
            assert name.startswith(".")
            assert name.endswith(".unfinished")


def test_killed_in_the_middle_and_run_again_nothing_is_lost_or_doubled(
    machine, model_file, tmp_path
):
    n_parts, n = 6, 2000
    frame = write_parts(tmp_path / "in", n_parts, n)
    out = tmp_path / "out"
    # Batches of a few rows make every part slow enough to be killed in its middle.
    call = ["predict", model_file, tmp_path / "in", "-o", out, *WORDS, "--rows-at-once", 20]
    rng = random.Random(0)
    kills_in_the_middle = 0
    for _ in range(2):
        finished = len([name for name in files(out) if name.endswith(".parquet")])
        process = subprocess.Popen(
            command(*call), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while process.poll() is None:
            found = files(out)
            if sum(name.endswith(".parquet") for name in found) > finished and any(
                name.endswith(".unfinished") for name in found
            ):
                time.sleep(rng.random() * 0.02)
                break
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        kills_in_the_middle += process.wait() == -signal.SIGKILL
        check_finished_parts_are_whole(machine, out, frame, n)
    assert kills_in_the_middle == 2
    finished = {name: os.stat(out / name).st_mtime_ns for name in files(out) if name[0] != "."}
    assert finished
    done = run_dm(*call, "--json")
    assert done.returncode == 0, done.stderr
    check_whole(machine, out, frame, n_parts)
    untouched = [
        name for name, mtime in finished.items() if os.stat(out / name).st_mtime_ns == mtime
    ]
    # At most the part that was killed between its name and its record is done again.
    assert len(untouched) >= len(finished) - 1


def test_what_a_killed_run_left_of_one_file_is_cleared_away_by_the_next(machine, model_file, data):
    folder, frame = data
    out = folder / "out.parquet"
    call = ["predict", model_file, folder / "in", "-o", out, *WORDS, "--rows-at-once", 5]
    process = subprocess.Popen(command(*call), stderr=subprocess.DEVNULL)
    # Begun, and so marked as being written; then stopped, or it might be done before we are.
    while process.poll() is None and not any(
        p.stat().st_size for p in folder.glob(".*.unfinished")
    ):
        time.sleep(0.001)
    process.send_signal(signal.SIGSTOP)
    # One that is still being written is let alone.
    dm.stream.score(machine, folder / "in", out, **OPTIONS)
    assert any(".unfinished" in name for name in files(folder))
    process.kill()
    process.wait()
    assert pq.read_table(out).equals(expected(machine, frame))
    dm.stream.score(machine, folder / "in", out, **OPTIONS)
    assert pq.read_table(out).equals(expected(machine, frame))
    assert not any(".unfinished" in name for name in files(folder))


def test_interrupted_by_the_keyboard_it_says_so_and_leaves_no_half_file(machine, model_file, data):
    folder, frame = data
    out = folder / "out"
    call = ["predict", model_file, folder / "in", "-o", out, *WORDS, "--rows-at-once", 1]  # slow
    process = subprocess.Popen(command(*call), stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not any(name[0] != "." for name in files(out)):
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    assert "Traceback" not in process.stderr.read()
    assert all(name.endswith(".parquet") for name in files(out))
    check_finished_parts_are_whole(machine, out, frame, N_ROWS)


@contextlib.contextmanager
def small_disk(folder, size):
    """A file system of a given size; yields whether it could be had."""
    os.makedirs(folder)
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True
    )
    try:
        yield mount.returncode == 0
    finally:
        if mount.returncode == 0:
            subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow"])
def test_a_full_disk_keeps_what_is_finished_and_no_half_file(machine, data, kind):
    folder, frame = data
    disk = folder / "disk"
    options = {**OPTIONS, "format": kind}
    dm.stream.score(machine, folder / "in", folder / "whole", **options)
    whole = {name: (folder / "whole" / name).read_bytes() for name in files(folder / "whole")}
    size = sum(map(len, whole.values())) * 6 // 10
    with small_disk(disk, size) as is_there:
        if not is_there:
            pytest.skip("mounting a small disk needs root; the limit on file sizes is tested below")
        with pytest.raises(dm.InputError, match="No space left"):
            dm.stream.score(machine, folder / "in", disk / "out", **options)
        found = files(disk / "out")
        assert 0 < len(found) < N_PARTS
        assert all((disk / "out" / name).read_bytes() == whole[name] for name in found)
        subprocess.run(["mount", "-o", "remount,size=20m", str(disk)], check=True)
        report = dm.stream.score(machine, folder / "in", disk / "out", **options)
        assert report.rows == len(frame)
        # The last finished file may have found no room for its record.
        assert report.found_finished >= len(found) - 1
        assert files(disk / "out") == sorted(whole)
        assert all((disk / "out" / name).read_bytes() == whole[name] for name in whole)


def test_a_full_disk_leaves_the_file_of_an_earlier_run_as_it_was(model_file, data):
    folder, _ = data
    out = folder / "out.parquet"
    out.write_text("of before")

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

    done = run_dm("predict", model_file, folder / "in", "-o", out, *WORDS, preexec_fn=limit)
    assert done.returncode == 2
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert out.read_text() == "of before"
    assert files(folder) == [*sorted(f"in/{i}.parquet" for i in range(N_PARTS)), "out.parquet"]


def test_a_column_of_the_wrong_type_in_part_7_of_10(machine, model_file, data):
    folder, frame = data
    out = folder / "out"
    broken = frame[6 * N_ROWS : 7 * N_ROWS].assign(q="text")
    broken.to_parquet(folder / "in" / "6.parquet", index=False)
    call = ["predict", model_file, folder / "in", "-o", out, *WORDS]
    done = run_dm(*call)
    assert done.returncode == 2
    assert "6.parquet, row group 0" in done.stderr.replace("\n", "")
    assert "column 'q' holds" in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
    assert files(out) == [f"{i}.parquet" for i in range(6)]
    check_finished_parts_are_whole(machine, out, frame, N_ROWS)
    times = [os.stat(out / name).st_mtime_ns for name in files(out)]
    frame[6 * N_ROWS : 7 * N_ROWS].to_parquet(folder / "in" / "6.parquet", index=False)
    report = dm.stream.score(machine, folder / "in", out, **OPTIONS)
    assert (report.found_finished, report.rows) == (6, len(frame))
    check_whole(machine, out, frame)
    assert times == [os.stat(out / f"{i}.parquet").st_mtime_ns for i in range(6)]


def damage(path, how):
    """Break a Parquet file in one of the ways in which files break."""
    content = bytearray(path.read_bytes())
    metadata = pq.ParquetFile(path).metadata
    column = metadata.row_group(1).column(metadata.schema.names.index("q"))
    start = column.dictionary_page_offset or column.data_page_offset
    if how == "cut":
        content = content[: len(content) // 2]
    elif how == "page header":
        content[start : start + 20] = b"\xff" * 20
    elif how == "footer":
        start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        content[start : start + 40] = bytes(40)
    elif how == "empty":
        content = b""
    elif how == "one bit":
        # Found by the page's checksum, which the part was written with.
        content[start + column.total_compressed_size // 2] ^= 16
    path.write_bytes(content)


@pytest.mark.parametrize("how", ["cut", "page header", "footer", "empty", "one bit"])
def test_a_corrupt_part_is_named_and_the_rest_stays(machine, data, how):
    folder, frame = data
    part, out = folder / "in" / "4.parquet", folder / "out"
    table = pa.Table.from_pandas(frame[4 * N_ROWS : 5 * N_ROWS], preserve_index=False)
    pq.write_table(table, part, row_group_size=1000, write_page_checksum=True, compression="none")
    whole = part.read_bytes()
    damage(part, how)
    where = r"4\.parquet, row group 1" if how in ("page header", "one bit") else r"4\.parquet"
    with pytest.raises(dm.InputError, match=where):
        dm.stream.score(machine, folder / "in", out, **OPTIONS)
    # Files are told apart before anything is written: an empty one stops the run at once.
    assert files(out) == ([] if how == "empty" else [f"{i}.parquet" for i in range(4)])
    part.write_bytes(whole)
    dm.stream.score(machine, folder / "in", out, **OPTIONS)
    check_whole(machine, out, frame)


def test_a_corrupt_arrow_file_is_named_with_its_batch(machine, tmp_path):
    table = pa.Table.from_pandas(rows(600).round(1), preserve_index=False)
    pa.feather.write_feather(table, tmp_path / "in.arrow", chunksize=200, compression="zstd")
    content = bytearray((tmp_path / "in.arrow").read_bytes())
    content[len(content) // 2 : len(content) // 2 + 200] = b"\xff" * 200
    (tmp_path / "in.arrow").write_bytes(content)
    with pytest.raises(dm.InputError, match=r"in\.arrow, record batch 1"):
        dm.stream.score(machine, tmp_path / "in.arrow", tmp_path / "out.parquet")
    assert files(tmp_path) == ["in.arrow"]


def test_data_that_changes_while_it_is_read_is_not_answered(machine, tmp_path, monkeypatch):
    write_parts(tmp_path / "in", 1)
    part = tmp_path / "in" / "0.parquet"

    def touch(rows, share):
        os.utime(part, ns=(1, 1))

    with pytest.raises(dm.InputError, match="changed while it was read"):
        dm.stream.score(machine, tmp_path / "in", tmp_path / "out", progress=touch)
    assert files(tmp_path / "out") == []


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="/proc tells the peak")
def test_memory_does_not_grow_with_the_data(model_file, tmp_path):
    """The peak of a process that streams ten times as much is about the same."""
    peaks = []
    for n in (100_000, 1_000_000):
        path = tmp_path / f"{n}.parquet"
        piece = pa.table({name: np.random.default_rng(0).random(100_000) for name in NAMES})
        with pq.ParquetWriter(path, piece.schema) as writer:
            for _ in range(n // 100_000):
                writer.write_table(piece)
        script = (
            "import sys, decision_machines as dm;"
            "machine = dm.load(sys.argv[1]);"
            "dm.stream.score(machine, sys.argv[2], sys.argv[3]);"
            "status = open('/proc/self/status').read().split();"
            "print(int(status[status.index('VmHWM:') + 1]) / 1024)"
        )
        call = [command()[0], "-c", script, model_file, path, tmp_path / "out.parquet"]
        done = subprocess.run(list(map(str, call)), capture_output=True, text=True, check=True)
        peaks.append(float(done.stdout))
    assert peaks[1] < peaks[0] + 60, peaks
