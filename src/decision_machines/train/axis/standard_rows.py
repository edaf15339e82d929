"""The rows a search learns from, in numbers of ordinary size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ..rows import Rows, read_rows

if TYPE_CHECKING:
    from jaxtyping import Float, Int

DOING = "searching for an axis-aligned tree"


@dataclass(frozen=True)
class StandardRows:
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

    def take(self, which: np.ndarray) -> StandardRows:
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
        found: np.ndarray = (self.label[:, None] == np.arange(self.k)).astype(np.float64)
        return found


def standard_rows(
    X: Any, y: Any, sample_weight: Any, n_classes: int | None, like: StandardRows | None = None
) -> StandardRows:
    """Read rows and bring them to ordinary size; infinities are values like others.

    Parameters
    ----------
    like
        Rows read before: numbers are standardised as theirs were.
    """
    return standardised(
        read_rows(X, y, sample_weight, n_classes, doing=DOING, takes_infinity=True),
        n_classes,
        like,
    )


def standardised(
    given: Rows,
    n_classes: int | None,
    like: StandardRows | None = None,
    *,
    is_count: bool = False,
) -> StandardRows:
    """Rows that are read, in numbers of ordinary size; counts keep their zero."""
    given.weighted(DOING)  # refuses rows that all weigh nothing
    rows = StandardRows(given.X, given.w, n_classes or 1)
    if n_classes is not None:
        rows = replace(rows, label=given.y.astype(np.int32))
    else:
        rows = _numbered(rows, given.y, like, is_count)
    kept = rows.w > 0
    rows = rows if kept.all() else rows.take(kept)
    # A weight may be of any size; its mean must not decide how strongly values are shrunk.
    w = rows.w / rows.w.max()
    return replace(rows, w=np.maximum(w / w.mean(), np.finfo(np.float64).tiny))


def _numbered(
    rows: StandardRows, y: Float[np.ndarray, "m k"], like: StandardRows | None, is_count: bool
) -> StandardRows:
    if is_count:
        _check_counts(y)
    if like is not None:
        assert like.centre is not None
        centre, scale = like.centre, like.scale
    elif is_count:
        centre = np.zeros(y.shape[1])
        top = float(y.max()) or 1.0
        scale = float(np.average((y / top).mean(axis=1), weights=rows.w / rows.w.max())) * top
        scale = scale or 1.0
    else:
        # Halves and a division by the largest first: neither sums nor squares may overflow.
        centre = np.average(y / 2, axis=0, weights=rows.w / rows.w.max()) * 2
        scale = float(np.abs(y / 2 - centre / 2).max()) or 0.5
        spread = np.sqrt(np.mean(((y / 2 - centre / 2) / scale) ** 2)) or 1.0
        scale = min(scale * float(spread) * 2, np.finfo(np.float64).max) or 1.0
    standard = (y / 2 - centre / 2) / (scale / 2)
    return replace(rows, y=np.ascontiguousarray(standard), k=y.shape[1], centre=centre, scale=scale)


def _check_counts(y: Float[np.ndarray, "m k"]) -> None:
    if y.min(initial=0.0) < 0:
        row = int(np.argmin(y.min(axis=1)))
        raise InputError(
            DOING,
            f"criterion='poisson' and y[{row}] = {y[row].min()}",
            "give counts or rates of at least 0, or use another criterion",
        )
