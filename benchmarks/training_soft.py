"""Soft single oblique trees of depth 8, test accuracy in percent, beside their rivals from PyPI.

Letter: UCI's 15 000 rows to train and 5 000 to test; Satimage: UCI's 4 435 and 2 000. Every method
is given the training rows alone, standardised for the rivals, and chooses among them by itself.
Ours: `soft_tree`, one rule for both sets: recipes are chosen on a part held out and trained again
on all rows. `soft` is the tree's own answer, `hard` that of the tree without its softness. Rivals
run with their own settings at the same depth: neural-trees' SoftDecisionTree and its to_hard_tree,
treegrad's TGDClassifier (one tree of 256 leaves), GradTree (depth 8). One that does not install, or
fails, is left out with its reason. Seconds are of one core's own time, so that a loaded machine
does not count.

    python benchmarks/training_soft.py --data DATA --tables TABLES --resume FILE [--only letter]
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from training_data import append, finished, letter, satimage
from training_options import print_rows, section_parser

SETS = ("letter", "satimage")
DEPTH = 8
RIVAL_SEEDS = {"neural-trees": 3, "treegrad": 1, "GradTree": 1}
"""Rivals and their seeds: a tree of neural-trees takes minutes on letter."""


def run(
    data: Path,
    tables: Path,
    *,
    seeds: int = 5,
    quick: bool = False,
    only: list[str] | None = None,
    log: Callable[[str], None] = print,
    resume: Path | None = None,
    methods: list[str] | None = None,
    finished_only: bool = False,
) -> list[dict]:
    """One row for each set and method; finished cells are taken from `resume`."""
    done = {(cell["set"], cell["method"], cell["seed"]): cell for cell in finished(resume)}
    names = [name for name in SETS if not (only and name not in only)]
    names = names[1:] if quick and len(names) > 1 else names
    rows = []
    for name in names:
        rows_of = divide(data, name)
        for method in MEASURES:
            if methods and method not in methods:
                continue
            cells = []
            n_seeds = min(RIVAL_SEEDS.get(method, seeds), seeds, 1 if quick else seeds)
            for seed in range(n_seeds):
                key = name, method, seed
                if key not in done and finished_only:
                    continue
                if key not in done:
                    done[key] = {"set": name, "method": method, "seed": seed}
                    done[key] |= measured(MEASURES[method], rows_of, seed)
                    append(resume, done[key])
                cells.append(done[key])
                log(f"{name} {method} {seed}: {told(done[key])}")
            if cells:
                rows.append(summary(name, method, cells))
    return rows


def divide(data: Path, name: str) -> tuple[np.ndarray, ...]:
    """X, y, X_test, y_test as published."""
    if name == "satimage":
        return satimage(data)
    X, y = letter(data)
    return X[:15000], y[:15000], X[15000:], y[15000:]


def measured(measure: Callable, rows: tuple[np.ndarray, ...], seed: int) -> dict:
    """What a method reaches, or why it does not."""
    import torch

    torch.set_num_threads(1)
    try:
        return measure(*rows, seed)
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"}


def ours(X, y, X_test, y_test, seed: int) -> dict:
    import torch

    from decision_machines.train.soft import soft_tree

    clock = Clock()
    n_classes = int(y.max()) + 1
    fit = soft_tree(X, y, n_classes=n_classes, depth=DEPTH, seed=seed, n_threads=1, verbose=False)
    seconds = clock.read()
    with torch.no_grad():
        soft = fit.soft(torch.from_numpy(X_test)).argmax(1).numpy()
    return {
        "soft": percent(soft == y_test),
        "hard": percent(fit.machine.predict(X_test) == y_test),
        "chosen": f"{fit.report['chosen']}, leaves {fit.report['leaves of the hard tree']}",
        "validation": fit.report["validation losses"],
        **seconds,
    }


def neural_trees(X, y, X_test, y_test, seed: int) -> dict:
    from neural_trees import SoftDecisionTree
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(X)
    clock = Clock()
    tree = SoftDecisionTree(depth=DEPTH, random_state=seed).fit(scaler.transform(X), y)
    seconds = clock.read()
    Z = scaler.transform(X_test)
    hard = tree.to_hard_tree().predict(Z)
    return {"soft": percent(tree.predict(Z) == y_test), "hard": percent(hard == y_test), **seconds}


def treegrad(X, y, X_test, y_test, seed: int) -> dict:
    from sklearn.preprocessing import StandardScaler
    from treegrad import TGDClassifier

    scaler = StandardScaler().fit(X)
    clock = Clock()
    tree = TGDClassifier(n_estimators=1, num_leaves=2**DEPTH, max_depth=DEPTH)
    tree.fit(scaler.transform(X), y)
    seconds = clock.read()
    return {"soft": percent(tree.predict(scaler.transform(X_test)) == y_test), **seconds}


def gradtree(X, y, X_test, y_test, seed: int) -> dict:
    from GradTree import GradTree
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(X)
    n_classes = int(y.max()) + 1
    # As its own guide sets them, but for the depth; what is left out has no default.
    params = {
        "depth": DEPTH,
        "learning_rate_index": 0.01,
        "learning_rate_values": 0.01,
        "learning_rate_leaf": 0.005,
        "optimizer": "SWA",
        "cosine_decay_steps": 0,
        "initializer": "RandomNormal",
        "loss": "crossentropy",
        "focal_loss": False,
        "temperature": 0.0,
        "apply_class_balancing": True,
    }
    args = {
        "epochs": 1000,
        "early_stopping_epochs": 25,
        "batch_size": 64,
        "cat_idx": [],
        "objective": "classification",
        "metrics": ["F1"],
        "random_seed": seed,
        "verbose": 0,
    }
    clock = Clock()
    tree = GradTree(params=params, args=args)
    cut = int(0.8 * len(X))
    Z = scaler.transform(X)
    tree.fit(X_train=Z[:cut], y_train=y[:cut], X_val=Z[cut:], y_val=y[cut:])
    seconds = clock.read()
    answer = np.asarray(tree.predict(scaler.transform(X_test))).reshape(len(X_test), n_classes)
    return {"hard": percent(answer.argmax(1) == y_test), **seconds}


MEASURES: dict[str, Callable] = {
    "ours": ours,
    "neural-trees": neural_trees,
    "treegrad": treegrad,
    "GradTree": gradtree,
}


class Clock:
    """Seconds since it was made: of the core's own time, and of the clock on the wall."""

    def __init__(self) -> None:
        self.cpu, self.wall = time.process_time(), time.perf_counter()

    def read(self) -> dict[str, float]:
        return {
            "cpu seconds": time.process_time() - self.cpu,
            "seconds": time.perf_counter() - self.wall,
        }


