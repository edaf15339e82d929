"""An input that two machines answer differently, looked for where their trees differ."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DecisionMachinesError
from ...machine import direct_sum
from ...machine.coded import coded
from ...machine.words import words_of_row
from ..change.goals import predicted
from ..space.cells import Cells
from ..space.regions import regions, some_input

if TYPE_CHECKING:
    from jaxtyping import Float

    from ...machine import DecisionMachine

MOST_PAIRS = 200
"""Changed trees that are searched."""
MOST_ROWS = 200
"""Inputs that are tried for each of them."""


@dataclass(frozen=True)
class Witness:
    """One input and both answers to it."""

    x: Float[np.ndarray, "n"]
    what: str
    """"predictions", or "margins" where no two predictions were found to differ."""
    a: Any
    b: Any
    words: str
    """The features that either machine reads, by name, with their values or labels."""

    def __str__(self) -> str:
        def said(value: Any) -> str:
            return str(np.asarray(value).tolist() if np.ndim(value) else value)

        return f"{self.what} {said(self.a)} and {said(self.b)} at {self.words}"

    def to_dict(self) -> dict[str, Any]:
        def plain(value: Any) -> Any:
            return np.asarray(value).tolist()

        x = [None if v != v else v for v in self.x.tolist()]
        return {
            "x": x,
            "what": self.what,
            "a": plain(self.a),
            "b": plain(self.b),
            "words": self.words,
        }


def differing_input(
    a: DecisionMachine,
    b: DecisionMachine,
    pairs: list[tuple[int, int]],
    removed: list[int],
    added: list[int],
) -> Witness | None:
    """An input with two predictions, or at least two margins; None where none was found."""
    if a.n_features != b.n_features or a.is_oblique or b.is_oblique:
        return None
    if a.columns.look_ups is not None or b.columns.look_ups is not None:
        return None
    rows = [np.zeros((1, a.n_features))]
    for i, j in pairs[:MOST_PAIRS]:
        rows.append(_parting_rows(a.tree(i), b.tree(j)))
    for machine, alone in ((a, removed), (b, added)):
        for i in alone[:MOST_PAIRS]:
            rows.append(_rows_of(machine.tree(i)))
    if not (pairs or removed or added):
        for i in range(min(a.n_trees, 10)):
            rows.append(_rows_of(a.tree(i)))
    return _first_difference(a, b, np.concatenate(rows))


def _first_difference(a: DecisionMachine, b: DecisionMachine, X: np.ndarray) -> Witness | None:
    x, y = predicted(a, X), predicted(b, X)
    if x.shape == y.shape:
        at = _rows_that_differ(x, y)
        if len(at):
            best = at[0]
            if x.dtype.kind == "f" and y.dtype.kind == "f":
                best = at[np.argmax(np.abs(x[at] - y[at]).reshape(len(at), -1).max(axis=1))]
            return Witness(X[best], "predictions", x[best], y[best], _words(a, b, X[best]))
    else:
        return Witness(X[0], "predictions", x[0], y[0], _words(a, b, X[0]))
    x, y = coded(a).margin(X, n_threads=1), coded(b).margin(X, n_threads=1)
    if x.shape == y.shape:
        at = _rows_that_differ(x, y)
        if len(at):
            return Witness(X[at[0]], "margins", x[at[0]], y[at[0]], _words(a, b, X[at[0]]))
    return None


def _words(a: DecisionMachine, b: DecisionMachine, x: Float[np.ndarray, "n"]) -> str:
    """The input in the words of the machine that has names, features that neither reads apart."""
    read = {f for machine in (a, b) for f in _features_read(machine)}
    columns = b.columns if a.columns.names is None and b.columns.names is not None else a.columns
    return words_of_row(columns, x, sorted(read) or range(len(x)))


def _features_read(machine: DecisionMachine) -> list[int]:
    read = machine.columns.feature[machine.selection]
    linear = read[:0] if machine.linear is None else machine.linear.feature
    return [int(f) for f in np.union1d(read, linear)]


def _rows_that_differ(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    differs = x != y
    if x.dtype.kind == "f" and y.dtype.kind == "f":
        differs &= ~(np.isnan(x) & np.isnan(y))
    return np.flatnonzero(differs.reshape(len(x), -1).any(axis=1))


def _parting_rows(a: DecisionMachine, b: DecisionMachine) -> Float[np.ndarray, "m n"]:
    """Inputs that leave two trees at leaves of different values."""
    try:
        joint = direct_sum([_plain(a), _plain(b)])
    except DecisionMachinesError:
        # They read their columns in ways that no one machine can: try what each tells apart.
        return np.concatenate([_rows_of(a), _rows_of(b)])
    cells = Cells(joint)
    rows: list[np.ndarray] = []
    for leaf, sets in regions(cells, 0):
        value = joint.V[leaf].tobytes()
        for other, both in regions(cells, 1, sets):
            if joint.V[other].tobytes() != value:
                rows.append(some_input(cells, both))
                if len(rows) == MOST_ROWS:
                    return np.array(rows)
    return np.array(rows).reshape(-1, joint.n_features)


def _rows_of(tree: DecisionMachine) -> Float[np.ndarray, "m n"]:
    """An input for every leaf of a tree."""
    cells = Cells(tree)
    rows = []
    for _, sets in regions(cells, 0):
        rows.append(some_input(cells, sets))
        if len(rows) == MOST_ROWS:
            break
    return np.array(rows).reshape(-1, tree.n_features)


def _plain(machine: DecisionMachine) -> DecisionMachine:
    """The machine without names, labels and link, which do not decide where numbers go."""
    columns = replace(
        machine.columns.coded(), names=None, absent=0.0, integers_as=machine.columns.dtype
    )
    return replace(machine, columns=columns, output=machine.output.as_margins())
