"""Shapes that nobody tunes for: tiny and shallow ensembles, wide and sparse rows, many outputs.

Every model is measured against the library that made it and all rivals that read it, on one thread
and on two, taking turns on fresh rows; answers are compared to the bit first. What is not three
times as fast as each of them is named at the end.

    python benchmarks/shapes.py --models FOLDER [--prepare] [--only csr,linear] [--rounds 7]
        [--python lleaves=/path/to/python ...]

FOLDER keeps the trained models; --prepare trains those that it lacks and measures nothing. Writes
benchmarks/results/shapes.json; with --only the other shapes stay as they were measured before.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402
from rivals import scikit_learn  # noqa: E402
from saved_models import classes_of, data, keep  # noqa: E402
from turns import compare  # noqa: E402

import decision_machines as dm  # noqa: E402

RESULTS = Path(__file__).parent / "results"
WANTED = 3.0
OTHERS = ["ONNX Runtime", "oneDAL", "lleaves", "Treelite"]


def lightgbm(folder: Path, X, y, trees: int, leaves: int, **params) -> None:
    import lightgbm as lgb

    params = {"num_leaves": leaves, "learning_rate": 0.05, "verbose": -1, "num_threads": 1} | params
    keep(folder, lgb.train(params, lgb.Dataset(X, y), trees), X, y, trees=trees, depth=6)


def sparse_rows(n_rows: int, seed: int):
    """Rows of 100 000 features, of which 100 are not zero; the first 200 tell the target."""
    rng = np.random.default_rng(seed)
    near = rng.integers(0, 200, (n_rows, 20))
    far = rng.integers(200, 100_000, (n_rows, 80))
    at = np.sort(np.concatenate([near, far], axis=1), axis=1)
    values = rng.standard_normal(at.shape)
    rows = np.repeat(np.arange(n_rows), at.shape[1])
    X = sp.csr_matrix((values.ravel(), (rows, at.ravel())), (n_rows, 100_000))
    return X, np.asarray(X[:, :200].sum(axis=1)).ravel() + rng.standard_normal(n_rows)


def tiny(folder: Path) -> None:
    lightgbm(folder, *data(5000, 0), 10, 8)


def shallow(folder: Path) -> None:
    lightgbm(folder, *data(5000, 0), 3000, 4)


def wide(folder: Path) -> None:
    lightgbm(folder, *data(2000, 0, 2000), 200, 31, feature_fraction=0.2)


def sparse(folder: Path) -> None:
    lightgbm(folder, *sparse_rows(5000, 0), 100, 31)


def classes(folder: Path) -> None:
    X, y = data(5000, 0)
    lightgbm(folder, X, classes_of(y, 100), 10, 15, objective="multiclass", num_class=100)


def vectors(folder: Path) -> None:
    from sklearn.ensemble import RandomForestRegressor

    X, y = data(5000, 0)
    rng = np.random.default_rng(9)
    Y = y[:, None] * rng.standard_normal(50) + X @ rng.standard_normal((50, 50))
    model = RandomForestRegressor(50, max_leaf_nodes=64, max_features=0.3, n_jobs=1, random_state=0)
    keep(folder, model.fit(X, Y), X, y, trees=50, depth=0)


def linear(folder: Path) -> None:
    lightgbm(folder, *data(5000, 0), 100, 31, linear_tree=True)


def extra(folder: Path) -> None:
    from sklearn.ensemble import ExtraTreesRegressor

    X, y = data(5000, 0)
    model = ExtraTreesRegressor(50, max_leaf_nodes=64, n_jobs=1, random_state=0)
    keep(folder, model.fit(X, y), X, y, trees=50, depth=0)


def middle(folder: Path) -> None:
    lightgbm(folder, *data(5000, 0), 200, 64)


SHAPES = {
    "10 trees of 8 leaves": (tiny, {}),
    "10 trees of 8 leaves, one row a call": (tiny, {"batch": 1, "rows": 1000}),
    "10 trees of 8 leaves, 100 rows a call": (tiny, {"batch": 100}),
    "3 000 trees of 4 leaves": (shallow, {"rows": 4000}),
    "3 000 trees of 4 leaves, one row a call": (shallow, {"batch": 1, "rows": 200}),
    "2 000 features": (wide, {"rows": 2000, "features": 2000}),
    "2 000 features, one row a call": (wide, {"batch": 1, "rows": 200, "features": 2000}),
    "CSR rows of 100 000 features": (sparse, {"rows": 5000, "csr": True}),
    "100 classes": (classes, {"rows": 5000}),
    "vector leaves of 50 outputs": (vectors, {}),
    "exit leaves": (middle, {"leaves": True}),
    "linear leaves": (linear, {}),
    "linear leaves, one row a call": (linear, {"batch": 1, "rows": 300}),
    "extra trees of 64 leaves": (extra, {}),
}


def measure(name: str, folder: Path, rounds: int, pythons: dict[str, str]) -> list[dict]:
    made, how = SHAPES[name]
    model = folder / made.__name__
    rows, leaves = how.get("rows", 20_000), how.get("leaves", False)
    if how.get("csr"):
        inputs = [sparse_rows(rows, seed)[0] for seed in range(1, rounds + 2)]
    else:
        inputs = [data(rows, seed, how.get("features", 50))[0] for seed in range(1, rounds + 2)]
    if (model / "model.txt").exists():
        machine, source = dm.load(model / "model.txt"), "LightGBM"
    else:
        own = scikit_learn(model, 1, False).__self__
        machine, source = dm.convert(own), "scikit-learn"
    others = [] if how.get("csr") else OTHERS
    if leaves:
        others = ["Treelite"]
    told = []
    for threads in (1, 2):
        ask = machine.source_leaves if leaves else machine.margin
        if source == "scikit-learn":
            ask = machine.predict
        told += compare(
            name,
            lambda X, ask=ask, threads=threads: ask(X, n_threads=threads),
            source,
            model,
            others,
            inputs,
            threads=threads,
            batch=how.get("batch"),
            leaves=leaves,
            pythons=pythons,
        )
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", type=Path, required=True, help="folder that keeps the models")
    parser.add_argument("--prepare", action="store_true", help="train, and measure nothing")
    parser.add_argument("--only", default="", help="words of the shapes to run")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--python", action="append", default=[], metavar="RIVAL=PATH", help="its interpreter"
    )
    asked = parser.parse_args()
    words = [word for word in asked.only.split(",") if word]
    wanted = [name for name in SHAPES if not words or any(word in name for word in words)]
    for name in wanted:
        made = SHAPES[name][0]
        if not (asked.models / made.__name__).exists():
            made(asked.models / made.__name__)
    if asked.prepare:
        return
    pythons = dict(pair.split("=", 1) for pair in asked.python)
    path = RESULTS / "shapes.json"
    for name in wanted:
        told = measure(name, asked.models, asked.rounds, pythons)
        before = json.loads(path.read_text())["rows"] if path.exists() else []
        rows = [row for row in before if row["workload"] != name] + told
        rows.sort(key=lambda row: list(SHAPES).index(row["workload"]))
        path.write_text(json.dumps({"engine": dm.engine_info(), "rows": rows}, indent=1) + "\n")
    rows = json.loads(path.read_text())["rows"]
    near = [row for row in rows if row["rival"] != "ours" and row["ratio"] < WANTED]
    for row in near:
        print(
            f"within {WANTED:g} ×: {row['workload']}, {row['threads']} thread(s), "
            f"{row['rival']} {row['ratio']:.2f} ×"
        )


if __name__ == "__main__":
    main()
