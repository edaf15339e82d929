"""Cells of a feature in words: the values or the categories that they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...machine import Rule
from ...machine.conditions import words_of_categories, words_of_interval
from .cells import from_bits

if TYPE_CHECKING:
    from .cells import Cells


def words_of_cells(cells: Cells, feature: int, bits: int) -> str:
    """Where a feature lies in these cells.

    Examples
    --------
    >>> import decision_machines as dm
    >>> from decision_machines.explain.space.cells import Cells
    >>> cells = Cells(dm.figure_one())  # x[2] is tested at 2 and at 4
    >>> words_of_cells(cells, 1, 0b1010)
    '2 < x[2] ≤ 4 or missing'
    """
    columns, ends = cells.machine.columns, cells.ends[feature]
    inside = from_bits(bits, len(ends) + 1)
    missing = bool(inside[-1])
    if np.all(cells.rule[cells.tests[feature]] == Rule.MEMBER):
        own = np.unique(cells.machine.selection[cells.tests[feature]]).tolist()
        codes = sorted({k for c in own for k in columns.members(c)[0].tolist() if k < 2**31})
        at = cells.cell(feature, np.array([-1.0, *codes]))
        others, listed = bool(inside[at[0]]), inside[at[1:]]
        told = [k for k, is_in in zip(codes, listed, strict=True) if bool(is_in) != others]
        return words_of_categories(columns, feature, told, excludes=others, missing=missing)[0]
    name = columns.feature_name(feature)
    runs = np.flatnonzero(np.diff(np.concatenate([[0], inside[:-1], [0]]).astype(int)))
    parts = [
        words_of_interval(
            name,
            None if a == 0 else float(ends[a - 1]),
            None if b == len(ends) else float(ends[b - 1]),
            columns.dtype,
        )
        for a, b in runs.reshape(-1, 2).tolist()
    ]
    if not parts:
        return f"{name} is missing"
    return " or ".join(parts + ["missing"] * missing)
