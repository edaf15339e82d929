"""Batches of rows from one file of the data, with the columns that its folders' names hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..files.batches import Batch, Opened, open_batches
from ..files.csv_text import TextTypes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..machine import Columns
    from .parts import Part


def open_part(
    part: Part,
    columns: Columns,
    *,
    keep: Sequence[str] = (),
    chosen: Sequence[str] | None = None,
) -> Opened:
    """Open one file of the data.

    Parameters
    ----------
    columns
        The machine's, which say how the text of a CSV is to be read.
    keep
        Columns that are carried; those of a CSV as the text they are.
    chosen
        The columns that are the features, where the user says so.
    """
    types = TextTypes(columns, tuple(keep), chosen)
    return _with_keys(open_batches(part.path, part.kind, types, groups=part.groups), part)


def _with_keys(opened: Opened, part: Part) -> Opened:
    """The file with columns for the values in its folders' names."""
    keys = {name: value for name, value in part.keys if name not in opened.schema.names}
    if not keys:
        return opened
    import pyarrow as pa

    schema = opened.schema
    for name, value in keys.items():
        schema = schema.append(
            pa.field(name, pa.int64() if isinstance(value, int) else pa.string())
        )

    def read(names: Sequence[str], n_rows: int) -> Iterator[Batch]:
        own = [name for name in names if name not in keys]
        for batch in opened.read(own, n_rows):
            arrays = [
                pa.repeat(pa.scalar(keys[name], schema.field(name).type), len(batch.table))
                if name in keys
                else batch.table.column(name)
                for name in names
            ]
            table = pa.RecordBatch.from_arrays(arrays, names=list(names))
            yield Batch(batch.where, table, batch.share)

    return Opened(schema, read)
