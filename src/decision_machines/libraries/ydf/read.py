"""YDF's models, the folders they are saved in and the bytes they serialise to.

x is cast to float32. An object is read through the bytes that it serialises to, so objects, bytes
and folders go one way, and none of them needs YDF.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InvariantError, UnsupportedModelError
from ...machine import DecisionMachine, Trees, stored_cover
from .features import feature_of
from .outputs import values_of
from .parts import Parts, parts_of_bytes, parts_of_folder
from .read_trees import Nodes, read_nodes, read_tests
from .releases import RELEASES

if TYPE_CHECKING:
    from pathlib import Path

    from ...machine import Cover, Layout

MOST_FEATURES = 1 << 22


def read_ydf(model: Any) -> DecisionMachine:
    """The machine of a YDF model; it answers as `model.predict` does."""
    kind = type(model).__name__
    doing = f"reading a YDF {kind}"
    if not hasattr(model, "serialize") or not hasattr(model, "iter_trees"):
        raise UnsupportedModelError(
            doing, "it is not a forest that YDF trained", "pass what a learner's train gave"
        )
    import ydf

    RELEASES.note(ydf.__version__, doing)
    return _read(parts_of_bytes(model.serialize(), doing), f"YDF {kind}")


def read_ydf_bytes(data: bytes, source: str = "model file") -> DecisionMachine:
    """The machine of what `serialize` of a YDF model gave."""
    return _read(parts_of_bytes(data, f"reading the YDF model {source}"), f"YDF {source}")


def read_ydf_folder(folder: Path, source: str) -> DecisionMachine:
    """The machine of a folder that `save` of a YDF model wrote."""
    return _read(parts_of_folder(folder, f"reading the YDF model {source}"), f"YDF {source}")


def _read(parts: Parts, source: str) -> DecisionMachine:
    places = parts.header.get("input_features", [])
    if len(places) > MOST_FEATURES or len(set(places)) != len(places):
        raise parts.fault("AbstractModel.input_features names a column twice")
    if any(not 0 <= place < len(parts.columns) for place in places):
        raise parts.fault(
            f"AbstractModel.input_features names a column outside its {len(parts.columns)}"
        )
    features = {place: feature_of(parts.columns[place], parts) for place in places}
    nodes = read_nodes(parts)
    tests = read_tests(nodes, features, parts)
    found = tests.found
    n_trees = len(found.test_start) - 1
    if not n_trees and parts.kind != "gradient_boosted_trees":
        raise parts.fault("a forest without trees (num_trees)")
    leaf_start = found.test_start + np.arange(n_trees + 1)
    values = values_of(
        parts,
        [nodes.messages[node] for node in found.leaves.tolist()],
        np.array([nodes.depth[node] for node in found.leaves.tolist()], np.int64),
        leaf_start,
        bool(np.all(tests.imputes)),
    )
    leaf_ids = np.arange(leaf_start[-1]) - np.repeat(leaf_start[:-1], np.diff(leaf_start))
    try:
        return DecisionMachine(
            columns=tests.columns,
            selection=tests.selection,
            t=tests.t,
            missing=tests.missing,
            children=found.children,
            V=values.V if n_trees else np.empty((0, len(values.output)), np.float32),
            # Leaves by YDF's own numbers: as ours, from the negative child to the positive one.
            trees=Trees(found.test_start, values.feeds, leaf_ids=leaf_ids),
            output=values.output,
            source=source,
            cover=_cover(nodes, found),
        )
    except InvariantError as error:
        raise parts.fault(error.found) from None


def _cover(nodes: Nodes, found: Layout) -> Cover | None:
    """How many training rows reached each node, where the model keeps it."""
    counts = [message.get("examples") for message in nodes.messages]
    if None in counts:
        return None
    held = np.array(counts, np.float64)
    return stored_cover(held[found.tests], held[found.leaves], found.test_start)
