"""A small model with names, its machine, and rows for it."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.ensemble import RandomForestClassifier

import decision_machines as dm

NAMES = ["p", "q", "r", "s"]
LABELS = np.array(["amber", "blue", "cyan"])


def rows(n: int, seed: int = 0) -> pd.DataFrame:
    X = np.random.default_rng(seed).standard_normal((n, len(NAMES)))
    frame = pd.DataFrame(X, columns=NAMES)
    frame.insert(0, "id", np.arange(n))
    return frame


@pytest.fixture(scope="session")
def forest():
    frame = rows(500, seed=1)
    y = LABELS[(frame["p"] + frame["q"] > 0).astype(int) + (frame["r"] > 1)]
    return RandomForestClassifier(8, random_state=0).fit(frame[NAMES], y)


@pytest.fixture(scope="session")
def machine(forest):
    return dm.convert(forest)


@pytest.fixture(scope="session")
def model_file(machine, tmp_path_factory):
    """Of our own kind: a process that reads it imports no other library."""
    path = tmp_path_factory.mktemp("model") / "forest.dm"
    machine.save(path)
    return path


@pytest.fixture(scope="session")
def forest_file(forest, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "forest.pkl"
    path.write_bytes(pickle.dumps(forest))
    return path


def expected(machine, frame: pd.DataFrame, keep=("id",)) -> pa.Table:
    """Predictions and margins with the kept columns, as they should come out."""
    X = frame[NAMES]
    columns = {name: frame[name] for name in keep}
    columns["prediction"] = machine.predict(X)
    for i, label in enumerate(LABELS):
        columns[f"margin_{label}"] = machine.margin(X)[:, i]
    return pa.table(columns)


def run_dm(*arguments, **options):
    return subprocess.run(command(*arguments), capture_output=True, text=True, **options)


def command(*arguments):
    return [sys.executable, "-m", "decision_machines.cli", *map(str, arguments)]


def files(folder) -> list[str]:
    """All files of a folder, hidden ones too."""
    found = []
    for root, _, names in os.walk(folder):
        found += [os.path.relpath(os.path.join(root, name), folder) for name in names]
    return sorted(found)
