"""UBJSON, the binary twin of JSON, read from files that nobody vouches for.

Every length is held against the bytes that are left before anything is allocated, and nesting is
bounded, so a hostile file costs no more memory than a small multiple of its own size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ModelFormatError

NUMBERS = {
    b"i": ">i1",
    b"U": ">u1",
    b"I": ">i2",
    b"l": ">i4",
    b"L": ">i8",
    b"d": ">f4",
    b"D": ">f8",
}
"""Markers of numbers; UBJSON is big-endian throughout."""
CONSTANTS = {b"Z": None, b"T": True, b"F": False}
DEEPEST = 64
DOING = "reading a UBJSON file"


def read_ubjson(data: bytes, doing: str = DOING) -> Any:
    """The value in `data`: dicts, lists, numbers and strings; typed arrays as NumPy arrays.

    Raises
    ------
    ModelFormatError
        Where the bytes are not UBJSON, with the place.

    Examples
    --------
    >>> read_ubjson(b"{i\\x01ki\\x07}")
    {'k': 7}
    """
    parser = _Parser(data, doing)
    value = parser.value(parser.take(1), 0)
    if parser.at != len(data):
        raise parser.fault(f"{len(data) - parser.at} bytes follow the end of the document")
    return value


class _Parser:
    def __init__(self, data: bytes, doing: str) -> None:
        self.data, self.at, self.doing = bytes(data), 0, doing

    def fault(self, found: str) -> ModelFormatError:
        return ModelFormatError(
            self.doing,
            f"byte {self.at} of {len(self.data)}: {found}",
            "check that the file is whole and unedited, or save the model again",
        )

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise self.fault(f"the file ends where {count} more bytes are needed")
        self.at += count
        return self.data[self.at - count : self.at]

    def value(self, marker: bytes, depth: int) -> Any:
        if depth > DEEPEST:
            raise self.fault(f"nested more than {DEEPEST} deep")
        if marker in NUMBERS:
            return self.number(marker)
        if marker in CONSTANTS:
            return CONSTANTS[marker]
        if marker == b"S":
            return self.text()
        if marker == b"C":
            return chr(self.take(1)[0])
        if marker == b"[":
            return self.array(depth)
        if marker == b"{":
            return self.object(depth)
        raise self.fault(f"no value starts with {marker!r}")

    def number(self, marker: bytes) -> int | float:
        dtype = np.dtype(NUMBERS[marker])
        found: int | float = np.frombuffer(self.take(dtype.itemsize), dtype)[0].item()
        return found

    def length(self) -> int:
        marker = self.take(1)
        if marker not in NUMBERS or marker in b"dD":
            raise self.fault(f"a length starts with {marker!r}")
        length = self.number(marker)
        # Whatever is counted takes at least a byte, so a larger count is a lie.
        if not 0 <= length <= len(self.data) - self.at:
            raise self.fault(f"a length of {length} with {len(self.data) - self.at} bytes left")
        return int(length)

    def text(self) -> str:
        raw = self.take(self.length())
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise self.fault("a string that is not UTF-8") from None

    def peek(self, marker: bytes) -> bool:
        if self.data[self.at : self.at + 1] != marker:
            return False
        self.at += 1
        return True

    def array(self, depth: int) -> Any:
        if self.peek(b"$"):
            marker = self.take(1)
            if marker not in NUMBERS:
                raise self.fault(f"a typed array of {marker!r}, which are not numbers")
            if not self.peek(b"#"):
                raise self.fault("a typed array without its length")
            dtype = np.dtype(NUMBERS[marker])
            return np.frombuffer(self.take(self.length() * dtype.itemsize), dtype)
        if self.peek(b"#"):
            return [self.value(self.take(1), depth + 1) for _ in range(self.length())]
        found = []
        while not self.peek(b"]"):
            found.append(self.value(self.take(1), depth + 1))
        return found

    def object(self, depth: int) -> dict[str, Any]:
        if self.peek(b"$"):
            raise self.fault("an object of one type, which no model file needs")
        if self.peek(b"#"):
            return dict(self.pair(depth) for _ in range(self.length()))
        found = {}
        while not self.peek(b"}"):
            key, value = self.pair(depth)
            found[key] = value
        return found

    def pair(self, depth: int) -> tuple[str, Any]:
        key = self.text()
        return key, self.value(self.take(1), depth + 1)
