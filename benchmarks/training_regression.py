"""Hard oblique regression trees with linear leaves, test RMSE, beside DTSemNet's and CART.

Abalone and Comp-Active: the five published splits, seed by seed; Ailerons: its own test rows. A
fifth of the training rows is held out to choose by and never trained on, another fifth for each
seed. Houses (log price) and Wine Quality (red and white): 70 % train, 9 % validation, 21 % test, as
in the benchmark that their published figures come from; another division for each seed. Height 5
throughout, caps included. Ours: `linear_leaves_tree`, one rule for all sets, nothing set by hand.
CART: scikit-learn's tree of any depth, its size chosen on the same validation rows.

    python benchmarks/training_regression.py --data DATA --tables TABLES --resume FILE
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from training_data import ailerons, append, finished, fixed_splits, pmlb, small
from training_options import print_rows, section_parser

HEIGHT = 5
SETS = {
    "Abalone": ("dtsemnet_table4_rmse.csv", "Abalone", "DTSemNet"),
    "Comp-Active": ("dtsemnet_table4_rmse.csv", "Comp-Active", "DTSemNet"),
    "Ailerons": ("dtsemnet_table4_rmse.csv", "Ailerons", "DTSemNet"),
    "Houses": ("dtsemnet_jmlr_topk_rmse.csv", "houses(log price)", "topk"),
    "Wine Quality": ("dtsemnet_jmlr_topk_rmse.csv", "wine_quality", "topk"),
}
"""The table, row and column of the published figure."""
QUICK = ("Abalone",)


def run(
    data: Path,
    tables: Path,
    *,
    seeds: int = 10,
    quick: bool = False,
    only: list[str] | None = None,
    log: Callable[[str], None] = print,
    resume: Path | None = None,
    finished_only: bool = False,
) -> list[dict]:
    """One row for each set; finished cells are taken from `resume`."""
    done = {(cell["set"], cell["seed"]): cell for cell in finished(resume)}
    names = [
        name
        for name in SETS
        if not (only and name not in only) and not (quick and name not in QUICK)
    ]
    cells: dict[str, list[dict]] = {name: [] for name in names}
    # Seed by seed over all sets, so that an interrupted run has measured all of them alike.
    for seed in range(2 if quick else seeds):
        for name in names:
            if (name, seed) not in done and finished_only:
                continue
            if (name, seed) not in done:
                done[name, seed] = measure(data, name, seed)
                append(resume, done[name, seed])
            cell = done[name, seed]
            cells[name].append(cell)
            log(f"{name} {seed}: {cell['ours']:.4f} (CART {cell['cart']:.4f}), {cell['chosen']}")
    return [summary(tables, name, cells[name]) for name in names if cells[name]]


def measure(data: Path, name: str, seed: int) -> dict:
    """One split of one set: train, choose, test once."""
    from decision_machines.train.regression import linear_leaves_tree

    (X, y), (X_valid, y_valid), (X_test, y_test) = divide(data, name, seed)
    started, cpu = time.perf_counter(), time.process_time()
    fit = linear_leaves_tree(
        X, y, depth=HEIGHT, validation=(X_valid, y_valid), seed=seed, n_threads=1, verbose=False
    )
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    return {
        "set": name,
        "seed": seed,
        "ours": rmse(fit.machine.predict(X_test), y_test),
        "validation": fit.report["validation RMSE"],
        "chosen": fit.report["chosen"],
        "leaves": fit.machine.n_leaves,
        "height": fit.machine.depth,
        "cart": cart(X, y, X_valid, y_valid, X_test, y_test),
        "seconds": seconds,
        "cpu seconds": cpu,
    }


def divide(data: Path, name: str, seed: int):
    """(X, y) to train, to validate and to test, by the protocol of the set."""
    rng = np.random.default_rng([2026, seed])
    if name in ("Abalone", "Comp-Active"):
        split = fixed_splits(data, {"Abalone": "abalone", "Comp-Active": "cpuactiv"}[name])[
            seed % 5
        ]
        X, y, X_test, y_test = (split[k] for k in ("X_train", "y_train", "X_test", "y_test"))
    elif name == "Ailerons":
        X, y, X_test, y_test = ailerons(data)
        y, y_test = 1e4 * y, 1e4 * y_test
    else:
        X, y = whole(data, name)
        order = rng.permutation(len(X))
        cuts = int(0.7 * len(X)), int(0.79 * len(X))
        parts = np.split(order, cuts)
        return tuple((X[part], y[part]) for part in parts)
    order = rng.permutation(len(X))
    cut = round(0.2 * len(X))
    return (X[order[cut:]], y[order[cut:]]), (X[order[:cut]], y[order[:cut]]), (X_test, y_test)


def whole(data: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Sets without published splits."""
    if name == "Houses":
        X, y = pmlb(data, "537_houses", classes=False)
        return X, np.log(y)
    # Codes of the marks, which start at 3 in both: errors are the same.
    parts = [small(data, f"Wine Quality {colour}") for colour in ("Red", "White")]
    X, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    return X, y.astype(float)


def cart(X, y, X_valid, y_valid, X_test, y_test) -> float:
    """Test RMSE of scikit-learn's tree, its size chosen on validation."""
    from sklearn.tree import DecisionTreeRegressor

    best = (np.inf, np.inf)
    for max_depth in (3, 4, 5, 6, 8, 10, 12, None):
        for leaf in (1, 5, 20):
            tree = DecisionTreeRegressor(
                max_depth=max_depth, min_samples_leaf=leaf, random_state=0
            ).fit(X, y)
            found = rmse(tree.predict(X_valid), y_valid), rmse(tree.predict(X_test), y_test)
            best = min(best, found)
    return best[1]


def rmse(answer: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((answer - y) ** 2)))


def summary(tables: Path, name: str, cells: list[dict]) -> dict:
    """Means and deviations of one set, beside the published figures."""
    table, row_name, column = SETS[name]
    with (tables / table).open() as file:
        published = {row["dataset"]: row for row in csv.DictReader(file)}[row_name]
    theirs = published[column].split("±")
    ours = np.array([cell["ours"] for cell in cells])
    return {
        "set": name,
        "height": HEIGHT,
        "metric": "RMSE",
        "seeds": len(cells),
        "ours": float(ours.mean()),
        "± ours": float(ours.std()),
        "CART here": float(np.mean([cell["cart"] for cell in cells])),
        "DTSemNet": float(theirs[0]),
        "± DTSemNet": float(theirs[1].split()[0]) if len(theirs) > 1 else None,
        "ours / DTSemNet": float(ours.mean() / float(theirs[0])),
        "seconds": float(np.mean([cell["cpu seconds"] for cell in cells])),
    }


def main() -> None:
    print_rows(run, section_parser(__doc__, seeds=10), digits=4)


if __name__ == "__main__":
    main()
