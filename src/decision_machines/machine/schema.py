"""What a `.dm` file holds: the one description that its writer and its reader share.

The container is safetensors: 8 bytes, the length of a header in little endian; the header, a JSON
object that gives each array its dtype, shape and place; the arrays, one after the other with no
gap. The header's `__metadata__` has three texts:

- ``format``: `FORMAT`;
- ``version``: the number of the schema, `VERSION` when written today;
- ``machine``: a JSON object with all that is not an array, by the names of the fields of
  `DecisionMachine`: ``columns``, ``output``, ``source``.

Arrays are named after their fields, ``V`` or ``trees.feeds``; `ARRAYS` lists them. Labels of
classes are arrays ``output.classes.0``, ``output.classes.1`` … where they are numbers, and else
texts in ``machine``. Numbers that JSON cannot write are the texts "nan", "inf" and "-inf". A step
of the link `onnx` is an object with its name and its constants, ``{"step": "add", "constants":
[1.5]}``.

Versions
--------
1. The first.
2. The steps of the link `onnx` stand by name. In version 1 they stood by position among
   `STEPS_OF_VERSION_1`: a number for the step, how many constants follow, and the constants.
3. The covers of tests and leaves, where the source stored them; the tables of look-up columns.
   ``columns`` may have ``edges``, features whose numbers are read as ranges, and ``accepted``, what
   the source takes; both may be left out. ``machine`` may be an assembly: it has ``assembly`` (its
   rule, words, classes and the ``machine`` of every member) in the place of ``columns`` and
   ``output``; arrays of member i are named after ``members.i.``, its numbers after ``numbers.``.

4. The assembly ``soft trees`` (`machine.soft`): numbers ``slope``, ``t`` and ``nudge`` of its one
   member's tests.

How to change it
----------------
A new version is needed where a field is added, dropped or takes another meaning.

1. Add 1 to `VERSION`, and a line to the list above.
2. Add to `UPGRADES` a function from the old number: it takes the parsed ``machine`` and the arrays
   of an old file and gives them as the next version has them. Nothing of the old file is checked
   yet; what is wrong in it the function leaves as it is, for the reader to refuse.
3. Run ``python tests/libraries/own/make_files.py``, which writes files of the new version into
   ``tests/libraries/own/files``, and commit them. Files of older versions are never written again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvariantError
from .steps import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

FORMAT = "decision-machines"
VERSION = 4
SUFFIX = ".dm"

Texts = Any
"""What the JSON of ``machine`` says."""
Arrays = dict[str, np.ndarray]

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
    "columns.look_ups.column_table": Array(("I32",), "d", needed=False),
    "columns.look_ups.column_statistic": Array(("I32",), "d", needed=False),
    "columns.look_ups.term_start": Array(("I64",), "a+1", needed=False),
    "columns.look_ups.term_feature": Array(("I32",), "q", needed=False),
    "columns.look_ups.term_kind": Array(("U8",), "q", needed=False),
    "columns.look_ups.term_number": Array(("F32",), "q", needed=False),
    "columns.look_ups.term_missing": Array(("U8",), "q", needed=False),
    "columns.look_ups.term_adds": Array(("U64",), "q", needed=False),
    "columns.look_ups.label_start": Array(("I64",), "q+1", needed=False),
    "columns.look_ups.label_adds": Array(("U64",), "b", needed=False),
    "columns.look_ups.key_start": Array(("I64",), "a+1", needed=False),
    "columns.look_ups.keys": Array(("U64",), "r", needed=False),
    "columns.look_ups.n_statistics": Array(("I32",), "a", needed=False),
    "columns.look_ups.values": Array(("F32",), "s", needed=False),
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
    "cover.tests": Array(("F64",), "J", needed=False),
    "cover.leaves": Array(("F64",), "L", needed=False),
}
"""Every array of the newest version. A letter stands for one size in the whole file:
n columns, c sets of m members, J tests, L leaves, T trees, v values of a leaf, k outputs,
w weights of oblique tests, p terms of linear leaves; d look-up columns, a tables with q terms of
combinations, b numbers of labels, r keys and s values."""
TOGETHER = ("columns.sets.", "columns.look_ups.", "selection.", "linear.", "cover.")
"""Arrays whose names begin so are all there or none."""

CLASSES = "output.classes."
"""Before the number of a group of outputs: the labels of its classes, where they are numbers."""
MEMBERS = "members."
"""Before the number of a member of an assembly, and the name of one of its arrays."""
NUMBERS = "numbers."
"""Before the name of an array of an assembly itself."""
TEXT_LIMIT = 1 << 24
"""Characters in one array of labels of a fixed width: a file may claim any width."""

NON_FINITE = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


def number_to_json(value: float) -> float | str:
    """A float as JSON has it: a number, or the text of NaN and the infinities."""
    value = float(value)
    return value if np.isfinite(value) else str(value)


def number_from_json(value: Any) -> float | None:
    """The float again; None for what is not one."""
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


def parameter_to_json(value: float | Step) -> Any:
    """A parameter of a link as JSON: a number, or a step by its name.

    Examples
    --------
    >>> parameter_to_json(Step("add", (1.5,)))
    {'step': 'add', 'constants': [1.5]}
    """
    if isinstance(value, Step):
        return {"step": value.name, "constants": [number_to_json(c) for c in value.constants]}
    return number_to_json(value)


def parameter_from_json(value: Any) -> float | Step | None:
    """The parameter again; None for what is neither a number nor a step that we know."""
    if not isinstance(value, dict):
        return number_from_json(value)
    if set(value) != {"step", "constants"} or not isinstance(value["constants"], list):
        return None
    constants = [number_from_json(c) for c in value["constants"]]
    if not isinstance(value["step"], str) or None in constants:
        return None
    try:
        return Step(value["step"], tuple(c for c in constants if c is not None))
    except InvariantError:
        return None


# ---------------------------------------------------------------------- older versions

STEPS_OF_VERSION_1 = (
    "single", "double", "logistic", "softmax", "softmax_zero", "probit", "complement", "opposite",
    "beside_zero", "normalize", "add", "subtract", "subtract_from", "multiply", "divide",
    "divide_into", "negate", "exp", "sigmoid",
)  # fmt: skip
"""The steps by their numbers in files of version 1. Never to be changed."""


def steps_by_name(texts: Texts, arrays: Arrays) -> tuple[Texts, Arrays]:
    """From version 1 to version 2: the steps of the link `onnx` by name instead of by number."""
    output = texts.get("output") if isinstance(texts, dict) else None
    if not isinstance(output, dict):
        return texts, arrays
    name, params = output.get("link"), output.get("link_params")
    if name not in ("onnx", "averaged onnx") or not isinstance(params, list):
        return texts, arrays
    n_numbers = 1 if name == "averaged onnx" else 0
    numbers, program = params[:n_numbers], params[n_numbers:]
    steps = _named_steps(program)
    if steps is None:
        return texts, arrays
    return {**texts, "output": {**output, "link_params": [*numbers, *steps]}}, arrays


def _named_steps(program: list[Any]) -> list[dict[str, Any]] | None:
    """The steps of a program of version 1; None where it is not one."""
    found = []
    at = 0
    while at < len(program):
        heads = program[at : at + 2]
        if len(heads) < 2 or not all(type(v) is float and v.is_integer() for v in heads):
            return None
        number, end = int(heads[0]), at + 2 + int(heads[1])
        if not (0 <= number < len(STEPS_OF_VERSION_1) and at + 2 <= end <= len(program)):
            return None
        found.append({"step": STEPS_OF_VERSION_1[number], "constants": program[at + 2 : end]})
        at = end
    return found


def steps_by_number(params: Iterable[float | Step]) -> list[float | str]:
    """A link's parameters as version 1 had them; a step that it did not have stands by name."""
    found: list[float | str] = []
    for p in params:
        if isinstance(p, Step):
            is_old = p.name in STEPS_OF_VERSION_1
            found.append(float(STEPS_OF_VERSION_1.index(p.name)) if is_old else p.name)
            found += [float(len(p.constants)), *p.constants]
        else:
            found.append(p)
    return found


def unchanged(texts: Texts, arrays: Arrays) -> tuple[Texts, Arrays]:
    """To a version that added what may be left out."""
    return texts, arrays


UPGRADES: dict[int, Callable[[Texts, Arrays], tuple[Texts, Arrays]]] = {
    1: steps_by_name,
    2: unchanged,
    3: unchanged,
}
"""From the content of a file of version n to that of version n + 1."""
