"""Whether a target is classes or numbers, and why we think so."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..errors import InputError

MOST_CLASSES = 20
"""Different whole numbers up to which a target is taken for classes."""


class TargetKind(NamedTuple):
    """What a target was taken for."""

    is_classes: bool
    why: str
    y: np.ndarray
    """Labels, or float64."""


def target_kind(y: np.ndarray, target: str, kind: str, doing: str) -> TargetKind:
    """Classes or numbers: as asked (`kind`), or guessed from the values (`"auto"`)."""
    if kind not in ("auto", "classification", "regression"):
        raise InputError(doing, f"--kind {kind}", "use classification or regression")
    is_classes, why = _guess(y, target, kind, doing)
    if not is_classes:
        y = y.astype(np.float64)
    elif y.dtype.kind == "f" and np.all(y == np.floor(y)):
        y = y.astype(np.int64)
    elif y.dtype.kind == "f":
        # Classes may be numbers; scikit-learn takes fractions for a mistake, so they become text.
        y = y.astype(str)
    return TargetKind(is_classes, why, y)


def _guess(y: np.ndarray, target: str, kind: str, doing: str) -> tuple[bool, str]:
    is_text = y.dtype.kind == "U" or all(isinstance(value, str) for value in y.tolist())
    if y.dtype.kind not in "biufUO" or (y.dtype == object and not is_text):
        raise InputError(
            doing,
            f"{target!r} holds {y.dtype} values such as {y.tolist()[0]!r}",
            "use a target of numbers or text",
        )
    if kind == "regression" and (is_text or y.dtype.kind == "b"):
        raise InputError(
            doing,
            f"{target!r} holds {y[0].item()!r} and is not a number",
            "use --kind classification",
        )
    different = len(np.unique(y))
    if kind != "auto":
        return kind == "classification", f"{kind} of {target!r}, as asked"
    values = f"{target!r} has {different} different value{'' if different == 1 else 's'}"
    if is_text or y.dtype.kind == "b":
        return True, f"{values}, no numbers: classification"
    is_whole = bool(np.all(y == np.floor(y)))
    if is_whole and (different <= 2 or (different <= MOST_CLASSES and different < len(y) / 5)):
        return True, f"{values}, whole numbers: classification (else --kind regression)"
    return False, f"{values}, numbers: regression (else --kind classification)"
