"""A table to learn from: the features, the target and the weights of its rows."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from .tables import read_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jaxtyping import Float


@dataclass(frozen=True)
class LearningTable:
    """Rows whose target is known."""

    features: Any
    """An Arrow table."""
    y: np.ndarray
    w: Float[np.ndarray, "m"] | None
    dropped: int
    """How many rows had no target."""

    def take(self, which: np.ndarray) -> LearningTable:
        """These rows alone."""
        w = None if self.w is None else self.w[which]
        return LearningTable(self.features.take(which), self.y[which], w, self.dropped)


def read_learning_table(
    path: str | os.PathLike[str],
    target: str,
    *,
    drop: Sequence[str] = (),
    weight: str | None = None,
) -> LearningTable:
    """The rows of a file that have a target.

    Parameters
    ----------
    target
        The name of the column to learn.
    drop
        Columns to leave out.
    weight
        The name of a column with the weight of each row.

    Raises
    ------
    InputError
        Where a column is not there, or no row or column is left, or a feature holds infinity.
    """
    doing = f"reading {os.fspath(path)}"
    table = read_table(path)
    taken = list(dict.fromkeys([target, *drop, *([weight] if weight else [])]))
    require_columns(table, taken, doing)
    if target in drop:
        raise InputError(doing, f"--drop {target}, which is the target", "drop other columns")
    table, dropped = with_value(table, target)
    if not table.num_rows:
        raise InputError(doing, f"no row with a value in {target!r}", "give rows with a target")
    w = None if weight is None else _weights(table, weight, doing)
    features = table.drop_columns(taken)
    if not features.num_columns:
        raise InputError(doing, "no column is left to learn from", "drop fewer columns")
    _refuse_infinities(features, doing)
    return LearningTable(features, np.array(table[target].to_pylist()), w, dropped)


def with_value(table: Any, name: str) -> tuple[Any, int]:
    """The rows that have a value in a column, and how many have none."""
    lost = table[name].null_count
    return (table.filter(table[name].is_valid()), lost) if lost else (table, 0)


def require_columns(table: Any, names: Iterable[str], doing: str) -> None:
    """Say which column is not there, and which are."""
    for name in names:
        if name not in table.column_names:
            shown = ", ".join(table.column_names[:12])
            more = " …" if table.num_columns > 12 else ""
            raise InputError(
                doing, f"no column {name!r}", f"choose one of its columns: {shown}{more}"
            )


def _weights(table: Any, name: str, doing: str) -> Float[np.ndarray, "m"]:
    """The column as finite weights of at least 0, some of them above 0."""
    remedy = "name a column of finite numbers of at least 0, some of them above 0"
    try:
        w = np.array(
            [np.nan if value is None else value for value in table[name].to_pylist()], np.float64
        )
    except (TypeError, ValueError):
        raise InputError(doing, f"--weight {name} holds no numbers", remedy) from None
    is_good = np.isfinite(w) & (w >= 0)
    if not np.all(is_good):
        row = int(np.argmin(is_good))
        raise InputError(doing, f"--weight {name} is {w[row]} in row {row}", remedy)
    if not np.any(w > 0):
        raise InputError(doing, f"--weight {name} is 0 in every row", remedy)
    return w


def integer_columns(table: Any) -> list[str]:
    """The names of the columns that hold integers."""
    import pyarrow

    return [field.name for field in table.schema if pyarrow.types.is_integer(field.type)]


def _refuse_infinities(table: Any, doing: str) -> None:
    """Name the column before the rows are divided: their numbers would be no help afterwards."""
    import pyarrow

    for i, field in enumerate(table.schema):
        if not pyarrow.types.is_floating(field.type):
            continue
        n = int(np.count_nonzero(np.isinf(table.column(i).to_numpy())))
        if n:
            raise InputError(
                doing,
                f"column {field.name!r} contains infinity in {n} row{'' if n == 1 else 's'}",
                "leave the cells empty, which means missing, or put a bound there",
            )
