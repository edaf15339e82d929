"""Attention over the leaves: which leaf each row looks at, hard or at a temperature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..explain.given import features_of, leaves_of
from ..machine.words import words_of_leaf
from .display import Display, one_tree

if TYPE_CHECKING:
    from ..machine import DecisionMachine

MOST_ROWS = 2000


class AttentionDisplay(Display):
    """A row for each row of X, a column for each leaf: the weights that multiply V.

    Rows stand in the order of their exit leaves, so that the hard picture is a staircase.

    Parameters
    ----------
    X
        The rows; 2 000 at most.
    tau
        The temperature; None for the tree itself, whose weights are 0 and 1.
    form
        The relaxation, as in `DecisionMachine.soften`; needs the extra `torch`.
    tree
        Which of a machine's trees; may be left out where it has one.

    Attributes
    ----------
    weights
        (m, L) weights in the order drawn.
    rows
        Which row of X each one is.
    """

    def __init__(
        self,
        machine: DecisionMachine,
        X: Any,
        *,
        tau: float | None = None,
        form: str = "soft_tree",
        tree: int | None = None,
    ) -> None:
        one = self.machine = one_tree(machine, tree, "drawing attention")
        x = features_of(one, X)
        if not 0 < len(x) <= MOST_ROWS:
            raise InputError(
                "drawing attention", f"{len(x)} rows", f"give from 1 to {MOST_ROWS} of them"
            )
        exits = leaves_of(one, X)[:, 0]
        self.rows = np.argsort(exits, kind="stable")
        self.tau, self.form = tau, form
        if tau is None:
            self.weights = np.eye(one.n_leaves)[exits[self.rows]]
        else:
            self.weights = _soft(one, x[self.rows], tau, form)

    def _draw(self, ax: Any) -> None:
        L = self.machine.n_leaves
        image = ax.imshow(
            self.weights, aspect="auto", cmap="Blues", vmin=0, vmax=1, interpolation="nearest"
        )
        if L <= 24:
            words = [f"{i}: {words_of_leaf(self.machine, i, brief=True)}" for i in range(L)]
            ax.set_xticks(range(L), words, rotation=40, ha="right")
        ax.set_xlabel("leaf")
        ax.set_ylabel(f"{len(self.rows)} rows, by exit leaf")
        how = "hard attention" if self.tau is None else f"{self.form}, τ = {self.tau:g}"
        ax.set_title(f"Weights over the leaves: {how}")
        ax.figure.colorbar(image, ax=ax, label="weight")


def _soft(machine: DecisionMachine, x: np.ndarray, tau: float, form: str) -> np.ndarray:
    net = machine.soften(form, tau=tau)
    import torch

    with torch.no_grad():
        _, weights = net(torch.from_numpy(np.ascontiguousarray(x)), return_weights=True)
    found: np.ndarray = weights.numpy()
    return found
