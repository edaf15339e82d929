"""What a CatBoost model holds, whichever file it came from, and its trees as one list of nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ...errors import ModelFormatError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jaxtyping import Float, Int

    from .ctr import Ctr, CtrBase, CtrTable

WHOLE = "check that the model file is whole and unedited"
MOST_FEATURES = 1 << 24


@dataclass(frozen=True)
class FloatFeature:
    """A numeric feature; x > border goes right, for each of its float32 borders."""

    flat: int
    """Its column in the data."""
    name: str
    borders: Float[np.ndarray, "b"]
    nan_goes_right: bool
    index: int
    """Its number among the numeric features."""


@dataclass(frozen=True)
class CatFeature:
    """A categorical feature; `values` are the hashes of the labels that tests ask for."""

    flat: int
    name: str
    values: Int[np.ndarray, "v"]
    index: int
    """Its number among the categorical features."""


@dataclass(frozen=True)
class Nodes:
    """Trees node by node, children counted within their tree and negative at leaves."""

    left: Int[np.ndarray, "N"]
    right: Int[np.ndarray, "N"]
    bin: Int[np.ndarray, "N"]
    """The test of each node, as a position in the model's list of all tests."""
    row: Int[np.ndarray, "N"]
    """The row of leaf values of each leaf."""
    start: Int[np.ndarray, "T+1"]
    first_row: Int[np.ndarray, "T"]
    """The row that each tree calls its leaf 0."""


@dataclass(frozen=True)
class Parts:
    """A CatBoost model. All its tests stand in one list: floats', then one-hot, then CTRs'."""

    floats: list[FloatFeature]
    cats: list[CatFeature]
    ctrs: list[Ctr]
    ctr_tables: Mapping[CtrBase, CtrTable]
    other_features: list[str]
    """Text and embedding features."""
    nodes: Nodes
    leaf_values: Float[np.ndarray, "L k"]
    leaf_weights: Float[np.ndarray, "L"] | None
    """The training weight of each leaf, where the file has it."""
    scale: float
    bias: Float[np.ndarray, "k"]
    info: Mapping[str, Any]
    texts: Mapping[int, str] = field(default_factory=dict)
    """Hash → text, for the labels whose text the file keeps."""

    @property
    def features(self) -> list[FloatFeature | CatFeature]:
        return [*self.floats, *self.cats]


def refuse(doing: str, found: str) -> NoReturn:
    """Say that the file is broken."""
    raise ModelFormatError(doing, found, WHOLE)


def symmetric_nodes(
    sizes: Int[np.ndarray, "T"], splits: Int[np.ndarray, "s"], n_rows: int, doing: str
) -> Nodes:
    """The nodes of symmetric trees, of which tree i has sizes[i] tests, one for each level.

    CatBoost's leaf index has test j as its bit j. With the last test at the root, leaves from
    left to right are leaves by that index.
    """
    if np.any((sizes < 0) | (sizes > 30)):
        refuse(doing, f"tree {np.argmax((sizes < 0) | (sizes > 30))} has an impossible depth")
    split_start = np.concatenate([[0], np.cumsum(sizes)])
    first_row = np.concatenate([[0], np.cumsum(1 << sizes)])
    if split_start[-1] != len(splits) or first_row[-1] != n_rows:
        refuse(
            doing,
            f"{len(splits)} splits and {n_rows} rows of leaf values where trees of these depths "
            f"need {split_start[-1]} and {first_row[-1]}",
        )
    n_nodes = (2 << sizes) - 1
    start = np.concatenate([[0], np.cumsum(n_nodes)])
    left, right, test, row = (np.full(start[-1], -1, np.int64) for _ in range(4))
    for depth in np.unique(sizes).tolist():
        trees = np.flatnonzero(sizes == depth)
        n_tests = (1 << depth) - 1
        # Nodes are numbered as in a heap: 2 i + 1 and 2 i + 2 are below i.
        inner = np.arange(n_tests)
        at = start[trees][:, None] + inner
        left[at], right[at] = 2 * inner + 1, 2 * inner + 2
        level = np.frexp(inner + 1.0)[1] - 1
        test[at] = splits[split_start[trees][:, None] + (depth - 1 - level)]
        leaves = np.arange(n_tests + 1)
        row[start[trees][:, None] + n_tests + leaves] = first_row[trees][:, None] + leaves
    return Nodes(left, right, test, row, start, first_row[:-1])
