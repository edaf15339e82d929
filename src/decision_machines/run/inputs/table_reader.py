"""Tables read where they lie, by what pandas, polars and Arrow say of their own memory.

This is the short way for the columns that people have: numbers, nullable numbers, categories and
text. It leaves whatever it does not know, and every error, to `tables`, which reads any table.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...errors import InputError
from .accepted import check_dtypes, guarded_column, is_free, is_guarded
from .label_reader import LabelReader, NewLabel
from .tables import ABSENT, matched_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from jaxtyping import Float

    from ...machine import Columns


class GivenColumn(NamedTuple):
    """One column as the engine takes it; each but `values` may be None."""

    values: Any
    """Numbers, or numbers of labels."""
    labels: np.ndarray | None = None
    """Positions of the labels by their numbers."""
    mask: np.ndarray | None = None
    """True where a row is missing."""
    valid: Any = None
    """Bits, set where a row is not missing."""
    first_bit: int = 0

    def part(self, start: int, stop: int) -> GivenColumn:
        """The rows from one to another."""
        return self._replace(
            values=self.values[start:stop],
            mask=None if self.mask is None else self.mask[start:stop],
            first_bit=self.first_bit + start,
        )

    def floats(self) -> Float[np.ndarray, "m"]:
        """The column as one array, NaN where it is missing."""
        values = np.asarray(self.values)
        x = values.astype(np.float64)
        if self.labels is not None:
            is_none = values < 0
            x = np.where(is_none, np.nan, self.labels[np.where(is_none, 0, values)])
        if self.mask is not None:
            x[self.mask] = np.nan
        if self.valid is not None:
            bits = np.unpackbits(np.frombuffer(self.valid, np.uint8), bitorder="little")
            x[bits[self.first_bit : self.first_bit + len(x)] == 0] = np.nan
        return x


class ReadTable(NamedTuple):
    """A table as the engine takes it, in the order of a machine's features."""

    n_rows: int
    columns: list[Any]
    """Arrays of numbers, or a `GivenColumn`."""


class NotRead(Exception):
    """A table, or a column of one, that takes the long way."""


class TableReader:
    """Reads tables for one machine; it remembers orders of columns and dictionaries of labels.

    Examples
    --------
    >>> import pandas as pd
    >>> from decision_machines import Columns
    >>> columns = Columns(2, names=("colour", "size"), categories={0: ("red", "blue")})
    >>> table = pd.DataFrame({"size": [1.5], "colour": pd.Categorical(["blue"])})
    >>> TableReader(columns).read(table).columns[0].labels
    array([1.])
    """

    __slots__ = ("_columns", "_known", "_readers")

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._known: tuple[Any, list[int]] = (None, [])
        self._readers: dict[int, LabelReader] = {}

    def read(self, X: Any) -> ReadTable | None:
        """The table; None where it takes the long way."""
        for module, kind, look in WAYS:
            library = sys.modules.get(module)
            if library is None or type(X) is not getattr(library, kind, None):
                continue
            try:
                return self._read(look(X))
            except (NotRead, NewLabel, InputError, TypeError, ValueError, AttributeError):
                return None  # also where a release of the library has moved what is looked at here
        return None

    def _read(self, table: Table) -> ReadTable:
        order = self._order_of(table.names)
        # Made where it is needed alone: a row of a table is read in microseconds.
        absent = Numbers(np.full(table.n_rows if ABSENT in order else 0, np.nan))
        given: list[Column] = [absent if at == ABSENT else table.columns[at] for at in order]
        labels = self._labels(given)
        read = [
            column.numbers() if own is None or column is absent else column.positions(own)
            for column, own in zip(given, labels, strict=True)
        ]
        if is_guarded(self._columns):
            read = self._guarded(read, order)
        return ReadTable(table.n_rows, read)

    def _guarded(self, read: list[Any], order: list[int]) -> list[Any]:
        """The columns, checked as the source would; those that need no look as they are."""
        columns = self._columns
        held = [c.values if isinstance(c, GivenColumn) else c for c in read]
        dtypes = {f: held[f].dtype for f, at in enumerate(order) if at != ABSENT}
        check_dtypes(dtypes, columns)
        found = []
        for feature, column in enumerate(read):
            if is_free(feature, columns):
                found.append(column)
                continue
            values = column.floats() if isinstance(column, GivenColumn) else np.asarray(column)
            coded = guarded_column(values, feature, columns)
            found.append(column if coded is values else coded)
        return found

    def _order_of(self, names: Any) -> list[int]:
        """The table's column for each feature."""
        before, order = self._known  # together: another thread may be reading another table
        if names is before:
            return order
        is_same = getattr(names, "equals", names.__eq__)
        if type(before) is not type(names) or not is_same(before):
            order = _matched(tuple(names), self._columns)
        self._known = (names, order)
        return order

    def _labels(self, given: list[Column]) -> list[LabelReader | None]:
        """For each feature a reader of its labels, where it has any."""
        columns = self._columns
        if columns.table_categories is None:
            known = columns.categories
            return [self._reader(f, known[f]) if f in known else None for f in range(len(given))]
        found: list[LabelReader | None] = []
        n_labelled = 0
        for column in given:
            if not column.holds_labels:
                found.append(None)
                continue
            if n_labelled == len(columns.table_categories):
                raise NotRead
            found.append(self._reader(n_labelled, columns.table_categories[n_labelled]))
            n_labelled += 1
        if n_labelled != len(columns.table_categories):
            raise NotRead
        return found

    def _reader(self, which: int, labels: tuple[Any, ...]) -> LabelReader:
        found = self._readers.get(which)
        if found is None:
            found = self._readers[which] = LabelReader(self._columns, labels)
        return found


