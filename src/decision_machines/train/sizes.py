"""How many leaves a tree should have: cross-validation, and the one-standard-error rule."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..progress import Verbosity, Watch
from .hold_out import folds

if TYPE_CHECKING:
    from jaxtyping import Float

    from ..machine import DecisionMachine
    from ..show import SizePathDisplay
    from .rows import Rows

SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Numbers of leaves that are tried."""
N_FOLDS = 5
FEWEST_ROWS = 10
"""Distinct rows for each leaf of the largest tree that is tried."""


class Scores(Protocol):
    """What people read, of each row: more is better, and the mean over rows is the score."""

    def __call__(self, machine: DecisionMachine, rows: Rows, /) -> Float[np.ndarray, "m"]: ...


@dataclass(frozen=True)
class SizePath:
    """Sizes of a tree against how well trees of that size predict rows they have not seen.

    The size chosen is the smallest whose score is at most one standard error below the best.

    Examples
    --------
    >>> path = SizePath("accuracy", (1, 2, 4), (0.6, 0.79, 0.8), (0.05, 0.02, 0.02))
    >>> path.chosen
    2
    >>> path
    leaves  accuracy  ± s.e.
         1    0.6000  0.0500
         2    0.7900  0.0200  chosen
         4    0.8000  0.0200  best
    """

    name: str
    """Of the score: "accuracy", "AUC", "R²", "D²", ..."""
    sizes: tuple[int, ...]
    """Leaves, at most, ascending."""
    score: tuple[float, ...]
    """Mean over all rows, each judged by a tree that has not seen it; nan if none was judged."""
    standard_error: tuple[float, ...]
    """Of `score`."""

    @property
    def best(self) -> int:
        """The smallest of the sizes with the highest score."""
        return self.sizes[int(np.argmax(self.score))]

    @property
    def chosen(self) -> int:
        """The smallest size within one standard error of the best."""
        at = int(np.argmax(self.score))
        least = self.score[at] - self.standard_error[at]
        within = (
            size for size, score in zip(self.sizes, self.score, strict=True) if score >= least
        )
        return next(within, self.sizes[0])

    def __len__(self) -> int:
        return len(self.sizes)

    def as_dicts(self) -> list[dict[str, Any]]:
        """One dictionary for each size: leaves, score, standard error, whether it is chosen."""
        return [
            {
                "leaves": size,
                self.name: score,
                "standard error": error,
                "chosen": size == self.chosen,
            }
            for size, score, error in zip(self.sizes, self.score, self.standard_error, strict=True)
        ]

    def __repr__(self) -> str:
        width = max(len(self.name), 7)
        lines = [f"leaves  {self.name:>{width}}  ± s.e."]
        for size, score, error in zip(self.sizes, self.score, self.standard_error, strict=True):
            notes = ["chosen"] * (size == self.chosen) + ["best"] * (size == self.best)
            line = f"{size:6d}  {score:{width}.4f}  {error:6.4f}  {', '.join(notes)}"
            lines.append(line.rstrip())
        return "\n".join(lines)

    def plot(self, ax: Any = None) -> SizePathDisplay:
        """Draw the score against the size (extra `plot`); see `SizePathDisplay`.

        Parameters
        ----------
        ax
            Matplotlib's axes to draw on; new ones by default.
        """
        from ..show import SizePathDisplay

        return SizePathDisplay(self).plot(ax)


def sizes_for(n_rows: int, most: int, *, complete: bool = False) -> tuple[int, ...]:
    """Sizes to try; `complete` trees double.

    Examples
    --------
    >>> sizes_for(1000, 8), sizes_for(35, 32), sizes_for(1000, 8, complete=True)
    ((1, 2, 3, 4, 6, 8), (1, 2, 3), (1, 2, 4, 8))
    """
    most = min(most, max(1, n_rows // FEWEST_ROWS))
    return tuple(s for s in SIZES if s <= most and not (complete and s & (s - 1)))


def size_path(
    learn: Callable[[Rows, int], DecisionMachine],
    rows: Rows,
    sizes: Sequence[int],
    scores: Scores,
    *,
    name: str,
    is_classes: bool,
    seed: int,
    seconds: float | None = None,
    verbose: Verbosity = None,
    keep_best_on_interrupt: bool = False,
) -> tuple[SizePath, bool]:
    """Judge each size by cross-validation; True where it was interrupted.

    Sizes ascend; those that are not judged on all folds after so many `seconds` are left out.
    Every class gives each fold its share, and all sizes are judged on the same folds. The standard
    error is that of the mean over rows: five folds are too few to estimate it from.
    """
    fold = folds(len(rows), N_FOLDS, seed, rows.y if is_classes else None)
    parts = [(fold != i, fold == i) for i in np.unique(fold)]
    nothing = SizePath(name, tuple(sizes[:1]), (float("nan"),), (float("nan"),))
    if len(sizes) == 1 or len(parts) == 1:
        return nothing, False
    share = rows.w / rows.w.sum()
    found: list[tuple[float, float]] = []
    watch = Watch(
        "choosing a size", len(sizes) * len(parts), verbose, keep_best=keep_best_on_interrupt
    )
    begin = time.perf_counter()

    def is_late() -> bool:
        return seconds is not None and time.perf_counter() - begin > seconds

    with watch:
        for size in sizes:
            each = np.empty(len(rows))
            for own, held in parts:
                if is_late():
                    break
                each[held] = scores(learn(rows.take(own), size), rows.take(held))
                watch.step(leaves=size, score=float(np.average(each[held], weights=rows.w[held])))
            else:
                mean = float(share @ each)
                found.append((mean, float(np.sqrt(share**2 @ (each - mean) ** 2))))
    if not found:
        return nothing, watch.interrupted
    score, error = zip(*found, strict=True)
    return SizePath(name, tuple(sizes[: len(found)]), score, error), watch.interrupted
