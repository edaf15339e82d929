"""pandas, polars and Arrow tables, matched to the machine's features by name."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...errors import InputError
from ...machine.feature_names import known_as, listed
from .accepted import check_dtypes, guarded, is_guarded
from .arrays import DOING
from .label_positions import hashed_positions, position_of

if TYPE_CHECKING:
    from jaxtyping import Num

    from ...machine import Columns


ABSENT = -1
"""In the place of a table's column that is not there and not needed."""


class TableColumns(NamedTuple):
    """The columns of a table, in the order of a machine's features."""

    n_rows: int
    values: list[np.ndarray]
    """One array for each feature, in the table's own dtype and memory where it holds numbers."""


def table_array(X: Any, columns: Columns) -> Num[np.ndarray, "m n_features"]:
    """A table as one array: columns matched by name, labels turned into their codes."""
    n_rows, values = table_columns(X, columns)
    x = np.empty((n_rows, columns.n_features), columns.dtype, order="F")
    with np.errstate(over="ignore"):
        for feature, column in enumerate(values):
            x[:, feature] = column
    if not np.isnan(columns.missing_value):
        x[x == columns.missing_value] = np.nan
    return x


def table_columns(X: Any, columns: Columns) -> TableColumns:
    """The columns of a table in the order of the features, labels turned into their codes."""
    table = native_table(X)
    order = match_names(list(table.columns), columns)
    if columns.table_categories is not None:
        columns = with_categories(table, order, columns)
    values = [
        np.full(len(table), np.nan)
        if position == ABSENT
        else _column(table[:, position], feature, columns)
        for feature, position in enumerate(order)
    ]
    if columns.table_categories is not None:
        for feature in columns.categories:
            values[feature] = np.where(values[feature] < 0, np.nan, values[feature])
    if is_guarded(columns):
        _check_dtypes(table, order, values, columns)
        values = guarded(values, columns)
    return TableColumns(len(table), values)


def _check_dtypes(table: Any, order: list[int], values: list[np.ndarray], columns: Columns) -> None:
    """Refuse a table whose dtypes would have the source compute in other digits."""
    found = {f: values[f].dtype for f, at in enumerate(order) if at != ABSENT}
    for feature, position in enumerate(order):
        # What is missing among whole numbers makes floats of them in every library.
        if position != ABSENT and str(table[:, position].dtype) == "Float32":
            found[feature] = np.dtype(np.float32)
    check_dtypes(found, columns)


def native_table(X: Any) -> Any:
    """A table of any library as one of narwhals."""
    import narwhals as nw

    if getattr(X, "ndim", 2) != 2:
        raise InputError(
            DOING, f"a {type(X).__name__}, of one dimension", "pass a table of all features"
        )
    _check_distinct(X)
    X = with_dense_columns(X)
    try:
        return nw.from_native(X, eager_only=True)
    except TypeError:
        if not hasattr(X, "__arrow_c_stream__"):
            raise InputError(
                DOING,
                f"a {type(X).__name__}, which is lazy or not a table",
                "collect it into a pandas, polars or Arrow table first",
            ) from None
        import pyarrow

        return nw.from_native(pyarrow.table(X), eager_only=True)


def with_dense_columns(X: Any) -> Any:
    """A pandas table whose sparse columns hold all their entries; any other table as it is.

    Examples
    --------
    >>> import pandas
    >>> table = pandas.DataFrame({"a": pandas.arrays.SparseArray([0, 0, 1])})
    >>> with_dense_columns(table)["a"].dtype
    dtype('int64')
    """
    if not type(X).__module__.startswith("pandas"):
        return X
    import pandas

    kinds = {
        name: dtype.subtype
        for name, dtype in X.dtypes.items()
        if isinstance(dtype, pandas.SparseDtype)
    }
    return X.astype(kinds) if kinds else X


def _check_distinct(X: Any) -> None:
    """Refuse columns given twice before anything else stumbles over them."""
    is_pandas = type(X).__module__.startswith("pandas")
    names = X.columns if is_pandas else getattr(X, "column_names", ())
    twice = [name for name, n in Counter(map(str, names)).items() if n > 1]
    if twice:
        raise InputError(DOING, f"columns given twice: {listed(twice)}", "give every column once")


def with_categories(table: Any, order: list[int], columns: Columns) -> Columns:
    """The columns with `table_categories` given to the features whose columns hold labels."""
    import narwhals as nw

    labelled = [
        feature
        for feature, position in enumerate(order)
        if table[:, position].dtype in (nw.Categorical, nw.Enum, nw.String)
    ]
    labels = columns.table_categories or ()
    if len(labelled) != len(labels):
        raise InputError(
            DOING,
            f"{len(labelled)} columns of the table are categorical; the training data had "
            f"{len(labels)}",
            "give the table the column types of the training data",
        )
    return replace(columns, categories=dict(zip(labelled, labels, strict=True)))


