"""CatBoost's own file, .cbm: a magic word, the size of a FlatBuffer, and the FlatBuffer."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from .ctr import BUCKETS, EMPTY, MEAN, MEANS, TYPES, Combination, Ctr, CtrBase, CtrTable
from .fields import COMBINATION, CTR_BASE, CTR_VALUES, MODEL_CTR, check_cbm
from .flatbuffer import Table
from .parts import CatFeature, FloatFeature, Nodes, Parts, refuse, symmetric_nodes

MAGIC = b"CBM1"
# Upstream's own spelling.
FORMAT = "FlabuffersModel_v1"
AS_IS, AS_FALSE, AS_TRUE = range(3)
CTR_PART = "static_provider_v1"
"""What comes after the FlatBuffer where the model has CTRs: their tables, each with its size."""
BUCKET = np.dtype([("key", "<u8"), ("row", "<u4")])


def parse_cbm(data: bytes, doing: str) -> Parts:
    """The parts of a model from the bytes of a .cbm file."""
    size = int.from_bytes(data[4:8], "little")
    if data[:4] != MAGIC or len(data) < 8 + size:
        refuse(doing, f"{len(data)} bytes, where the header speaks of {size} after it")
    core = Table.root(memoryview(data)[8 : 8 + size], doing)
    if core.text(0) != FORMAT:
        refuse(doing, f"the format {core.text(0)!r} where {FORMAT!r} is known")
    check_cbm(core)
    trees = core.table(1)
    if trees is None:
        refuse(doing, "a model without trees")
    k = trees.scalar(0, "<i4", 0)
    values = trees.vector(8, "<f8")
    if k < 1 or len(values) % k:
        refuse(doing, f"{len(values)} leaf values for {k} outputs")
    leaf_values = values.reshape(-1, k)
    weights = trees.vector(9, "<f8")
    sizes, splits = trees.vector(2, "<i4").astype(np.int64), trees.vector(1, "<i4").astype(np.int64)
    steps = trees.vector(10, np.dtype("<u2,<u2"))
    nodes = (
        _free_nodes(trees, sizes, splits, steps, k, len(leaf_values), doing)
        if len(steps)
        else symmetric_nodes(sizes, splits, len(leaf_values), doing)
    )
    bias = trees.vector(16, "<f8")
    one_hot = {
        feature.scalar(0, "<i4", -1): feature.vector(1, "<i4") for feature in trees.tables(6)
    }
    cats = [
        CatFeature(
            feature.scalar(1, "<i4", -1),
            feature.text(2),
            one_hot.pop(feature.scalar(0, "<i4", -1), np.empty(0, np.int32)),
            feature.scalar(0, "<i4", -1),
        )
        for feature in trees.tables(4)
    ]
    if one_hot:
        refuse(doing, f"one-hot values of categorical feature {min(one_hot)}, which is not there")
    return Parts(
        floats=[_float_feature(feature) for feature in trees.tables(5)],
        cats=cats,
        ctrs=[_ctr(ctr) for ctr in trees.tables(7)],
        ctr_tables=_ctr_tables(memoryview(data)[8 + size :], core.texts(3), doing),
        other_features=[feature.text(2) or "a text feature" for feature in trees.tables(12)]
        + [feature.text(2) or "an embedding feature" for feature in trees.tables(18)],
        nodes=nodes,
        leaf_values=leaf_values,
        leaf_weights=weights if len(weights) == len(leaf_values) else None,
        scale=trees.scalar(14, "<f8", 1.0),
        bias=bias if len(bias) else np.full(k, trees.scalar(15, "<f8", 0.0)),
        info={entry.text(0): note_of(entry.text(1)) for entry in core.tables(2)},
    )


def _float_feature(feature: Table) -> FloatFeature:
    nan = feature.scalar(5, "<i1", AS_IS)
    if nan not in (AS_IS, AS_FALSE, AS_TRUE):
        refuse(feature.doing, f"a float feature with the NaN treatment {nan}")
    has_nans = bool(feature.scalar(0, "<u1", 0))
    return FloatFeature(
        feature.scalar(2, "<i4", -1),
        feature.text(4),
        feature.vector(3, "<f4"),
        has_nans and nan == AS_TRUE,
        feature.scalar(1, "<i4", -1),
    )


def _ctr(feature: Table) -> Ctr:
    ctr = feature.table(0)
    if ctr is None:
        refuse(feature.doing, "borders of a CTR that is not there")
    MODEL_CTR.check(ctr)
    return Ctr(
        base=_ctr_base(ctr.table(0), ctr.doing),
        target_border=ctr.scalar(1, "<i4", 0),
        prior=ctr.scalar(2, "<f4", 0.0),
        denominator=ctr.scalar(3, "<f4", 1.0),
        shift=ctr.scalar(4, "<f4", 0.0),
        scale=ctr.scalar(5, "<f4", 1.0),
        borders=feature.vector(1, "<f4"),
    )


def _ctr_base(base: Table | None, doing: str) -> CtrBase:
    combination = None if base is None else base.table(0)
    if base is None or combination is None:
        refuse(doing, "a CTR of no features")
    CTR_BASE.check(base)
    COMBINATION.check(combination)
    kind = base.scalar(1, "<i1", 0)
    if kind not in TYPES.values():
        refuse(doing, f"a CTR of the unknown type {kind}")
    return CtrBase(
        Combination(
            tuple(combination.vector(0, "<i4").tolist()),
            tuple(combination.vector(1, np.dtype("<i4,<f4")).tolist()),
            tuple(combination.vector(2, np.dtype("<i4,<i4")).tolist()),
        ),
        kind,
        base.scalar(2, "<i4", 0),
    )


def _ctr_tables(data: memoryview, parts: list[str], doing: str) -> dict[CtrBase, CtrTable]:
    """The tables that stand behind the FlatBuffer, if the model says that they do."""
    if parts[:1] != [CTR_PART]:
        return {}  # another part belongs to text or embedding features, which are refused
    found: dict[CtrBase, CtrTable] = {}
    at = 4
    for _ in range(int.from_bytes(data[:4], "little")):
        size = int.from_bytes(data[at : at + 4], "little")
        at += 4 + size
        if size == 0 or at > len(data):
            refuse(doing, "tables of CTRs that reach beyond the end")
        table = Table.root(data[at - size : at], doing)
        CTR_VALUES.check(table)
        base = _ctr_base(table.table(0), doing)
        if base in found:
            refuse(doing, "two tables for one CTR")
        found[base] = _ctr_table(table, base.kind)
    return found


def _ctr_table(table: Table, kind: int) -> CtrTable:
    index, counts = table.vector(1, "<u1"), table.vector(2, "<u1")
    n_classes = table.scalar(4, "<i4", 0) if kind <= BUCKETS else 1
    dtype = MEAN if kind in MEANS else np.dtype("<i4")
    width = n_classes * dtype.itemsize
    if n_classes < 1 or len(index) % BUCKET.itemsize or len(counts) % width:
        refuse(table.doing, "a table of a CTR whose sizes do not fit together")
    rows = counts.view(dtype)
    rows = rows if kind in MEANS else rows.reshape(-1, n_classes)
    buckets = index.view(BUCKET)
    buckets = buckets[buckets["key"] != EMPTY]
    if np.any(buckets["row"] >= len(rows)):
        refuse(table.doing, "a table of a CTR that points beyond its counts")
    return CtrTable.sorted(
        buckets["key"], rows[buckets["row"]], table.scalar(3, "<i4", 0), table.doing
    )


def _free_nodes(
    trees: Table,
    sizes: np.ndarray,
    splits: np.ndarray,
    steps: np.ndarray,
    k: int,
    n_rows: int,
    doing: str,
) -> Nodes:
    """The nodes of trees of any shape.

    A node stores the distance to its left and right children. Where a distance is 0 the walk
    ends there, in the node's own value, even if the node's other side goes on: such an end
    becomes a node of its own here.
    """
    value = trees.vector(11, "<u4").astype(np.int64)
    n = int(np.sum(sizes))
    if np.any(sizes < 1) or not n == len(splits) == len(steps) == len(value):
        refuse(doing, f"{len(steps)} nodes, {len(splits)} splits and {len(value)} leaf numbers")
    tree = np.repeat(np.arange(len(sizes)), sizes)
    old_start = np.concatenate([[0], np.cumsum(sizes)])
    steps = np.stack([steps["f0"], steps["f1"]], axis=1).astype(np.int64)
    is_leaf = np.all(steps == 0, axis=1)
    ends_here = (steps == 0) & ~is_leaf[:, None]
    has_value = is_leaf | ends_here.any(axis=1)
    if np.any(value[has_value] % k) or np.any(value[has_value] // k >= n_rows):
        refuse(doing, "a leaf number outside the leaf values")
    n_extra = np.bincount(tree[ends_here.any(axis=1)], minlength=len(sizes))
    start = np.concatenate([[0], np.cumsum(sizes + n_extra)])
    new = np.arange(n) - old_start[tree] + start[tree]
    children = np.full((start[-1], 2), -1, np.int64)
    test, row = np.full(start[-1], -1, np.int64), np.full(start[-1], -1, np.int64)
    inner = np.flatnonzero(~is_leaf)
    children[new[inner]] = (inner - old_start[tree[inner]])[:, None] + steps[inner]
    test[new[inner]] = splits[inner]
    row[new[is_leaf]] = value[is_leaf] // k
    at, side = np.nonzero(ends_here)
    # The ends of a tree stand after its nodes, in the order of their parents.
    before = np.concatenate([[0], np.cumsum(n_extra)])
    local = sizes[tree[at]] + np.arange(len(at)) - before[tree[at]]
    children[new[at], side] = local
    row[start[tree[at]] + local] = value[at] // k
    rows = np.where(has_value, value // k, n_rows)
    first_row = np.minimum.reduceat(rows, old_start[:-1]) if len(sizes) else rows
    return Nodes(children[:, 0], children[:, 1], test, row, start, first_row)


def note_of(text: str) -> Any:
    """Values of the model's info are texts, some of them JSON."""
    try:
        return json.loads(text) if text[:1] == "{" else text
    except (ValueError, RecursionError):
        return text
