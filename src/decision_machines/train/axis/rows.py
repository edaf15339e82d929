"""The rows a search learns from, checked, and in numbers of ordinary size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError

if TYPE_CHECKING:
    from jaxtyping import Float, Int

DOING = "searching for an axis-aligned tree"


@dataclass(frozen=True)
class Rows:
    """Rows with positive weights of mean 1, and either labels or standardised numbers."""

    X: Float[np.ndarray, "m n"]
    w: Float[np.ndarray, "m"]
    k: int
    label: Int[np.ndarray, "m"] | None = None
    y: Float[np.ndarray, "m k"] | None = None
    centre: Float[np.ndarray, "k"] | None = None
    scale: float = 1.0

    def __len__(self) -> int:
        return len(self.X)

    def take(self, which: np.ndarray) -> Rows:
        """Some of the rows."""
        return replace(
            self,
            X=self.X[which],
            w=self.w[which],
            label=None if self.label is None else self.label[which],
            y=None if self.y is None else self.y[which],
        )

    def original(self, values: np.ndarray) -> np.ndarray:
        """Values of leaves in the units that y came in."""
        return values if self.centre is None else self.centre + self.scale * values

    def answers(self) -> np.ndarray:
        """(m, k) what a leaf should say of each row: its numbers, or 1 for its class."""
        if self.y is not None:
            return self.y
        assert self.label is not None
        return (self.label[:, None] == np.arange(self.k)).astype(np.float64)


def read_rows(
    X: Any, y: Any, sample_weight: Any, n_classes: int | None, like: Rows | None = None
) -> Rows:
    """Check rows and bring them to ordinary size.

    Parameters
    ----------
    like
        Rows read before: numbers are standardised as theirs were.
    """
    X = _numbers(X, "X")
    if X.ndim != 2 or 0 in X.shape:
        raise InputError(DOING, f"X has shape {X.shape}", "pass rows × features, at least 1 × 1")
    if like is not None and X.shape[1] != like.X.shape[1]:
        raise InputError(
            DOING,
            f"the validation rows have {X.shape[1]} features, the others {like.X.shape[1]}",
            "pass the same features in both",
        )
    w = _weights(sample_weight, len(X))
    rows = Rows(np.ascontiguousarray(X), w, n_classes or 1)
    rows = _labelled(rows, y, n_classes) if n_classes is not None else _numbered(rows, y, like)
    kept = rows.w > 0
    rows = rows if kept.all() else rows.take(kept)
    # A weight may be of any size; its mean must not decide how strongly values are shrunk.
    top = rows.w.max()
    w = rows.w / top
    return replace(rows, w=np.maximum(w / w.mean(), np.finfo(np.float64).tiny))


def _labelled(rows: Rows, y: Any, n_classes: int) -> Rows:
    label = np.asarray(y)
    if label.shape != (len(rows),):
        raise InputError(
            DOING, f"y of shape {label.shape} for {len(rows)} rows", "pass one label for each row"
        )
    if label.dtype.kind not in "iub" or n_classes < 1:
        raise InputError(
            DOING,
            f"y of dtype {label.dtype} and n_classes = {n_classes}",
            "pass integer codes from 0 to n_classes - 1, or leave n_classes out for numbers",
        )
    if label.min() < 0 or label.max() >= n_classes:
        raise InputError(
            DOING,
            f"labels from {label.min()} to {label.max()} for {n_classes} classes",
            "pass codes from 0 to n_classes - 1",
        )
    return replace(rows, label=label.astype(np.int32))


def _numbered(rows: Rows, y: Any, like: Rows | None) -> Rows:
    y = _numbers(y, "y")
    y = y[:, None] if y.ndim == 1 else y
    if y.ndim != 2 or len(y) != len(rows) or y.shape[1] == 0:
        raise InputError(
            DOING,
            f"y of shape {y.shape} for {len(rows)} rows",
            "pass one number, or one row of numbers, for each row of X",
        )
    if not np.all(np.isfinite(y)):
        at = np.argwhere(~np.isfinite(y))[0]
        raise InputError(
            DOING,
            f"y[{at[0]}] is {y[tuple(at)]}",
            "leave rows without a finite target out",
        )
    if like is not None:
        if y.shape[1] != like.k:
            raise InputError(
                DOING,
                f"{y.shape[1]} outputs in the validation rows, {like.k} in the others",
                "pass the same outputs in both",
            )
        assert like.centre is not None
        centre, scale = like.centre, like.scale
    else:
        # Halves and a division by the largest first: neither sums nor squares may overflow.
        centre = np.average(y / 2, axis=0, weights=rows.w / rows.w.max()) * 2
        scale = float(np.abs(y / 2 - centre / 2).max()) or 0.5
        spread = np.sqrt(np.mean(((y / 2 - centre / 2) / scale) ** 2)) or 1.0
        scale = min(scale * float(spread) * 2, np.finfo(np.float64).max) or 1.0
    standard = (y / 2 - centre / 2) / (scale / 2)
    return replace(rows, y=np.ascontiguousarray(standard), k=y.shape[1], centre=centre, scale=scale)


def _numbers(given: Any, name: str) -> np.ndarray:
    try:
        array = np.asarray(given)
        if array.dtype.kind == "c":
            raise TypeError("complex numbers")
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            DOING,
            f"{name} is no array of numbers: {error}",
            f"pass {name} as numbers (NaN: missing)",
        ) from error


def _weights(sample_weight: Any, m: int) -> np.ndarray:
    if sample_weight is None:
        return np.ones(m)
    w = _numbers(sample_weight, "sample_weight")
    if w.shape != (m,):
        raise InputError(
            DOING, f"sample_weight of shape {w.shape} for {m} rows", "pass a weight for each row"
        )
    if not np.all(np.isfinite(w)) or w.min() < 0 or w.max() == 0:
        raise InputError(
            DOING,
            f"weights from {w.min()} to {w.max()}",
            "pass finite weights, none negative, one at least positive",
        )
    return w
