"""Files of answers that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import TYPE_CHECKING, Any, BinaryIO

from ..errors import InputError
from ..files.atomic import sync_folder
from .answers import arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FORMATS = {"parquet": ".parquet", "csv": ".csv", "arrow": ".arrow"}
UNFINISHED = ".unfinished"
GATHERED_BYTES = 1 << 24
GATHERED_ROWS = 1 << 20


@contextlib.contextmanager
def sink(path: str, schema: Any, kind: str) -> Iterator[Callable[[Any], None]]:
    """A function that takes record batches; the file appears at `path` when all are written.

    Until then it has a hidden name that ends in `.unfinished`. Whatever goes wrong, what stood at
    `path` stays as it was.
    """
    with writing(path), _unfinished(path) as file:
        writer = WRITERS[kind](arrow().PythonFile(file, "w"), schema)
        try:
            gather = _Gather(writer)
            yield gather.take
            gather.pour()
            writer.close()
        except BaseException:
            with contextlib.suppress(Exception):
                writer.close()
            raise
    sync_folder(os.path.dirname(os.path.abspath(path)))


@contextlib.contextmanager
def _unfinished(path: str) -> Iterator[BinaryIO]:
    """A new file under a hidden name, which becomes `path` where all goes well."""
    folder, name = os.path.split(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    _sweep(folder, name)
    while True:
        hidden = os.path.join(folder, f".{name}.{secrets.token_hex(4)}{UNFINISHED}")
        try:
            # Unbuffered: closing after a failed write must have nothing left to fail on.
            with open(hidden, "xb", buffering=0) as file:
                if _is_swept(file.fileno()):
                    continue
                yield file
                os.fsync(file.fileno())
                if os.name != "nt":
                    os.replace(hidden, path)  # while it is held: closed, it could be swept away
            if os.name == "nt":
                os.replace(hidden, path)  # no open file can be renamed, and none is swept away
            return
        except BaseException:
            with contextlib.suppress(OSError):
                os.remove(hidden)
            raise


@contextlib.contextmanager
def writing(path: str) -> Iterator[None]:
    """Say of an error in writing a file what is left of it: nothing."""
    try:
        yield
    except (OSError, arrow().ArrowException) as error:
        raise InputError(
            f"writing {path}",
            f"it cannot be written ({getattr(error, 'strerror', None) or error})",
            "check the folder, its permissions and the space left on its disk, and run again: "
            "what is finished stays, and no unfinished file is left",
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


def _parquet(file: Any, schema: Any) -> Any:
    from pyarrow import parquet, types

    # Numbers rarely repeat: looking for repetitions in them costs as much as writing them.
    text = [field.name for field in schema if types.is_string(field.type)]
    return parquet.ParquetWriter(file, schema, use_dictionary=text, write_page_checksum=True)


def _csv(file: Any, schema: Any) -> Any:
    from pyarrow import csv

    return csv.CSVWriter(file, schema)


def _arrow(file: Any, schema: Any) -> Any:
    return arrow().ipc.new_file(file, schema)


WRITERS: dict[str, Callable[[Any, Any], Any]] = {"parquet": _parquet, "csv": _csv, "arrow": _arrow}


def _hold(descriptor: int) -> None:
    """Mark a file as being written, until it is closed; BlockingIOError where another has it."""
    try:
        import fcntl
    except ImportError as error:
        raise OSError("files cannot be marked on this system") from error
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_swept(descriptor: int) -> bool:
    """Hold a file that was just created, unless a sweep that came in between has it."""
    try:
        _hold(descriptor)
    except BlockingIOError:
        return True
    except OSError:
        return False  # where no file can be held, none is swept away
    return os.fstat(descriptor).st_nlink == 0


def _sweep(folder: str, name: str) -> None:
    """Remove what a killed process left of a file: nobody holds it any more."""
    for left in os.listdir(folder):
        if left.startswith(f".{name}.") and left.endswith(UNFINISHED):
            path = os.path.join(folder, left)
            with contextlib.suppress(OSError), open(path, "rb") as file:
                _hold(file.fileno())
                os.remove(path)
