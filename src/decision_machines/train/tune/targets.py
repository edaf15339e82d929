"""Targets as users pass them, checked and turned into the (m, c) numbers that losses take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

DOING = "reading y"
KINDS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], str]] = {
    "any": (lambda y: np.isfinite(y), "a finite number"),
    "count": (lambda y: np.isfinite(y) & (y >= 0), "a number of at least 0"),
    "positive": (lambda y: np.isfinite(y) & (y > 0), "a number above 0"),
    "share": (lambda y: (y >= 0) & (y <= 1), "a number from 0 to 1"),
}


def number_targets(width: int | None, kind: str) -> Callable[[Any], np.ndarray]:
    """Reads y as float64 (m, width), every entry of this kind; `width` None takes any."""
    is_good, words = KINDS[kind]

    def encode(y: Any) -> np.ndarray:
        found = plain(y)
        try:
            numbers = found.astype(np.float64)
        except (TypeError, ValueError):
            raise InputError(
                DOING,
                f"targets of dtype {found.dtype}, such as {_first_text(found)}, where numbers are "
                "needed",
                "pass numbers; labels are for machines with classes",
            ) from None
        numbers = numbers[:, None] if numbers.ndim == 1 else numbers
        if numbers.ndim != 2 or (width is not None and numbers.shape[1] != width):
            raise InputError(
                DOING,
                f"y of shape {found.shape}; the machine has {width} output(s)",
                f"pass y of shape (rows,) or (rows, {width})",
            )
        bad = ~is_good(numbers)
        if bad.any():
            row = int(np.argmax(bad.any(1)))
            raise InputError(
                DOING,
                f"y[{row}] = {numbers[row].tolist() if numbers.shape[1] > 1 else numbers[row, 0]}",
                f"this objective takes {words} in every row; drop or correct the others",
            )
        return numbers

    return encode


def class_targets(classes: tuple[np.ndarray, ...]) -> Callable[[Any], np.ndarray]:
    """Reads labels as float64 (m, targets) codes: each label's place among the machine's."""

    def encode(y: Any) -> np.ndarray:
        found = plain(y)
        found = found[:, None] if found.ndim == 1 else found
        if found.ndim != 2 or found.shape[1] != len(classes):
            raise InputError(
                DOING,
                f"y of shape {plain(y).shape} for {len(classes)} target(s) with classes",
                "pass one label for each row"
                + (" and target, as columns" if len(classes) > 1 else ""),
            )
        return np.stack([_codes(found[:, i], labels) for i, labels in enumerate(classes)], axis=1)

    return encode


def multilabel_targets(width: int) -> Callable[[Any], np.ndarray]:
    """Reads y as (m, width) of 0 and 1: several questions for each row."""
    return number_targets(width, "share")


def plain(y: Any) -> np.ndarray:
    """y as a NumPy array with rows, whatever library it came from."""
    if hasattr(y, "detach"):
        y = y.detach().cpu().numpy()
    elif hasattr(y, "to_numpy"):
        y = y.to_numpy()
    found = np.asarray(y)
    if found.ndim == 0:
        raise InputError(DOING, f"y is {y!r}, which has no rows", "pass one target for each row")
    if found.dtype.kind not in "biufOUS":
        raise InputError(
            DOING, f"y of dtype {found.dtype}", "pass real numbers, or labels of the machine"
        )
    return found


def _first_text(y: np.ndarray) -> str:
    """The first entry that is not a number, as it would be typed."""
    return repr(next((v for v in y.ravel().tolist() if isinstance(v, (str, bytes))), y.flat[0]))


def _codes(y: np.ndarray, labels: np.ndarray) -> np.ndarray:
    place = {label: i for i, label in enumerate(labels.tolist())}
    codes = np.array([place.get(label, -1) for label in y.tolist()], np.float64)
    if np.any(codes < 0):
        row = int(np.argmax(codes < 0))
        shown = ", ".join(map(repr, labels.tolist()[:8])) + (" …" if len(labels) > 8 else "")
        raise InputError(
            DOING,
            f"y[{row}] = {y.tolist()[row]!r} is not a label of the machine",
            f"its labels are {shown}; map y to them, or train a model that knows this one",
        )
    return codes
