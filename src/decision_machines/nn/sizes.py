"""Sizes, names and inputs of layers, checked."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import torch

from ..errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_DEPTH = 16


def check_size(doing: str, name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """A whole number from `least` to `most`."""
    try:
        size = operator.index(value)
    except TypeError:
        size = least - 1
    if isinstance(value, bool) or size < least or (most is not None and size > most):
        to = "" if most is None else f" and at most {most}"
        raise InputError(doing, f"{name}={value!r}", f"use a whole number of at least {least}{to}")
    return size


def check_positive(doing: str, name: str, value: Any) -> float:
    """A positive, finite number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (number > 0 and math.isfinite(number)):
        raise InputError(doing, f"{name}={value!r}", "use a positive number")
    return number


def check_choice(doing: str, name: str, value: Any, choices: Iterable[str]) -> str:
    """One of the names."""
    choices = tuple(choices)
    if value not in choices:
        raise InputError(doing, f"{name}={value!r}", f"use one of {', '.join(choices)}")
    return str(value)


def check_rows(doing: str, x: Any, n: int, device: torch.device) -> None:
    """A floating-point tensor (..., n) on the layer's device."""
    if not isinstance(x, torch.Tensor):
        raise InputError(doing, f"x is {type(x).__name__}, not a tensor", "pass torch.tensor(x)")
    if not x.dtype.is_floating_point:
        raise InputError(doing, f"x of dtype {x.dtype}", "pass x.float()")
    if x.dim() == 0 or x.shape[-1] != n:
        raise InputError(
            doing,
            f"x of shape {tuple(x.shape)}; the layer takes {n} features",
            f"give x the shape (..., {n})",
        )
    if x.device != device:
        raise InputError(
            doing,
            f"x is on {x.device} and the layer on {device}",
            f"move one of them: x.to({str(device)!r})",
        )


def check_classes(doing: str, y: Any, rows: int, n_classes: int) -> torch.Tensor:
    """(m,) class numbers from 0 to n_classes - 1."""
    if not isinstance(y, torch.Tensor) or y.dtype.is_floating_point or y.dtype == torch.bool:
        raise InputError(
            doing,
            f"classes given as {getattr(y, 'dtype', type(y).__name__)}",
            "pass a tensor of class numbers: torch.tensor(y)",
        )
    if y.shape != (rows,):
        raise InputError(
            doing, f"classes of shape {tuple(y.shape)} for {rows} rows", "give one for each row"
        )
    if len(y) and not 0 <= int(y.min()) <= int(y.max()) < n_classes:
        raise InputError(
            doing,
            f"classes from {int(y.min())} to {int(y.max())}",
            f"number them from 0 to {n_classes - 1}",
        )
    return y.long()
