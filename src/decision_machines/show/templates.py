"""The template matrix B as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..machine.words import words_of_test
from .display import LEFT, RIGHT, Display

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..machine import DecisionMachine

MOST_CELLS = 4_000_000


class TemplatesDisplay(Display):
    """B: a row for each leaf, a column for each test, blue for left (-1), orange for right.

    Parameters
    ----------
    trees
        The trees to draw; all by default.
    """

    size = (7.0, 7.0)

    def __init__(self, machine: DecisionMachine, *, trees: Iterable[int] | None = None) -> None:
        if trees is not None:
            machine = machine.mask(
                np.setdiff1d(np.arange(machine.n_trees), machine.trees.choose(trees))
            )
        if machine.n_leaves * machine.n_tests > MOST_CELLS:
            raise InputError(
                "drawing templates",
                f"{machine.n_leaves} leaves × {machine.n_tests} tests are more than a picture "
                "can hold",
                "choose a few trees: plot_templates(trees=[0, 1])",
            )
        self.machine = machine

    def _draw(self, ax: Any) -> None:
        from matplotlib.colors import BoundaryNorm, ListedColormap
        from matplotlib.patches import Patch

        machine = self.machine
        ax.imshow(
            machine.B.toarray(),
            cmap=ListedColormap([LEFT, "#ffffff00", RIGHT]),
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
            words = [words_of_test(machine, j) for j in range(machine.n_tests)]
            ax.set_xticks(range(machine.n_tests), words, rotation=30, ha="right")
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
