"""The files that data lies in: one file, a folder, a glob, or a list of them."""

from __future__ import annotations

import glob
import os
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

from ..errors import InputError
from ..files.kinds import ENDINGS, ending, kind_of

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Part:
    """One file of the data, or some row groups of it."""

    path: str
    name: str
    """Its path within the data, with `/`."""
    kind: str
    """parquet, arrow or csv."""
    size: int
    mtime_ns: int
    keys: tuple[tuple[str, Any], ...] = ()
    """Columns whose value stands in the folders' names, as in `year=2024/`."""
    groups: tuple[int, int] | None = None
    """The first row group, and the one after the last; None for the whole file."""
    share: float = 1.0
    """How much of the file it is."""

    @property
    def weight(self) -> float:
        """How much work it is, in bytes of the file."""
        return self.size * self.share

    def identity(self) -> dict[str, Any]:
        """What says that a file is still the same."""
        path = os.path.abspath(self.path)
        whole = {"path": path, "size": self.size, "mtime_ns": self.mtime_ns}
        return whole if self.groups is None else {**whole, "groups": list(self.groups)}


def find_parts(data: Any) -> list[Part]:
    """The files of `data`: those of a folder or glob by their names, those of a list as listed.

    Parameters
    ----------
    data
        A path to a file or a folder, a glob, a list of these, or a `pyarrow.dataset.Dataset` of
        local files. In folders, names that start with `.` or `_` are passed over, as Arrow, Dask
        and Spark do.
    """
    is_dataset = hasattr(data, "get_fragments") and hasattr(data, "files")
    if is_dataset:
        data = data.files
    places = [data] if isinstance(data, (str, os.PathLike)) else list(data)
    found: list[tuple[str, str]] = []
    for place in places:
        found += sorted(_files(os.fspath(place)), key=lambda names: names[1].split(os.sep))
    if found and (is_dataset or len({name for _, name in found}) < len(found)):
        folders = {os.path.dirname(os.path.abspath(path)) for path, _ in found}
        root = os.path.commonpath(folders)
        found = [(path, os.path.relpath(os.path.abspath(path), root)) for path, _ in found]
    if not found:
        raise InputError(
            f"looking for data at {data}",
            "nothing is there",
            "give a file, a folder of files, or a quoted glob such as 'data/*.parquet'",
        )
    times = Counter(os.path.realpath(path) for path, _ in found)
    twice = next((path for path, n in times.items() if n > 1), None)
    if twice is not None:
        raise InputError(f"looking for data at {data}", f"{twice} is named twice", "name it once")
    named = {os.fspath(place) for place in places}
    return [_part(path, name, path in named) for path, name in found]


def split_parts(parts: list[Part], n_rows: int) -> list[Part]:
    """The parts, Parquet files cut between row groups into pieces of about this many rows.

    A piece has the name of its file and a number; a file of one piece stays as it is, as do files
    of other kinds, which cannot be read from the middle.
    """
    if n_rows < 1:
        raise InputError("splitting the data", f"pieces of {n_rows} rows", "use at least 1")
    return [piece for part in parts for piece in _pieces(part, n_rows)]


def _pieces(part: Part, n_rows: int) -> list[Part]:
    if part.kind != "parquet":
        return [part]
    from pyarrow import ArrowException, parquet

    try:
        metadata = parquet.read_metadata(part.path)
    except MemoryError:
        raise  # Arrow's is an ArrowException, too
    except (OSError, ArrowException) as error:
        raise InputError(
            f"opening {part.path}", f"it cannot be read ({error})", "write the file again"
        ) from None
    rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    cuts, held = [0], 0
    for group, n in enumerate(rows):
        if held and held + n > n_rows:
            cuts.append(group)
            held = 0
        held += n
    cuts.append(len(rows))
    if len(cuts) <= 2:
        return [part]
    stem = part.name[: -len(ending(part.name))] if ending(part.name) in ENDINGS else part.name
    total = max(sum(rows), 1)
    return [
        replace(
            part,
            name=f"{stem}.{i:05d}.parquet",
            groups=(first, last),
            share=sum(rows[first:last]) / total,
        )
        for i, (first, last) in enumerate(pairwise(cuts))
    ]


def _files(place: str) -> list[tuple[str, str]]:
    """(path, name within the place) of the files at one place."""
    if os.path.isfile(place):
        return [(place, os.path.basename(place))]
    if os.path.isdir(place):
        return [(path, os.path.relpath(path, place)) for path in _walk(place)]
    if not glob.has_magic(place):
        return []
    root = place
    while glob.has_magic(root):
        root = os.path.dirname(root)
    paths: list[str] = []
    for path in glob.glob(place, recursive=True):
        paths += [path] if os.path.isfile(path) else _walk(path)
    return [(path, os.path.relpath(path, root or ".")) for path in dict.fromkeys(paths)]


def _walk(folder: str) -> list[str]:
    found = []
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name[0] not in "._"]
        found += [os.path.join(root, name) for name in files if name[0] not in "._"]
    return found


def _part(path: str, name: str, is_named: bool) -> Part:
    status = os.stat(path)
    name = name.replace(os.sep, "/")
    pairs = [folder.split("=", 1) for folder in name.split("/")[:-1] if "=" in folder]
    keys = tuple((unquote(key), _value(unquote(value))) for key, value in pairs)
    return Part(
        path, name, kind_of(path, is_named=is_named), status.st_size, status.st_mtime_ns, keys
    )


def _value(text: str) -> int | str | None:
    if text == NO_VALUE:
        return None
    try:
        return int(text) if str(int(text)) == text else text
    except ValueError:
        return text
