"""Protocol buffers by their wire format, each message with the fields that we know of it.

A message is bytes: for each field its number and its kind, then its value. What a `Message` does
not list is refused by its number, for a new field may change predictions.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import ModelFormatError
from ..document import WHOLE
from ..fields import unknown_field

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
WIRES = {
    "int": VARINT,
    "bool": VARINT,
    "float": FIXED32,
    "double": FIXED64,
    "text": LENGTH,
    "bytes": LENGTH,
}
"""Kinds of single values, and how each is written."""
PACKED = {"ints": (VARINT, None), "floats": (FIXED32, "<f4"), "doubles": (FIXED64, "<f8")}
"""Kinds of lists of numbers, which may be written one by one or in one piece."""


@dataclass(frozen=True)
class Message:
    """The fields of a message that are read, and those that change no prediction.

    Parameters
    ----------
    read
        Number → name and kind: one of `WIRES` or `PACKED`, a `Message`, or a list of one `Message`
        where there may be several.
    idle
        Number → name, of fields that are passed over; why is said where the message is.
    """

    name: str
    read: dict[int, tuple[str, Any]]
    idle: dict[int, str] = field(default_factory=dict)


def decode(data: bytes, message: Message, doing: str) -> dict[str, Any]:
    """The fields of a message by name; those that it does not have are left out.

    Examples
    --------
    >>> decode(b"\\x08\\x05", Message("Node", {1: ("top_value", "int")}), "reading a model")
    {'top_value': 5}
    """
    found: dict[str, Any] = {}
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at, doing)
        number, wire = key >> 3, key & 7
        known = message.read.get(number)
        if known is None:
            if number not in message.idle:
                raise unknown_field(doing, f"field {number} of {message.name}")
            at = _skip(data, at, wire, doing)
            continue
        name, kind = known
        if wire == LENGTH:
            size, at = _varint(data, at, doing)
            if size > end - at:
                raise _cut_off(doing, message.name)
            value: Any = data[at : at + size]
            at += size
        elif wire == VARINT:
            value, at = _varint(data, at, doing)
        elif wire in (FIXED32, FIXED64):
            size = 4 if wire == FIXED32 else 8
            if size > end - at:
                raise _cut_off(doing, message.name)
            value = struct.unpack_from("<f" if wire == FIXED32 else "<d", data, at)[0]
            at += size
        else:
            raise _wrong(doing, f"{message.name}.{name}", wire)
        _put(found, name, kind, wire, value, message, doing)
    return found


def _put(
    found: dict[str, Any], name: str, kind: Any, wire: int, value: Any, message: Message, doing: str
) -> None:
    place = f"{message.name}.{name}"
    if isinstance(kind, Message):
        if wire != LENGTH:
            raise _wrong(doing, place, wire)
        found[name] = decode(value, kind, doing)
    elif isinstance(kind, list):
        if wire != LENGTH:
            raise _wrong(doing, place, wire)
        found.setdefault(name, []).append(decode(value, kind[0], doing))
    elif kind in PACKED:
        single, dtype = PACKED[kind]
        held = found.setdefault(name, [])
        if wire == single:
            held.append(_signed(value) if dtype is None else value)
        elif wire == LENGTH:
            held.extend(_packed(value, dtype, place, doing))
        else:
            raise _wrong(doing, place, wire)
    elif wire != WIRES[kind]:
        raise _wrong(doing, place, wire)
    elif kind == "int":
        found[name] = _signed(value)
    elif kind == "bool":
        found[name] = bool(value)
    elif kind == "text":
        try:
            found[name] = value.decode()
        except UnicodeDecodeError:
            raise ModelFormatError(doing, f"{place} is not UTF-8", WHOLE) from None
    else:
        found[name] = value


def _packed(value: bytes, dtype: str | None, place: str, doing: str) -> list[Any]:
    if dtype is not None:
        if len(value) % np.dtype(dtype).itemsize:
            raise _cut_off(doing, place)
        return list(np.frombuffer(value, dtype).tolist())
    found, at = [], 0
    while at < len(value):
        item, at = _varint(value, at, doing)
        found.append(_signed(item))
    return found


def _signed(value: int) -> int:
    """An integer of 64 bits, in which negative ones are written."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def _varint(data: bytes, at: int, doing: str) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise _cut_off(doing, "a number")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def _skip(data: bytes, at: int, wire: int, doing: str) -> int:
    if wire == VARINT:
        return _varint(data, at, doing)[1]
    if wire == LENGTH:
        size, at = _varint(data, at, doing)
    else:
        size = {FIXED32: 4, FIXED64: 8}.get(wire, len(data) + 1)
    if size > len(data) - at:
        raise _cut_off(doing, "a field")
    return at + size


def _cut_off(doing: str, place: str) -> ModelFormatError:
    return ModelFormatError(doing, f"{place} ends before it should", WHOLE)


def _wrong(doing: str, place: str, wire: int) -> ModelFormatError:
    return ModelFormatError(doing, f"{place} is written as kind {wire} of the wire format", WHOLE)
