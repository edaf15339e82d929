"""Tests and leaves in words, as every room that speaks of them says them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .columns import Rule

if TYPE_CHECKING:
    from .columns import Columns
    from .machine import DecisionMachine

MOST_TERMS = 4
MOST_LABELS = 6


def words_of_test(machine: DecisionMachine, test: int) -> str:
    """What must hold for a test to answer left.

    Examples
    --------
    >>> import decision_machines as dm
    >>> words_of_test(dm.figure_one(), 0)
    'x[1] ≤ 1'
    """
    t = machine.t[test]
    if machine.is_oblique:
        row = machine.S[[test]]
        return f"{_weighted(machine.columns, row.indices, row.data)} ≤ {number(t)}"
    column = int(machine.selection[test])
    if machine.columns.rule[column] == Rule.MEMBER:
        return words_of_categories(machine.columns, column, is_left=True)
    return f"{machine.columns.name(column)} ≤ {number(t)}"


def words_of_categories(columns: Columns, column: int, *, is_left: bool) -> str:
    """The categories for which a member column is 0 (left of its test) or 1 (right)."""
    members, answers, others = columns.members(column)
    asked = -1 if is_left else 1
    outside = others == asked
    members = members[(answers != asked) if outside else (answers == asked)]
    labels = columns.categories.get(int(columns.feature[column]))
    shown = [_label(labels, int(k)) for k in members[:MOST_LABELS]]
    more = f", … {len(members)} in all" if len(members) > MOST_LABELS else ""
    return f"{columns.name(column)} {'not in' if outside else 'in'} {{{', '.join(shown)}{more}}}"


def words_of_leaf(machine: DecisionMachine, leaf: int) -> str:
    """A leaf's value: its label and share where it holds the classes' shares, else its numbers.

    Examples
    --------
    >>> import decision_machines as dm
    >>> words_of_leaf(dm.figure_one(), 4)
    '5'
    """
    values = machine.V[leaf]
    if machine.linear is not None:
        return f"{number(values[0])} + w · x"
    if machine.output.classes is not None and holds_shares(machine):
        best = int(values.argmax())
        return f"{machine.output.classes[0][best]} ({values[best] / values.sum():.0%})"
    if len(values) > MOST_TERMS:
        return f"{number(values[0])}, … {len(values)} values"
    return ", ".join(number(v) for v in values)


def holds_shares(machine: DecisionMachine) -> bool:
    """Whether leaves hold a share for each class, as the trees of a classifying forest do."""
    classes = machine.output.classes
    return (
        classes is not None
        and len(classes) == 1
        and machine.V.shape[1] == len(classes[0])
        and bool(np.all(machine.V >= 0))
        and bool(np.all(machine.V.sum(axis=1) > 0))
    )


def number(x: float) -> str:
    """A number, short: four digits, whole numbers whole."""
    x = float(x)
    return f"{x:.0f}" if x == np.trunc(x) and abs(x) < 1e6 else f"{x:.4g}"


def _label(labels: tuple | None, code: int) -> str:
    return str(labels[code]) if labels is not None and code < len(labels) else str(code)


def _weighted(columns: Columns, which: np.ndarray, weights: np.ndarray) -> str:
    """The largest terms of a weighted sum of columns."""
    order = np.argsort(-np.abs(weights), kind="stable")
    terms = [f"{number(weights[i])}·{columns.name(int(which[i]))}" for i in order[:MOST_TERMS]]
    more = f" + … {len(order)} terms" if len(order) > MOST_TERMS else ""
    return (" + ".join(terms) or "0").replace("+ -", "− ") + more
