"""LightGBM's model text: a header of key=value lines, a block for each tree, and a tail.

Every field is read or known to leave predictions alone; a field of neither kind is refused, and so
is a text whose counts do not agree with each other.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from ...errors import ModelFormatError, UnsupportedModelError
from .fields import HEADER, TAIL, TREE

VERSIONS = ("v2", "v3", "v4")
END = b"\nend of trees"
OLD_ENDS = (b"\nfeature importances:", b"\nfeature_importances:")


@dataclass(frozen=True)
class LightgbmText:
    """The text taken apart: strings of the header, and every tree's fields as arrays."""

    doing: str
    header: dict[str, str]
    trees: list[dict[bytes, bytes]]
    pandas_categorical: tuple[tuple[Any, ...], ...] | None

    def number(self, key: str, low: int, high: int = 2**31 - 1) -> int:
        """A whole number of the header, within bounds."""
        if key not in self.header:
            broken(self.doing, f"the header has no {key}")
        try:
            value = int(self.header[key])
        except ValueError:
            value = None
        if value is None or not low <= value <= high:
            found = f"{key}={self.header[key][:40]}"
            broken(self.doing, f"{found} is not a number from {low} to {high}")
        return value

    def counts(self, key: bytes, low: int, default: int | None = None) -> np.ndarray:
        """(T,) a whole number of every tree."""
        values = [tree.get(key) for tree in self.trees]
        if default is not None:
            values = [b"%d" % default if v is None else v for v in values]
        found = self._parse(key, [self._value(key, i, v).split() for i, v in enumerate(values)], 1)
        too_low = found < low
        if np.any(too_low):
            tree = int(np.argmax(too_low))
            broken(self.doing, f"{key.decode()}={found[tree]} in tree {tree} is below {low}")
        return found

    def whole(self, key: bytes, sizes: np.ndarray) -> np.ndarray:
        """A list of whole numbers of every tree, one after the other; tree i has sizes[i]."""
        return self._parse(key, self._tokens(key, sizes), sizes)

    def real(self, key: bytes, sizes: np.ndarray) -> np.ndarray:
        """A list of numbers of every tree, one after the other; tree i has sizes[i].

        A split of NaN from all else has a threshold that is written inf; a number too large for
        float64 is not that.
        """
        tokens = self._tokens(key, sizes)
        found = self._parse(key, tokens, sizes, float)
        if np.all(np.isfinite(found)):
            return found
        flat = [token for tree in tokens for token in tree]
        for at in np.flatnonzero(~np.isfinite(found)).tolist():
            if flat[at] not in (b"inf", b"-inf"):
                tree = int(np.searchsorted(np.cumsum(sizes), at, side="right"))
                entry = at - int(np.sum(sizes[:tree]))
                broken(
                    self.doing,
                    f"entry {entry} of {key.decode()} in tree {tree} is {_shown(flat[at])}",
                )
        return found

    def _tokens(self, key: bytes, sizes: np.ndarray) -> list[list[bytes]]:
        # A tree that needs none of a field may leave it out.
        return [
            self._value(key, i, tree.get(key, None if size else b"")).split()
            for i, (tree, size) in enumerate(zip(self.trees, sizes.tolist(), strict=True))
        ]

    def _value(self, key: bytes, tree: int, value: bytes | None) -> bytes:
        if value is None:
            broken(self.doing, f"tree {tree} has no {key.decode()}")
        return value

    def _parse(
        self, key: bytes, tokens: list[list[bytes]], sizes: Any, kind: type = int
    ) -> np.ndarray:
        sizes = np.broadcast_to(sizes, len(tokens))
        wrong = np.fromiter(map(len, tokens), np.int64, len(tokens)) != sizes
        if np.any(wrong):
            tree = int(np.argmax(wrong))
            broken(
                self.doing,
                f"{key.decode()} of tree {tree} has {len(tokens[tree])} entries where "
                f"{sizes[tree]} are needed",
            )
        flat = [token for tree in tokens for token in tree]
        try:
            if any(b"_" in token for token in flat):
                raise ValueError
            return np.array([*map(kind, flat)], np.int64 if kind is int else np.float64)
        except (ValueError, OverflowError):
            broken(self.doing, f"{key.decode()} of some tree holds what is no {_WORDS[kind]}")


_WORDS = {int: "whole number", float: "number"}


