"""The native engine held against the plain descent, kernel by kernel and target by target."""

import numpy as np

import decision_machines as dm
from decision_machines.run.engines import native, walk
from decision_machines.run.inputs.features import read_features

TARGETS = dm.engine_info()["available"]
KERNELS = ("auto", "select", "record", "twig", "deep", "raw", "pack")


def expected(machine, X):
    rows = read_features(X, machine.columns)
    block = rows.block(0, rows.n_rows)
    return walk.margin(machine, block), walk.apply(machine, block)


def run(plan, machine, X, leaves=False, n_threads=1):
    shape = (len(X), machine.n_trees if leaves else machine.n_outputs)
    out = np.empty(shape, np.int32 if leaves else machine.output.dtype)
    assert plan.array(X, out, leaves, n_threads)
    return out


def same_bits(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def many(X, n):
    """n rows, the given ones again and again in new orders."""
    rng = np.random.default_rng(n)
    return X[rng.integers(len(X), size=n)]


def check(machine, X, targets=TARGETS, kernels=KERNELS):
    margins, leaves = expected(machine, X)
    for target in targets:
        for kernel in kernels:
            plan = native.compile_plan(machine, target=target, kernel=kernel)
            assert same_bits(run(plan, machine, X), margins), (target, kernel)
            assert np.array_equal(run(plan, machine, X, leaves=True), leaves), (target, kernel)