def _matched(found: tuple[Any, ...], columns: Columns) -> list[int]:
    if columns.names is None:
        if len(found) != columns.n_features:
            raise NotRead
        return list(range(len(found)))
    order, missing, extra = matched_names(list(found), columns)
    if missing or extra or len(set(map(str, found))) != len(found):
        raise NotRead
    return order


# -- columns, by what they hold ---------------------------------------------------------------


class Column:
    """A column of one of the libraries, before it is read."""

    __slots__ = ("values",)
    holds_labels = False

    def __init__(self, values: Any) -> None:
        self.values = values

    def numbers(self) -> Any:
        """The column as numbers, for a feature without labels."""
        raise NotRead

    def positions(self, labels: LabelReader) -> Any:
        """The column as positions of labels."""
        raise NotRead


class Numbers(Column):
    """A NumPy array of numbers without missing ones but NaN."""

    __slots__ = ()

    def numbers(self) -> Any:
        kind = self.values.dtype
        if kind.kind not in "biuf" or kind.itemsize > 8 or kind == np.float16:
            raise NotRead
        return self.values

    def positions(self, labels: LabelReader) -> Any:
        if self.values.dtype.kind not in "iu":
            raise NotRead
        distinct, numbers = np.unique(self.values, return_inverse=True)
        return GivenColumn(numbers, labels.of_objects(distinct.astype(object)))


class Objects(Column):
    """A NumPy array of objects."""

    __slots__ = ()
    # Whether it counts as one of labels, only all of its values would tell.

    @property
    def holds_labels(self) -> bool:  # type: ignore[override]
        raise NotRead

    def positions(self, labels: LabelReader) -> Any:
        return labels.of_objects(self.values)


class Categories(Column):
    """Numbers of labels, and their dictionary; -1 or a cleared bit is none of them."""

    __slots__ = ("first_bit", "held", "key", "labels", "valid")
    holds_labels = True

    def __init__(
        self,
        values: Any,
        held: Any,
        key: Any,
        labels: Callable[[], Iterable[Any]],
        valid: Any = None,
        first_bit: int = 0,
    ) -> None:
        super().__init__(values)
        self.held, self.key, self.labels = held, key, labels
        self.valid, self.first_bit = valid, first_bit

    def positions(self, labels: LabelReader) -> Any:
        # A label that is refused may be one that no row has: the long way looks at the rows.
        mapped = labels.of_dictionary(self.held, self.key, self.labels)
        if not labels.none_is_nan and (self.valid is not None or np.any(self.values < 0)):
            raise NotRead
        return GivenColumn(self.values, mapped, None, self.valid, self.first_bit)


class Masked(Column):
    """Numbers, and a mask of those that are missing."""

    __slots__ = ("mask",)

    def __init__(self, values: np.ndarray, mask: np.ndarray) -> None:
        super().__init__(values)
        self.mask = mask

    def numbers(self) -> Any:
        values = Numbers(self.values).numbers()
        return GivenColumn(values, None, np.ascontiguousarray(self.mask))


class ArrowArray(Column):
    """An Arrow array of one piece."""

    __slots__ = ()

    @property
    def holds_labels(self) -> bool:  # type: ignore[override]
        kinds = arrow_kinds()
        return self.values.type.id in kinds.text or self.values.type.id == kinds.dictionary

    def numbers(self) -> Any:
        array = self.values
        dtype = arrow_kinds().numbers.get(array.type.id)
        if dtype is None:
            raise NotRead
        valid, data = array.buffers()
        n, first = len(array), array.offset
        values = np.frombuffer(data, dtype, n, first * dtype.itemsize) if n else np.empty(0, dtype)
        return values if valid is None else GivenColumn(values, None, None, valid, first)

    def positions(self, labels: LabelReader) -> Any:
        array, kinds = self.values, arrow_kinds()
        if array.type.id in kinds.text:
            out = np.empty(len(array), np.float64)
            if len(array):
                valid, offsets, data = array.buffers()
                is_wide = kinds.text[array.type.id]
                labels.positions.text(data, offsets, is_wide, valid, array.offset, out)
            return out
        if array.type.id == kinds.dictionary:
            return self._categories().positions(labels)
        given = self.numbers()
        if isinstance(given, GivenColumn):
            raise NotRead
        return Numbers(given).positions(labels)

    def _categories(self) -> Categories:
        given = ArrowArray(self.values.indices).numbers()
        held = self.values.dictionary
        # Every look at an Arrow array makes a new object of it: its memory tells it from others.
        buffers = held.buffers()
        key = (len(held), held.offset, *(0 if b is None else b.address for b in buffers))
        if not isinstance(given, GivenColumn):
            return Categories(given, held, key, held.to_pylist)
        return Categories(given.values, held, key, held.to_pylist, given.valid, given.first_bit)


