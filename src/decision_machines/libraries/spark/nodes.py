"""Spark's nodes: from the rows of `data/` to the arrays of all trees.

Rows come in any order, one for each node, with the numbers of its children. Spark goes left where
x ≤ threshold, so NaN goes right. Of a set of categories it keeps the smaller half, the left one or
the right one, and looks x up there: a value that is not a category goes to the other side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .fields import NODE

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from .folder import Stage


@dataclass(frozen=True)
class Nodes:
    """All nodes of all trees, tree after tree, in the order of their numbers."""

    start: Int[np.ndarray, "T+1"]
    left: Int[np.ndarray, "N"]
    right: Int[np.ndarray, "N"]
    feature: Int[np.ndarray, "N"]
    n_categories: Int[np.ndarray, "N"]
    """-1 where a number is compared."""
    held: list[Float[np.ndarray, "c"]]
    """The threshold, or the categories that go left; nothing at a leaf."""
    prediction: Float[np.ndarray, "N"]
    stats: list[Float[np.ndarray, "s"]]
    """Weights of the classes; or the weight, the sum and the sum of squares of the target."""


def read_nodes(model: Stage, n_trees: int | None) -> Nodes:
    """The nodes of an ensemble of `n_trees`, or of the one tree of a model that is none."""
    import pyarrow as pa

    table = model.table("data")
    if n_trees is None:
        tree = np.zeros(len(table), np.int64)
        nodes = table
    else:
        _same(model, table.column_names, ["treeID", "nodeData"])
        tree = _numbers(model, table, "treeID")
        try:
            nodes = pa.Table.from_struct_array(table["nodeData"])
        except (pa.ArrowException, TypeError, AttributeError) as error:
            raise model.fault(f"data/nodeData holds no nodes ({error})") from None
    NODE.check_keys(nodes.column_names, model.doing, "data")
    _same(model, set(nodes.column_names) - set(NODE.idle), set(NODE.read))
    number = _numbers(model, nodes, "id")
    order = np.lexsort([number, tree])
    tree, number = tree[order], number[order]
    start = np.searchsorted(tree, np.arange((n_trees or 1) + 1))
    within = np.arange(len(number)) - start[np.clip(tree, 0, len(start) - 1)]
    if not len(number) or tree[0] < 0 or start[-1] != len(number) or np.any(number != within):
        raise model.fault(f"data/ does not hold the nodes of {n_trees or 1} trees, each once")
    if np.any(np.diff(start) == 0):
        raise model.fault(f"tree {int(np.argmin(np.diff(start)))} has no nodes")
    try:
        split = pa.Table.from_struct_array(nodes["split"])
    except (pa.ArrowException, TypeError, AttributeError) as error:
        raise model.fault(f"data/split holds no splits ({error})") from None
    assert NODE.read["split"] is not None
    NODE.read["split"].check_keys(split.column_names, model.doing, "data.split")
    _same(model, set(split.column_names), set(NODE.read["split"].read))
    return Nodes(
        start,
        _numbers(model, nodes, "leftChild")[order],
        _numbers(model, nodes, "rightChild")[order],
        _numbers(model, split, "featureIndex")[order],
        _numbers(model, split, "numCategories")[order],
        _lists(model, split, "leftCategoriesOrThreshold", order),
        _numbers(model, nodes, "prediction", np.float64)[order],
        _lists(model, nodes, "impurityStats", order),
    )


def weights(model: Stage, n_trees: int) -> Float[np.ndarray, "T"]:
    """The weights of an ensemble's trees, in their order."""
    table = model.table("treesMetadata")
    if set(table.column_names) == {"_1", "_2", "_3"}:  # as Spark 4 calls them
        table = table.rename_columns(
            [{"_1": "treeID", "_2": "metadata", "_3": "weights"}[n] for n in table.column_names]
        )
    _same(model, set(table.column_names), {"treeID", "metadata", "weights"})
    tree = _numbers(model, table, "treeID")
    if not np.array_equal(np.sort(tree), np.arange(n_trees)):
        raise model.fault(f"treesMetadata/ does not hold {n_trees} trees, each once")
    found = _numbers(model, table, "weights", np.float64)[np.argsort(tree)]
    if not np.all(np.isfinite(found)):
        raise model.fault("a weight of a tree that is not finite")
    return found


def _numbers(model: Stage, table: Any, name: str, dtype: Any = np.int64) -> np.ndarray:
    import pyarrow as pa

    column = table[name]
    is_kind = pa.types.is_integer if dtype == np.int64 else pa.types.is_floating
    if not is_kind(column.type) or column.null_count:
        raise model.fault(f"the column {name} is of {column.type}, or has gaps")
    return np.asarray(column.to_numpy()).astype(dtype)


def _lists(model: Stage, table: Any, name: str, order: np.ndarray) -> list[np.ndarray]:
    import pyarrow as pa

    column = table[name].combine_chunks()
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not pa.types.is_list(column.type) or not pa.types.is_floating(column.type.value_type):
        raise model.fault(f"the column {name} is of {column.type}, not lists of numbers")
    if column.null_count or column.flatten().null_count:
        raise model.fault(f"the column {name} has gaps")
    offsets = np.asarray(column.offsets)
    values = np.asarray(column.values.to_numpy(zero_copy_only=False), np.float64)
    return [values[offsets[i] : offsets[i + 1]] for i in order.tolist()]


def _same(model: Stage, found: Any, wanted: Any) -> None:
    if set(found) != set(wanted):
        raise model.fault(f"a table with the columns {sorted(found)}, not {sorted(wanted)}")
