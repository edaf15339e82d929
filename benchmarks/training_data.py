"""The real data that the training benchmarks read, from the folder given as --data.

Every function gives (X, y): X float64, y integer codes 0..K-1 for classification and float64 for
regression. Splits belong to the protocols, in the benchmark that uses them.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np

# The name in the published table, and its file; the last column is the label.
SMALL = {
    "Balance Scale": "balance-scale.data",
    "Banknote Auth": "data_banknote_authentication.txt",
    "Blood Transfusion": "blood-transfusion.data",
    "Acute Inflam. 1": "acute-inflammations-1.data",
    "Acute Inflam. 2": "acute-inflammations-2.data",
    "Car Evaluation": "car.data",
    "Breast Cancer": "breast-cancer-wisconsin.data",
    "Avila Bible": "avila-tr.txt.gz",
    "Wine Quality Red": "winequality-red.csv",
    "Wine Quality White": "winequality-white.csv.gz",
    "Dry Bean": "drybean_data.txt.gz",
    "Climate Crashes": "climate-crashes.data.gz",
    "Conn. Sonar": "sonar.all-data",
    "Optical Recognition": "optdigits.tra.gz",
}


def small(data: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """A set of the table of small oblique trees."""
    rows = np.loadtxt(data / "dtsemnet_small" / SMALL[name], delimiter=",", dtype=str)
    return rows[:, :-1].astype(float), codes(rows[:, -1])


def pmlb(data: Path, name: str, *, classes: bool) -> tuple[np.ndarray, np.ndarray]:
    """A set of the Penn machine learning benchmarks; its column `target` is y."""
    path = data / "pmlb" / f"{name}.tsv.gz"
    with gzip.open(path, "rt") as file:
        names = file.readline().rstrip("\n").split("\t")
        rows = np.loadtxt(file, delimiter="\t", ndmin=2)
    target = names.index("target")
    y = rows[:, target]
    return np.delete(rows, target, axis=1), codes(y) if classes else y


def letter(data: Path) -> tuple[np.ndarray, np.ndarray]:
    """Letter recognition in UCI's own order: 15 000 rows to train, 5 000 to test."""
    path = data / "letter_uci" / "letter-recognition.data.gz"
    rows = np.loadtxt(path, delimiter=",", dtype=str, skiprows=1)
    return rows[:, 1:].astype(float), codes(rows[:, 0])


def satimage(data: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """UCI's training set (4 435 rows) and test set (2 000), as X, y, X_test, y_test."""
    parts = [np.loadtxt(data / "satimage_uci" / f"sat.{part}.gz") for part in ("trn", "tst")]
    y = codes(np.concatenate([part[:, -1] for part in parts]))
    n = len(parts[0])
    return parts[0][:, :-1], y[:n], parts[1][:, :-1], y[n:]


def mnist(data: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """X, y, X_test, y_test; pixels from 0 to 1."""

    def read(name: str, header: int) -> np.ndarray:
        with gzip.open(data / "mnist" / f"{name}-ubyte.gz") as file:
            return np.frombuffer(file.read(), np.uint8, offset=header)

    found = []
    for part in ("train", "t10k"):
        found.append(read(f"{part}-images-idx3", 16).reshape(-1, 784) / 255.0)
        found.append(read(f"{part}-labels-idx1", 8).astype(np.int64))
    return tuple(found)


def fixed_splits(data: Path, name: str) -> list[dict[str, np.ndarray]]:
    """The five published splits of "abalone" or "cpuactiv", as arrays by their own names."""
    paths = sorted((data / "dgt_regression" / name).glob("*.npz"))
    return [dict(np.load(path, allow_pickle=True)) for path in paths]


def ailerons(data: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """X, y, X_test, y_test as published."""
    folder = data / "dtsemnet_small" / "ailerons"
    parts = [np.loadtxt(folder / f"ailerons.{part}.gz", delimiter=",") for part in ("data", "test")]
    return parts[0][:, :-1], parts[0][:, -1], parts[1][:, :-1], parts[1][:, -1]


def one_hot(X: np.ndarray) -> np.ndarray:
    """A column for each value of each column."""
    return np.concatenate([np.unique(x)[None, :] == x[:, None] for x in X.T], axis=1).astype(float)


def codes(labels: np.ndarray) -> np.ndarray:
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def finished(resume: Path | None) -> list[dict]:
    """The rows that an earlier run appended to `resume`."""
    if resume is None or not resume.exists():
        return []
    return [json.loads(line) for line in resume.read_text().splitlines() if line.endswith("}")]


def append(resume: Path | None, row: dict) -> None:
    """A finished cell, kept at once: what follows may be interrupted."""
    if resume is not None:
        resume.parent.mkdir(parents=True, exist_ok=True)
        with resume.open("a") as file:
            file.write(json.dumps(row) + "\n")
