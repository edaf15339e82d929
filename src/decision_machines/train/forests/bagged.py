"""Many oblique trees: each learned from another draw of the rows, their answers averaged.

Oblique trees are strong and unlike one another, and averages of such trees gain most. The rows that
a draw leaves out choose its tree, so none are held out from all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine import DecisionMachine, LinearLeaves, direct_sum
from ...progress import Verbosity, Watch
from ..fit import Fit

if TYPE_CHECKING:
    from jaxtyping import Float

FEWEST_TO_DRAW = 20
"""Rows; with fewer a draw would leave too few out to choose by, and all are given to every tree."""


def bagged_trees(
    X: Float[np.ndarray, "m n"],
    y: Any,
    *,
    n_classes: int | None = None,
    n_trees: int = 10,
    depth: int = 4,
    leaves: str = "constant",
    sample_weight: Any = None,
    start: Fit | None = None,
    seed: int = 0,
    n_threads: int | None = None,
    verbose: Verbosity = None,
    keep_best_on_interrupt: bool = False,
    **options: Any,
) -> Fit:
    """The average of oblique trees, each of rows drawn with replacement.

    Other parameters are those of `oblique_tree`.

    Parameters
    ----------
    n_trees
        How many trees.
    start
        What this function gave before with the same options: its trees are kept, and the missing
        ones added.
    """
    from ..oblique.tree import oblique_tree

    w = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    fits: list[Fit] = [] if start is None else list(start.report["fits"])
    watch = Watch("oblique trees", n_trees - len(fits), verbose, keep_best=keep_best_on_interrupt)
    with watch:
        for i in range(len(fits), n_trees):
            rng = np.random.default_rng([seed, i])
            times, left_out = _draw(rng, np.asarray(y), n_classes, len(X))
            drawn = times > 0
            validation = None
            if left_out.any():
                validation = (X[left_out], y[left_out], w[left_out])
            fits.append(
                oblique_tree(
                    X[drawn],
                    y[drawn],
                    n_classes=n_classes,
                    depth=depth,
                    leaves=leaves,
                    sample_weight=(w * times)[drawn],
                    validation=validation,
                    seed=int(rng.integers(2**31)),
                    n_threads=n_threads,
                    verbose=False,
                    **options,
                )
            )
            watch.step(trees=len(fits))
    report = {"trees": len(fits), "interrupted": watch.interrupted, "fits": tuple(fits)}
    if not fits:
        raise KeyboardInterrupt  # nothing is there to be kept
    machine = average([fit.machine for fit in fits])
    return Fit(machine, [fit.soft for fit in fits], report, watch.history)


def _draw(
    rng: np.random.Generator, y: np.ndarray, n_classes: int | None, m: int
) -> tuple[np.ndarray, np.ndarray]:
    """How often each row is drawn, and which rows to judge by; every class stays in."""
    if m < FEWEST_TO_DRAW:
        return np.ones(m), np.zeros(m, bool)
    times = rng.multinomial(m, np.full(m, 1 / m)).astype(np.float64)
    if n_classes is not None:
        lost = np.setdiff1d(y, y[times > 0])
        for code in lost:
            times[rng.choice(np.flatnonzero(y == code))] = 1.0
    return times, times == 0


def average(machines: list[DecisionMachine]) -> DecisionMachine:
    """The machine that answers the mean of single trees, whose leaves may be linear."""
    share = 1.0 / len(machines)
    plain = [replace(machine, linear=None) for machine in machines]
    total = direct_sum(plain, [share] * len(machines))
    if any(machine.linear is not None for machine in machines):
        parts = [_linear(machine) for machine in machines]
        sizes = np.concatenate([np.diff(part.start) for part in parts])
        linear = LinearLeaves(
            np.concatenate([part.intercept for part in parts]) * share,
            np.concatenate([[0], np.cumsum(sizes)]),
            np.concatenate([part.feature for part in parts]),
            np.concatenate([part.coefficient for part in parts]) * share,
        )
        total = replace(total, linear=linear)
    return replace(total, source="bagged oblique trees")


def _linear(machine: DecisionMachine) -> LinearLeaves:
    """The leaves as functions; constants are functions without terms."""
    if machine.linear is not None:
        return machine.linear
    k = machine.V.shape[1]
    empty = np.zeros(machine.n_leaves + 1, np.int64)
    return LinearLeaves(machine.V, empty, np.empty(0, np.int32), np.empty((0, k)))
