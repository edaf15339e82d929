"""The attributes of an ONNX operator, checked as they are asked for."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ...errors import ModelFormatError, UnsupportedModelError

WHOLE = "check that the model file is whole and unedited"
# Types of onnx.AttributeProto and onnx.TensorProto that we meet.
FLOAT, INT, STRING, TENSOR, FLOATS, INTS, STRINGS = 1, 2, 3, 4, 6, 7, 8
EXTERNAL = 1


def refuse(doing: str, found: str) -> NoReturn:
    """Say that the model is broken."""
    raise ModelFormatError(doing, found, WHOLE)


def array_of(tensor: Any, doing: str) -> np.ndarray:
    """The array in a TensorProto."""
    if tensor.data_location == EXTERNAL:
        raise UnsupportedModelError(
            doing,
            f"the tensor {tensor.name!r} is kept in another file",
            "save the model in one file: onnx.save(onnx.load(path), new_path)",
        )
    from onnx import numpy_helper

    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except MemoryError:
        raise
    except Exception as error:
        refuse(doing, f"the tensor {tensor.name!r} cannot be read ({str(error)[:80]})")


class Attributes:
    """The attributes of one node of a graph."""

    def __init__(self, node: Any, doing: str) -> None:
        self.doing = f"{doing}, operator {node.op_type}"
        self.known = {attribute.name: attribute for attribute in node.attribute}

    def __contains__(self, name: str) -> bool:
        return name in self.known

    def _get(self, name: str, kind: int) -> Any:
        attribute = self.known.get(name)
        if attribute is not None and attribute.type != kind:
            refuse(self.doing, f"the attribute {name} has the type {attribute.type}, not {kind}")
        return attribute

    def integer(self, name: str, default: int) -> int:
        attribute = self._get(name, INT)
        return default if attribute is None else attribute.i

    def text(self, name: str, default: str) -> str:
        attribute = self._get(name, STRING)
        return default if attribute is None else attribute.s.decode("utf-8", "replace")

    def texts(self, name: str) -> list[str]:
        attribute = self._get(name, STRINGS)
        try:
            return [] if attribute is None else [s.decode("utf-8") for s in attribute.strings]
        except UnicodeDecodeError:
            refuse(self.doing, f"the attribute {name} is not UTF-8")

    def integers(self, name: str, size: int | None = None) -> np.ndarray:
        attribute = self._get(name, INTS)
        values = [] if attribute is None else attribute.ints
        return self._sized(name, np.array(values, np.int64), size)

    def modes(self, name: str, size: int, known: dict[bytes, int]) -> np.ndarray:
        attribute = self._get(name, STRINGS)
        try:
            found = [known[s] for s in (() if attribute is None else attribute.strings)]
        except KeyError as error:
            raise UnsupportedModelError(
                self.doing,
                f"{name} has the mode {error.args[0]!r}",
                f"use {', '.join(mode.decode() for mode in known)}",
            ) from None
        return self._sized(name, np.array(found, np.int64), size)

    def numbers(self, name: str, size: int | None = None) -> np.ndarray:
        """Numbers given as floats, or as a tensor called {name}_as_tensor; in float64."""
        attribute, tensor = self._get(name, FLOATS), self._get(f"{name}_as_tensor", TENSOR)
        if tensor is not None and attribute is not None and len(attribute.floats):
            refuse(self.doing, f"both {name} and {name}_as_tensor")
        if tensor is not None:
            return self._sized(name, self.tensor(f"{name}_as_tensor").astype(np.float64), size)
        values = [] if attribute is None else attribute.floats
        return self._sized(name, np.array(values, np.float64), size)

    def is_double(self, *names: str) -> bool:
        """Whether any of these is given as a tensor of float64."""
        return any(self.tensor(n, optional=True).dtype == np.float64 for n in names if n in self)

    def tensor(self, name: str, size: int | None = None, optional: bool = False) -> np.ndarray:
        attribute = self._get(name, TENSOR)
        if attribute is None:
            if not optional:
                refuse(self.doing, f"the attribute {name} is missing")
            return np.empty(0)
        array = array_of(attribute.t, self.doing)
        if array.ndim != 1 or array.dtype.kind not in "fiu":
            refuse(self.doing, f"the attribute {name} is not a vector of numbers")
        if array.dtype.kind == "f" and array.dtype not in (np.float32, np.float64):
            raise UnsupportedModelError(
                self.doing, f"{name} is of {array.dtype}", "use tensors of float or double"
            )
        return self._sized(name, array, size)

    def _sized(self, name: str, array: np.ndarray, size: int | None) -> np.ndarray:
        if size is not None and len(array) != size:
            refuse(self.doing, f"{name} has {len(array)} entries where {size} are needed")
        return array
