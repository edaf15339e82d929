"""Whole tables from files: CSV, Parquet or Arrow, told apart by content."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import csv_text
from .batches import open_batches, reading
from .features import check_distinct, feature_columns, feature_table, ignored_columns
from .kinds import arrow, kind_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..machine import Columns

ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class FeatureTable:
    """The rows of a file for a machine."""

    X: Any
    """An Arrow table of the features, as the machine's `predict` takes it."""
    kept: Any
    """An Arrow table of the columns that were asked for besides."""
    ignored: tuple[str, ...]
    """The names of all other columns."""


def read_table(path: str | os.PathLike[str]) -> Any:
    """The Arrow table in a file; the types of a CSV's columns are guessed from all their cells.

    Raises
    ------
    InputError
        Where there is no such file, or no table in it, or two columns have one name.
    """
    path = os.fspath(path)
    arrow(f"reading {path}")
    kind = kind_of(path)
    if kind == "csv":
        table = csv_text.empty_as_missing(_read_csv(path), lambda name: False)
    else:
        opened = open_batches(path, kind)
        table = _joined(opened, opened.schema.names)
    check_distinct(table.column_names, f"reading {path}")
    return table


def read_features(
    path: str | os.PathLike[str],
    columns: Columns,
    *,
    keep: Sequence[str] = (),
    chosen: Sequence[str] | None = None,
) -> FeatureTable:
    """The rows of a file as a machine reads them, matched to its features by name.

    Parameters
    ----------
    columns
        The machine's; they say what the text of a CSV is read as.
    keep
        Columns to be given besides; they are not features.
    chosen
        The columns that are the features, in their order, where the user says so.

    Raises
    ------
    InputError
        Where the file holds no table, or a column is missing; it says which.
    """
    path = os.fspath(path)
    arrow(f"reading {path}")
    kind = kind_of(path)
    types = csv_text.TextTypes(columns, tuple(keep), chosen)
    opened = open_batches(path, kind, types)
    names = opened.schema.names
    found = feature_columns(columns, names, keep=keep, chosen=chosen)
    used = list(dict.fromkeys([*found, *keep]))
    if kind == "csv":
        kinds = {name: opened.schema.field(name).type for name in found}
        table = _read_csv(path, names, used, kinds)
        table = csv_text.empty_as_missing(
            table, lambda name: name not in keep and types.takes_empty_text(name)
        )
    else:
        table = _joined(opened, used)
    return FeatureTable(
        feature_table(table, found, columns),
        table.select(list(dict.fromkeys(keep))),
        ignored_columns(names, found, keep),
    )


def _read_csv(
    path: str, header: Sequence[str] = (), names: Sequence[str] = (), types: Any = None
) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    def read(threads: bool) -> Any:
        with csv_text.open_bytes(path) as file:
            stream = csv_text.open_text(path, file)
            return csv.read_csv(stream, **csv_text.options(path, types, names, threads))

    with reading(f"reading {path}", header):
        try:
            table = read(True)
        except pa.ArrowInvalid:
            read(False)  # threads do not count rows: this one names the broken row
            raise
        table.column_names  # noqa: B018 - decodes the names, which any bytes could be
        return table


def _joined(opened: Any, names: Sequence[str]) -> Any:
    import pyarrow as pa

    schema = pa.schema([opened.schema.field(opened.schema.names.index(name)) for name in names])
    batches = [batch.table for batch in opened.read(names, ROWS_AT_ONCE)]
    return pa.Table.from_batches(batches, schema).unify_dictionaries()
