"""The native engine against every rival, on the rivals' own models, in several shapes of each.

For each workload the answers are compared first, to the bit. Then rivals and we take turns on fresh
rows; the median of the ratios of all rounds is kept, and their range: only ratios mean anything on
a shared machine. One thread is counted in processor time, several in wall time. Rivals that are
not installed, or whose answers are wrong, are named and left out.

    python benchmarks/engine.py --models FOLDER [--prepare] [--rows 100000] [--rounds 7]
        [--only lightgbm,forest] [--growth] [--python XGBoost=/path/to/python ...]

FOLDER keeps the trained models; --prepare trains those that it lacks and measures nothing. With
--python a rival runs by another interpreter, on the same rows, in the same rounds. Writes a table,
a JSON and a plot into benchmarks/results/; with --only the other workloads stay as they were.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import time
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402
from rivals import scikit_learn  # noqa: E402
from saved_models import classes_of, data, keep  # noqa: E402
from turns import compare  # noqa: E402

import decision_machines as dm  # noqa: E402

RESULTS = Path(__file__).parent / "results"
TRAIN_ROWS = 20_000


# -- models ---------------------------------------------------------------------------------------


def lightgbm(folder: Path, trees: int, leaves: int) -> None:
    import lightgbm as lgb

    X, y = data(TRAIN_ROWS, 0)
    params = {"num_leaves": leaves, "learning_rate": 0.05, "verbose": -1, "num_threads": 1}
    model = lgb.train(params, lgb.Dataset(X, y), trees)
    keep(folder, model, X, y, trees=trees, depth=int(np.ceil(np.log2(leaves))))


def xgboost(folder: Path, trees: int, depth: int) -> None:
    import xgboost as xgb

    X, y = data(TRAIN_ROWS, 0)
    params = {"max_depth": depth, "eta": 0.05, "nthread": 1, "verbosity": 0}
    keep(folder, xgb.train(params, xgb.DMatrix(X, y), trees), X, y, trees=trees, depth=depth)


def catboost(folder: Path, trees: int, depth: int) -> None:
    import catboost as cat

    X, y = data(TRAIN_ROWS, 0)
    model = cat.CatBoostRegressor(
        iterations=trees, depth=depth, thread_count=1, verbose=False, allow_writing_files=False
    )
    keep(folder, model.fit(X, y), X, y, trees=trees, depth=depth)


def hist(folder: Path, trees: int, leaves: int) -> None:
    from sklearn.ensemble import HistGradientBoostingRegressor

    X, y = data(TRAIN_ROWS, 0)
    model = HistGradientBoostingRegressor(
        max_iter=trees, max_leaf_nodes=leaves, early_stopping=False
    )
    keep(folder, model.fit(X, y), X, y, trees=trees, depth=5)


def forest(folder: Path, trees: int, depth: int, classes: int = 0, rows: int = 4600) -> None:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    X, y = data(rows, 0)
    kind = RandomForestClassifier if classes else RandomForestRegressor
    model = kind(trees, max_features=0.3, max_depth=depth or None, n_jobs=1, random_state=0)
    target = classes_of(y, classes) if classes else y
    keep(folder, model.fit(X, target), X, target, trees=trees, depth=depth)


BOOSTED = ["lleaves", "ONNX Runtime", "oneDAL", "YDF"]
WORKLOADS = {
    "lightgbm 500 x 64": (lightgbm, (500, 64), "LightGBM", BOOSTED),
    "lightgbm 1000 x 8": (lightgbm, (1000, 8), "LightGBM", ["ONNX Runtime", "oneDAL"]),
    "lightgbm 50 x 1000": (lightgbm, (50, 1000), "LightGBM", ["ONNX Runtime", "oneDAL"]),
    "xgboost 500 x depth 6": (xgboost, (500, 6), "XGBoost", BOOSTED[1:]),
    "xgboost 500 x depth 3": (xgboost, (500, 3), "XGBoost", ["ONNX Runtime", "oneDAL"]),
    "catboost 500 x depth 6": (catboost, (500, 6), "CatBoost", []),
    "hist gradient boosting 300 x 31": (hist, (300, 31), "scikit-learn", ["ONNX Runtime"]),
    "forest 100 x 2900": (forest, (100, 0), "scikit-learn", ["ONNX Runtime", "sklearnex"]),
    "forest 100 x depth 8": (forest, (100, 8), "scikit-learn", ["ONNX Runtime", "sklearnex"]),
    "forest 100, 2 classes": (forest, (100, 0, 2, 20_000), "scikit-learn", ["ONNX Runtime"]),
    "forest 100, 10 classes": (forest, (100, 0, 10, 8_000), "scikit-learn", ["ONNX Runtime"]),
    "forest 100 x 12600": (forest, (100, 0, 0, 20_000), "scikit-learn", ["ONNX Runtime"]),
    "one row, lightgbm 500 x 64": (lightgbm, (500, 64), "LightGBM", BOOSTED),
    "one row, xgboost 500 x depth 6": (xgboost, (500, 6), "XGBoost", BOOSTED[1:]),
    "one row, forest 100 x depth 8": (forest, (100, 8), "scikit-learn", BOOSTED[1:2]),
}


def folder_of(models: Path, workload: str) -> Path:
    made, size, _, _ = WORKLOADS[workload]
    return models / "-".join([made.__name__, *map(str, size)])


def machine_of(folder: Path):
    for file in ("model.txt", "model.ubj", "model.cbm"):
        if (folder / file).exists():
            return dm.load(folder / file)
    return dm.convert(scikit_learn(folder, 1, False).__self__)


# -- measuring ------------------------------------------------------------------------------------


def measure(name: str, models: Path, n_rows: int, rounds: int, pythons: dict) -> list[dict]:
    folder = folder_of(models, name)
    machine = machine_of(folder)
    _, _, source, others = WORKLOADS[name]
    is_one = name.startswith("one row")
    inputs = [data(300 if is_one else n_rows, seed)[0] for seed in range(1, rounds + 2)]
    ask = machine.margin
    if source == "scikit-learn":
        ask = machine.predict if machine.output.classes is None else machine.predict_proba
    return compare(
        name,
        lambda X: ask(X, n_threads=1),
        source,
        folder,
        others,
        inputs,
        batch=1 if is_one else None,
        pythons=pythons,
    )


def best_of(runs: dict, inputs: list, clock=time.process_time) -> dict[str, float]:
    """The least seconds of each run, taking turns over the inputs."""
    best = dict.fromkeys(runs, float("inf"))
    for given in inputs:
        for name, run in runs.items():
            start = clock()
            run(given)
            best[name] = min(best[name], clock() - start)
    return best


def growth(n_rows: int) -> list[dict]:
    """Cost against trees, leaves, features, batch and threads, one at a time."""
    import lightgbm as lgb

    found = []

    def measure(what: str, value: int, machine, X, n_threads: int = 1) -> None:
        machine.margin(X[:64])
        clock = time.process_time if n_threads == 1 else time.perf_counter
        best = best_of({"ours": lambda X: machine.margin(X, n_threads=n_threads)}, [X] * 5, clock)
        cost = best["ours"] / len(X) * 1e6
        found.append({"against": what, "value": value, "us_per_row": cost})
        print(f"  {what} {value}: {cost:.3f} us/row")

    def train(n_trees: int, n_leaves: int, X, y):
        params = {"num_leaves": n_leaves, "min_data_in_leaf": 1, "verbose": -1, "num_threads": 2}
        return lgb.train(params, lgb.Dataset(X, y), n_trees)

    X, y = data(20_000, 0)
    fresh = data(n_rows, 1)[0]
    model = train(500, 64, X, y)
    for n_trees in (50, 100, 200, 500):
        machine = dm.convert(model.model_to_string(num_iteration=n_trees))
        measure("trees", n_trees, machine, fresh)
    for size in (1, 10, 100, 1000, 10_000, n_rows):
        measure("batch", size, machine, fresh[:size])
    for n_threads in (1, 2):
        measure("threads", n_threads, machine, fresh, n_threads)
    for n_leaves in (8, 32, 64, 128, 256, 512, 1024, 4096):
        measure("leaves", n_leaves, dm.convert(train(50, n_leaves, X, y)), fresh)
    rng = np.random.default_rng(2)
    for n_features in (10, 50, 200, 1000):
        wide = rng.standard_normal((5000, n_features), dtype=np.float32)
        machine = dm.convert(train(100, 64, wide, wide[:, :10].sum(axis=1)))
        measure("features", n_features, machine, np.resize(wide, (min(n_rows, 20_000), n_features)))
    return found


def plot(curves: list[dict]) -> None:
    """Cost against size."""
    try:
        plt = importlib.import_module("matplotlib.pyplot")
    except ImportError as error:
        print(f"no plot: {error}")
        return
    plt.switch_backend("Agg")
    kinds = list(dict.fromkeys(point["against"] for point in curves))
    figure, axes = plt.subplots(1, len(kinds), figsize=(3 * len(kinds), 3), sharey=True)
    for ax, kind in zip(np.atleast_1d(axes), kinds, strict=True):
        own = [point for point in curves if point["against"] == kind]
        ax.loglog([p["value"] for p in own], [p["us_per_row"] for p in own], "o-")
        values = [p["value"] for p in own]
        ax.set_xticks(values, [f"{v:g}" if v < 10_000 else f"{v / 1000:g}k" for v in values])
        ax.minorticks_off()
        ax.tick_params(axis="x", rotation=45)
        ax.set_xlabel(kind)
        ax.grid(axis="y", alpha=0.4)
    np.atleast_1d(axes)[0].set_ylabel("microseconds per row")
    figure.tight_layout()
    figure.savefig(RESULTS / "engine-growth.png", dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", type=Path, default=Path("build/benchmark-models"))
    parser.add_argument("--prepare", action="store_true", help="train, and measure nothing")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="words of the workloads to run")
    parser.add_argument("--growth", action="store_true", help="also cost against size")
    parser.add_argument(
        "--python", action="append", default=[], metavar="RIVAL=PATH", help="its interpreter"
    )
    asked = parser.parse_args()
    words = [word for word in asked.only.split(",") if word]
    wanted = [name for name in WORKLOADS if not words or any(word in name for word in words)]
    for name in wanted:
        made, size, _, _ = WORKLOADS[name]
        if not folder_of(asked.models, name).exists():
            made(folder_of(asked.models, name), *size)
    if asked.prepare:
        return
    pythons = dict(pair.split("=", 1) for pair in asked.python)
    where = RESULTS / "engine.json"
    kept = json.loads(where.read_text()) if where.exists() else {"rows": [], "growth": []}
    rows = [row for row in kept["rows"] if "lowest" in row and row["workload"] in WORKLOADS]
    for name in wanted:
        told = measure(name, asked.models, asked.rows, asked.rounds, pythons)
        rows = [row for row in rows if row["workload"] != name] + told
        rows.sort(key=lambda row: list(WORKLOADS).index(row["workload"]))
        write(where, rows, kept["growth"])  # what was measured stays if a later one is stopped
    if asked.growth:
        curves = growth(asked.rows)
        write(where, rows, curves)
        plot(curves)


def write(where: Path, rows: list[dict], curves: list[dict]) -> None:
    found = {"engine": dm.engine_info(), "rows": rows, "growth": curves}
    where.write_text(json.dumps(found, indent=1) + "\n")
    lines = ["| workload | engine | us per row | ratio | range |", "|---|---|---|---|---|"]
    lines += [
        f"| {r['workload']} | {r['rival']} {r['release']} | {r['us_per_row']:.3f} "
        f"| {r['ratio']:.2f} | {r['lowest']:.2f} to {r['highest']:.2f} |"
        for r in rows
    ]
    where.with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
