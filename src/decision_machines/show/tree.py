"""A tree drawn: a small one with leaves below, a larger one indented; a row's path highlighted."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..explain.given import leaves_of, with_labels_of
from ..machine.words import holds_shares, words_of_leaf, words_of_test
from .display import CLASSES, LEFT, QUIET, RIGHT, Display, one_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..machine import DecisionMachine

MOST_LEAVES = 256
MOST_ACROSS = 16
"""Leaves that have room for words side by side."""
MOST_WORDS = 128
"""Leaves that have room for words one below the other."""
LINE = 0.26
"""Inches of a line of an indented tree."""
STEP = 0.28
"""Inches by which each level of an indented tree begins further to the right."""
LETTER = 0.078
"""Inches of a letter, about, in words of 9 points."""


class TreeDisplay(Display):
    """One tree, drawn with its tests and leaves.

    Up to 16 leaves stand side by side below their tests. More stand one below the other, and each
    test on a line of its own, between the leaves of its left and of its right side, as in the
    explorer (up is yes, down is no): no two boxes can overlap. Beyond 128 leaves there are dots
    without words.

    Parameters
    ----------
    tree
        Which of a machine's trees; may be left out where it has one.
    x
        A row whose path is highlighted.
    X
        Rows that are counted on their way: the more go along a branch, the thicker it is.

    Attributes
    ----------
    position
        (J + L, 2) where nodes stand, tests first: leaves left to right, tests between their
        children. Of an indented tree in inches: leaves from the top down, at their height.
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
        self.is_indented = MOST_ACROSS < one.n_leaves <= MOST_WORDS
        self.path = None if x is None else _path(one, x)
        self.counts = None if X is None else _counts(one, X)
        self.whole: frozenset[int] = frozenset()
        """Features known to be whole numbers, by the rows."""
        for rows in (x, X):
            if rows is not None:
                self.machine, whole = with_labels_of(self.machine, rows)
                self.whole |= whole
        if self.is_indented:
            self.position = self._indented()
            self.size = (self._width(), LINE * (one.n_leaves + 1))
        else:
            self.position = _positions(one)
            self.size = (max(5.0, 1.45 * min(one.n_leaves, MOST_ACROSS)), 1.4 + one.depth)

    def _indented(self) -> np.ndarray:
        """In inches: levels to the right, and from the top down a line for each test and leaf."""
        one = self.machine
        position = np.zeros((one.n_tests + one.n_leaves, 2))
        level = np.zeros(one.n_tests)
        for test in _parents_first(one):
            for child in one.children[test][one.children[test] >= 0]:
                level[child] = level[test] + 1
        # A test stands between the last leaf of its left side and the first of its right side.
        last_left = np.array([_last_leaf(one, int(left)) for left in one.children[:, 0]], int)
        position[: one.n_tests, 0] = STEP * level
        position[: one.n_tests, 1] = -LINE * (last_left + 1)
        position[one.n_tests :, 0] = self._reach(position)
        position[one.n_tests :, 1] = -LINE * (np.arange(one.n_leaves) + 0.5)
        return position

    def _reach(self, position: np.ndarray) -> float:
        """Where the longest line of the tests ends."""
        tests = range(self.machine.n_tests)
        ends = [float(position[test, 0]) + LETTER * len(self._words(test)) for test in tests]
        return max(ends) + 0.3

    def _width(self) -> float:
        leaves = range(self.machine.n_tests, len(self.position))
        words = max(len(self._words(leaf)) for leaf in leaves)
        return float(self.position[-1, 0] + LETTER * words + 0.5)

    def _draw(self, ax: Any) -> None:
        if self.is_indented:
            self._draw_indented(ax)
            return
        machine = self.machine
        has_words = machine.n_leaves <= MOST_ACROSS
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

    def _draw_indented(self, ax: Any) -> None:
        machine = self.machine
        ax.set_xlim(-0.15, self.size[0] - 0.15)
        ax.set_ylim(-self.size[1] + LINE / 2, LINE / 2)
        ax.axis("off")
        ax.set_title(self.name or "")
        widths = self._branch_widths()
        for test, side, node, colour, is_lit in self._branches():
            (xa, ya), (xb, yb) = self.position[test] + (0.08, 0), self.position[node]
            lw = max(0.7 * widths[node], 3.0 * is_lit)
            ax.plot([xa, xa, xb], [ya, yb, yb], color=colour, lw=lw, zorder=side * 0.1)
        # On axes smaller than ours the words shrink with them.
        room = ax.get_window_extent().height / ax.figure.dpi
        size = 9 * min(1.0, room / self.size[1])
        for node, (x, y) in enumerate(self.position):
            is_leaf = node >= machine.n_tests
            is_lit = self.path is not None and node in self.path
            ax.text(
                x,
                y,
                self._words(node),
                va="center",
                fontsize=size,
                fontweight="bold" if is_lit else None,
                bbox={
                    "boxstyle": "square,pad=0.2" if is_leaf else "round,pad=0.2",
                    "facecolor": "white",
                    "edgecolor": self._colour(node - machine.n_tests) if is_leaf else "0.35",
                    "linewidth": 2.0 if is_lit else 0.8,
                },
            )

    def _branch_widths(self) -> np.ndarray:
        """How thick the branch to each node is: by the rows that go along, where they are known."""
        if self.counts is None:
            return np.full(len(self.position), 1.2)
        widths: np.ndarray = 0.4 + 7.0 * self.counts / max(self.counts.max(), 1)
        return widths

    def _branches(self) -> Iterator[tuple[int, int, int, str, bool]]:
        """Every branch: its test, its side, the node that it leads to, its colour, whether lit."""
        machine = self.machine
        for test, children in enumerate(machine.children):
            for side, child in enumerate(children):
                node = int(child) if child >= 0 else machine.n_tests + ~int(child)
                is_lit = self.path is not None and test in self.path and node in self.path
                colour = (LEFT, RIGHT)[side] if is_lit or self.path is None else QUIET
                yield test, side, node, colour, is_lit

    def _draw_branches(self, ax: Any, has_words: bool) -> None:
        widths = self._branch_widths()
        for test, side, node, colour, is_lit in self._branches():
            (xa, ya), (xb, yb) = self.position[test], self.position[node]
            ax.plot([xa, xb], [ya, yb], color=colour, lw=max(widths[node], 3.0 * is_lit), zorder=0)
            if has_words and test == 0:
                text = ("yes", "no")[side]
                ax.text((xa + xb) / 2, (ya + yb) / 2 + 0.08, text, color=colour, ha="center")

    def _words(self, node: int) -> str:
        machine = self.machine
        between = ", " if self.is_indented else "\n"
        count = "" if self.counts is None else f"{between}{self.counts[node]} rows"
        if node >= machine.n_tests:
            return words_of_leaf(machine, node - machine.n_tests, brief=True) + count
        words = words_of_test(machine, node, whole=self.whole)
        return (words if self.is_indented else "\n".join(textwrap.wrap(words, 22))) + count

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


def _last_leaf(machine: DecisionMachine, node: int) -> int:
    """The last leaf below a node (a test, or ~leaf)."""
    while node >= 0:
        node = int(machine.children[node, 1])
    return ~node


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
