"""Rows, targets, weights and validation rows as people give them, read once for all of training.

What a solver makes of them, standardised, scaled or as tensors, lies beside the solver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int, Num


@dataclass(frozen=True)
class Rows:
    """Rows, what they should give, and what each counts."""

    X: Float[np.ndarray, "m n"]
    y: Num[np.ndarray, "m ..."]
    """Codes of classes, (m,), or targets."""
    w: Float[np.ndarray, "m"]

    def __len__(self) -> int:
        return len(self.X)

    def take(self, which: Int[np.ndarray, "k"] | Bool[np.ndarray, "m"]) -> Rows:
        """These rows alone."""
        return Rows(self.X[which], self.y[which], self.w[which])

    def weighted(self, doing: str) -> Rows:
        """The rows whose weight is above 0; refused where there are none."""
        is_there = self.w > 0
        if not is_there.any():
            raise InputError(
                doing,
                f"all {len(self)} rows have weight 0",
                "give at least one row a weight above 0",
            )
        return self if is_there.all() else self.take(is_there)


def read_rows(
    X: Any,
    y: Any,
    weight: Any,
    n_classes: int | None,
    *,
    doing: str,
    name: str = "X",
    takes_infinity: bool = False,
) -> Rows:
    """Rows as float64 with codes, or with targets (m, q) where `n_classes` is None.

    Examples
    --------
    >>> rows = read_rows([[1, 2], [3, 4]], [0, 1], None, 2, doing="training")
    >>> rows.X.dtype.name, rows.y.tolist(), rows.w.tolist()
    ('float64', [0, 1], [1.0, 1.0])
    """
    X = read_numbers(X, name, doing)
    if X.ndim != 2 or 0 in X.shape:
        width = f", {X.shape[1]} features" if X.ndim == 2 else ""
        raise InputError(
            doing, f"{name} has shape {X.shape}{width}", "pass rows × features, at least 1 × 1"
        )
    if not takes_infinity:
        refuse_infinities(X, name, doing)
    read = read_targets(y, len(X), doing) if n_classes is None else None
    if n_classes is not None:
        read = read_codes(y, len(X), n_classes, doing)
    assert read is not None
    return Rows(X, read, read_weights(weight, len(X), doing))


def read_validation(
    given: Any, n_classes: int | None, like: Rows, *, doing: str, takes_infinity: bool = False
) -> Rows:
    """Rows to choose by, (X, y) or (X, y, weights), with the features and targets of `like`."""
    if not isinstance(given, (tuple, list)) or len(given) not in (2, 3):
        raise InputError(
            doing, f"validation is a {type(given).__name__}", "pass (X, y) or (X, y, weights)"
        )
    X, y, weight = (*given, None)[:3]
    rows = read_rows(
        X, y, weight, n_classes, doing=doing, name="validation", takes_infinity=takes_infinity
    )
    if rows.X.shape[1] != like.X.shape[1]:
        raise InputError(
            doing,
            f"the validation rows have {rows.X.shape[1]} features, the others {like.X.shape[1]}",
            "pass the same features in both",
        )
    if n_classes is None and rows.y.shape[1:] != like.y.shape[1:]:
        raise InputError(
            doing,
            f"{rows.y.shape[1]} targets in the validation rows, {like.y.shape[1]} in the others",
            "pass the same targets in both",
        )
    return rows


def read_numbers(values: Any, name: str, doing: str) -> Float[np.ndarray, "..."]:
    """An array of float64; complex numbers and what is not a number are refused."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "c":
            raise TypeError("complex numbers")
        return np.ascontiguousarray(array, np.float64) if array.ndim else array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            doing,
            f"{name} is not an array of numbers: {error}",
            f"pass {name} as numbers (NaN: missing)",
        ) from error


def read_codes(y: Any, n_rows: int, n_classes: int, doing: str) -> Int[np.ndarray, "m"]:
    """Codes 0..n_classes - 1, one for each row."""
    codes = np.asarray(y)
    if codes.shape != (n_rows,):
        raise InputError(
            doing, f"y of shape {codes.shape} for {n_rows} rows", "pass one code for each row"
        )
    is_whole = codes.dtype.kind in "iub" or (
        codes.dtype.kind == "f" and bool(np.all(np.mod(codes, 1) == 0))
    )
    if not is_whole or n_classes < 1:
        raise InputError(
            doing,
            f"y of dtype {codes.dtype} and n_classes = {n_classes}",
            "pass whole codes from 0 to n_classes - 1, or leave n_classes out for numbers",
        )
    codes = codes.astype(np.int64)
    if codes.min() < 0 or codes.max() >= n_classes:
        raise InputError(
            doing,
            f"codes from {codes.min()} to {codes.max()} for {n_classes} classes",
            "pass codes from 0 to n_classes - 1",
        )
    return codes


def read_targets(y: Any, n_rows: int, doing: str) -> Float[np.ndarray, "m q"]:
    """Finite numbers, one row of them for each row."""
    numbers = read_numbers(y, "y", doing)
    found: np.ndarray = numbers[:, None] if numbers.ndim == 1 else numbers
    if found.ndim != 2 or len(found) != n_rows or found.shape[1] == 0:
        raise InputError(
            doing,
            f"y of shape {found.shape} for {n_rows} rows",
            "pass one number, or one row of numbers, for each row of X",
        )
    if not np.all(np.isfinite(found)):
        at = np.argwhere(~np.isfinite(found))[0]
        raise InputError(
            doing, f"y[{at[0]}] is {found[tuple(at)]}", "leave rows without a finite target out"
        )
    return found


def read_weights(weight: Any, n_rows: int, doing: str) -> Float[np.ndarray, "m"]:
    """A finite weight of at least 0 for each row; 1 where none are given."""
    if weight is None:
        return np.ones(n_rows)
    w = read_numbers(weight, "sample_weight", doing)
    if w.shape != (n_rows,):
        raise InputError(
            doing,
            f"sample_weight of shape {w.shape}: {w.size} weights for {n_rows} rows",
            "pass one finite weight of at least 0 for each row",
        )
    is_good = np.isfinite(w) & (w >= 0)
    if not is_good.all():
        row = int(np.argmin(is_good))
        raise InputError(
            doing,
            f"weights from {w.min()} to {w.max()}; "
            f"a weight that is not a number ≥ 0: {w[row]} in row {row}",
            "pass one finite weight of at least 0 for each row",
        )
    return w


def refuse_infinities(X: Float[np.ndarray, "m n"], name: str, doing: str) -> None:
    """Name the first infinite entry; NaN is missing and stays."""
    if np.isinf(X).any():
        row, column = np.argwhere(np.isinf(X))[0]
        raise InputError(
            doing,
            f"{name}[{row}, {column}] is {X[row, column]}",
            "replace infinities by large numbers, or by NaN where the value is missing",
        )


def check_depth(depth: Any, least: int, most: int, doing: str) -> None:
    """Refuse what is not a whole number of levels."""
    is_whole = isinstance(depth, (int, np.integer)) and not isinstance(depth, bool)
    if not is_whole or not least <= depth <= most:
        raise InputError(doing, f"depth={depth!r}", f"use a whole number from {least} to {most}")
