"""The template matrix B as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, MissingLibraryError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..machine import DecisionMachine

LEFT, RIGHT = "#3b6fb6", "#d9822b"
"""Blue and orange: told apart by most colour-blind readers, and in grey."""
MOST_CELLS = 4_000_000


def plot_templates(machine: DecisionMachine, ax: Any = None, *, trees: Iterable[int] | None = None):
    """Draw B: a row for each leaf, a column for each test, blue for left (-1), orange for right.

    Parameters
    ----------
    ax
        Matplotlib axes; made if left out.
    trees
        The trees to draw; all by default.

    Returns
    -------
    The axes.
    """
    plt = _pyplot()
    from matplotlib.colors import BoundaryNorm, ListedColormap
    from matplotlib.patches import Patch

    if trees is not None:
        machine = machine.mask(np.setdiff1d(np.arange(machine.n_trees), list(trees)))
    if machine.n_leaves * machine.n_tests > MOST_CELLS:
        raise InputError(
            "drawing templates",
            f"{machine.n_leaves} leaves × {machine.n_tests} tests are more than a picture can hold",
            "choose a few trees: plot_templates(trees=[0, 1])",
        )
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 7), layout="constrained")
    shown = machine.B.toarray()
    colours = ListedColormap([LEFT, "#ffffff00", RIGHT])
    ax.imshow(
        shown,
        cmap=colours,
        norm=BoundaryNorm([-1.5, -0.5, 0.5, 1.5], 3),
        aspect="auto",
        interpolation="nearest",
    )
    if machine.n_trees > 1:
        for test, leaf in zip(
            machine.trees.test_start[1:-1], machine.trees.leaf_start[1:-1], strict=True
        ):
            ax.axvline(test - 0.5, color="0.8", linewidth=0.5)
            ax.axhline(leaf - 0.5, color="0.8", linewidth=0.5)
    if machine.n_tests <= 20 and machine.n_leaves <= 20:
        ax.set_xticks(
            range(machine.n_tests),
            [_words(machine, j) for j in range(machine.n_tests)],
            rotation=30,
            ha="right",
        )
        ax.set_yticks(range(machine.n_leaves), [f"leaf {i}" for i in range(machine.n_leaves)])
    ax.set_xlabel("test")
    ax.set_ylabel("leaf")
    ax.set_title(f"Templates B, {machine.n_leaves} × {machine.n_tests}")
    ax.legend(
        handles=[
            Patch(color=LEFT, label="−1: the leaf is to the left"),
            Patch(color=RIGHT, label="+1: to the right"),
        ],
        loc="upper right",
        framealpha=0.9,
    )
    return ax


def _words(machine: DecisionMachine, test: int) -> str:
    if machine.is_oblique:
        return f"test {test}"
    return f"{machine.columns.name(machine.selection[test])} ≤ {machine.t[test]:.4g}"


def _pyplot():
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingLibraryError(
            "drawing a picture",
            "matplotlib is not installed",
            "pip install 'decision-machines[plot]'",
        ) from None
    return plt
