"""What a `.dm` file holds, shared by the room that writes it and the room that reads it.

The container is safetensors: 8 bytes, the length of a header in little endian; the header, a JSON
object that gives each array its dtype, shape and place; the arrays, one after the other with no
gap. The header's `__metadata__` has three texts:

- ``format``: `FORMAT`;
- ``version``: the number of the schema, `VERSION` when written today;
- ``machine``: a JSON object with all that is no array, by the names of the fields of
  `DecisionMachine`: ``columns``, ``output``, ``source``.

Arrays are named after their fields, ``V`` or ``trees.feeds``; `ARRAYS` lists them. Labels of
classes are arrays ``output.classes.0``, ``output.classes.1`` … where they are numbers, and else
texts in ``machine``. Numbers that JSON cannot write are the texts "nan", "inf" and "-inf".

How to change it
----------------
A new version is needed where a field is added, dropped or takes another meaning.

1. Add 1 to `VERSION`; in `ARRAYS` and in `read.dm_file` keep what the older versions have.
2. Add to `UPGRADES` a function from the old number: it takes the parsed ``machine`` and the arrays
   of an old file and gives them as the next version has them.
3. Run ``python tests/libraries/own/make_files.py``, which writes a file of the new version into
   ``tests/libraries/own/files``, and commit it. Files of older versions are never written again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

FORMAT = "decision-machines"
VERSION = 1
SUFFIX = ".dm"

UPGRADES: dict[
    int, Callable[[dict, dict[str, np.ndarray]], tuple[dict, dict[str, np.ndarray]]]
] = {}
"""From the content of a file of version n to that of version n + 1."""

DTYPES = {
    "BOOL": np.dtype("?"),
    "U8": np.dtype("u1"),
    "I8": np.dtype("i1"),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
}
"""The dtypes of safetensors that we use."""
NAMES = {dtype: name for name, dtype in DTYPES.items()}


@dataclass(frozen=True)
class Array:
    """An array of a machine: its dtypes, its shape in letters, and whether it must be there."""

    dtypes: tuple[str, ...]
    shape: str
    needed: bool = True


FLOATS = ("F32", "F64")
INDICES = ("I32", "I64")
ARRAYS: dict[str, Array] = {
    "columns.feature": Array(("I32",), "n"),
    "columns.rule": Array(("U8",), "n"),
    "columns.sets.start": Array(("I64",), "c+1", needed=False),
    "columns.sets.members": Array(("I64",), "m", needed=False),
    "columns.sets.answer": Array(("I8",), "m", needed=False),
    "columns.sets.outside": Array(("I8",), "c", needed=False),
    "selection": Array(("I32",), "J", needed=False),
    "selection.data": Array(FLOATS, "w", needed=False),
    "selection.indices": Array(INDICES, "w", needed=False),
    "selection.indptr": Array(INDICES, "J+1", needed=False),
    "t": Array(FLOATS, "J"),
    "missing": Array(("I8",), "J"),
    "children": Array(("I32",), "J 2"),
    "V": Array(FLOATS, "L v"),
    "trees.test_start": Array(("I64",), "T+1"),
    "trees.feeds": Array(("I32",), "T"),
    "trees.test_ids": Array(("I32",), "J", needed=False),
    "trees.leaf_ids": Array(("I32",), "L", needed=False),
    "output.base": Array(FLOATS, "k"),
    "output.weights": Array(("F64",), "T", needed=False),
    "linear.intercept": Array(FLOATS, "L v", needed=False),
    "linear.start": Array(("I64",), "L+1", needed=False),
    "linear.feature": Array(("I32",), "p", needed=False),
    "linear.coefficient": Array(FLOATS, "p v", needed=False),
}
"""Every array of the newest version. A letter stands for one size in the whole file:
n columns, c sets of m members, J tests, L leaves, T trees, v values of a leaf, k outputs,
w weights of oblique tests, p terms of linear leaves."""
TOGETHER = ("columns.sets.", "selection.", "linear.")
"""Arrays whose names begin so are all there or none."""

CLASSES = "output.classes."
"""Before the number of a group of outputs: the labels of its classes, where they are numbers."""
TEXT_LIMIT = 1 << 24
"""Characters in one array of labels of a fixed width: a file may claim any width."""

NON_FINITE = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


def number_to_json(value: float) -> float | str:
    """A float as JSON has it: a number, or the text of NaN and the infinities."""
    value = float(value)
    return value if np.isfinite(value) else str(value)


def number_from_json(value: Any) -> float | None:
    """The float again; None for what is none."""
    if isinstance(value, str):
        return NON_FINITE.get(value)
    return value if type(value) is float else None


def label_to_json(label: Any) -> Any:
    """A label as JSON: text, whole number, truth value, nothing, or a float in a list of one.

    Examples
    --------
    >>> [label_to_json(x) for x in ("a", 1, True, None, 0.5, float("inf"))]
    ['a', 1, True, None, [0.5], ['inf']]

    Raises
    ------
    TypeError
        For any other label.
    """
    if isinstance(label, np.generic):
        label = label.item()
    if label is None or type(label) in (str, bool) or (type(label) is int and abs(label) < 2**64):
        return label
    if type(label) is float:
        return [number_to_json(label)]
    raise TypeError(type(label).__qualname__)


def label_from_json(value: Any) -> Any:
    """The label again.

    Raises
    ------
    TypeError
        For what `label_to_json` never gives.
    """
    if isinstance(value, list):
        number = number_from_json(value[0]) if len(value) == 1 else None
        if number is None:
            raise TypeError("a list")
        return number
    if value is None or type(value) in (str, bool) or (type(value) is int and abs(value) < 2**64):
        return value
    raise TypeError(type(value).__name__)


LINKS: dict[str, tuple[int, int | None]] = {
    **dict.fromkeys(("identity", "exp", "samme", "isolation"), (0, 0)),
    **dict.fromkeys(("sigmoid", "expit", "softmax"), (0, 1)),
    **dict.fromkeys(
        (
            "xgboost_sigmoid",
            "xgboost_exp",
            "xgboost_rounded_exp",
            "xgboost_softmax",
            "xgboost_step",
        ),
        (0, 0),
    ),
    **dict.fromkeys(("catboost_exp", "catboost_softmax", "catboost_mean_and_variance"), (0, 0)),
    **dict.fromkeys(
        ("lightgbm_exp", "lightgbm_softmax", "lightgbm_softplus", "signed_square"), (0, 0)
    ),
    "onnx": (0, None),
}
LINKS |= {
    f"averaged {name}": (low + 1, None if high is None else high + 1)
    for name, (low, high) in list(LINKS.items())
}
"""Every link that a file may name, and how few and how many parameters it takes."""

DECISIONS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(("response", "argmax", "argmax_margin", "margin"), (0, 0)),
    **dict.fromkeys(
        ("above", "margin_above", "margin_at_least", "inlier", "above_each", "each_margin_above"),
        (0, 1),
    ),
    "second_margin_above": (0, 2),
}
"""Every decision that a file may name, and how few and how many parameters it takes."""
LABELS_NEEDED = {
    "argmax": 1,
    "argmax_margin": 1,
    "above": 2,
    "margin_above": 2,
    "margin_at_least": 2,
    "second_margin_above": 2,
}
"""How many labels a decision needs at least; one for each output where it chooses among them."""
