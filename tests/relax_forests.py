"""Forests whose thresholds lie within the data, and rows for them."""

from dataclasses import replace

import numpy as np
import torch
from strategies import make_machine


def make_forest(leaves=(7, 1, 12, 4), seed=0, n_features=4, **options):
    """A ragged forest over plain features, thresholds drawn as the rows are."""
    rng = np.random.default_rng(seed)
    options = {"n_outputs": 2, "values": "real", "plain_output": True, **options}
    machine = make_machine(list(leaves), rng, n_features=n_features, rules=False, **options)
    t = rng.standard_normal(machine.n_tests).astype(machine.columns.dtype)
    return replace(machine, t=t)


def make_rows(m, n_features=4, seed=0, dtype=torch.float64):
    """Rows that stand on no threshold."""
    x = np.random.default_rng(seed).standard_normal((m, n_features))
    return torch.from_numpy(x).to(dtype)


def exit_weights(machine, weights, X):
    """(m, T) the weight that each row's exit leaf has in each tree."""
    exits = torch.from_numpy(machine.apply(X.numpy()) + machine.trees.leaf_start[:-1])
    return weights.gather(-1, exits)
