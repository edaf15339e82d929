"""Tensors of the Open Inference Protocol: rows of a request, and answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from .limits import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..machine import Columns

DATATYPES: dict[str, Any] = {
    "BOOL": np.bool_,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "FP32": np.float32,
    "FP64": np.float64,
    "BYTES": object,
}
NAMES = {np.dtype(kind): name for name, kind in DATATYPES.items() if name != "BYTES"}
NUMBERS = frozenset({float, int, type(None)})


def numbers_of_one_row(given: Any, n_features: int) -> list[Any] | None:
    """The values of a tensor of one row of floats, in the shortest way; None where it is not one.

    Most requests are of this kind. Whatever is unusual about one is left to `rows_of`.
    """
    if type(given) is not list or len(given) != 1 or type(given[0]) is not dict:
        return None
    tensor = given[0]
    if tensor.get("datatype") != "FP64" or tensor.get("shape") != [1, n_features]:
        return None
    data = tensor.get("data")
    if type(data) is not list or len(data) != n_features or not {*map(type, data)} <= NUMBERS:
        return None
    return data if "name" in tensor and n_features != 1 else None


def rows_of(inputs: Any, n_features: int, most_rows: int) -> np.ndarray | dict[str, np.ndarray]:
    """The rows of a request: an array, or columns by name where each feature has its own tensor."""
    if not isinstance(inputs, list) or not inputs:
        raise Refused(400, "the body has no list of inputs; see /v2/models/NAME for what to send")
    tensors = [_tensor(given) for given in inputs]
    rows = max(len(values) if values.ndim else 1 for _, values in tensors)
    if rows > most_rows:
        raise Refused(413, f"{rows} rows; at most {most_rows} are taken: send them in parts")
    if len(tensors) == 1 and tensors[0][1].ndim == 2 and n_features != 1:
        return tensors[0][1]
    columns: dict[str, np.ndarray] = {}
    for name, values in tensors:
        if values.ndim > 2 or (values.ndim == 2 and values.shape[1] != 1):
            raise Refused(400, f"input {name!r} has the shape {values.shape}; send one column")
        if name in columns:
            raise Refused(400, f"two inputs are named {name!r}; send each feature once")
        columns[name] = values.reshape(-1)
    if len({len(values) for values in columns.values()}) != 1:
        raise Refused(400, "the inputs have different numbers of rows; send as many for each")
    return columns


def table_of(given: dict[str, np.ndarray], columns: Columns) -> Any:
    """An Arrow table of columns by name; numbers are labels where the model has labels of numbers.

    JSON has no type for labels that are numbers, as a CSV file has none.
    """
    from ..files.features import feature_columns, feature_table
    from ..files.kinds import arrow

    pyarrow, arrays = arrow("reading a table by its features' names"), {}
    for name, values in given.items():
        try:
            arrays[name] = pyarrow.array(values)
        except (pyarrow.ArrowException, ValueError, TypeError, OverflowError) as error:
            raise Refused(
                400, f"input {name!r:.60} is not a column of one kind: {error!s:.200}"
            ) from None
    table = pyarrow.table(arrays)
    names = feature_columns(columns, table.column_names)
    has_others = len({*names}) < table.num_columns  # which the machine refuses by name
    return table if has_others else feature_table(table, names, columns)


def _tensor(given: Any) -> tuple[str, np.ndarray]:
    """One tensor of a request, checked against what it says of itself."""
    try:
        name, shape, datatype = given["name"], tuple(given["shape"]), given["datatype"]
        data = given["data"]
    except (TypeError, KeyError) as error:
        raise Refused(400, f"an input lacks {error}; see /v2/models/NAME") from None
    if not isinstance(name, str) or not isinstance(datatype, str) or datatype not in DATATYPES:
        raise Refused(
            400, f"input {name!r:.60} has the datatype {datatype!r:.60}, not one of {[*DATATYPES]}"
        )
    if not all(type(size) is int and size >= 0 for size in shape):
        raise Refused(400, f"input {name!r:.60} has the shape {shape!r:.60}; send sizes from 0 on")
    try:
        return name, _typed(np.array(data, object), DATATYPES[datatype]).reshape(shape)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise Refused(
            400, f"input {name!r:.60} does not hold {datatype} of {shape}: {error!s:.200}"
        ) from None


def _typed(data: np.ndarray, kind: Any) -> np.ndarray:
    """The entries as numbers of a kind. Integers have no missing value: with one, they are objects.

    Raises
    ------
    ValueError
        Where an entry is not of this kind, such as 1.5 for an integer or a text for a number.
    """
    if kind is object:
        flat = data.reshape(-1).tolist()
        if any(isinstance(value, (list, dict)) for value in flat):
            raise ValueError("an entry is not a text")
        "".join(value for value in flat if isinstance(value, str)).encode()  # half a character?
        return data
    is_null = np.array([v is None for v in data.reshape(-1)], bool).reshape(data.shape)
    present = data[~is_null].tolist()
    if any(isinstance(value, (str, list, dict)) for value in present):
        raise ValueError("an entry is not a number")
    if np.dtype(kind).kind == "f":
        found = np.full(data.shape, np.nan)
        found[~is_null] = present
        with np.errstate(over="ignore"):
            return found.astype(kind)
    values = np.array(present, kind)
    if values.tolist() != present:
        raise ValueError(f"an entry is not of {np.dtype(kind)}")
    if not is_null.any():
        return values.reshape(data.shape)
    mixed = np.full(data.shape, None, object)
    mixed[~is_null] = values.tolist()
    return mixed


def tensors_of(answers: Mapping[str, Any], *, is_row: bool = False) -> list[dict[str, Any]]:
    """Answers by name as tensors; those of one row lack the axis of rows."""
    found = []
    for name, values in answers.items():
        tensors = values if isinstance(values, list) else [values]
        for target, part in enumerate(tensors):
            part = np.asarray(part)[None] if is_row else np.asarray(part)
            found.append(
                {
                    "name": f"{name}_{target}" if isinstance(values, list) else name,
                    "shape": list(part.shape),
                    "datatype": NAMES.get(part.dtype, "BYTES"),
                    "data": plain(part.reshape(-1)),
                }
            )
    return found


def tensor_head(name: str, shape: tuple[int, ...], dtype: Any) -> str:
    """The JSON of a tensor up to its data."""
    told = {"name": name, "shape": list(shape), "datatype": NAMES.get(dtype, "BYTES")}
    return json.dumps(told)[:-1] + ', "data": '


def plain(values: np.ndarray) -> list[Any]:
    """Nested lists. JSON has neither NaN nor infinity: null stands for them."""
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        values = values.astype(object)
        values[~np.isfinite(values.astype(float))] = None
        return list(values.tolist())
    found: list[Any] = values.tolist()
    if values.dtype.kind == "O":
        return [one if type(one) in (str, bool, int, float) else str(one) for one in found]
    return found
