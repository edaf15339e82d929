"""Batches of rows from one file, each with the place where it lies.

Parquet is read by row groups, a batch at a time within the group: Arrow's dataset scanner decodes
whole row groups ahead, three times the memory at a million rows each. Arrow files are mapped and
sliced; CSV is read in blocks.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from . import csv_text
from .kinds import arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

BUFFER = 1 << 20


@dataclass(frozen=True)
class Batch:
    """Some rows of a file."""

    where: str
    """As people name the place: `data/a.parquet, row group 3`."""
    table: Any
    """A pyarrow RecordBatch."""
    share: float
    """How much of the file is read by now, from 0 to 1."""


@dataclass(frozen=True)
class Opened:
    """A file whose header is read: its schema, and a way to read some of its columns."""

    schema: Any
    read: Callable[[Sequence[str], int], Iterator[Batch]]
    """Columns, rows at a time → batches."""


def open_batches(
    path: str,
    kind: str,
    types: csv_text.TextTypes | None = None,
    *,
    groups: tuple[int, int] | None = None,
) -> Opened:
    """Open one file.

    Parameters
    ----------
    kind
        Of `kinds.kind_of`.
    types
        What the text of a CSV is read as; only such a file needs them.
    groups
        Of Parquet: the first row group, and the one after the last; None for the whole file.
    """
    with reading(f"opening {path}"):
        return OPENERS[kind](path, types, groups)


def _parquet(path: str, types: csv_text.TextTypes, groups: tuple[int, int] | None) -> Opened:
    from pyarrow import parquet

    options = {"pre_buffer": False, "buffer_size": BUFFER, "page_checksum_verification": True}
    file = parquet.ParquetFile(path, **options)

    def read(names: Sequence[str], n_rows: int) -> Iterator[Batch]:
        chosen = range(*(groups or (0, file.num_row_groups)))
        total, done = sum(file.metadata.row_group(group).num_rows for group in chosen), 0
        for group in chosen:
            where = f"{path}, row group {group}"
            first = done
            with reading(f"reading {where}"):
                for batch in file.iter_batches(n_rows, row_groups=[group], columns=list(names)):
                    done += len(batch)
                    yield Batch(where, _in_order(batch, names), done / total)
                _check_count(done - first, file.metadata.row_group(group).num_rows)

    return Opened(file.schema_arrow, read)


def _check_count(found: int, promised: int) -> None:
    if found != promised:
        raise OSError(f"{found} rows where the file's footer promises {promised}")


def _arrow(path: str, types: csv_text.TextTypes, groups: tuple[int, int] | None) -> Opened:
    import pyarrow as pa

    schema = pa.ipc.open_file(pa.memory_map(path)).schema

    def read(names: Sequence[str], n_rows: int) -> Iterator[Batch]:
        fields = sorted({schema.get_field_index(name) for name in names})
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        # The file stays open while batches of it are in use.
        reader = pa.ipc.open_file(pa.memory_map(path), options=options)
        n = reader.num_record_batches
        for i in range(n):
            where = f"{path}, record batch {i}"
            with reading(f"reading {where}"):
                whole = reader.get_batch(i)
                whole.validate()
            for start in range(0, max(len(whole), 1), n_rows):
                share = (i + min(1.0, (start + n_rows) / max(len(whole), 1))) / n
                yield Batch(where, _in_order(whole.slice(start, n_rows), names), share)

    return Opened(schema, read)


def _csv(path: str, types: csv_text.TextTypes, groups: tuple[int, int] | None) -> Opened:
    import pyarrow as pa
    from pyarrow import csv

    def opened(file: Any, **options: Any) -> Any:
        stream = csv_text.open_text(path, file)
        return csv.open_csv(stream, **csv_text.options(path, **options))

    with csv_text.open_bytes(path) as file, opened(file, threads=False) as reader:
        schema = pa.schema([(field.name, types.type_of(field)) for field in reader.schema])
    size = max(os.path.getsize(path), 1)

    def batches(names: Sequence[str], threads: bool) -> Iterator[tuple[Any, float]]:
        options = {"types": schema, "names": names, "threads": threads}
        with csv_text.open_bytes(path) as file, opened(file, **options) as reader:
            for batch in reader:
                yield batch, file.tell() / size

    def read(names: Sequence[str], n_rows: int) -> Iterator[Batch]:
        first = 1
        try:
            for batch, share in batches(names, True):
                batch = csv_text.empty_as_missing(batch, types.takes_empty_text)
                for start in range(0, len(batch), n_rows):
                    where = f"{path}, rows from {first + start}"
                    yield Batch(where, batch.slice(start, n_rows), share)
                first += len(batch)
        except pa.ArrowInvalid:
            # Threads do not count rows: read again on one, for the number of the broken row.
            with reading(f"reading {path}", schema.names):
                for _ in batches(names, False):
                    pass
                raise

    return Opened(schema, read)


OPENERS: dict[str, Callable[..., Opened]] = {"parquet": _parquet, "arrow": _arrow, "csv": _csv}


def _in_order(batch: Any, names: Sequence[str]) -> Any:
    return batch if batch.schema.names == list(names) else batch.select(list(names))


@contextlib.contextmanager
def reading(doing: str, names: Sequence[str] = ()) -> Iterator[None]:
    """Say of an error in a file where it is; `names` are those of a CSV's columns."""
    pyarrow = arrow(doing)
    try:
        yield
    except MemoryError:
        raise  # Arrow's is an ArrowException, too, and no fault of the file
    except (OSError, pyarrow.ArrowException, UnicodeDecodeError) as error:
        text = str(error).strip().rstrip(".") or type(error).__name__
        cell = csv_text.cell_that_is_no_number(text, names)
        if cell is not None:
            raise InputError(doing, cell, "give a number there, or an empty cell") from None
        raise InputError(
            doing,
            f"it is not a readable table ({csv_text.column_named(text, names)})",
            "write this file again, or leave it out",
        ) from None
