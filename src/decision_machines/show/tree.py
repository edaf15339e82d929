"""A tree as a tree: tests above, leaves below from left to right, the path of a row lit."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..explain.given import leaves_of, with_labels_of
from ..machine.words import holds_shares, words_of_leaf, words_of_test
from .display import CLASSES, LEFT, QUIET, RIGHT, Display, one_tree

if TYPE_CHECKING:
    from ..machine import DecisionMachine

MOST_LEAVES = 256
MOST_WORDS = 32
"""Leaves of a tree whose nodes still have room for words."""


class TreeDisplay(Display):
    """One tree, drawn with its tests and leaves.

    Parameters
    ----------
    tree
        Which of a machine's trees; may be left out where it has one.
    x
        A row whose path is lit.
    X
        Rows that are counted on their way: the more go along a branch, the thicker it is.

    Attributes
    ----------
    position
        (J + L, 2) where nodes stand, tests first: leaves left to right, tests between their
        children.
    path
        The tests on the way of `x`, and its leaf.
    """

    def __init__(
        self, machine: DecisionMachine, *, tree: int | None = None, x: Any = None, X: Any = None
    ) -> None:
        one = self.machine = one_tree(machine, tree, "drawing a tree")
        if one.n_leaves > MOST_LEAVES:
            raise InputError(
                "drawing a tree",
                f"{one.n_leaves} leaves are more than a picture can hold",
                "look at it with explore(), or draw its templates with plot_templates()",
            )
        self.name = None if machine.n_trees == 1 else f"tree {tree or 0} of {machine.n_trees}"
        self.position = _positions(one)
        self.path = None if x is None else _path(one, x)
        self.counts = None if X is None else _counts(one, X)
        self.whole: frozenset[int] = frozenset()
        """Features known to be whole numbers, by the rows."""
        for rows in (x, X):
            if rows is not None:
                self.machine, whole = with_labels_of(self.machine, rows)
                self.whole |= whole
        self.size = (min(max(5.0, 1.45 * min(one.n_leaves, MOST_WORDS)), 26.0), 1.4 + one.depth)

    def _draw(self, ax: Any) -> None:
        machine = self.machine
        has_words = machine.n_leaves <= MOST_WORDS
        self._draw_branches(ax, has_words)
        for node in range(len(self.position)):
            x, y = self.position[node]
            is_leaf = node >= machine.n_tests
            colour = self._colour(node - machine.n_tests) if is_leaf else "0.35"
            is_lit = self.path is not None and node in self.path
            if not has_words:
                ax.plot(x, y, "s" if is_leaf else "o", color=colour, ms=6 if is_lit else 3)
                continue
            ax.annotate(
                self._words(node),
                (x, y),
                ha="center",
                va="center",
                fontsize=9,
                fontweight="bold" if is_lit else None,
                bbox={
                    "boxstyle": "round,pad=0.35" if not is_leaf else "square,pad=0.35",
                    "facecolor": "white",
                    "edgecolor": colour,
                    "linewidth": 2.4 if is_lit else 1.2,
                },
            )
        ax.set_xlim(-0.7, machine.n_leaves - 0.3)
        ax.set_ylim(-machine.depth - 0.5, 0.5)
        ax.axis("off")
        ax.set_title(self.name or "")

    def _draw_branches(self, ax: Any, has_words: bool) -> None:
        machine = self.machine
        widths = np.full(len(self.position), 1.2)
        if self.counts is not None:
            widths = 0.4 + 7.0 * self.counts / max(self.counts.max(), 1)
        for test, children in enumerate(machine.children):
            for side, child in enumerate(children):
                node = int(child) if child >= 0 else machine.n_tests + ~int(child)
                is_lit = self.path is not None and test in self.path and node in self.path
                (xa, ya), (xb, yb) = self.position[test], self.position[node]
                colour = (LEFT, RIGHT)[side] if is_lit or self.path is None else QUIET
                ax.plot(
                    [xa, xb], [ya, yb], color=colour, lw=max(widths[node], 3.0 * is_lit), zorder=0
                )
                if has_words and test == 0:
                    text = ("yes", "no")[side]
                    ax.text((xa + xb) / 2, (ya + yb) / 2 + 0.08, text, color=colour, ha="center")

    def _words(self, node: int) -> str:
        machine = self.machine
        count = "" if self.counts is None else f"\n{self.counts[node]} rows"
        if node >= machine.n_tests:
            return words_of_leaf(machine, node - machine.n_tests, brief=True) + count
        return "\n".join(textwrap.wrap(words_of_test(machine, node, whole=self.whole), 22)) + count

    def _colour(self, leaf: int) -> str:
        if holds_shares(self.machine):
            return CLASSES[int(self.machine.V[leaf].argmax()) % len(CLASSES)]
        return "0.2"


def _positions(machine: DecisionMachine) -> np.ndarray:
    position = np.zeros((machine.n_tests + machine.n_leaves, 2))
    position[machine.n_tests :, 0] = np.arange(machine.n_leaves)
    nodes = machine.children.astype(np.int64)
    nodes = np.where(nodes < 0, machine.n_tests + ~nodes, nodes)
    order = _parents_first(machine)
    for test in order:
        position[nodes[test], 1] = position[test, 1] - 1
    for test in reversed(order):
        position[test, 0] = position[nodes[test], 0].mean()
    return position


def _parents_first(machine: DecisionMachine) -> list[int]:
    order = [0] if machine.n_tests else []
    for test in order:
        order.extend(int(child) for child in machine.children[test] if child >= 0)
    return order


def _path(machine: DecisionMachine, x: Any) -> list[int]:
    found = leaves_of(machine, x)
    if len(found) != 1:
        raise InputError("drawing a tree", f"{len(found)} rows", "give one row: x=X[0]")
    leaf = int(found[0, 0])
    tests = np.flatnonzero(machine.B[[leaf]].toarray()[0])
    return [*tests.tolist(), machine.n_tests + leaf]


def _counts(machine: DecisionMachine, X: Any) -> np.ndarray:
    """Rows that reach each node, tests first."""
    at_leaf = np.bincount(leaves_of(machine, X)[:, 0], minlength=machine.n_leaves)
    return np.concatenate([abs(machine.B).T @ at_leaf, at_leaf]).astype(int)
