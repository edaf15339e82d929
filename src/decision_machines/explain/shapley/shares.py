"""What Shapley values by paths need of a machine beside its tests: shares of cover, features."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...errors import InputError, UnsupportedModelError
from ...machine.look_ups import check_single_features

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from ...machine import DecisionMachine

DOING = "computing Shapley values"


def check_machine(machine: DecisionMachine) -> None:
    """Refuse machines whose Shapley values have no formula over templates here."""
    if machine.is_oblique:
        raise UnsupportedModelError(
            DOING,
            "tests that weigh several features: no share of such a test belongs to one feature",
            "explain a machine whose tests read one feature each",
        )
    check_single_features(machine, DOING)
    if machine.linear is not None:
        raise UnsupportedModelError(
            DOING,
            "leaves that are linear functions: a leaf's value then depends on the row itself",
            "explain a model trained with constant leaves (LightGBM: linear_tree=False)",
        )
    if machine.output.aggregate != "sum":
        raise UnsupportedModelError(
            DOING,
            f"trees combined by their {machine.output.aggregate}, which is not a sum",
            "explain the trees one by one: machine.tree(i)",
        )


def has_path_values(machine: DecisionMachine) -> bool:
    """Whether there are Shapley values by paths: covers, and trees that are summed."""
    return (
        machine.cover is not None
        and not machine.is_oblique
        and machine.linear is None
        and machine.output.aggregate == "sum"
    )


def shares(machine: DecisionMachine) -> Float[np.ndarray, "J"]:
    """The share of each test's cover that goes left.

    Of a test that nothing reached each side has half: what is below it has no weight whichever
    way.
    """
    cover = machine.cover
    if cover is None:
        raise InputError(
            DOING,
            f"neither covers nor a background: the machine ({machine.source or 'without source'}) "
            "does not say how much training weight reached its leaves",
            "give rows to compare with (background=rows), or count covers on training rows "
            "(machine = machine.with_cover(rows))",
        )
    children = machine.children
    held = np.where(
        children >= 0,
        cover.tests[np.maximum(children, 0)] if machine.n_tests else 0.0,
        cover.leaves[np.maximum(~children, 0)],
    )
    # As the libraries do, by the test's own cover; where rounding left it, by its children's.
    total = np.where(cover.tests > 0, cover.tests, held.sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        left = np.where(total > 0, held[:, 0] / total, 0.5)
    return np.clip(left, 0.0, 1.0)


def test_features(machine: DecisionMachine) -> Int[np.ndarray, "J"]:
    """The feature that each test reads."""
    return np.asarray(machine.columns.feature[machine.selection])


def factor(machine: DecisionMachine) -> float:
    """What every tree's share of the margin is multiplied by."""
    return machine.output.scale / machine.output.divisor


def base_values(machine: DecisionMachine) -> Float[np.ndarray, "k"]:
    """The margin without any feature known: the mean of the leaves, weighted by their cover."""
    c = shares(machine)
    width = machine.V.shape[1]
    V = machine.V.astype(np.float64)
    mean = np.zeros((machine.n_tests, width))
    depth = machine.structure.depth
    for level in range(int(depth.max(initial=-1)), -1, -1):
        at = np.flatnonzero(depth == level)
        below = machine.children[at]
        held = np.where(
            (below >= 0)[:, :, None], mean[np.maximum(below, 0)], V[np.maximum(~below, 0)]
        )
        mean[at] = held[:, 1] + c[at, None] * (held[:, 0] - held[:, 1])
    start, leaf_start = machine.trees.test_start, machine.trees.leaf_start
    is_leaf = np.diff(start) == 0
    roots = np.empty((machine.n_trees, width))
    roots[~is_leaf] = mean[start[:-1][~is_leaf]]
    roots[is_leaf] = V[leaf_start[:-1][is_leaf]]
    return over_outputs(machine, roots)


def over_outputs(machine: DecisionMachine, trees: Float[np.ndarray, "T w"]) -> np.ndarray:
    """(k,) margins from what every tree gives."""
    total = np.zeros(machine.n_outputs)
    if machine.is_narrow:
        np.add.at(total, machine.trees.feeds, trees[:, 0])
    elif len(trees):
        total = trees.sum(axis=0)
    output = machine.output
    base = output.base.astype(np.float64)
    first = base if output.base_first else 0.0
    last = 0.0 if output.base_first else base
    return (total + first) * factor(machine) + last
