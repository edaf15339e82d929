"""CatBoost's model of a JSON file with the numbers that the file has.

CatBoost writes numbers into JSON with all their digits and reads some of them back wrong in the
last bit, so that a model loaded from JSON answers differently than the one that was saved. Here
such numbers of leaves and of the bias are put right in the bytes of a .cbm file that CatBoost made
of what it had read. Only what is next to a number of the file is changed, and nothing else.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from .flatbuffer import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxtyping import Float

LEAF_VALUES, BIAS = 8, 16
"""Slots of the table of trees that hold numbers of float64."""
NEAR = 4
"""In units of the last place: what CatBoost's reader has been seen to miss by is 1."""


def with_numbers_of(document: bytes, cbm: bytes) -> bytes:
    """The bytes of a .cbm file, with the numbers of the JSON file that it was made of."""
    model = json.loads(document)
    doing = "comparing with CatBoost's model of a JSON file"
    mended = bytearray(cbm)
    trees = Table.root(memoryview(mended)[8:], doing).table(1)
    if trees is None:
        return cbm
    held = [model.get("oblivious_trees"), model.get("trees")]
    for slot, numbers in ((LEAF_VALUES, _leaf_values(held)), (BIAS, _biases(model))):
        found = trees.vector(slot, "<f8")
        found[:] = nearest(found, np.unique(np.array([*numbers], np.float64)))
    return bytes(mended)


def nearest(
    numbers: Float[np.ndarray, "a"], known: Float[np.ndarray, "b"]
) -> Float[np.ndarray, "a"]:
    """Each number replaced by the nearest of those known (ascending), if that is near.

    Examples
    --------
    >>> nearest(np.array([0.1 + 0.2, 7.0]), np.array([0.3]))
    array([0.3, 7. ])
    """
    if not len(known):
        return numbers
    at = np.searchsorted(known, numbers)
    below, above = known[np.maximum(at - 1, 0)], known[np.minimum(at, len(known) - 1)]
    found = np.where(np.abs(numbers - below) <= np.abs(above - numbers), below, above)
    is_near = np.abs(found - numbers) <= NEAR * np.spacing(np.abs(numbers))
    return np.where(is_near, found, numbers)


def _leaf_values(node: Any) -> Iterator[float]:
    """The numbers of the leaves below a node of the document, of trees of either kind."""
    for part in node.values() if isinstance(node, dict) else node or ():
        if isinstance(part, (dict, list)):
            yield from _leaf_values(part)
    if isinstance(node, dict):
        for key in ("leaf_values", "value"):
            numbers = node.get(key, ())
            for number in numbers if isinstance(numbers, (list, tuple)) else (numbers,):
                if isinstance(number, (int, float)):
                    yield float(number)


def _biases(model: dict[str, Any]) -> list[float]:
    """The bias of each output: the second of `scale_and_bias`."""
    both: list[Any] = model.get("scale_and_bias") or []
    found = both[1] if len(both) > 1 else []
    return [float(number) for number in (found if isinstance(found, list) else [found])]
