"""Hard oblique classification trees, test accuracy in percent, beside DTSemNet's and CART.

Small sets (height 4 at most): half of the rows to train, stratified; of the rest half to test and
half to validate, which is never trained on; one split for each seed from 0. Large sets: as
published, with fixed test rows; Letter 10 500 / 4 500 / 5 000 in UCI's order, Satimage, Pendigits
and MNIST 70, 80 and 80 % of their training rows (another division for each seed), Segment and
Connect4 20 % test and then 20 % validation, Connect4 one-hot. Ours: `oblique_tree`, one rule for
all sets, nothing set by hand. CART: scikit-learn's tree of at most the same depth, its depth and
leaf size (on the largest sets the leaf size alone) chosen on the same validation rows. Published:
mean and deviation of the paper.

    python benchmarks/training_oblique.py --data DATA --tables TABLES --resume FILE [--only Letter]
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from training_data import (
    SMALL,
    append,
    finished,
    letter,
    mnist,
    one_hot,
    pmlb,
    satimage,
    small,
)
from training_options import print_rows, section_parser

LARGE = {"Pendigits": 8, "Segment": 8, "SatImages": 6, "Letter": 10, "Connect4": 8, "MNIST": 8}
"""Large sets and their heights."""
LARGE_SEEDS = {"Letter": 3, "Connect4": 3, "MNIST": 2}
"""How many seeds, where they take long; ten of the other large sets."""
QUICK = ("Balance Scale", "Blood Transfusion", "Segment")


def run(
    data: Path,
    tables: Path,
    *,
    seeds: int = 20,
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
        for name in [*SMALL, *LARGE]
        if not (only and name not in only) and not (quick and name not in QUICK)
    ]
    cells: dict[str, list[dict]] = {name: [] for name in names}
    # Seed by seed over all sets, so that an interrupted run has measured all of them alike.
    for seed in range(2 if quick else seeds):
        for name in names:
            if name in LARGE and seed >= LARGE_SEEDS.get(name, 10):
                continue
            if (name, seed) not in done and finished_only:
                continue
            if (name, seed) not in done:
                done[name, seed] = measure(data, name, seed)
                append(resume, done[name, seed])
            cell = done[name, seed]
            cells[name].append(cell)
            log(f"{name} {seed}: {cell['ours']:.2f} (CART {cell['cart']:.2f}), {cell['chosen']}")
    rows = [summary(tables, name, cells[name]) for name in names if cells[name]]
    small_rows = [row for row in rows if row["set"] in SMALL]
    if len(small_rows) > 1:
        mean = {"set": "mean of the small sets", "metric": "accuracy"}
        for key in ("ours", "CART here", "DTSemNet", "ours - DTSemNet"):
            mean[key] = float(np.mean([row[key] for row in small_rows]))
        rows.append(mean)
    return rows


def measure(data: Path, name: str, seed: int) -> dict:
    """One split of one set: train, choose, test once."""
    from decision_machines.train.oblique import oblique_tree

    depth = LARGE.get(name, 4)
    (X, y), (X_valid, y_valid), (X_test, y_test) = divide(data, name, seed)
    n_classes = int(max(y.max(), y_valid.max(), y_test.max())) + 1
    started, cpu = time.perf_counter(), time.process_time()
    fit = oblique_tree(
        X,
        y,
        n_classes=n_classes,
        depth=depth,
        validation=(X_valid, y_valid),
        seed=seed,
        n_threads=1,
        verbose=False,
    )
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    return {
        "set": name,
        "seed": seed,
        "ours": 100 * float(np.mean(fit.machine.predict(X_test) == y_test)),
        "validation": 100 * fit.report.get("validation accuracy", 1.0),
        "chosen": fit.report["chosen"],
        "cart": 100 * cart(X, y, X_valid, y_valid, X_test, y_test, depth),
        "seconds": seconds,
        "cpu seconds": cpu,
    }


def cart(X, y, X_valid, y_valid, X_test, y_test, depth: int) -> float:
    """Test accuracy of scikit-learn's tree, depth and leaf size chosen on validation."""
    from sklearn.tree import DecisionTreeClassifier

    best = (-1.0, 0.0)
    for max_depth in range(depth if X.size > 10**6 else 1, depth + 1):
        for leaf in (1, 5, 20):
            tree = DecisionTreeClassifier(
                max_depth=max_depth, min_samples_leaf=leaf, random_state=0
            ).fit(X, y)
            best = max(best, (tree.score(X_valid, y_valid), tree.score(X_test, y_test)))
    return best[1]


def divide(data: Path, name: str, seed: int):
    """(X, y) to train, to validate and to test, by the protocol of the set."""
    from sklearn.model_selection import train_test_split

    def cut(X, y, size, random_state):
        stratify = y if np.bincount(y).min(initial=2, where=np.bincount(y) > 0) > 1 else None
        return train_test_split(X, y, test_size=size, random_state=random_state, stratify=stratify)

    if name in SMALL:
        X, y = small(data, name)
        X, X_rest, y, y_rest = cut(X, y, 0.5, seed)
        X_test, X_valid, y_test, y_valid = cut(X_rest, y_rest, 0.5, seed)
        return (X, y), (X_valid, y_valid), (X_test, y_test)
    if name == "Letter":
        X, y = letter(data)
        parts = [slice(0, 10500), slice(10500, 15000), slice(15000, 20000)]
        return tuple((X[part], y[part]) for part in parts)
    if name in ("Segment", "Connect4"):
        X, y = pmlb(data, {"Segment": "segmentation", "Connect4": "connect_4"}[name], classes=True)
        X = one_hot(X) if name == "Connect4" else X
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=1)
        X, X_valid, y, y_valid = train_test_split(X, y, test_size=0.2, random_state=1)
        return (X, y), (X_valid, y_valid), (X_test, y_test)
    if name == "Pendigits":
        X, y = pmlb(data, "pendigits", classes=True)
        X, y, X_test, y_test = X[:7494], y[:7494], X[7494:], y[7494:]
    else:
        X, y, X_test, y_test = {"SatImages": satimage, "MNIST": mnist}[name](data)
    share = {"SatImages": 0.3}.get(name, 0.2)
    X, X_valid, y, y_valid = cut(X, y, share, seed)
    return (X, y), (X_valid, y_valid), (X_test, y_test)


def summary(tables: Path, name: str, cells: list[dict]) -> dict:
    """Means and deviations of one set, beside the published figures."""
    with (tables / f"dtsemnet_table{3 if name in LARGE else 1}.csv").open() as file:
        published = {row["dataset"]: row for row in csv.DictReader(file)}[name]
    theirs = published["DTSemNet"].split("±")
    ours = np.array([cell["ours"] for cell in cells])
    return {
        "set": name,
        "height": LARGE.get(name, 4),
        "metric": "accuracy",
        "seeds": len(cells),
        "ours": float(ours.mean()),
        "± ours": float(ours.std()),
        "CART here": float(np.mean([cell["cart"] for cell in cells])),
        "DTSemNet": float(theirs[0]),
        "± DTSemNet": float(theirs[1].split()[0]),
        "ours - DTSemNet": float(ours.mean() - float(theirs[0])),
        "TAO": published["TAO"].split("±")[0],
        "seconds": float(np.mean([cell["cpu seconds"] for cell in cells])),
    }


def main() -> None:
    print_rows(run, section_parser(__doc__, seeds=20), digits=2)


if __name__ == "__main__":
    main()
