"""The fields of a parsed JSON or UBJSON document, checked as they are asked for."""

from __future__ import annotations

import contextlib
import json
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ModelFormatError
from .fields import unknown_field

if TYPE_CHECKING:
    from collections.abc import Sequence

WHOLE = "check that the file is whole and unedited, or save the model again"


def read_json(data: bytes, doing: str) -> Any:
    """The value of a JSON text, or a ModelFormatError that says where it breaks."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ModelFormatError(doing, "JSON nested too deeply for a model", WHOLE) from None
    except ValueError as error:
        raise ModelFormatError(doing, f"it is not JSON ({error})", WHOLE) from None


class Document:
    """A JSON object and its place in the file; asking for what is not there is an error."""

    def __init__(self, value: Any, doing: str, path: str = "") -> None:
        self.value, self.doing, self.path = value, doing, path
        self.asked: set[str] = set()
        self.below: list[Document] = []
        if not isinstance(value, dict):
            raise self.fault(f"{path or 'the document'} is {_kind(value)}, not an object")

    def fault(self, found: str) -> ModelFormatError:
        return ModelFormatError(self.doing, found, WHOLE)

    def name(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def refuse_unread(self) -> None:
        """Refuse the first key, here or below, that nobody has asked for."""
        for key in self.value:
            if key not in self.asked:
                raise unknown_field(self.doing, self.name(key[:60]))
        for document in self.below:
            document.refuse_unread()

    def __contains__(self, key: str) -> bool:
        self.asked.add(key)
        return key in self.value

    def raw(self, key: str) -> Any:
        self.asked.add(key)
        if key not in self.value:
            raise self.fault(f"{self.name(key)} is missing")
        return self.value[key]

    def child(self, key: str) -> Document:
        self.below.append(Document(self.raw(key), self.doing, self.name(key)))
        return self.below[-1]

    def text(self, key: str) -> str:
        value = self.raw(key)
        if not isinstance(value, str):
            raise self.fault(f"{self.name(key)} is {_kind(value)}, not text")
        return value

    def integer(self, key: str) -> int:
        """An integer, written as a number or as text."""
        value = self.raw(key)
        if isinstance(value, str) and len(value) < 20:
            with contextlib.suppress(ValueError):
                value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**63:
            raise self.fault(f"{self.name(key)} is {_kind(value)}, not an integer")
        return value

    def array(self, key: str, dtype: Any) -> np.ndarray:
        """A list of numbers as an array of float32, or of integers as int64."""
        self.asked.add(key)
        return join([self.value], key, dtype, None, self.doing, self.name(key))[0]

    def objects(self, key: str) -> list[dict[str, Any]]:
        value = self.raw(key)
        if not isinstance(value, list):
            raise self.fault(f"{self.name(key)} is {_kind(value)}, not a list")
        for i, item in enumerate(value):
            if not isinstance(item, dict):
                raise self.fault(f"{self.name(key)}[{i}] is {_kind(item)}, not an object")
        return value

    def texts(self, key: str) -> list[str]:
        value = self.raw(key)
        value = list(value) if isinstance(value, np.ndarray) else value
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.fault(f"{self.name(key)} is not a list of text")
        return value


def join(
    objects: Sequence[dict[str, Any]],
    key: str,
    dtype: Any,
    sizes: np.ndarray | None,
    doing: str,
    name: str = "",
) -> tuple[np.ndarray, np.ndarray]:
    """One array of the lists that many objects hold under one key, and their lengths.

    Parameters
    ----------
    dtype
        float32, or int64, in which booleans count as 0 and 1.
    sizes
        The lengths that the lists must have; None where any will do.
    """
    name = name or f"trees[].{key}"
    parts: list[Any] = [item.get(key) for item in objects]
    for i, part in enumerate(parts):
        if not isinstance(part, (list, np.ndarray)):
            place = name.replace("[]", f"[{i}]")
            found = "missing" if part is None else f"{_kind(part)}, not a list"
            raise ModelFormatError(doing, f"{place} is {found}", WHOLE)
    lengths = np.fromiter(map(len, parts), np.int64, len(parts))
    if sizes is not None and not np.array_equal(lengths, sizes):
        i = int(np.argmax(lengths != sizes))
        place = name.replace("[]", f"[{i}]")
        raise ModelFormatError(
            doing, f"{place} has {lengths[i]} entries where {sizes[i]} are needed", WHOLE
        )
    return _numbers(parts, dtype, doing, name), lengths


def _numbers(parts: list[Any], dtype: Any, doing: str, name: str) -> np.ndarray:
    allowed = "iuf" if dtype == np.float32 else "iu"
    if parts and all(isinstance(part, np.ndarray) for part in parts):
        if {part.dtype.kind for part in parts} <= set(allowed):
            with np.errstate(over="ignore", invalid="ignore"):
                return np.concatenate(parts).astype(dtype)
    else:
        values = list(
            chain.from_iterable(p.tolist() if isinstance(p, np.ndarray) else p for p in parts)
        )
        # Types are looked at before NumPy is: one long string among numbers would make it
        # allocate that length for each of them.
        if set(map(type, values)) <= ({int, float} if dtype == np.float32 else {int, bool}):
            try:
                with np.errstate(over="ignore"):
                    wide = np.array(values, np.float64 if dtype == np.float32 else dtype)
                    return wide.astype(dtype, copy=False)
            except OverflowError:
                pass
    kind = "numbers" if dtype == np.float32 else "integers of 64 bits"
    raise ModelFormatError(doing, f"{name} holds something other than {kind}", WHOLE)


def _kind(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float)):
        shown = repr(value) if not isinstance(value, int) or abs(value) < 2**63 else "a huge number"
        return shown
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else value[:40] + "…")
    return {dict: "an object", list: "a list", np.ndarray: "a list"}.get(
        type(value), "something else"
    )
