"""XGBoost's old binary files, written until release 2 and no longer read by XGBoost 3.1.

The file is a chain of little-endian records without names. It is turned into the document that the
same model would have in JSON, so that one reader knows what its fields mean. Every length is held
against the bytes that are left before anything is taken.

Files from before release 1.0 have no release number, and hold the margin of the base score rather
than the base score itself.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

from ...errors import ModelFormatError, UnsupportedModelError
from ..document import WHOLE

MAGIC = b"binf"
"""How files begin since release 1.3."""
LEARNER = struct.Struct("<fIiiiIIIi100x")
MODEL = struct.Struct("<iiiiqii128x")
TREE = struct.Struct("<iiiiii124x")
NODE = np.dtype(
    [("parent", "<i4"), ("left", "<i4"), ("right", "<i4"), ("split", "<u4"), ("value", "<f4")]
)
STATISTIC = np.dtype([("gain", "<f4"), ("cover", "<f4"), ("weight", "<f4"), ("leaves", "<i4")])
DEFAULT_LEFT = np.uint32(1 << 31)
LONGEST_NAME = 64


def looks_like_binary(data: bytes) -> bool:
    """Whether an objective's name stands where an old binary file has it."""
    at = LEARNER.size + (len(MAGIC) if data.startswith(MAGIC) else 0)
    if len(data) < at + 8:
        return False
    (length,) = struct.unpack_from("<Q", data, at)
    name = data[at + 8 : at + 8 + length] if length <= LONGEST_NAME else b""
    return b":" in name and name.replace(b":", b"").replace(b"_", b"").isalnum()


def read_binary(data: bytes, doing: str) -> tuple[dict[str, Any], bool]:
    """The document of a binary file, and whether its base score is a margin already."""
    reader = _Reader(data[len(MAGIC) :] if data.startswith(MAGIC) else data, doing)
    base, n_features, n_class, has_attributes, has_metrics, major, minor, n_target, guess = (
        reader.record(LEARNER)
    )
    if not math.isfinite(base):
        raise reader.fault(f"a base score of {base}")
    objective, booster = reader.text(), reader.text()
    if booster not in ("gbtree", "dart"):
        raise UnsupportedModelError(
            doing, f"the booster {booster!r}, which has no trees that we know", "use gbtree or dart"
        )
    model = _model(reader)
    n_trees = len(model["trees"])
    gradient_booster: dict[str, Any] = {"name": booster, "model": model}
    if booster == "dart":
        weights = reader.floats() if n_trees else np.empty(0, np.float32)
        gradient_booster = {
            "name": booster,
            "gbtree": {"name": "gbtree", "model": model},
            "weight_drop": weights,
        }
    attributes = {}
    if has_attributes:
        for _ in range(reader.length(16)):
            key = reader.text()
            attributes[key] = reader.text()
    if has_metrics:
        for _ in range(reader.length(8)):
            reader.text()
    if not major and objective == "count:poisson":
        reader.text()  # max_delta_step, a setting of training
    reader.end()
    document = {
        "version": [major, minor, 0],
        "learner": {
            "attributes": attributes,
            "gradient_booster": gradient_booster,
            "learner_model_param": {
                "base_score": repr(base),
                "num_class": str(n_class),
                "num_feature": str(n_features),
                "num_target": str(max(n_target, 1)),
                "boost_from_average": str(guess),
            },
            "objective": {"name": objective},
        },
    }
    return document, major == 0


def _model(reader: _Reader) -> dict[str, Any]:
    n_trees, n_parallel, _, _, n_buffer, _, width = reader.record(MODEL)
    if n_buffer:
        raise reader.fault(f"a buffer of {n_buffer} predictions, as before release 0.6")
    if width > 1:
        raise reader.fault(f"leaves of {width} values, which no release wrote to such a file")
    if n_trees < 0 or n_trees > reader.left // TREE.size:
        raise reader.fault(f"{n_trees} trees in {reader.left} bytes")
    trees = [_tree(reader, i) for i in range(n_trees)]
    return {
        "gbtree_model_param": {
            "num_trees": str(n_trees),
            "num_parallel_tree": str(max(n_parallel, 1)),
        },
        "tree_info": reader.array(np.dtype("<i4"), n_trees).astype(np.int64),
        "trees": trees,
    }


def _tree(reader: _Reader, i: int) -> dict[str, Any]:
    _, n_nodes, n_deleted, _, n_features, width = reader.record(TREE)
    if n_nodes < 1:
        raise reader.fault(f"tree {i} of {n_nodes} nodes")
    nodes = reader.array(NODE, n_nodes)
    statistics = reader.array(STATISTIC, n_nodes)
    if width:
        raise reader.fault(f"leaves of {width} values in tree {i}, which no release wrote")
    return {
        "id": i,
        "tree_param": {
            "num_nodes": str(n_nodes),
            "num_deleted": str(n_deleted),
            "num_feature": str(n_features),
            "size_leaf_vector": "1",
        },
        "left_children": nodes["left"].astype(np.int64),
        "right_children": nodes["right"].astype(np.int64),
        "split_indices": (nodes["split"] & ~DEFAULT_LEFT).astype(np.int64),
        "default_left": (nodes["split"] >= DEFAULT_LEFT).astype(np.int64),
        "split_conditions": nodes["value"].astype(np.float32),
        "sum_hessian": statistics["cover"].astype(np.float32),
    }


class _Reader:
    """The bytes, taken from the front; asking for more than there are is an error."""

    def __init__(self, data: bytes, doing: str) -> None:
        self.data, self.at, self.doing = data, 0, doing

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def fault(self, found: str) -> ModelFormatError:
        return ModelFormatError(self.doing, f"byte {self.at}: {found}", WHOLE)

    def take(self, n: int) -> bytes:
        if n > self.left:
            raise self.fault(f"{n} bytes are needed where {self.left} are left")
        self.at += n
        return self.data[self.at - n : self.at]

    def record(self, layout: struct.Struct) -> tuple[Any, ...]:
        return layout.unpack(self.take(layout.size))

    def length(self, each: int) -> int:
        """A length, of things that take `each` bytes at least."""
        (n,) = struct.unpack("<Q", self.take(8))
        if n * each > self.left:
            raise self.fault(f"a list of {n} entries in {self.left} bytes")
        return int(n)

    def text(self) -> str:
        raw = self.take(self.length(1))
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise self.fault(f"text that is not UTF-8: {raw[:20]!r}") from None

    def floats(self) -> np.ndarray:
        return self.array(np.dtype("<f4"), self.length(4)).astype(np.float32)

    def array(self, dtype: np.dtype, n: int) -> np.ndarray:
        return np.frombuffer(self.take(n * dtype.itemsize), dtype)

    def end(self) -> None:
        if self.left:
            raise self.fault(f"{self.left} bytes follow the end of the model")
