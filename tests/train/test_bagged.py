"""Averages of trees, whose leaves may be linear."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import decision_machines as dm
from decision_machines.train.forests import average


def test_the_average_answers_the_mean_also_of_linear_leaves():
    one = dm.figure_one()
    rng = np.random.default_rng(0)
    sizes = rng.integers(0, 3, one.n_leaves)
    linear = dm.LinearLeaves(
        rng.normal(size=one.V.shape),
        np.concatenate([[0], np.cumsum(sizes)]),
        rng.integers(0, 4, sizes.sum()),
        rng.normal(size=(sizes.sum(), 1)),
    )
    two = replace(one, linear=linear)
    X = rng.uniform(0, 7, (50, 4))
    X[::7, 2] = np.nan
    for machines in ([one, one], [one, two], [two, two, one]):
        mean = np.mean([machine.predict(X) for machine in machines], axis=0)
        np.testing.assert_allclose(average(machines).predict(X), mean)
