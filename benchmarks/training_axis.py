"""Hard axis-aligned trees of equal leaf count beside tuned CART, on 20 sets.

Each seed splits a set 60 / 20 / 20 into rows to learn from, to choose with and to test on, classes
in proportion. Ours is `axis_tree` as it comes. CART is scikit-learn's, the best on the same
validation rows of every criterion (gini, entropy; squared error), min_samples_leaf (1, 2, 5, 10,
20, 50) and max_depth (none, 5, 10), with max_leaf_nodes the leaves that both may have. Neither
learns from the validation rows. Accuracy for classes, with macro F1 beside GradTree's published
one where the set is in its table (its own splits and tuning, no limit on leaves), R² for numbers.
Log-loss and AUC have criteria of their own; CART is tuned for each of them, too, and may add a row
of every class to each leaf. Seconds of one thread: ours for one call, CART's for its whole grid.

    python benchmarks/training_axis.py --data DATA --tables TABLES --resume axis.jsonl --seeds 3
    python benchmarks/training_axis.py --data DATA --tables TABLES --times
"""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import training_data
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from training_options import section_parser

from decision_machines.train.axis import axis_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

NUMBERS = ("537_houses", "197_cpu_act", "218_house_8L", "abalone", "ailerons")
CLASSES = (
    *("phoneme", "satimage", "magic", "letter", "pendigits", "optdigits", "spambase"),
    *("segmentation", "waveform_21", "adult", "wine_quality_white", "car", "german"),
    *("vehicle", "churn"),
)
SCORES = ("R²", "accuracy")
LEAVES = (8, 16, 32, 64)
FIRST_SEED = 2000
"""None of these splits was looked at while the rule was made."""
GRADTREE = {
    "adult": "BIN:Adult",
    "german": "BIN:German",
    "spambase": "BIN:Spambase",
    "car": "MULT:Car",
    "segmentation": "MULT:Segment",
    "satimage": "MULT:Landsat",
}


