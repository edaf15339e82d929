"""A model of YDF in its parts: from a folder that it saved, or from the bytes of `serialize`.

A folder has `header.pb`, `data_spec.pb`, a header of the kind of forest, and the nodes in one or
more blob sequences. `serialize` puts the same into one blob sequence. Files may have a prefix.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import InputError, ModelFormatError, UnsupportedModelError
from ..document import WHOLE
from .fields import (
    DATA_SPEC,
    GRADIENT_BOOSTED_TREES,
    HEADER,
    ISOLATION_FOREST,
    RANDOM_FOREST,
    SERIALIZED,
)
from .wire import Message, decode

MAGIC = b"BS"
SERIALIZED_START = b"\x03\x00\x00\x00YDF"
"""The first blob of what `serialize` gives, with its length."""
NODE_FORMAT = "BLOB_SEQUENCE"
KINDS: dict[str, Message] = {
    "gradient_boosted_trees": GRADIENT_BOOSTED_TREES,
    "random_forest": RANDOM_FOREST,
    "isolation_forest": ISOLATION_FOREST,
}
"""The kinds of forests, by the names of their files, and their headers."""


@dataclass(frozen=True)
class Parts:
    """What a model is made of."""

    kind: str
    """A key of `KINDS`."""
    header: dict[str, Any]
    columns: list[dict[str, Any]]
    forest: dict[str, Any]
    """The header of the kind of forest."""
    nodes: Iterator[bytes]
    """Messages, tree after tree, each node before its children."""
    doing: str

    def fault(self, found: str) -> ModelFormatError:
        return ModelFormatError(self.doing, found, WHOLE)

    def refuse(self, found: str, remedy: str) -> UnsupportedModelError:
        return UnsupportedModelError(self.doing, found, remedy)


def looks_like_serialized(data: bytes) -> bool:
    """Whether bytes begin as what `serialize` of a YDF model gives."""
    return data[:2] == MAGIC and data[8:15] == SERIALIZED_START


def looks_like_folder(folder: Path) -> bool:
    """Whether a folder holds a model that YDF saved."""
    return _prefix(folder) is not None


def _prefix(folder: Path) -> str | None:
    """What the names of the model's files begin with; None where there is no model."""
    for spec in sorted(folder.glob("*data_spec.pb")):
        prefix = spec.name.removesuffix("data_spec.pb")
        if (folder / f"{prefix}header.pb").is_file():
            return prefix
    return None


def parts_of_folder(folder: Path, doing: str) -> Parts:
    """The parts of a folder."""
    prefix = _prefix(folder)
    if prefix is None:
        raise InputError(doing, "it holds no header.pb and data_spec.pb", "give the model's folder")

    def content(name: str) -> bytes:
        try:
            return (folder / f"{prefix}{name}").read_bytes()
        except OSError as error:
            reason = error.strerror or str(error)
            raise ModelFormatError(
                doing, f"{prefix}{name} cannot be read ({reason})", WHOLE
            ) from None

    header = decode(content("header.pb"), HEADER, doing)
    kind = str(header.get("name", "")).lower()
    if kind not in KINDS:
        raise _other_kind(header, doing)
    forest = decode(content(f"{kind}_header.pb"), KINDS[kind], doing)
    n = forest.get("num_node_shards", 1)
    if not 0 < n < 100_000:
        raise ModelFormatError(doing, f"num_node_shards of its {kind} header is {n}", WHOLE)

    def nodes() -> Iterator[bytes]:
        for shard in range(n):
            name = f"nodes-{shard:05d}-of-{n:05d}"
            yield from blobs(content(name), doing, name)

    spec = decode(content("data_spec.pb"), DATA_SPEC, doing)
    return Parts(kind, header, spec.get("columns", []), forest, nodes(), doing)


def parts_of_bytes(data: bytes, doing: str) -> Parts:
    """The parts of what `serialize` gives."""
    held = list(blobs(data, doing, "the model"))
    if len(held) != 4:
        raise ModelFormatError(doing, f"{len(held)} blobs where 4 are needed", WHOLE)
    document = decode(held[1], SERIALIZED, doing)
    header = document.get("abstract_model", {})
    kind = next((kind for kind in KINDS if kind in document), None)
    if kind is None:
        raise _other_kind(header, doing)
    spec = decode(held[2], DATA_SPEC, doing)
    forest = document[kind].get("header", {})
    nodes = blobs(held[3], doing, "the nodes")
    return Parts(kind, header, spec.get("columns", []), forest, nodes, doing)


def blobs(data: bytes, doing: str, name: str) -> Iterator[bytes]:
    """The blobs of a sequence, which may be compressed."""
    if data[:2] != MAGIC or len(data) < 8:
        raise UnsupportedModelError(
            doing,
            f"{name} is not a blob sequence; it begins {data[:8]!r}",
            "load the model with YDF, call set_node_format(ydf.NodeFormat.BLOB_SEQUENCE) and save "
            "it again",
        )
    version, compression = struct.unpack_from("<HB", data, 2)
    if version > 1 or compression > 1:
        raise UnsupportedModelError(
            doing,
            f"{name} is a blob sequence of version {version} and compression {compression}",
            "save the model with a release of YDF that docs/compatibility.md lists",
        )
    content = data[8:]
    if compression:
        try:
            content = zlib.decompressobj(31).decompress(content)
        except zlib.error as error:
            raise ModelFormatError(doing, f"{name} cannot be decompressed ({error})", WHOLE) from (
                None
            )
    at = 0
    while at < len(content):
        if at + 4 > len(content):
            raise ModelFormatError(doing, f"{name} ends within a blob", WHOLE)
        size = struct.unpack_from("<I", content, at)[0]
        at += 4
        if size > len(content) - at:
            raise ModelFormatError(doing, f"{name} ends within a blob", WHOLE)
        yield content[at : at + size]
        at += size


def _other_kind(header: dict[str, Any], doing: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        doing,
        f"AbstractModel.name is {header.get('name', '')!r:.60}",
        "give a gradient boosted trees, random forest, CART or isolation forest model",
    )