def parse(data: bytes | str, doing: str) -> LightgbmText:
    """Take a model text apart.

    Raises
    ------
    ModelFormatError
        Where it is truncated or edited: its counts and sizes say so.
    """
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogateescape")
    data = data.replace(b"\r\n", b"\n")
    if not data.startswith(b"tree\n"):
        broken(doing, "the text does not begin with 'tree', as LightGBM's models do")
    end = data.find(END) + 1
    if not end:
        # LightGBM 2 wrote no such line, but a blank one before the importances.
        end = max(data.find(mark) for mark in OLD_ENDS)
        if end < 0:
            broken(doing, "the line 'end of trees' is missing: the text is truncated")
    first = data.find(b"\nTree=", 0, end) + 1 or end
    header = _header(data[5:first], doing)
    body = data[first:end]
    trees = [_fields(block, i, doing) for i, block in enumerate(_blocks(body, header, doing))]
    return LightgbmText(doing, header, trees, _pandas_categorical(data[end:], doing))


def _header(text: bytes, doing: str) -> dict[str, str]:
    try:
        lines = text.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        broken(doing, f"the header is not UTF-8 text ({error})")
    header: dict[str, str] = {}
    for line in filter(None, lines):
        key, _, value = line.partition("=")
        if key in header:
            broken(doing, f"the header has {key} twice")
        header[key] = value
    HEADER.check_keys(header, doing, "header")
    if header.get("version") not in VERSIONS:
        raise UnsupportedModelError(
            doing,
            f"version={header.get('version')}; we read {', '.join(VERSIONS)}",
            "save the model again with LightGBM 2 to 4",
        )
    return header


def _blocks(body: bytes, header: dict[str, str], doing: str) -> list[bytes]:
    """The text of each tree, cut where the header's sizes say and checked to begin there."""
    if "tree_sizes" not in header:
        return [b"Tree=" + block for block in body.split(b"Tree=")[1:]]
    sizes = header["tree_sizes"].split()
    if not all(size.isdecimal() and len(size) < 16 for size in sizes):
        broken(doing, "tree_sizes holds what is not a size")
    bounds = np.cumsum([0, *map(int, sizes)]).tolist()
    if bounds[-1] != len(body):
        broken(
            doing,
            f"the trees take {len(body)} bytes where tree_sizes says {bounds[-1]}",
        )
    blocks = [body[a:b] for a, b in itertools.pairwise(bounds)]
    for i, block in enumerate(blocks):
        if not block.startswith(b"Tree=%d\n" % i):
            broken(doing, f"tree {i} does not begin where tree_sizes says")
    return blocks


def _fields(block: bytes, tree: int, doing: str) -> dict[bytes, bytes]:
    fields: dict[bytes, bytes] = {}
    for line in block.split(b"\n"):
        if not line:
            continue
        key, _, value = line.partition(b"=")
        if key in fields:
            broken(doing, f"tree {tree} has {_shown(key)} twice")
        fields[key] = value
    TREE.check_keys((key.decode("utf-8", "replace") for key in fields), doing, f"trees[{tree}]")
    return fields


def _check_tail(tail: bytes, doing: str) -> None:
    """Refuse a part after the trees that we do not know.

    A part begins with its name on a line of its own; lines of importances have a =, those of
    parameters brackets, and pandas_categorical its labels beside its name.
    """
    is_parameters = False
    for line in tail.decode("utf-8", "replace").split("\n"):
        name = line.partition(":")[0]
        if is_parameters and line != "end of parameters":
            continue
        if name and (":" in line or "=" not in line):
            TAIL.check_keys([name], doing, "after the trees")
        is_parameters = name == "parameters"


def _pandas_categorical(tail: bytes, doing: str) -> tuple[tuple[Any, ...], ...] | None:
    """The labels of the training table's categorical columns, the last line of the text."""
    _check_tail(tail, doing)
    if b"\nparameters:\n" in tail and b"\nend of parameters" not in tail:
        broken(doing, "the line 'end of parameters' is missing: the text is truncated")
    key = b"\npandas_categorical:"
    if key not in tail:
        return None
    try:
        found = json.loads(tail[tail.rindex(key) + len(key) :])
    except (ValueError, RecursionError):
        broken(doing, "pandas_categorical is not JSON: the text is truncated or edited")
    if found is None:
        return None
    if not isinstance(found, list) or not all(isinstance(labels, list) for labels in found):
        broken(doing, "pandas_categorical is not a list of lists of labels")
    for column, labels in enumerate(found):
        if not all(isinstance(label, (str, int, float)) for label in labels):
            raise UnsupportedModelError(
                doing,
                f"categorical column {column} of the training table has labels that are neither "
                "text nor numbers",
                "train on text or numbers as categories",
            )
    return tuple(map(tuple, found))


def _shown(key: bytes) -> str:
    return repr(key[:60].decode("utf-8", "replace"))


def broken(doing: str, found: str) -> NoReturn:
    """Refuse a text that is not as LightGBM wrote it."""
    raise ModelFormatError(
        doing, found, "check that the model text is whole and unedited, or save it again"
    )
