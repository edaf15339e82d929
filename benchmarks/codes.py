"""Many classes from learners of two: codes of trees and of other kinds, ours and scikit-learn's.

    python benchmarks/codes.py --data FOLDER [--sets letter,vehicle] [--seeds 3]
        [--out docs/benchmarks/codes.md]

FOLDER holds tables `NAME.tsv.gz`, `NAME.tsv` or `NAME.csv` with a column `target`. Every method
gets the same splits (three quarters to learn from, by class) and clones of the same learner, on
one thread; features have unit scale. Accuracy is on the last quarter.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from decision_machines import TemplateCodeClassifier

HEAD = """# Codes of many classes

Accuracy on a quarter of the rows that is kept apart, the mean of {seeds} splits. *mean* is over the
sets, *learners* is how many binary learners are fitted, on average, and *s* are the seconds to fit
all sets once, on one thread of a busy computer. Written by
`benchmarks/codes.py`.

"""
SETS = ("letter", "pendigits", "optdigits", "satimage", "segmentation", "vehicle")
LEARNERS = {
    "logistic regression": lambda: LogisticRegression(solver="newton-cholesky"),
    "CART": lambda: DecisionTreeClassifier(min_samples_leaf=2, random_state=0),
}


def ours(coding: str, decoding: str, n_trees: int = 10):
    return lambda learner, seed: TemplateCodeClassifier(
        learner, coding=coding, decoding=decoding, n_trees=n_trees, random_state=seed
    )


METHODS = {
    "scikit-learn, one-vs-rest": lambda learner, seed: OneVsRestClassifier(learner),
    "scikit-learn, one-vs-one": lambda learner, seed: OneVsOneClassifier(learner),
    "scikit-learn, random codes ×1.5": lambda learner, seed: OutputCodeClassifier(
        learner, code_size=1.5, random_state=seed
    ),
    "scikit-learn, random codes ×10": lambda learner, seed: OutputCodeClassifier(
        learner, code_size=10, random_state=seed
    ),
    "one-vs-all": ours("one_vs_all", "loss"),
    "one-vs-one": ours("one_vs_one", "loss"),
    "dense random": ours("dense", "loss"),
    "sparse random": ours("sparse", "loss"),
    "templates, 1 tree, confusion": ours("confusion", "loss", 1),
    "templates, 10 trees, confusion, loss": ours("confusion", "loss"),
    "templates, 10 trees, confusion, logical": ours("confusion", "logical"),
    "templates, 10 trees, confusion, Hamming": ours("confusion", "hamming"),
    "templates, 10 trees, fitted trees, loss": ours("tree", "loss"),
    "templates, 10 trees, random, loss": ours("random", "loss"),
    "templates, 30 trees, random, loss": ours("random", "loss", 30),
}


def rows_of(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    import pandas as pd

    for suffix, separator in ((".tsv.gz", "\t"), (".tsv", "\t"), (".csv.gz", ","), (".csv", ",")):
        path = folder / f"{name}{suffix}"
        if path.exists():
            table = pd.read_csv(path, sep=separator)
            return table.drop(columns="target").to_numpy(float), table["target"].to_numpy()
    raise SystemExit(f"no table {name} in {folder}: give --sets the names of the tables there")


def measure(X, y, learner, method, seed: int) -> dict[str, float]:
    a, b, y_a, y_b = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=y)
    scaler = StandardScaler().fit(a)
    model = method(learner(), seed)
    start = time.perf_counter()
    model.fit(scaler.transform(a), y_a)
    seconds = time.perf_counter() - start
    return {
        "accuracy": float(model.score(scaler.transform(b), y_b)),
        "learners": len(model.estimators_),
        "seconds": seconds,
    }


def run(data: Path, sets, seeds: int, log=print) -> list[dict]:
    found = []
    for name in sets:
        X, y = rows_of(data, name)
        for learner, make in LEARNERS.items():
            for method, build in METHODS.items():
                cells = [measure(X, y, make, build, seed) for seed in range(seeds)]
                mean = {key: float(np.mean([c[key] for c in cells])) for key in cells[0]}
                deviation = float(np.std([c["accuracy"] for c in cells]))
                row = {"set": name, "learner": learner, "method": method, **mean}
                found.append({**row, "deviation": deviation})
                log(json.dumps(found[-1]), flush=True)
    return found


def tables(found: list[dict]) -> str:
    """A table for each learner: accuracy of every method on every set, learners and seconds."""
    parts = []
    sets = list(dict.fromkeys(row["set"] for row in found))
    for learner in dict.fromkeys(row["learner"] for row in found):
        lines = [
            f"## {learner[0].upper()}{learner[1:]}",
            "",
            f"| method | {' | '.join(sets)} | mean | learners | s |",
        ]
        lines.append("|---" * (len(sets) + 4) + "|")
        for method in dict.fromkeys(row["method"] for row in found):
            own = [r for r in found if r["learner"] == learner and r["method"] == method]
            cells = [f"{r['accuracy']:.3f}" for r in own]
            mean = np.mean([r["accuracy"] for r in own])
            learners = np.mean([r["learners"] for r in own])
            seconds = np.sum([r["seconds"] for r in own])
            lines.append(
                f"| {method} | {' | '.join(cells)} | {mean:.4f} | {learners:.0f} | {seconds:.1f} |"
            )
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a folder of tables")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="a Markdown page for the tables")
    arguments = parser.parse_args()
    text = tables(run(arguments.data, arguments.sets.split(","), arguments.seeds))
    print(text)
    if arguments.out:
        arguments.out.write_text(HEAD.format(seeds=arguments.seeds) + text)


if __name__ == "__main__":
    main()
