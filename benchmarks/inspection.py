"""Partial dependence, individual curves and permutation importance beside scikit-learn's.

    python benchmarks/inspection.py [--rows 5000] [--features 20] [--quick] [--out FOLDER]

Both run on one thread, on generated data, timed in processor seconds; curves are of the features
with the most tests, for which delta scoring can leave out least. Every answer of ours is compared
with theirs: partial dependence with `method="brute"`, the shuffles of importance with the same
seed. The first call of ours is timed: what it compiles counts. With --out, tables go to FOLDER as
inspection.json and inspection.md. Exits with 1 where answers differ by more than rounding.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.inspection import partial_dependence, permutation_importance
from threadpoolctl import threadpool_limits

import decision_machines as dm


def models(quick: bool) -> dict:
    n = 20 if quick else 100
    return {
        "boosted, 100 trees of depth 3": GradientBoostingRegressor(n_estimators=n, random_state=0),
        "boosted by histograms, 100 trees": HistGradientBoostingRegressor(
            max_iter=n, random_state=0
        ),
        "the same, two classes": HistGradientBoostingClassifier(max_iter=n, random_state=0),
        "forest, 100 trees of 64 leaves": RandomForestRegressor(
            n, max_leaf_nodes=64, random_state=0
        ),
        "forest, 100 full trees, two classes": RandomForestClassifier(n, random_state=0),
    }


def seconds(call):
    start = time.process_time()
    found = call()
    return time.process_time() - start, found


def questions(model, machine, X, y, n_grid: int):
    """(name, theirs, ours, how to compare) for each way to look into a model."""

    def last(found) -> np.ndarray:
        return found[-1:]  # scikit-learn keeps the second of two classes

    few = slice(0, min(len(X), 2000))
    # The features with the most tests: those for which least can be left out.
    one, two = np.argsort(-machine.importance().splits, kind="stable")[:2].tolist()
    grid = {"method": "brute", "grid_resolution": n_grid}
    small = {"method": "brute", "grid_resolution": 10}
    yield (
        f"partial dependence, {n_grid} values",
        lambda: partial_dependence(model, X, [one], kind="average", **grid)["average"],
        lambda: last(machine.partial_dependence(X, one, n_grid=n_grid, n_threads=1).average),
    )
    yield (
        "partial dependence, 10 × 10 values",
        lambda: partial_dependence(model, X, [one, two], kind="average", **small)["average"],
        lambda: last(machine.partial_dependence(X, [one, two], n_grid=10, n_threads=1).average),
    )
    yield (
        f"individual curves, {n_grid} values",
        lambda: partial_dependence(model, X, [one], kind="individual", **grid)["individual"],
        lambda: last(machine.ice(X, one, n_grid=n_grid, n_threads=1).individual),
    )
    yield (
        "permutation importance, 5 shuffles, 2 000 rows",
        lambda: (
            permutation_importance(model, X[few], y[few], n_repeats=5, random_state=0).importances
        ),
        lambda: machine.importance(X[few], y[few], n_repeats=5, seed=0, n_threads=1).drops,
    )


def run(n_rows: int, n_features: int, quick: bool) -> list[dict]:
    rows = []
    n_grid = 20 if quick else 100
    for name, model in models(quick).items():
        make = make_classification if hasattr(model, "predict_proba") else make_regression
        X, y = make(n_rows, n_features, n_informative=n_features // 2, random_state=0)
        model.fit(X, y)
        for what, theirs, ours in questions(model, dm.convert(model), X, y, n_grid):
            own, found = seconds(ours)
            other, expected = seconds(theirs)
            scale = max(float(np.abs(expected).max()), 1e-300)
            gap = float(np.abs(found - expected).max()) / scale
            rows.append(
                {
                    "model": name,
                    "question": what,
                    "scikit-learn": other,
                    "ours": own,
                    "ratio": other / own,
                    "largest difference": gap,
                }
            )
            print(
                f"{name}: {what}: {other:.2f} s, {own:.3f} s, {other / own:.0f} times", flush=True
            )
    return rows


def table(rows: list[dict]) -> str:
    lines = [
        "| model | question | scikit-learn, s | ours, s | times as fast | largest difference |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for row in rows:
        lines.append(
            f"| {row['model']} | {row['question']} | {row['scikit-learn']:.2f} | "
            f"{row['ours']:.3f} | {row['ratio']:.0f} | {row['largest difference']:.0e} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="small models and grids")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with threadpool_limits(1):
        rows = run(500 if given.quick else given.rows, given.features, given.quick)
    print()
    print(table(rows))
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "inspection.json").write_text(json.dumps(rows, indent=1))
        (given.out / "inspection.md").write_text(table(rows) + "\n")
    if any(row["largest difference"] > 1e-9 for row in rows):
        print("answers differ by more than rounding")
        sys.exit(1)


if __name__ == "__main__":
    main()
