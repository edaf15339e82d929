"""Tables of a FlatBuffer, every offset checked before it is followed.

A table starts with its distance to a vtable; the vtable says, slot by slot, where in the table a
field stands (0: absent, its default holds). Vectors, strings and other tables are reached by
offsets relative to where the offset itself is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from ...errors import ModelFormatError


@dataclass(frozen=True)
class Table:
    """One table in `data`; slots are numbered as in the schema."""

    data: memoryview
    at: int
    doing: str

    @classmethod
    def root(cls, data: bytes | memoryview, doing: str) -> Table:
        """The root table that `data` holds."""
        first = cls(memoryview(data), 0, doing)
        return cls(first.data, first._number(0, "<u4"), doing)

    def scalar(self, slot: int, dtype: str, default: Any) -> Any:
        """The number in a slot, as a Python number."""
        at = self._field(slot)
        return default if at is None else self._number(at, dtype)

    def vector(self, slot: int, dtype: Any) -> np.ndarray:
        """The vector of numbers (or structs) in a slot; empty where the slot is."""
        at = self._field(slot)
        if at is None:
            return np.empty(0, dtype)
        start, length = self._span(at, np.dtype(dtype).itemsize)
        return np.frombuffer(self.data, dtype, length, start)

    def tables(self, slot: int) -> list[Table]:
        """The vector of tables in a slot."""
        return [Table(self.data, at, self.doing) for at in self._targets(slot)]

    def table(self, slot: int) -> Table | None:
        at = self._field(slot)
        return None if at is None else Table(self.data, self._follow(at), self.doing)

    def text(self, slot: int) -> str:
        """The string in a slot; empty where the slot is."""
        at = self._field(slot)
        return "" if at is None else self._string(self._follow(at))

    def texts(self, slot: int) -> list[str]:
        """The vector of strings in a slot."""
        return [self._string(at) for at in self._targets(slot)]

    def slots(self) -> list[int]:
        """The slots that are filled."""
        vtable = self.at - self._number(self.at, "<i4")
        n_slots = max(self._number(vtable, "<u2") - 4, 0) // 2
        return [slot for slot in range(n_slots) if self._field(slot) is not None]

    # ------------------------------------------------------------------ following offsets

    def _field(self, slot: int) -> int | None:
        """Where the field of a slot stands, or None."""
        vtable = self.at - self._number(self.at, "<i4")
        size = self._number(vtable, "<u2")
        entry = 4 + 2 * slot
        if entry + 2 > size:
            return None
        offset = self._number(vtable + entry, "<u2")
        return self.at + offset if offset else None

    def _follow(self, at: int) -> int:
        found: int = at + self._number(at, "<u4")
        return found

    def _span(self, at: int, item: int) -> tuple[int, int]:
        """Start and length of the vector whose offset stands at `at`."""
        start = self._follow(at)
        length = self._number(start, "<u4")
        if start + 4 + length * item > len(self.data):
            self._refuse(f"a vector of {length} entries at byte {start} reaches beyond the end")
        return start + 4, length

    def _targets(self, slot: int) -> list[int]:
        at = self._field(slot)
        if at is None:
            return []
        start, length = self._span(at, 4)
        where = start + 4 * np.arange(length, dtype=np.int64)
        found: list[int] = (where + np.frombuffer(self.data, "<u4", length, start)).tolist()
        return found

    def _string(self, at: int) -> str:
        length = self._number(at, "<u4")
        raw = bytes(self.data[at + 4 : at + 4 + length])
        if len(raw) != length:
            self._refuse(f"a text of {length} bytes at byte {at} reaches beyond the end")
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            self._refuse(f"the text at byte {at} is not UTF-8")

    def _number(self, at: int, dtype: str) -> Any:
        if not 0 <= at <= len(self.data) - np.dtype(dtype).itemsize:
            self._refuse(f"an offset points to byte {at} of {len(self.data)}")
        return np.frombuffer(self.data, dtype, 1, at)[0].item()

    def _refuse(self, found: str) -> NoReturn:
        raise ModelFormatError(self.doing, found, "check that the model file is whole and unedited")
