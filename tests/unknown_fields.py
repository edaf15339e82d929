"""An unknown field put into every level of a model document, one after the other."""

from __future__ import annotations

import copy
import struct

GATE = "gate"
"""The name of a field that no library has."""


def levels(document, path=()):
    """The path of every object in a document; of a list, its first and its last item."""
    if isinstance(document, dict):
        yield path
        for key, value in document.items():
            yield from levels(value, (*path, key))
    elif isinstance(document, list):
        for i in sorted({0, len(document) - 1} if document else ()):
            yield from levels(document[i], (*path, i))


def at(document, path):
    for step in path:
        document = document[step]
    return document


def with_gate(document, path):
    """A copy of the document whose object at `path` has the unknown field."""
    changed = copy.deepcopy(document)
    at(changed, path)[GATE] = 1
    return changed


def with_slot(data, table, slot):
    """A FlatBuffer whose table at byte `table` has one more slot filled, by a vtable at the end."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    size = struct.unpack_from("<H", data, vtable)[0]
    entries = bytearray(data[vtable : vtable + size])
    entries += bytes(max(0, 4 + 2 * (slot + 1) - size))
    struct.pack_into("<H", entries, 0, len(entries))
    # The table's first four bytes lead to its vtable; any number will do for an unknown field.
    struct.pack_into("<H", entries, 4 + 2 * slot, 4)
    data = bytes(data) + bytes(-len(data) % 8)
    changed = bytearray(data + bytes(entries))
    struct.pack_into("<i", changed, table, table - len(data))
    return bytes(changed)


def ubjson(value):
    """A document as UBJSON."""
    if isinstance(value, dict):
        inner = b"".join(_key(key) + ubjson(item) for key, item in value.items())
        return b"{" + inner + b"}"
    if isinstance(value, list):
        return b"[" + b"".join(map(ubjson, value)) + b"]"
    if isinstance(value, bool):
        return b"T" if value else b"F"
    if isinstance(value, int):
        return b"L" + struct.pack(">q", value)
    if isinstance(value, float):
        return b"D" + struct.pack(">d", value)
    return b"S" + _key(value)


def _key(text):
    return b"L" + struct.pack(">q", len(text.encode())) + text.encode()
