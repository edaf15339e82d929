"""The safetensors container, read so that no byte of it is believed before it is checked.

Arrays are views of the file's bytes: nothing is allocated for what a header merely claims.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

import numpy as np

from ...errors import ModelFormatError
from ...machine.schema import DTYPES

MOST_HEADER = 100_000_000
"""Bytes; the container's own limit."""


def read_container(data: bytes, doing: str) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """The texts of the header's metadata, and the arrays.

    Raises
    ------
    ModelFormatError
        Where a length, a dtype, a shape or a place is not what it must be.
    """
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or not 2 <= size <= min(len(data) - 8, MOST_HEADER):
        _broken(doing, f"a header of {size} bytes in a file of {len(data)}")
    header = strict_json(data[8 : 8 + size], doing, "the header")
    if not isinstance(header, dict):
        _broken(doing, "the header is not a JSON object")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        _broken(doing, "__metadata__ holds something other than text")
    body = memoryview(data)[8 + size :]
    places = sorted((_place(name, entry, doing), name) for name, entry in header.items())
    arrays = {}
    at = 0
    for (start, stop, dtype, shape), name in places:
        if start != at:
            _broken(doing, f"the array {name[:60]!r} begins at {start} and not at {at}")
        if stop > len(body):
            _broken(doing, f"the array {name[:60]!r} ends at {stop} of {len(body)} bytes")
        flat = np.frombuffer(body[start:stop], DTYPES[dtype])
        arrays[name] = _usable(flat.reshape(shape))
        at = stop
    if at != len(body):
        _broken(doing, f"{len(body) - at} bytes after the last array")
    return metadata, arrays


def _place(name: str, entry: Any, doing: str) -> tuple[int, int, str, tuple[int, ...]]:
    """Where an array is and what it is, its size checked against its shape."""
    found = f"the array {name[:60]!r}"
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        _broken(doing, f"{found} is not said to have a dtype, a shape and a place alone")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        _broken(doing, f"{found} is of the dtype {str(dtype)[:40]!r}")
    if not _are_sizes(shape) or len(shape) > 2 or not _are_sizes(offsets) or len(offsets) != 2:
        _broken(doing, f"{found} has no shape of up to two sizes, or no place")
    start, stop = offsets
    if stop - start != math.prod(shape) * DTYPES[dtype].itemsize:
        _broken(doing, f"{found} of shape {shape} and dtype {dtype} takes {stop - start} bytes")
    return start, stop, dtype, tuple(shape)


def _are_sizes(values: Any) -> bool:
    return isinstance(values, list) and all(type(v) is int and 0 <= v < 2**48 for v in values)


def _usable(array: np.ndarray) -> np.ndarray:
    """In this machine's byte order, at an address that its dtype asks for."""
    native = array.dtype.newbyteorder("=")
    if array.dtype == native and array.flags.aligned:
        return array
    return array.astype(native)


def strict_json(text: bytes | str, doing: str, what: str) -> Any:
    """The value of a JSON text of one meaning: no key twice, no NaN, UTF-8."""
    try:
        text = text.decode("utf-8") if isinstance(text, bytes) else text
        return json.loads(text, object_pairs_hook=_no_key_twice, parse_constant=_no_constant)
    except RecursionError:
        _broken(doing, f"{what} is nested too deeply")
    except ValueError as error:
        _broken(doing, f"{what} is not JSON ({str(error)[:80]})")


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _broken(doing: str, found: str) -> NoReturn:
    raise ModelFormatError(doing, found, "check that the file is whole and unedited")
