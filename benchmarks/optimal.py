r"""Optimal trees beside ConTree: errors, seconds to the proof, and what is known when time is up.

Both get the same rows, one after the other in the same run, on one thread. Seconds are those of the
processor (user and system time of this process), which other work on the machine changes little;
the whole `fit` counts, reading the rows and making the tree included. The least of the repetitions
stands for each. ConTree has a time limit; where it does not end within it only our seconds stand.

    pip install pycontree
    python benchmarks/optimal.py classes --data FOLDER_OF_TXT_GZ --depth 2 3
    python benchmarks/optimal.py classes --data FOLDER_OF_TXT_GZ --depth 5 --limit 60 \
        --ours-limit 60
    python benchmarks/optimal.py numbers --data FOLDER_OF_TSV_GZ

Files of classes have a row a line, the class first; files of numbers a header with `target`.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import decision_machines as dm

CLASSES = (
    *("bank", "raisin", "wilt", "rice", "bidding", "occupancy", "segment", "page", "fault"),
    *("eeg", "bean", "avila"),
)
NUMBERS = ("197_cpu_act", "537_houses", "218_house_8L")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("classes", "numbers"))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--depth", type=int, nargs="+", default=[3])
    parser.add_argument("--limit", type=float, default=300.0, help="ConTree's seconds")
    parser.add_argument("--ours-limit", type=float)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--alone", action="store_true", help="without ConTree")
    options = parser.parse_args()
    (classes if options.what == "classes" else numbers)(options)


def seconds_to_fit(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    begin = time.process_time()
    model.fit(X, y)
    return time.process_time() - begin


def classes(options: argparse.Namespace) -> None:
    for depth in options.depth:
        ratios = []
        for name in options.sets or CLASSES:
            with gzip.open(options.data / f"{name}.txt.gz") as file:
                table = np.loadtxt(file)
            X, y = table[:, 1:], table[:, 0].astype(int)
            ours, theirs, clock = [], [], []
            for _ in range(options.repeat):
                tree = dm.OptimalTreeClassifier(depth, n_threads=1, time_limit=options.ours_limit)
                ours.append(seconds_to_fit(tree, X, y))
                if not options.alone:
                    rival = contree(depth, options.limit)
                    begin = time.perf_counter()
                    theirs.append(seconds_to_fit(rival, X, y))
                    clock.append(time.perf_counter() - begin)
            errors = round(tree.objective_ * len(y))
            assert errors == np.sum(tree.predict(X) != y)
            cart = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X, y)
            said = f"depth {depth} {name:10s} CART {np.sum(cart.predict(X) != y):5d}"
            said += f"  ours {errors:5d} bound {tree.bound_ * len(y):7.1f}"
            said += f" {'proven' if tree.is_optimal_ else 'open  '} {min(ours):8.3f} s"
            if theirs:
                wrong = int(np.sum(rival.predict(X) != y))
                # ConTree's limit is by the clock, and it does not say whether it was reached.
                is_done = max(clock) < 0.95 * options.limit
                said += f"  ConTree {wrong:5d} {'proven' if is_done else 'open  '}"
                said += f" {min(theirs):8.3f} s"
                if is_done and tree.is_optimal_:
                    ratios.append(min(theirs) / min(ours))
                    said += f"  ratio {ratios[-1]:6.1f}"
                    if wrong != errors:
                        said += "  ERRORS DIFFER"
            print(said, flush=True)
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"depth {depth}: geometric mean of {len(ratios)} ratios {mean:.1f}", flush=True)


def contree(depth: int, limit: float) -> Any:
    from pycontree import ConTree

    return ConTree(max_depth=depth, time_limit=limit)


def numbers(options: argparse.Namespace) -> None:
    for depth in options.depth:
        for name in options.sets or NUMBERS:
            with gzip.open(options.data / f"{name}.tsv.gz", "rt") as file:
                lines = list(csv.reader(file, delimiter="\t"))
            at = lines[0].index("target")
            table = np.array(lines[1:], float)
            X, y = np.delete(table, at, axis=1), table[:, at]
            tree = dm.OptimalTreeRegressor(depth, n_threads=1, time_limit=options.ours_limit)
            seconds = min(seconds_to_fit(tree, X, y) for _ in range(options.repeat))
            cart = DecisionTreeRegressor(max_depth=depth, random_state=0).fit(X, y)
            lost = np.mean((cart.predict(X) - y) ** 2) / y.var()
            print(
                f"depth {depth} {name:14s} of the variance: CART {lost:.4f}"
                f"  ours {tree.objective_ / y.var():.4f}  bound {tree.bound_ / y.var():.4f}"
                f" {'proven' if tree.is_optimal_ else 'open'} {seconds:.2f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
