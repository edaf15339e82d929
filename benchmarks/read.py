"""How long it takes to read a model: text and JSON files, and a fitted forest.

Models are trained on random data first (that is not timed); each reading is the best of three.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import decision_machines as dm


def best(call, times: int = 3) -> float:
    found = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


def lightgbm_text(folder: Path, X, y) -> Path:
    import lightgbm

    parameters = {"num_leaves": 64, "verbose": -1, "min_data_in_leaf": 5, "num_threads": 2}
    booster = lightgbm.train(parameters, lightgbm.Dataset(X, y), 500)
    path = folder / "model.txt"
    booster.save_model(path)
    return path


def xgboost_json(folder: Path, X, y) -> Path:
    import xgboost

    parameters = {"max_depth": 8, "nthread": 2, "min_child_weight": 0}
    booster = xgboost.train(parameters, xgboost.DMatrix(X, y), 1000)
    path = folder / "model.json"
    booster.save_model(path)
    return path


def forest(X, y):
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(100, max_leaf_nodes=3000, n_jobs=2, random_state=0).fit(X, y)


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 50)).astype(np.float32)
    y = X[:, :10].sum(axis=1) ** 2 + rng.standard_normal(len(X))
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text, json = lightgbm_text(folder, X, y), xgboost_json(folder, X, y)
        model = forest(X, y)
        for what, limit, call in (
            ("LightGBM text, 500 trees × 64 leaves", 0.3, lambda: dm.load(text)),
            ("XGBoost JSON, 1000 trees of depth 8", 2.0, lambda: dm.load(json)),
            ("scikit-learn forest, 100 × 3000 leaves", 1.0, lambda: dm.convert(model)),
        ):
            seconds = best(call)
            failed |= seconds > limit
            print(f"{what}: {seconds:.3f} s (limit {limit} s), {call()!r}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