def match_names(found: list[Any], columns: Columns) -> list[int]:
    """The table's column for each feature; `ABSENT` where the source does not need it."""
    if columns.names is None:
        if len(found) != columns.n_features:
            raise InputError(
                DOING,
                f"the table has {len(found)} columns; the machine reads {columns.n_features} "
                "and knows no names for them",
                f"pass {columns.n_features} columns in the order of the training data",
            )
        return list(range(len(found)))
    order, missing, extra = matched_names(found, columns)
    if missing or extra:
        parts = [f"missing {listed(missing)}"] * bool(missing) + [f"extra {listed(extra)}"] * bool(
            extra
        )
        raise InputError(
            DOING,
            f"the table's columns are not the model's: {'; '.join(parts)}",
            "give the table exactly the columns of the training data, in any order",
        )
    return order


class MatchedNames(NamedTuple):
    """Names that somebody gives, matched to those of a machine's features."""

    order: list[int]
    """Which of them is each feature's, or `ABSENT`; empty where some are missing."""
    missing: list[str]
    extra: list[str]


def matched_names(found: list[Any], columns: Columns) -> MatchedNames:
    """Names matched to features, however they are spelt; in their order where there are none."""
    wanted = columns.names
    if wanted is None:
        wanted = tuple(columns.feature_name(f) for f in range(columns.n_features))
        if len(found) == len(wanted):
            return MatchedNames(list(range(len(found))), [], [])
    known = set(wanted)
    names = [known_as(str(name), known) for name in found]
    position = {name: i for i, name in enumerate(names)}
    accepted = columns.accepted
    # What no step of the source reads may be missing, and may hold anything.
    is_read = [True] * len(wanted) if accepted is None else accepted.needed.tolist()
    missing = [
        name for name, read in zip(wanted, is_read, strict=True) if read and name not in position
    ]
    ignores_further = accepted is not None and accepted.ignores_further
    extra = [] if ignores_further else [name for name in names if name not in known]
    if missing:
        return MatchedNames([], missing, extra)
    order = [position[name] if read else ABSENT for name, read in zip(wanted, is_read, strict=True)]
    return MatchedNames(order, missing, extra)


def _column(series: Any, feature: int, columns: Columns) -> np.ndarray:
    """One column as floats: numbers as they are, labels as codes, null as NaN."""
    import narwhals as nw

    dtype = series.dtype
    labels = columns.categories.get(feature)
    if labels is not None:
        if columns.label_hash:
            name = f"column {series.name!r}"
            return hashed_positions(np.array([*series.to_list(), None], object)[:-1], labels, name)
        codes = _codes(series, labels, columns.dtype)
        if columns.refuses_new_labels and np.any(codes < 0):
            raise _new_label(series.to_list()[int(np.argmax(codes < 0))], feature, columns)
        return codes
    if len(series) and series.null_count() == len(series):
        return np.full(len(series), np.nan, columns.dtype)  # an empty column has any type
    if not (dtype.is_numeric() or dtype == nw.Boolean):
        if columns.accepted is not None and dtype in (nw.Object, nw.Categorical, nw.Enum):
            return numbers_of(series.to_list(), series.name)
        name = repr(series.name) if columns.names is None else repr(columns.names[feature])
        raise InputError(
            DOING,
            f"column {name} holds {dtype}, and the model knows no categories for it",
            "encode the column as numbers, as the training data was",
        )
    if series.null_count():
        if not dtype.is_float():
            series = series.cast(nw.Float64)
        values = series.to_numpy()
        if values.dtype == object:  # pandas before 2.2 keeps its own NA among Arrow's numbers
            gaps = series.is_null().to_list()
            kept = zip(values, gaps, strict=True)
            values = np.array([np.nan if gap else v for v, gap in kept], np.float64)
    else:
        values = _as_it_lies(series)
    values = np.asarray(values)
    if values.dtype.kind in "biuf" and values.dtype.itemsize <= 8 and values.dtype != np.float16:
        return values
    with np.errstate(over="ignore"):
        return values.astype(columns.dtype)


def numbers_of(values: list[Any], name: Any) -> np.ndarray:
    """Numbers that are kept as objects or categories, as scikit-learn reads them: None is NaN."""
    try:
        return np.array(values, object).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            DOING, f"column {name!r} holds what is not a number ({error})", "give numbers"
        ) from None


def _as_it_lies(series: Any) -> np.ndarray:
    """A column of numbers without nulls, not copied where its library can help it."""
    native = series.to_native()
    if type(native).__module__.startswith("pyarrow") and getattr(native, "num_chunks", 0) == 1:
        chunk = native.chunk(0)
        if str(chunk.type) not in ("bool", "halffloat"):
            return np.asarray(chunk.to_numpy(zero_copy_only=False))
    return np.asarray(series.to_numpy())


def _new_label(label: Any, feature: int, columns: Columns) -> InputError:
    name = f"{feature}" if columns.names is None else repr(columns.names[feature])
    return InputError(
        DOING,
        f"column {name} holds {label!r}, a category that the model was not trained with",
        f"use its categories, {listed(columns.categories[feature])}, or None for none",
    )


def _codes(series: Any, labels: tuple[Any, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Positions of the labels; -1 for a label that is not among them, NaN for none."""
    position = {label: i for i, label in enumerate(labels)}
    values = series.to_list()
    # Of every label once; NaN, which equals nothing, is not found again and stays NaN.
    code = {label: position_of(label, position) for label in set(values)}
    return np.array([code.get(label, np.nan) for label in values], dtype)