class ArrowPieces(Column):
    """An Arrow array of several pieces, or none."""

    __slots__ = ()

    @property
    def holds_labels(self) -> bool:  # type: ignore[override]
        kinds = arrow_kinds()
        return self.values.type.id in kinds.text or self.values.type.id == kinds.dictionary

    def numbers(self) -> Any:
        return ArrowArray(self.values.combine_chunks()).numbers()

    def positions(self, labels: LabelReader) -> Any:
        if self.values.type.id == arrow_kinds().dictionary:  # each piece may have its own
            return ArrowArray(self.values.unify_dictionaries().combine_chunks()).positions(labels)
        pieces = [ArrowArray(piece).positions(labels) for piece in self.values.chunks]
        return np.concatenate(pieces) if pieces else np.empty(0)


class ArrowKinds(NamedTuple):
    """Arrow's numbers for the types of columns that are read where they lie."""

    numbers: dict[int, np.dtype[Any]]
    text: dict[int, bool]
    """Whether offsets have 64 bits."""
    dictionary: int


@functools.cache
def arrow_kinds() -> ArrowKinds:
    import pyarrow as pa

    numbers = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
    dtypes = [np.dtype(kind) for kind in (*numbers, np.float32, np.float64)]
    return ArrowKinds(
        {pa.from_numpy_dtype(dtype).id: dtype for dtype in dtypes},
        {pa.string().id: False, pa.large_string().id: True},
        pa.dictionary(pa.int8(), pa.string()).id,
    )


def _of_arrow(values: Any) -> Column:
    """A column of an Arrow array or chunked array."""
    if not hasattr(values, "num_chunks"):
        return ArrowArray(values)
    return ArrowArray(values.chunk(0)) if values.num_chunks == 1 else ArrowPieces(values)


class PandasArrow(Column):
    """A column of pandas that Arrow holds: to its users what is null there is NaN, not None."""

    __slots__ = ()

    @property
    def holds_labels(self) -> bool:  # type: ignore[override]
        return _of_arrow(self.values).holds_labels

    def numbers(self) -> Any:
        return _of_arrow(self.values).numbers()

    def positions(self, labels: LabelReader) -> Any:
        found = _of_arrow(self.values).positions(labels)
        if labels.none_is_nan or not self.values.null_count:
            return found
        if isinstance(found, GivenColumn):
            raise NotRead
        found[np.asarray(self.values.is_null())] = np.nan
        return found


# -- tables -----------------------------------------------------------------------------------


class Table(NamedTuple):
    """A table of one of the libraries: what names its columns, and these."""

    n_rows: int
    names: Any
    columns: list[Column]


def _pandas(X: Any) -> Table:
    # An index of pandas is as slow to list as the columns are to read: it is compared instead.
    return Table(len(X), X.columns, [_of_pandas(array) for array in _pandas_arrays(X)])


def _pandas_arrays(X: Any) -> Iterable[Any]:
    """The arrays of a pandas table, without a Series around each where pandas gives them so."""
    arrays = getattr(X, "_iter_column_arrays", None)
    return arrays() if arrays is not None else (X.iloc[:, i].array for i in range(X.shape[1]))


def _of_pandas(array: Any) -> Column:
    if type(array) is np.ndarray:
        return Objects(array) if array.dtype == object else Numbers(array)
    kind = type(array).__name__
    if kind == "Categorical":
        categories = array.dtype.categories
        return Categories(array.codes, categories, id(categories), categories.tolist)
    arrow = getattr(array, "_pa_array", None)
    if arrow is not None:
        return PandasArrow(arrow)
    if kind in ("IntegerArray", "FloatingArray", "BooleanArray"):
        return Masked(array._data, array._mask)
    if kind in ("NumpyExtensionArray", "StringArray"):
        return _of_pandas(array.to_numpy())
    return Column(array)


def _pyarrow(X: Any) -> Table:
    return Table(X.num_rows, tuple(X.schema.names), [_of_arrow(c) for c in X.columns])


def _polars(X: Any) -> Table:
    return _pyarrow(X.to_arrow())


WAYS: tuple[tuple[str, str, Callable[[Any], Table]], ...] = (
    ("pandas", "DataFrame", _pandas),
    ("polars", "DataFrame", _polars),
    ("pyarrow", "Table", _pyarrow),
    ("pyarrow", "RecordBatch", _pyarrow),
)
"""Module, type and reader of each kind of table."""
