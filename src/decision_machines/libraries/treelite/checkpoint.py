"""Treelite's checkpoints of version 4: fields one after the other, lists after their lengths."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import ModelFormatError, UnsupportedModelError
from ..document import WHOLE
from ..fields import unknown_field

TYPES = {2: np.float32, 3: np.float64}
"""Numbers of types of thresholds and of leaves; 1 is an integer of 32 bits, which is refused."""
HEADER = (
    ("num_feature", "<i4", False),
    ("task_type", "u1", False),
    ("average_tree_output", "u1", False),
    ("num_target", "<i4", False),
    ("num_class", "<i4", True),
    ("leaf_vector_shape", "<i4", True),
    ("target_id", "<i4", True),
    ("class_id", "<i4", True),
    ("postprocessor", "S1", True),
    ("sigmoid_alpha", "<f4", False),
    ("ratio_c", "<f4", False),
    ("base_scores", "<f8", True),
    ("attributes", "S1", True),  # for people
)
"""Fields of the model in their order: name, dtype, and whether it is a list."""
TREE = (
    ("num_nodes", "<i4", False),
    ("has_categorical_split", "u1", False),
    ("node_type", "i1", True),
    ("cleft", "<i4", True),
    ("cright", "<i4", True),
    ("split_index", "<i4", True),
    ("default_left", "u1", True),
    ("leaf_value", "leaf", True),
    ("threshold", "threshold", True),
    ("cmp", "i1", True),
    ("category_list_right_child", "u1", True),
    ("leaf_vector", "leaf", True),
    ("leaf_vector_begin", "<u8", True),
    ("leaf_vector_end", "<u8", True),
    ("category_list", "<u4", True),
    ("category_list_begin", "<u8", True),
    ("category_list_end", "<u8", True),
    ("data_count", "<u8", True),  # these are statistics of training
    ("data_count_present", "u1", True),
    ("sum_hess", "<f8", True),
    ("sum_hess_present", "u1", True),
    ("gain", "<f8", True),
    ("gain_present", "u1", True),
)
"""Fields of each tree."""


@dataclass
class Checkpoint:
    """A model's fields, and those of its trees."""

    release: str
    dtype: Any
    header: dict[str, Any]
    trees: list[dict[str, Any]] = field(default_factory=list)


def looks_like_checkpoint(data: bytes) -> bool:
    """Whether bytes begin as a checkpoint of Treelite 4 does."""
    if len(data) < 26:
        return False
    major, minor, patch = struct.unpack_from("<iii", data)
    return major == 4 and 0 <= minor < 100 and 0 <= patch < 1000 and set(data[12:14]) <= {1, 2, 3}


class _Reader:
    def __init__(self, data: bytes, doing: str) -> None:
        self.data, self.doing, self.at = data, doing, 0

    def take(self, name: str, dtype: Any, is_list: bool) -> Any:
        n = int(self._array(name, "<u8", 1)[0]) if is_list else 1
        found = self._array(name, dtype, n)
        if not is_list:
            return found[0].item()
        return b"".join(found.tolist()).decode() if dtype == "S1" else found

    def _array(self, name: str, dtype: Any, n: int) -> np.ndarray:
        size = np.dtype(dtype).itemsize
        if n > (len(self.data) - self.at) // size:
            raise ModelFormatError(self.doing, f"{name} ends before it should", WHOLE)
        found = np.frombuffer(self.data, dtype, n, self.at)
        self.at += n * size
        return found

    def no_further(self, name: str) -> None:
        """Refuse fields that a newer release may have put here."""
        n = self.take(name, "<i4", False)
        if n:
            raise unknown_field(self.doing, f"one of {n} fields after {name}")


def read_checkpoint(data: bytes, doing: str) -> Checkpoint:
    """All fields of a checkpoint."""
    reader = _Reader(data, doing)
    release = ".".join(str(reader.take("version", "<i4", False)) for _ in range(3))
    kinds = [reader.take(name, "u1", False) for name in ("threshold_type", "leaf_output_type")]
    if kinds[0] != kinds[1] or kinds[0] not in TYPES:
        raise UnsupportedModelError(
            doing,
            f"threshold_type and leaf_output_type are {kinds[0]} and {kinds[1]}",
            "give a model whose thresholds and leaves are both float32 or both float64",
        )
    dtype = TYPES[kinds[0]]
    n_trees = reader.take("num_tree", "<u8", False)
    found = Checkpoint(
        release, dtype, {name: reader.take(name, kind, many) for name, kind, many in HEADER}
    )
    reader.no_further("num_opt_field_per_model")
    if n_trees > len(data):
        raise ModelFormatError(doing, f"num_tree is {n_trees}", WHOLE)
    own = {"leaf": np.dtype(dtype), "threshold": np.dtype(dtype)}
    for _ in range(n_trees):
        found.trees.append(
            {name: reader.take(name, own.get(kind, kind), many) for name, kind, many in TREE}
        )
        reader.no_further("num_opt_field_per_tree")
        reader.no_further("num_opt_field_per_node")
    if reader.at != len(data):
        raise ModelFormatError(doing, f"{len(data) - reader.at} bytes after the last tree", WHOLE)
    return found
