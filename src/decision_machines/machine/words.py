"""Tests, leaves and inputs in words, as every room that speaks of them says them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .conditions import conditions
from .digits import digits, percent, rounded
from .label_words import label_text, labels_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from jaxtyping import Float

    from .columns import Columns
    from .machine import DecisionMachine

MOST_VALUES = 4
"""Values of a leaf that are written; of more, the first."""
MOST_FEATURES = 30
"""Features of an input that are written."""


def words_of_test(
    machine: DecisionMachine, test: int, answer: int = -1, *, whole: Collection[int] = ()
) -> str:
    """What must hold for a test to answer left (or right, +1), in little room.

    Sets of many categories and sums of many columns are cut, and say so.

    Examples
    --------
    >>> import decision_machines as dm
    >>> words_of_test(dm.figure_one(), 0), words_of_test(dm.figure_one(), 0, +1)
    ('x[1] ≤ 1', 'x[1] > 1 or missing')
    """
    return conditions(machine, [test], [answer], whole=whole, brief=True)[0].text


def words_of_leaf(machine: DecisionMachine, leaf: int, *, brief: bool = False) -> str:
    """A leaf's value: its label and share where it holds the classes' shares, else its numbers.

    Numbers read back as they are; brief, they have four digits, and ≈ before them where those
    are not all.

    Examples
    --------
    >>> import decision_machines as dm
    >>> words_of_leaf(dm.figure_one(), 4)
    '5'
    """
    values = machine.V[leaf]

    def write(value: float) -> str:
        return rounded(value) if brief else digits(value, machine.V.dtype)

    if machine.linear is not None:
        return f"{write(values[0])} + w · x"
    if machine.output.classes is not None and holds_shares(machine):
        best = int(values.argmax())
        share = percent(float(values[best]) / sum(values.tolist()))
        return f"{machine.output.classes[0][best]} ({share})"
    if len(values) > MOST_VALUES:
        return f"{write(values[0])}, … {len(values)} values"
    return ", ".join(write(v) for v in values)


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


def words_of_value(columns: Columns, feature: int, x: float) -> str:
    """A feature's value: its label, or digits that read back as the same number.

    Examples
    --------
    >>> from decision_machines import Columns
    >>> colours = Columns(2, categories={0: ("red", "blue")})
    >>> words_of_value(colours, 0, 1.0), words_of_value(colours, 1, 0.5)
    ('blue', '0.5')
    """
    if x != x:
        return "missing"
    labels = labels_of(columns, feature)
    if labels is None:
        return digits(x, columns.dtype)
    return label_text(columns, feature, int(x)) if 0 <= x < len(labels) else "another label"


def words_of_row(
    columns: Columns, x: Float[np.ndarray, "n"], features: Iterable[int] | None = None
) -> str:
    """An input: every feature with its value, or only those named; of very many the first.

    Examples
    --------
    >>> import decision_machines as dm
    >>> words_of_row(dm.figure_one().columns, np.array([2, 1, np.nan, 0.5]))
    'x[1] = 2, x[2] = 1, x[3] = missing, x[4] = 0.5'
    """
    chosen = list(range(len(x)) if features is None else features)
    said = [
        f"{columns.feature_name(f)} = {words_of_value(columns, f, float(x[f]))}"
        for f in chosen[:MOST_FEATURES]
    ]
    more = f", … {len(chosen)} features" if len(chosen) > MOST_FEATURES else ""
    return ", ".join(said) + more