def load(data: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "abalone":
        split = training_data.fixed_splits(data, "abalone")[0]
        names = [key for key in split if key.lower().startswith("x")]
        X = np.concatenate([split[key] for key in names])
        return X, np.concatenate([split["y" + key[1:]].reshape(-1) for key in names])
    if name == "ailerons":
        X, y, X_test, y_test = training_data.ailerons(data)
        return np.concatenate([X, X_test]), np.concatenate([y, y_test])
    return training_data.pmlb(data, name, classes=name in CLASSES)


def parts(X: np.ndarray, y: np.ndarray, seed: int, classes: bool) -> tuple[np.ndarray, ...]:
    """Rows to learn from, to choose with, to test on."""
    rest, test = train_test_split(
        np.arange(len(X)), test_size=0.2, random_state=seed, stratify=y if classes else None
    )
    learn, choose = train_test_split(
        rest, test_size=0.25, random_state=seed, stratify=y[rest] if classes else None
    )
    return learn, choose, test


def cart_trees(X, y, learn, leaves: int, classes: bool) -> Iterator[Any]:
    """Every tree of CART's grid."""
    kind = DecisionTreeClassifier if classes else DecisionTreeRegressor
    for criterion in ("gini", "entropy") if classes else ("squared_error",):
        for least in (1, 2, 5, 10, 20, 50):
            for depth in (None, 5, 10):
                yield kind(
                    criterion=criterion,
                    min_samples_leaf=least,
                    max_depth=depth,
                    max_leaf_nodes=leaves,
                    random_state=0,
                ).fit(X[learn], y[learn])


def smoothed(tree: Any, X: np.ndarray, rows: float) -> np.ndarray:
    """Shares of CART's leaves with so many rows of each class added."""
    leaf = tree.apply(X)
    count = tree.tree_.value[:, 0] * tree.tree_.weighted_n_node_samples[:, None]
    shares = (count + rows) / (count + rows).sum(axis=1, keepdims=True)
    return shares[leaf]


def log_loss(y: np.ndarray, shares: np.ndarray) -> float:
    shares = shares.clip(1e-6)
    return float(-np.log(shares[np.arange(len(y)), y] / shares.sum(axis=1)).mean())


def auc(y: np.ndarray, shares: np.ndarray) -> float:
    """Of two classes; else the mean over classes, each against the others."""
    if shares.shape[1] == 2:
        return float(roc_auc_score(y, shares[:, 1]))
    present = [c for c in range(shares.shape[1]) if 0 < np.sum(y == c) < len(y)]
    return float(np.mean([roc_auc_score(y == c, shares[:, c]) for c in present]))


def score_of(y: np.ndarray, predicted: np.ndarray, classes: bool) -> float:
    if classes:
        return float(np.mean(predicted == y))
    return float(1 - np.mean((predicted - y) ** 2) / np.var(y))


MEASURES = {"log-loss": log_loss, "AUC": auc}
"""Scores that probabilities decide, and that have a criterion of their own."""


def cart_cell(X, y, learn, choose, test, leaves: int, classes: bool) -> dict[str, Any]:
    """For each score the tree of the grid that is best on the rows to choose with."""
    best: dict[str, tuple[float, Any]] = {}

    def offer(name: str, value: float, made: Any) -> None:
        if name not in best or value > best[name][0]:
            best[name] = value, made

    for tree in cart_trees(X, y, learn, leaves, classes):
        offer("score", score_of(y[choose], tree.predict(X[choose]), classes), tree)
        if classes:
            for rows in (0.0, 1.0):
                shares = smoothed(tree, X[choose], rows)
                offer("log-loss", -log_loss(y[choose], shares), (tree, rows))
                offer("AUC", auc(y[choose], shares), (tree, rows))
    tree = best["score"][1]
    said = tree.predict(X[test])
    found = {"score": score_of(y[test], said, classes), "n_leaves": int(tree.get_n_leaves())}
    if classes:
        found["F1"] = float(f1_score(y[test], said, average="macro"))
        for name, measure in MEASURES.items():
            made, rows = best[name][1]
            found[name] = measure(y[test], smoothed(made, X[test], rows))
    return found


def ours_cell(
    X, y, learn, choose, test, leaves: int, seed: int, classes: bool, measure: str
) -> dict[str, Any]:
    """The tree that is searched for by the criterion of one score."""
    criterion = {"score": None, "log-loss": "log_loss", "AUC": "auc"}[measure]
    fit = axis_tree(
        X[learn],
        y[learn],
        n_classes=int(y.max()) + 1 if classes else None,
        criterion=criterion,
        validation=(X[choose], y[choose]),
        max_leaves=leaves,
        seed=seed,
        n_threads=1,
        verbose=False,
    )
    found: dict[str, Any] = {"n_leaves": fit.report["leaves"]}
    if measure in MEASURES:
        shares = fit.machine.predict_proba(X[test])
        return found | {measure: MEASURES[measure](y[test], shares)}
    said = fit.machine.predict(X[test])
    found["score"] = score_of(y[test], said, classes)
    if classes:
        found["F1"] = float(f1_score(y[test], said, average="macro"))
    return found


def published(tables: Path) -> dict[str, tuple[float, float]]:
    """Macro F1 of GradTree and of CART in its table, by our name of the set."""
    rows = {}
    for path in sorted(tables.glob("gradtree_*_f1.csv")):
        with path.open() as file:
            for row in csv.DictReader(file):
                rows[row[""]] = float(row["GDT f1_mean"]), float(row["sklearn f1_mean"])
    return {ours: rows[theirs] for ours, theirs in GRADTREE.items() if theirs in rows}


def run(
    data: Path,
    tables: Path,
    *,
    seeds: int,
    quick: bool,
    only: list[str] | None,
    log: Callable[[str], None],
    resume: Path | None = None,
    finished_only: bool = False,
    measures: Sequence[str] = ("CART", "score"),
) -> list[dict]:
    names = [n for n in (*NUMBERS, *CLASSES) if only is None or n in only]
    sizes = (8, 32) if quick else LEAVES
    done = {_key(row): row for row in training_data.finished(resume)}
    for seed in range(FIRST_SEED, FIRST_SEED + (1 if quick else seeds)):
        for name in names:
            classes = name in CLASSES
            own = [m for m in measures if classes or m not in MEASURES]
            missing = [
                (size, m) for size in sizes for m in own if (name, size, seed, m) not in done
            ]
            if not missing or finished_only:
                continue
            X, y = load(data, name)
            split = parts(X, y, seed, classes)
            for leaves, measure in missing:
                begin = time.process_time()
                if measure == "CART":
                    found = cart_cell(X, y, *split, leaves, classes)
                else:
                    found = ours_cell(X, y, *split, leaves, seed, classes, measure)
                seconds = time.process_time() - begin
                row = {"set": name, "leaves": leaves, "seed": seed, "measure": measure}
                row |= {**found, "seconds": seconds}
                training_data.append(resume, row)
                done[_key(row)] = row
                log(f"{name} {leaves} leaves, seed {seed}, {measure}: {found}, {seconds:.1f} s")
    found = summary(done, names, "score", published(tables))
    for measure in MEASURES:
        found += summary(done, names, measure, {})
    return found


def _key(row: dict) -> tuple[str, int, int, str]:
    return row["set"], row["leaves"], row["seed"], row["measure"]


def summary(done: dict, names: list[str], measure: str, gradtree: dict) -> list[dict]:
    """A row for each set and size, and how often ours is ahead."""
    rows: list[dict] = []
    sign = -1 if measure == "log-loss" else 1
    for name in names:
        for leaves in LEAVES:
            seeds = [key[2] for key in done if key == (name, leaves, key[2], measure)]
            pairs = [
                (done[name, leaves, seed, measure], done[name, leaves, seed, "CART"])
                for seed in sorted(seeds)
                if (name, leaves, seed, "CART") in done
            ]
            if not pairs:
                continue
            ours, cart = (
                np.array([row[measure] for row in side]) for side in zip(*pairs, strict=True)
            )
            row = {
                "set": name,
                "leaves": leaves,
                "metric": measure if measure != "score" else SCORES[name in CLASSES],
                "ours": float(ours.mean()),
                "± ours": float(ours.std()),
                "CART": float(cart.mean()),
                "± CART": float(cart.std()),
                "ahead by": float(sign * (ours - cart).mean()),
                "seeds won": f"{int((sign * (ours - cart) > 0).sum())} of {len(ours)}",
                "seconds": float(np.mean([mine["seconds"] for mine, _ in pairs])),
                "seconds CART": float(np.mean([theirs["seconds"] for _, theirs in pairs])),
            }
            if name in CLASSES and measure == "score":
                row |= {
                    f"F1 {who}": float(np.mean([pair[i]["F1"] for pair in pairs]))
                    for i, who in enumerate(("ours", "CART"))
                }
            if name in gradtree:
                row |= dict(zip(("F1 GradTree", "F1 its CART"), gradtree[name], strict=True))
            rows.append(row)
    ahead = [r["ahead by"] > 0 for r in rows]
    if rows:
        rows.append(
            {
                "set": "ahead of CART" + (f", {measure}" if measure != "score" else ""),
                "ours": float(np.mean(ahead)),
                "ahead by": float(np.mean([r["ahead by"] for r in rows])),
                "seeds won": f"{sum(ahead)} of {len(ahead)} cells",
                "seconds": float(np.mean([r["seconds"] for r in rows])),
            }
        )
    return rows


def cart_times(data: Path, leaves: int = 32) -> None:
    """Seconds of one fit beside one of CART, as many leaves, one thread, no validation rows."""
    from decision_machines import DecisionMachineClassifier

    for name in ("adult", "covertype"):
        if name == "adult":
            X, y = load(data, name)
        else:
            rows = np.loadtxt(data / "covertype" / "covtype.csv.gz", delimiter=",", skiprows=1)
            X, y = rows[:, :-1], training_data.codes(rows[:, -1])
        seconds: dict[str, list[float]] = {"CART": [], "ours": []}
        for _ in range(3 if len(X) < 100_000 else 1):
            for who, model in (
                ("CART", DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0)),
                ("ours", DecisionMachineClassifier(max_leaves=leaves, n_threads=1)),
            ):
                begin = time.process_time()
                model.fit(X, y)
                seconds[who].append(time.process_time() - begin)
                print(name, X.shape, who, f"{seconds[who][-1]:.2f} s, {model.score(X, y):.4f}")
        print(name, f"{min(seconds['ours']) / min(seconds['CART']):.1f} x", flush=True)


def main() -> None:
    parser = section_parser(__doc__, seeds=5)
    parser.add_argument("--measure", action="append", help="CART, score, log-loss or AUC")
    parser.add_argument("--times", action="store_true", help="seconds of single fits alone")
    options = parser.parse_args()
    if options.times:
        return cart_times(options.data)
    from training import table

    rows = run(
        options.data,
        options.tables,
        seeds=options.seeds,
        quick=options.quick,
        only=options.only,
        log=lambda line: print(line, flush=True),
        resume=options.resume,
        measures=options.measure or ("CART", "score", *MEASURES),
    )
    print(table(rows))


if __name__ == "__main__":
    main()
