"""Batches of rows from one file, each with the place where it lies.

Parquet is read by row groups, a batch at a time within the group: Arrow's dataset scanner decodes
whole row groups ahead, three times the memory at a million rows each. Arrow files are mapped and
sliced; CSV is read in blocks.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .answers import arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..machine import Columns
    from .parts import Part

CSV_BLOCK = 1 << 22
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
    with _told(f"opening {part.path}"):
        opened = OPENERS[part.kind](part, TextTypes(columns, tuple(keep), chosen))
    return _with_keys(opened, part)


@dataclass(frozen=True)
class TextTypes:
    """What the columns of a CSV are read as: their first block must not decide for the rest."""

    columns: Columns
    keep: tuple[str, ...]
    chosen: Sequence[str] | None

    def schema(self, guessed: Any) -> Any:
        import pyarrow as pa

        return pa.schema([(field.name, self._type(field)) for field in guessed])

    def _type(self, field: Any) -> Any:
        import pyarrow as pa

        feature = self._feature(field.name)
        if feature is None:
            return pa.string()
        if feature in self.columns.categories:
            return field.type
        if pa.types.is_integer(field.type) or pa.types.is_null(field.type):
            return pa.float64()
        if pa.types.is_string(field.type) and self.columns.table_categories is None:
            return pa.float64()
        return field.type

    def _feature(self, name: str) -> int | None:
        """The feature that a column holds; -1 where it is known only that it holds one."""
        names = self.columns.names if self.chosen is None else tuple(self.chosen)
        if names is None:
            return None if name in self.keep else -1
        spelled = (n for n in (name, name.replace(" ", "_")) if n in names)
        found = next(spelled, None)
        return None if found is None else names.index(found)


def _parquet(part: Part, types: TextTypes) -> Opened:
    from pyarrow import parquet

    options = {"pre_buffer": False, "buffer_size": BUFFER, "page_checksum_verification": True}
    file = parquet.ParquetFile(part.path, **options)

    def read(names: Sequence[str], n_rows: int) -> Iterator[Batch]:
        groups = range(*(part.groups or (0, file.num_row_groups)))
        total, done = sum(file.metadata.row_group(group).num_rows for group in groups), 0
        for group in groups:
            where = f"{part.path}, row group {group}"
            first = done
            with _told(f"reading {where}"):
                for batch in file.iter_batches(n_rows, row_groups=[group], columns=list(names)):
                    done += len(batch)
                    yield Batch(where, _in_order(batch, names), done / total)
                _check_count(done - first, file.metadata.row_group(group).num_rows)

    return Opened(file.schema_arrow, read)


def _check_count(found: int, promised: int) -> None:
    if found != promised:
        raise OSError(f"{found} rows where the file's footer promises {promised}")


def _arrow(part: Part, types: TextTypes) -> Opened:
    import pyarrow as pa

    schema = pa.ipc.open_file(pa.memory_map(part.path)).schema

    def read(names: Sequence[str], n_rows: int) -> Iterator[Batch]:
        fields = sorted({schema.get_field_index(name) for name in names})
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        # The file stays open while batches of it are in use.
        reader = pa.ipc.open_file(pa.memory_map(part.path), options=options)
        n = reader.num_record_batches
        for i in range(n):
            where = f"{part.path}, record batch {i}"
            with _told(f"reading {where}"):
                whole = reader.get_batch(i)
                whole.validate()
            for start in range(0, max(len(whole), 1), n_rows):
                share = (i + min(1.0, (start + n_rows) / max(len(whole), 1))) / n
                yield Batch(where, _in_order(whole.slice(start, n_rows), names), share)

    return Opened(schema, read)


def _csv(part: Part, types: TextTypes) -> Opened:
    import pyarrow as pa
    from pyarrow import csv

    def open_csv(file: Any, read_as: Any, names: Sequence[str], threads: bool) -> Any:
        stream = pa.input_stream(file, compression="gzip" if part.path.endswith("gz") else None)
        return csv.open_csv(
            stream,
            read_options=csv.ReadOptions(block_size=CSV_BLOCK, use_threads=threads),
            parse_options=csv.ParseOptions(delimiter="\t" if ".tsv" in part.name else ","),
            convert_options=csv.ConvertOptions(column_types=read_as, include_columns=list(names)),
        )

    with open(part.path, "rb") as file, open_csv(file, None, (), False) as reader:
        schema = types.schema(reader.schema)

    def batches(names: Sequence[str], threads: bool) -> Iterator[tuple[Any, float]]:
        with open(part.path, "rb") as file, open_csv(file, schema, names, threads) as reader:
            for batch in reader:
                yield batch, file.tell() / max(part.size, 1)

    def read(names: Sequence[str], n_rows: int) -> Iterator[Batch]:
        first = 1
        try:
            for batch, share in batches(names, True):
                batch = _empty_as_none(batch, types.keep)
                for start in range(0, len(batch), n_rows):
                    where = f"{part.path}, rows from {first + start}"
                    yield Batch(where, batch.slice(start, n_rows), share)
                first += len(batch)
        except pa.ArrowInvalid:
            # Threads do not count rows: read again on one, for the number of the broken row.
            with _told(f"reading {part.path}"):
                for _ in batches(names, False):
                    pass
                raise

    return Opened(schema, read)


def _empty_as_none(batch: Any, keep: Sequence[str]) -> Any:
    """Labels of no characters are no labels; what is only carried stays as it is."""
    import pyarrow as pa
    from pyarrow import compute

    arrays = [
        compute.if_else(compute.equal(array, ""), pa.scalar(None, pa.string()), array)
        if pa.types.is_string(array.type) and name not in keep
        else array
        for name, array in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


OPENERS: dict[str, Callable[[Part, TextTypes], Opened]] = {
    "parquet": _parquet,
    "arrow": _arrow,
    "csv": _csv,
}


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


def _in_order(batch: Any, names: Sequence[str]) -> Any:
    return batch if batch.schema.names == list(names) else batch.select(list(names))


@contextlib.contextmanager
def _told(doing: str) -> Iterator[None]:
    """Say of an error in a file where it is."""
    pyarrow = arrow()
    try:
        yield
    except (OSError, pyarrow.ArrowException, UnicodeDecodeError) as error:
        text = str(error).strip().rstrip(".") or type(error).__name__
        raise InputError(
            doing,
            f"it cannot be read ({text})",
            "write this file again, or take it out; what is finished stays",
        ) from None
