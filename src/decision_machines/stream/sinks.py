"""Files of answers that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..files.atomic import whole_file, writing
from .answers import arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GATHERED_BYTES = 1 << 24
GATHERED_ROWS = 1 << 20


@contextlib.contextmanager
def sink(
    path: str, schema: Any, kind: str, separator: str = ","
) -> Iterator[Callable[[Any], None]]:
    """A function that takes record batches; the file appears at `path` when all are written.

    See `files.atomic.whole_file` for what holds until then. Folders that are missing are made.
    """
    with writing(path):
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with _told(path), whole_file(path) as file:
        writer = WRITERS[kind](arrow().PythonFile(file, "w"), schema, separator)
        try:
            gather = _Gather(writer)
            yield gather.take
            gather.pour()
            writer.close()
        except BaseException:
            with contextlib.suppress(Exception):
                writer.close()
            raise


@contextlib.contextmanager
def _told(path: str) -> Iterator[None]:
    """Say of an error of Arrow's writers which file it is about."""
    pyarrow = arrow()
    try:
        yield
    except pyarrow.ArrowException as error:
        if isinstance(error, MemoryError):
            raise
        raise InputError(
            f"writing {path}",
            f"it cannot be written ({error})",
            "check that all files of the data have columns of the same types",
        ) from error


class _Gather:
    """Batches gathered into pieces worth a row group."""

    def __init__(self, writer: Any) -> None:
        self.writer = writer
        self.batches: list[Any] = []
        self.rows = self.bytes = 0

    def take(self, batch: Any) -> None:
        self.batches.append(batch)
        self.rows += len(batch)
        self.bytes += batch.nbytes
        if self.rows >= GATHERED_ROWS or self.bytes >= GATHERED_BYTES:
            self.pour()

    def pour(self) -> None:
        if self.batches:
            table = arrow().Table.from_batches(self.batches)
            self.batches, self.rows, self.bytes = [], 0, 0
            self.writer.write_table(table)


def _parquet(file: Any, schema: Any, separator: str) -> Any:
    from pyarrow import parquet, types

    # Numbers rarely repeat: looking for repetitions in them costs as much as writing them.
    text = [field.name for field in schema if types.is_string(field.type)]
    return parquet.ParquetWriter(file, schema, use_dictionary=text, write_page_checksum=True)


def _csv(file: Any, schema: Any, separator: str) -> Any:
    from pyarrow import csv

    return csv.CSVWriter(file, schema, write_options=csv.WriteOptions(delimiter=separator))


def _arrow(file: Any, schema: Any, separator: str) -> Any:
    return arrow().ipc.new_file(file, schema)


WRITERS: dict[str, Callable[[Any, Any, str], Any]] = {
    "parquet": _parquet,
    "csv": _csv,
    "arrow": _arrow,
}