def percent(is_right: np.ndarray) -> float:
    return 100 * float(np.mean(is_right))


def told(cell: dict) -> str:
    if "failed" in cell:
        return f"failed, {cell['failed']}"
    kept = {key: cell[key] for key in ("soft", "hard", "cpu seconds") if key in cell}
    return ", ".join(f"{key} {value:.2f}" for key, value in kept.items())


def summary(name: str, method: str, cells: list[dict]) -> dict:
    """Means and deviations of one method on one set."""
    row: dict = {"set": name, "depth": DEPTH, "metric": "accuracy", "method": method}
    worked = [cell for cell in cells if "failed" not in cell]
    row["seeds"] = len(worked)
    if not worked:
        return row | {"failed": cells[0]["failed"] if cells else "not run"}
    for key in ("soft", "hard"):
        found = np.array([cell[key] for cell in worked if key in cell])
        if len(found):
            row[key], row[f"± {key}"] = float(found.mean()), float(found.std())
    row["seconds"] = float(np.mean([cell["cpu seconds"] for cell in worked]))
    return row


def main() -> None:
    parser = section_parser(__doc__, seeds=5)
    parser.add_argument("--methods", action="append", help="a method; all by default")
    print_rows(run, parser, digits=2)


if __name__ == "__main__":
    main()
