"""Engines take turns on fresh rows: medians of the ratios of every round, and their range."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import rivals
import scipy.sparse as sp

if TYPE_CHECKING:
    from collections.abc import Callable


OWN_MODELS = {"YDF", "sklearnex"}
"""Rivals that read no other model and run one that they trained: their answers are not ours."""


class Absent(Exception):
    """A rival that cannot take part, and why."""


def save_rows(X: Any) -> str:
    """A file of these rows, for processes that run beside this one."""
    kind = ".npz" if sp.issparse(X) else ".npy"
    handle, path = tempfile.mkstemp(kind)
    os.close(handle)
    sp.save_npz(path, X) if sp.issparse(X) else np.save(path, X)
    return path


class Here:
    """A function of this process."""

    def __init__(self, run: Callable, threads: int, release: str = "") -> None:
        self.run, self.threads, self.release = run, threads, release

    def answers(self, rows: str) -> np.ndarray:
        return np.asarray(self.run(rivals.rows_of(rows)))

    def seconds(self, rows: str, batch: int | None) -> float:
        return rivals.seconds(self.run, rivals.rows_of(rows), batch, self.threads)


class There:
    """A rival in a process of its own, by this interpreter or another."""

    def __init__(self, rival: str, model: Path, threads: int, leaves: bool, python: str) -> None:
        self.process = subprocess.Popen(
            [python, str(Path(__file__).with_name("rivals.py"))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=os.environ | {"OMP_NUM_THREADS": str(threads)},
        )  # fmt: skip
        self.threads = threads
        asked = {"do": "load", "rival": rival, "model": str(model), "threads": threads}
        self.release = self._ask(asked | {"leaves": leaves})["release"]

    def _ask(self, asked: dict) -> dict:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        told = json.loads(line) if line else {"error": f"ended with {self.process.wait()}"}
        if "error" in told:
            self.close()
            raise Absent(told["error"])
        return told

    def answers(self, rows: str) -> np.ndarray:
        with tempfile.NamedTemporaryFile(suffix=".npy") as file:
            asked = {"do": "run", "rows": rows, "batch": None, "threads": self.threads}
            self._ask(asked | {"save": file.name})
            return np.load(file.name)

    def seconds(self, rows: str, batch: int | None) -> float:
        asked = {"do": "run", "rows": rows, "batch": batch, "threads": self.threads}
        return self._ask(asked)["seconds"]

    def close(self) -> None:
        self.process.stdin.close()  # type: ignore[union-attr]
        self.process.kill()
        self.process.wait()


def take_turns(
    runners: dict[str, Here | There], inputs: list[str], batch: int | None
) -> dict[str, list[float]]:
    """Seconds of every runner by round. The first input warms up and is not counted."""
    took: dict[str, list[float]] = {name: [] for name in runners}
    for at, rows in enumerate(inputs):
        for name, runner in list(runners.items()):
            try:
                found = runner.seconds(rows, batch)
            except Absent as error:
                print(f"    {name} gave up: {error}")
                del runners[name], took[name]
                continue
            if at:
                took[name].append(found)
    return took


def _leave_out_if_wrong(
    runners: dict[str, Here | There], rival: str, expected: np.ndarray, rows: str
) -> None:
    """Some converters lose a part of a model in silence, and float32 may lose a digit."""
    runner = runners[rival]
    try:
        found = runner.answers(rows)
        is_close = (
            found.size == expected.size
            and np.isclose(found.reshape(expected.shape), expected, rtol=1e-3, atol=1e-3).mean()
        )  # a row on the other side of a threshold is far off
        if is_close < 0.99:
            raise Absent(f"its answers are not {'as many' if is_close is False else 'close'}")
    except Absent as error:
        print(f"    {rival} left out: {error}", flush=True)
        if isinstance(runner, There):
            runner.close()
        del runners[rival]


def compare(
    name: str,
    ours: Callable,
    source: str,
    model: Path,
    others: list[str],
    inputs: list[Any],
    *,
    threads: int = 1,
    batch: int | None = None,
    leaves: bool = False,
    pythons: dict[str, str] | None = None,
    same: Callable[[np.ndarray], np.ndarray] = lambda answers: answers,
) -> list[dict]:
    """We, a model's own library, and others that read it: a dictionary for each.

    `same` makes of the source's answers what ours must be equal to. `pythons` names an interpreter
    for some of the rivals.
    """
    print(f"{name}, {threads} thread{'s' if threads > 1 else ''}:", flush=True)
    paths = [save_rows(X) for X in inputs]
    runners: dict[str, Here | There] = {"ours": Here(ours, threads)}
    is_equal = False
    try:
        for rival in (source, *others):
            python = (pythons or {}).get(rival, sys.executable)
            try:
                runners[rival] = There(rival, model, threads, leaves, python)
            except Absent as error:
                print(f"    {rival} left out: {error}", flush=True)
        # On one thread: some libraries add in another order on several.
        alone = There(source, model, 1, leaves, (pythons or {}).get(source, sys.executable))
        expected = alone.answers(paths[0])
        alone.close()
        found = runners["ours"].answers(paths[0])
        is_equal = bool(np.array_equal(found, same(expected).reshape(found.shape)))
        print(f"    equal to {source} to the bit: {is_equal}", flush=True)
        for rival in [name for name in others if name in runners and name not in OWN_MODELS]:
            _leave_out_if_wrong(runners, rival, expected, paths[0])
        took = take_turns(runners, paths, batch)
        releases = {rival: runner.release for rival, runner in runners.items()}
    finally:
        for runner in runners.values():
            if isinstance(runner, There):
                runner.close()
        for path in paths:
            Path(path).unlink()
    n_rows = inputs[0].shape[0]
    own = np.array(took["ours"])
    told = []
    for rival, times in took.items():
        ratio = np.array(times) / own
        row = {
            "workload": name, "threads": threads, "rival": rival, "release": releases[rival],
            "us_per_row": float(np.median(times)) / n_rows * 1e6, "ratio": float(np.median(ratio)),
            "lowest": float(ratio.min()), "highest": float(ratio.max()), "equal": is_equal,
        }  # fmt: skip
        told.append(row)
        print(
            f"    {rival:<14} {row['us_per_row']:10.3f} µs a row   {row['ratio']:7.2f} × "
            f"({row['lowest']:.2f} to {row['highest']:.2f})",
            flush=True,
        )
    return told
