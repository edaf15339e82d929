"""The text of a CSV as columns with types: the same rules for whole files and for batches.

A cell of no characters is missing, quoted or not, unless that is a label which the model knows.
What the model compares with thresholds is read as float64, what it knows by labels as these labels
are; only columns that no model decides about are guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..machine import Rule
from .features import position_of_feature
from .kinds import is_packed, separator

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..machine import Columns

BLOCK = 1 << 22
"""Bytes of text read at a time."""


@dataclass(frozen=True)
class TextTypes:
    """What the columns of a text are read as: its first block must not decide for the rest."""

    columns: Columns
    keep: tuple[str, ...] = ()
    """Columns that are carried as the text they are."""
    chosen: Sequence[str] | None = None
    """The columns that are the features, in their order, where the user says so."""

    def type_of(self, field: Any) -> Any:
        """The Arrow type of a column, given the one that was guessed from the first rows."""
        import pyarrow as pa

        feature = self.feature(field.name)
        if feature is None:
            return pa.string()
        if feature in self.columns.categories:
            return _type_of_labels(self.columns, feature)
        if feature in self._looked_up:
            return field.type
        is_number = not self.columns.table_categories
        guessed = field.type
        if pa.types.is_integer(guessed) or pa.types.is_null(guessed):
            return pa.float64()
        return pa.float64() if pa.types.is_string(guessed) and is_number else guessed

    def feature(self, name: str) -> int | None:
        """The feature that a column holds; -1 where it is known only that it holds one."""
        if self._position is None:
            return None if name in self.keep else -1
        return position_of_feature(name, self._position)

    def takes_empty_text(self, name: str) -> bool:
        """Whether a cell of no characters stays one: a carried cell, or a label that is known."""
        feature = self.feature(name)
        if feature is None:
            return name in self.keep
        # CatBoost has no missing labels: it reads such a cell of a file as the label "", too.
        is_hashed = bool(self.columns.label_hash) and feature in self.columns.categories
        return is_hashed or "" in self.columns.categories.get(feature, ())

    @cached_property
    def _position(self) -> dict[str, int] | None:
        names = self.columns.names if self.chosen is None else self.chosen
        if names is None:
            return None
        return {name: feature for feature, name in reversed(list(enumerate(names)))}

    @cached_property
    def _looked_up(self) -> set[int]:
        """Features whose labels a model looks up, though it does not say which labels are whose."""
        if self.columns.table_categories is None:
            return set()
        return set(self.columns.feature[self.columns.rule == Rule.MEMBER].tolist())


def _type_of_labels(columns: Columns, feature: int) -> Any:
    """Text where any label is text, or where labels are matched by the hash of their text."""
    import pyarrow as pa

    labels = [label for label in columns.categories[feature] if label is not None]
    if columns.label_hash or any(isinstance(label, str) for label in labels):
        return pa.string()
    if labels and all(isinstance(label, bool) for label in labels):
        return pa.bool_()
    return pa.float64()


def open_bytes(path: str) -> Any:
    """The file, opened by Arrow itself.

    Arrow reads ahead on threads of its own, and lets go of a file there. A file of Python's would
    have them ask for Python's lock, which aborts the process where it is about to end.
    """
    import pyarrow as pa

    return pa.OSFile(path, "rb")


def open_text(path: str, file: Any) -> Any:
    """A stream of the bytes of such a file's text, unpacked."""
    import pyarrow as pa

    return pa.input_stream(file, compression="gzip" if is_packed(path) else None)


def options(
    path: str, types: Any = None, names: Iterable[str] = (), threads: bool = True
) -> dict[str, Any]:
    """How Arrow's CSV readers are to read a file; `names` are the columns to read, all if none."""
    from pyarrow import csv

    return {
        "read_options": csv.ReadOptions(block_size=BLOCK, use_threads=threads),
        # Quoted cells may hold line breaks: a block must not be cut there.
        "parse_options": csv.ParseOptions(delimiter=separator(path), newlines_in_values=True),
        "convert_options": csv.ConvertOptions(column_types=types, include_columns=list(names)),
    }


def empty_as_missing(rows: Any, stays: Any) -> Any:
    """A table or record batch with null for text of no characters.

    Parameters
    ----------
    stays
        A function that says of a column's name whether such text stays as it is.
    """
    import pyarrow as pa
    from pyarrow import compute

    def column(name: str, values: Any) -> Any:
        if not _is_text(values.type) or stays(name):
            return values
        null = pa.scalar(None, values.type)
        return compute.if_else(compute.equal(values, ""), null, values)

    names = rows.schema.names
    arrays = [column(name, values) for name, values in zip(names, rows.columns, strict=True)]
    return type(rows).from_arrays(arrays, names=names)


def _is_text(type_: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def column_named(said: str, names: Sequence[str]) -> str:
    """What Arrow says of a broken cell, with the column's name for its number."""

    def named(found: re.Match[str]) -> str:
        number = int(found[1])
        return f"column {names[number]!r}" if number < len(names) else found[0]

    return re.sub(r"CSV column #(\d+)", named, said)


def cell_that_is_no_number(said: str, names: Sequence[str]) -> str | None:
    """What Arrow says of a cell of text among numbers, in our words; None for anything else.

    Examples
    --------
    >>> arrow = "In CSV column #1: Row #2: CSV conversion error to double: invalid value 'red'"
    >>> cell_that_is_no_number(arrow, ["a", "b"])
    "column 'b' has 'red' in row 2 (the header is row 1), where a number is read"
    """
    found = re.fullmatch(
        r"In (?:CSV )?(column .*?): (?:Row #(\d+): )?"
        r"CSV conversion error to (?:double|float|u?int\d+): invalid value '(.*)'",
        column_named(said, names),
        re.DOTALL,
    )
    if found is None:
        return None
    row = f" in row {found[2]} (the header is row 1)" if found[2] else ""
    return f"{found[1]} has {found[3]!r}{row}, where a number is read"
