"""Streaming a Parquet file through a machine: memory, speed, and how both grow with the rows.

Three files of 20 float64 features are written (that is not timed), in row groups of a million, and
scored in a process of its own each. Limits: the largest, 20 million rows, in under 500 MB, at 60 %
or more of the speed at which the engine scores rows that lie in memory.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import decision_machines as dm

N_FEATURES = 20
GROUP = 1_000_000
LIMIT_MB = 500
LIMIT_SHARE = 0.6

WORKER = """
import json, sys, time
import decision_machines as dm
machine = dm.load(sys.argv[1])
report = dm.stream.score(machine, sys.argv[2], sys.argv[3])
# Not ru_maxrss, which starts at the size of the process that started this one.
lines = open("/proc/self/status").read().splitlines()
peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
print(json.dumps({"seconds": report.seconds, "cpu": time.process_time(), "peak": peak}))
"""


def train(folder: Path, trees: int, leaves: int) -> Path:
    import lightgbm

    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, N_FEATURES))
    y = X[:, :10].sum(axis=1) ** 2 + rng.standard_normal(len(X))
    parameters = {"num_leaves": leaves, "verbose": -1, "min_data_in_leaf": 5, "num_threads": 2}
    names = [f"f{i}" for i in range(N_FEATURES)]
    booster = lightgbm.train(parameters, lightgbm.Dataset(X, y, feature_name=names), trees)
    booster.save_model(folder / "model.txt")
    return folder / "model.txt"


def write(path: Path, n_rows: int) -> None:
    """Rows that do not compress, new ones in every row group."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    schema = pa.schema([(f"f{i}", pa.float64()) for i in range(N_FEATURES)])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n_rows, GROUP):
            n = min(GROUP, n_rows - start)
            columns = [rng.standard_normal(n) for _ in range(N_FEATURES)]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def in_memory(machine: dm.DecisionMachine, seconds: float = 4.0) -> float:
    """Rows/s of `predict` on a million rows that lie in memory, over some seconds.

    The mean, as the stream's speed is one: others may be at work on this machine.
    """
    X = np.random.default_rng(2).standard_normal((GROUP, N_FEATURES))
    machine.predict(X)
    times, start = 0, time.perf_counter()
    while time.perf_counter() < start + seconds:
        machine.predict(X)
        times += 1
    return GROUP * times / (time.perf_counter() - start)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=20_000_000, help="of the largest file")
    options.add_argument("--trees", type=int, default=200)
    options.add_argument("--leaves", type=int, default=64)
    options.add_argument("--times", type=int, default=1, help="runs of each, whose mean counts")
    options.add_argument("--folder", help="where the data is written, and removed again")
    given = options.parse_args()
    failed = False
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        model = train(folder, given.trees, given.leaves)
        machine = dm.load(model)
        print(f"{machine!r}; {dm.engine_info()}")
        for n_rows in (given.rows // 10, given.rows // 3, given.rows):
            data = folder / "data.parquet"
            write(data, n_rows)
            call = [sys.executable, "-c", WORKER, model, data, folder / "out.parquet"]
            found: list[dict] = []
            speeds = []
            for _ in range(given.times):
                speeds.append(in_memory(machine))
                done = subprocess.run(
                    [str(word) for word in call], check=True, capture_output=True, text=True
                )
                found.append(json.loads(done.stdout))
                speeds.append(in_memory(machine))
            speed = sum(speeds) / len(speeds)
            seconds = sum(run["seconds"] for run in found) / given.times
            peak = max(run["peak"] for run in found)
            share = n_rows / seconds / speed
            failed |= peak > LIMIT_MB or (n_rows == given.rows and share < LIMIT_SHARE)
            print(
                f"{n_rows / 1e6:5.1f} M rows, {os.path.getsize(data) / 1e9:.2f} GB: "
                f"{seconds:6.2f} s ({min(run['cpu'] for run in found):.2f} s of processors), "
                f"{n_rows / seconds / 1e6:.2f} M rows/s = {share:.0%} of the {speed / 1e6:.2f} M "
                f"in memory (limit {LIMIT_SHARE:.0%}), peak {peak:.0f} MB (limit {LIMIT_MB} MB)",
                flush=True,
            )
    sys.exit(failed)


if __name__ == "__main__":
    main()
