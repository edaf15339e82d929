"""Time and memory to build the machine of a large forest, and its B on demand.

Each forest is measured in a process of its own, so that peak memory is the machine's.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

LIMITS = {
    "100x3000": {"seconds": 1.0, "adds_mb": 100.0, "B_seconds": 3.0},
    "300x50000": {"peak_mb": 1500.0},
}


def forest(n_trees: int, n_leaves: int):
    """A fitted scikit-learn forest whose trees have n_leaves leaves each (three, repeated)."""
    import numpy as np
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.tree import DecisionTreeRegressor

    rng = np.random.default_rng(0)
    X = rng.standard_normal((2 * n_leaves, 20)).astype(np.float32)
    y = rng.standard_normal(len(X))
    distinct = [
        DecisionTreeRegressor(max_leaf_nodes=n_leaves, random_state=i).fit(X, y) for i in range(3)
    ]
    model = RandomForestRegressor(1, max_depth=1).fit(X[:10], y[:10])
    model.estimators_ = [distinct[i % 3] for i in range(n_trees)]
    return model


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(n_trees: int, n_leaves: int, with_B: bool) -> dict[str, float]:
    import decision_machines as dm

    model = forest(n_trees, n_leaves)
    dm.convert(forest(2, 10))
    before = peak_mb()
    start = time.perf_counter()
    machine = dm.convert(model)
    found = {
        "seconds": time.perf_counter() - start,
        "adds_mb": peak_mb() - before,
        "held_mb": machine.nbytes / 2**20,
        "peak_mb": peak_mb(),
        "leaves": machine.n_leaves,
    }
    if with_B:
        start = time.perf_counter()
        found["B_entries"] = machine.B.nnz
        found["B_seconds"] = time.perf_counter() - start
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=LIMITS, help="measure one case in this process")
    case = parser.parse_args().case
    if case:
        n_trees, n_leaves = map(int, case.split("x"))
        print(json.dumps(measure(n_trees, n_leaves, "B_seconds" in LIMITS[case])))
        return
    failed = False
    for name, limits in LIMITS.items():
        run = [sys.executable, __file__, "--case", name]
        found = json.loads(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
        print(f"{name}: " + ", ".join(f"{k} {v:,.3g}" for k, v in found.items()))
        for key, limit in limits.items():
            holds = found[key] < limit
            failed |= not holds
            print(f"  {key} {found[key]:.3g} {'<' if holds else 'NOT <'} {limit:g}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
