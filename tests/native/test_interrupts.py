"""Ctrl-C ends native work that would go on for hours, by whichever thread it is done."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

WORK = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
import decision_machines as dm
from decision_machines import _native

rng = np.random.default_rng(0)
m, n = 3000, 5
rank = np.ascontiguousarray(np.argsort(rng.normal(size=(n, m)), axis=1).astype(np.uint16))
label = rng.integers(0, 3, m).astype(np.int32)

def searches(n_searches):
    found = _native.TreeSearches(rank, np.full(n, m, np.int32), label, None, np.ones(m), 3)
    for seed in range(n_searches):
        found.add(seed, 64, 2048, 1, 0.05, 10**9, np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.5]))
    return found

def forest(n_trees):
    from sklearn.ensemble import RandomForestRegressor

    X = rng.normal(size=(500, 4))
    model = RandomForestRegressor(n_trees, random_state=0).fit(X, rng.normal(size=500))
    return dm.convert(model)

case, n_threads = sys.argv[1], int(sys.argv[2])
if case in ("search", "one leaf"):
    native = searches(2)
    if case == "search":
        native.grow(0), native.grow(1)
    # Two pieces, one of which is done at once: the caller may be the one that waits.
    args = np.array([1, 10**9]), n_threads
    work = native.advance
elif case == "out of bag":
    native = searches(0)
    args = 10**9, 1, 2, 0, n_threads
    work = native.out_of_bag
elif case == "predict":
    machine = forest(300)
    X = np.broadcast_to(np.zeros((1, 4), np.float32), (10**8, 4))
    out = np.empty((10**8, 1))  # rows that are not reached take no memory
    plan = machine._prepared.compiled(machine).plan
    args = X, out, False, n_threads
    work = plan.array
elif case.startswith("Shapley values"):
    machine, X = forest(60), np.zeros((10**6, 4))
    rows = rng.normal(size=(30, 4)) if case.endswith("rows") else None
    machine.shap_values(X[:2], background=rows)  # what is imported late and made once
    work, args = lambda: machine.shap_values(X, background=rows), ()
elif case == "soft":
    import torch

    torch.set_num_threads(n_threads)
    module = forest(100).soften("soft_tree", tau=0.1)
    args = (torch.zeros((1, 4), dtype=torch.float64).expand(10**7, 4),)
    work = torch.no_grad()(module)
print("working", flush=True)
try:
    work(*args)
except KeyboardInterrupt:
    print("interrupted", flush=True)
if case in ("search", "one leaf"):  # what there is can be looked at and gone on with
    native.advance(np.array([1, 1]), 1)
    assert 0 < native.loss(1) < m
"""


@pytest.mark.parametrize(
    ("case", "n_threads"),
    [
        ("one leaf", 1),
        ("search", 1),
        ("search", 2),
        ("out of bag", 2),
        ("predict", 2),
        ("Shapley values", 1),
        ("Shapley values against rows", 1),
        ("soft", 1),
    ],
)
def test_ctrl_c_ends_native_work_of_hours(case, n_threads):
    if case == "soft":
        pytest.importorskip("torch")
    process = subprocess.Popen(
        [sys.executable, "-c", WORK, case, str(n_threads)], stdout=subprocess.PIPE, text=True
    )
    # Without an answer to the signal the work would outlast this by far.
    limit = threading.Timer(120, process.kill)
    limit.start()
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n"
        threading.Timer(0.3, process.send_signal, [signal.SIGINT]).start()
        assert process.stdout.read() == "interrupted\n"
        assert process.wait() == 0
    finally:
        limit.cancel()
        process.kill()
        process.wait()
