"""Hard axis-aligned trees of equal leaf count beside tuned CART, on 20 sets.

Each seed splits a set 60 / 20 / 20 into rows to learn from, to choose with and to test on, classes
in proportion. Ours is `axis_tree` as it comes. CART is scikit-learn's, the best on the same
validation rows of every criterion (gini, entropy; squared error), min_samples_leaf (1, 2, 5, 10,
20, 50) and max_depth (none, 5, 10), with max_leaf_nodes the leaves that both may have. Neither
learns from the validation rows. Accuracy for classes, with macro F1 beside GradTree's published
one where the set is in its table (its own splits and tuning, no limit on leaves), R² for numbers.
Seconds of one thread: ours for one call, CART's for its whole grid.

    python benchmarks/training_axis.py --data DATA --tables TABLES --resume axis.jsonl --seeds 5
"""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import training_data
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from training_options import section_parser

from decision_machines.train.axis import axis_tree

if TYPE_CHECKING:
    from collections.abc import Callable

NUMBERS = ("537_houses", "197_cpu_act", "218_house_8L", "abalone", "ailerons")
CLASSES = (
    *("phoneme", "satimage", "magic", "letter", "pendigits", "optdigits", "spambase"),
    *("segmentation", "waveform_21", "adult", "wine_quality_white", "car", "german"),
    *("vehicle", "churn"),
)
LEAVES = (8, 16, 32, 64)
FIRST_SEED = 1000
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


def tuned_cart(X, y, learn, choose, leaves: int, classes: bool):
    """The best of the grid on the rows to choose with."""
    kind = DecisionTreeClassifier if classes else DecisionTreeRegressor
    best, most = None, -np.inf
    for criterion in ("gini", "entropy") if classes else ("squared_error",):
        for least in (1, 2, 5, 10, 20, 50):
            for depth in (None, 5, 10):
                tree = kind(
                    criterion=criterion,
                    min_samples_leaf=least,
                    max_depth=depth,
                    max_leaf_nodes=leaves,
                    random_state=0,
                ).fit(X[learn], y[learn])
                score = tree.score(X[choose], y[choose])
                if score > most:
                    best, most = tree, score
    return best


def cell(X: np.ndarray, y: np.ndarray, leaves: int, seed: int, classes: bool) -> dict[str, Any]:
    """One seed of one set at one size: both trees' scores on the rows to test on."""
    learn, choose, test = parts(X, y, seed, classes)
    start = time.process_time()
    fit = axis_tree(
        X[learn],
        y[learn],
        n_classes=int(y.max()) + 1 if classes else None,
        validation=(X[choose], y[choose]),
        max_leaves=leaves,
        seed=seed,
        n_threads=1,
        verbose=False,
    )
    middle = time.process_time()
    cart = tuned_cart(X, y, learn, choose, leaves, classes)
    end = time.process_time()
    found = {"seconds": middle - start, "seconds_cart": end - middle}
    for name, model in (("ours", fit.machine), ("cart", cart)):
        said = model.predict(X[test])
        if classes:
            found[name] = float(np.mean(said == y[test]))
            found[f"f1_{name}"] = float(f1_score(y[test], said, average="macro"))
        else:
            found[name] = float(1 - np.mean((said - y[test]) ** 2) / np.var(y[test]))
    found |= {"n_leaves": fit.report["leaves"], "n_leaves_cart": int(cart.get_n_leaves())}
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
) -> list[dict]:
    names = [n for n in (*NUMBERS, *CLASSES) if only is None or n in only]
    sizes = (8, 32) if quick else LEAVES
    done = {(r["set"], r["leaves"], r["seed"]): r for r in training_data.finished(resume)}
    for seed in range(FIRST_SEED, FIRST_SEED + (1 if quick else seeds)):
        for name in names:
            missing = [s for s in sizes if (name, s, seed) not in done]
            if not missing or finished_only:
                continue
            X, y = load(data, name)
            for leaves in missing:
                found = cell(X, y, leaves, seed, name in CLASSES)
                row = {"set": name, "leaves": leaves, "seed": seed, **found}
                training_data.append(resume, row)
                done[name, leaves, seed] = row
                log(
                    f"{name} {leaves} leaves, seed {seed}: ours {found['ours']:.4f}, "
                    f"CART {found['cart']:.4f}, {found['seconds']:.1f} s"
                )
    return summary(list(done.values()), names, published(tables))


def summary(cells: list[dict], names: list[str], gradtree: dict) -> list[dict]:
    """A row for each set and size, and how often ours is ahead."""
    rows: list[dict] = []
    for name in names:
        for leaves in LEAVES:
            own = [c for c in cells if c["set"] == name and c["leaves"] == leaves]
            if not own:
                continue
            of = {key: np.array([c[key] for c in own]) for key in own[0] if key != "set"}
            row = {
                "set": name,
                "leaves": leaves,
                "metric": "accuracy" if name in CLASSES else "R²",
                "ours": float(of["ours"].mean()),
                "± ours": float(of["ours"].std()),
                "CART": float(of["cart"].mean()),
                "± CART": float(of["cart"].std()),
                "ahead by": float((of["ours"] - of["cart"]).mean()),
                "seeds won": f"{int((of['ours'] > of['cart']).sum())} of {len(own)}",
                "seconds": float(of["seconds"].mean()),
                "seconds CART": float(of["seconds_cart"].mean()),
            }
            if name in CLASSES:
                row |= {
                    "F1 ours": float(of["f1_ours"].mean()),
                    "F1 CART": float(of["f1_cart"].mean()),
                }
            if name in gradtree:
                row |= dict(zip(("F1 GradTree", "F1 its CART"), gradtree[name], strict=True))
            rows.append(row)
    ahead = [r["ahead by"] > 0 for r in rows]
    if rows:
        rows.append(
            {
                "set": "ahead of CART",
                "ours": float(np.mean(ahead)),
                "ahead by": float(np.mean([r["ahead by"] for r in rows])),
                "seeds won": f"{sum(ahead)} of {len(ahead)} cells",
                "seconds": float(np.mean([r["seconds"] for r in rows])),
            }
        )
    return rows


def main() -> None:
    parser = section_parser(__doc__, seeds=5)
    options = parser.parse_args()
    from training import table

    rows = run(
        options.data,
        options.tables,
        seeds=options.seeds,
        quick=options.quick,
        only=options.only,
        log=lambda line: print(line, flush=True),
        resume=options.resume,
    )
    print(table(rows))


if __name__ == "__main__":
    main()
