"""Soft trees: the native kernel against plain torch and against the hard engine, on one thread.

400 trees of 31 leaves (LightGBM, regression), slopes as tuning starts with them. Equality first:
the kernel in float64 against the plain torch form. Then minima of interleaved runs.

    python benchmarks/soft_prediction.py --rows 100000
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import lightgbm
import numpy as np
import torch

import decision_machines as dm
from decision_machines.relax.soft_tree_plain import soft_tree_sum_by_level
from decision_machines.train.tune.widths import measure

PLAIN_ROWS = 2000
"""Plain torch is timed on so many: its time is linear in rows."""


def models(n_trees: int):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 20))
    y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.3 * X[:, 3:10].sum(1)
    y = y + 0.3 * rng.standard_normal(len(X))
    model = lightgbm.LGBMRegressor(n_estimators=n_trees, num_leaves=31, verbose=-1, n_jobs=1)
    machine = dm.convert(model.fit(X, y))
    slope = measure(machine, X, [0.3], seed=0, n_threads=1).slope(0.3)
    return machine, {
        name: machine.soften("soft_tree", slope=slope, dtype=getattr(torch, name))
        for name in ("float32", "float64")
    }


def plain(net, x: torch.Tensor) -> torch.Tensor:
    """The module's sum in plain torch, whatever kernel is there."""
    z = net.columns(x).to(net.t.dtype)
    q = net._query(z, "log_sigmoid", net.paths.test_order)
    return net._finished(soft_tree_sum_by_level(q, net.paths, net.leaves.masked(net.leaves.V)))


def minima(work: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    least = dict.fromkeys(work, np.inf)
    for _ in range(repeats):
        for name, run in work.items():
            begin = time.perf_counter()
            run()
            least[name] = min(least[name], time.perf_counter() - begin)
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--trees", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(1)
    machine, nets = models(given.trees)
    X = np.random.default_rng(1).standard_normal((given.rows, 20))
    few = torch.from_numpy(X[:PLAIN_ROWS])
    with torch.no_grad():
        exact = plain(nets["float64"], few).numpy()
        for name, net in nets.items():
            gap = np.abs(net.frozen().margin(X[:PLAIN_ROWS]) - exact).max()
            print(f"{name}: within {gap:.2g} of plain torch in float64 (spread {exact.std():.2g})")
        work: dict[str, Callable[[], object]] = {"hard": lambda: machine.margin(X, n_threads=1)}
        for name, net in nets.items():
            soft = net.frozen()
            work[f"soft {name}"] = lambda soft=soft: soft.margin(X, n_threads=1)
            work[f"plain torch {name}"] = lambda net=net: plain(net, few)
        found = minima(work, given.repeats)
    a_row = {
        name: seconds / (PLAIN_ROWS if name.startswith("plain") else given.rows) * 1e6
        for name, seconds in found.items()
    }
    for name, micro in a_row.items():
        print(f"{name:22} {micro:9.2f} µs a row, {micro / a_row['hard']:8.1f} x the hard engine")
    for dtype in nets:
        gain = a_row[f"plain torch {dtype}"] / a_row[f"soft {dtype}"]
        print(f"{dtype}: {gain:.0f} x plain torch")


if __name__ == "__main__":
    main()
