"""Labels of a categorical feature, turned into their positions among those a model knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...machine.label_hash import label_hash

if TYPE_CHECKING:
    from jaxtyping import Float


def positions(column: np.ndarray, labels: tuple[Any, ...]) -> Float[np.ndarray, "m"]:
    """The position of each entry; -1 for one that is not among the labels, NaN for none.

    Examples
    --------
    >>> positions(np.array(["b", "z", None], object), ("a", "b"))
    array([ 1., -1., nan])
    """
    known = np.array(labels) if labels else np.empty(0)
    if column.dtype.kind in "biuf" and known.dtype.kind in "biuf":
        order = np.argsort(known)
        at = np.searchsorted(known[order], column)
        at = order[np.minimum(at, len(known) - 1)] if len(known) else np.zeros(len(column), int)
        is_known = known[at] == column if len(known) else np.zeros(len(column), bool)
        found = np.where(is_known, at, -1).astype(np.float64)
        found[np.isnan(column)] = np.nan
        return found
    position = {label: i for i, label in enumerate(labels)}
    try:
        return np.array([position_of(value, position) for value in column.tolist()], np.float64)
    except TypeError as error:
        raise InputError(
            "reading X", f"an entry that is not a label ({error})", "give text, numbers or None"
        ) from None


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or what pandas has for them."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def position_of(label: Any, position: dict[Any, int]) -> float:
    """The position of one label; None is a label of its own only where the model knows it."""
    if is_missing(label):
        return float(position.get(None, np.nan)) if label is None else np.nan
    return float(position.get(label, -1))


def hashed_positions(
    column: np.ndarray, labels: tuple[Any, ...], name: str = "a categorical feature"
) -> Float[np.ndarray, "m"]:
    """The position of each entry among labels matched by the hash of their text, as CatBoost does.

    An integer is the label of its digits; CatBoost takes neither other numbers nor None for a
    label, and nor do we.

    Examples
    --------
    >>> hashed_positions(np.array([1, "b", "1"], object), ("1", "a"))
    array([ 0., -1.,  0.])
    """
    position = hashes_of(labels)
    code: dict[Any, float] = {}
    for value in column.tolist():
        if value not in code:
            code[value] = hashed_position(value, position, name)
    return np.array([code[value] for value in column.tolist()], np.float64)


def hashes_of(labels: tuple[Any, ...]) -> dict[int, int]:
    """The positions of labels by the hashes of their texts."""
    return {
        label_hash(label) if isinstance(label, str) else label: i for i, label in enumerate(labels)
    }


def hashed_position(value: Any, position: dict[int, int], name: str) -> float:
    """The position of one label by its hash, as `hashes_of` has them; -1 for an unknown one."""
    if not isinstance(value, (str, int)):
        raise InputError(
            "reading X",
            f"{name} holds {value!r}, which is not a category for CatBoost",
            "give its categories as text or integers, and missing ones by the label that they had "
            "in the training data",
        )
    text = value if isinstance(value, str) else str(int(value))
    return float(position.get(label_hash(text), -1))
