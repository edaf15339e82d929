"""One soft oblique tree, for its soft answer; and the hard tree nearest to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..rows import check_depth
from ..torch_setup import require_torch, threads

if TYPE_CHECKING:
    from ...progress import Verbosity
    from ..fit import Fit
    from .descent import SoftRecipe

DOING = "training a soft tree"
MOST_DEPTH = 12


@dataclass(frozen=True)
class SoftEffort:
    """For how many steps trees are trained, and by which recipes."""

    first_steps: int
    second_steps: int
    last_steps: int
    recipes: tuple[SoftRecipe, ...]
    n_second: int = 6
    """Trees that are trained longer."""
    n_taught: int = 4
    """Trees that are then taught by the average of those, where they classify."""

    @classmethod
    def usual(cls, n_rows: int) -> SoftEffort:
        """All recipes briefly, the best longer, the best tree on all rows in the end."""
        from .descent import BATCH_SIZE, RECIPES

        epoch = n_rows / BATCH_SIZE
        first, second, last = (int(np.clip(k * epoch, 8 * k, 80 * k)) for k in (12, 48, 10))
        return cls(first, second, last, RECIPES)

    @property
    def total(self) -> int:
        n_long = 2 if self.n_taught else 1
        return self.first_steps + n_long * self.second_steps + self.last_steps


def soft_tree(
    X: Any,
    y: Any,
    *,
    n_classes: int | None = None,
    depth: int = 6,
    sample_weight: Any = None,
    validation: tuple[Any, ...] | None = None,
    effort: SoftEffort | None = None,
    seed: int = 0,
    n_threads: int | None = None,
    verbose: Verbosity = None,
    keep_best_on_interrupt: bool = False,
) -> Fit:
    """A soft oblique tree: its answer is an average over leaves, smooth in the features.

    A few recipes are tried, rows held out choose among them, several trees of the best are
    trained longer, and others learn from the average answer of those. Where no rows were given to
    choose by, the best tree goes on learning from all rows in the end. Features need no scaling.

    Parameters
    ----------
    X
        (m, n) features. NaN is missing: read as 0 in features where training has one.
    y
        (m,) codes 0..K-1 where `n_classes` is given, else numbers, (m,) or (m, q).
    depth
        Of the complete tree.
    sample_weight
        (m,) weights of the rows.
    validation
        (X, y) or (X, y, sample_weight) to choose by, never trained on.
    effort
        How long is trained; by default what the number of rows asks for.
    seed
        The same seed gives the same tree.
    n_threads
        Threads of torch while training; by default as it is set.
    verbose
        Whether to show progress; None shows it, too, but not for quick work in a pipe.
    keep_best_on_interrupt
        Whether Ctrl-C ends training early and gives the best so far, with ``"interrupted"`` in the
        report. By default it raises `KeyboardInterrupt`, so that a search around this ends, too.

    Returns
    -------
    Fit
        `soft`, the tree as a torch module; `machine`, the same tree hard, its leaves as learned
        or fitted to the rows that exit there, by validation; `report`.

    Examples
    --------
    >>> import torch
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> fit = soft_tree(X, y, n_classes=2, depth=1, n_threads=1, verbose=False)
    >>> fit.soft(torch.tensor([[1.0, 0.0], [0.0, 1.0]])).argmax(1)
    tensor([1, 0])
    """
    check_depth(depth, 1, MOST_DEPTH, DOING)
    from .search import SoftSearch

    require_torch(DOING)
    search = SoftSearch(X, y, n_classes, int(depth), sample_weight, validation, effort, seed)
    with threads(n_threads, DOING):
        return search.run(verbose, keep_best_on_interrupt)
