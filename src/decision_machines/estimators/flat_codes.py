"""Codes of classes that are not trees: one against all, one against one, and random ones.

Paper: Algorithm `ECOC`, whose coding strategies these are; cites `dietterich1994solving`,
`allwein2001reducing`. A code is (K, ell) of -1, 0 and +1: a row for each class, a column for each
question; 0 where a class is not asked.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Int

    Code = Int[np.ndarray, "K ell"]

CANDIDATES = 100
"""Random codes that are drawn, of which the one whose nearest rows stand furthest apart is kept."""


def one_vs_all(n_classes: int) -> Code:
    """A question for each class: this one, or another?

    Examples
    --------
    >>> one_vs_all(3).tolist()
    [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]]
    """
    return (2 * np.eye(n_classes) - 1).astype(np.int8)


def one_vs_one(n_classes: int) -> Code:
    """A question for each pair of classes: which of the two?

    Examples
    --------
    >>> one_vs_one(3).tolist()
    [[-1, -1, 0], [1, 0, -1], [0, 1, 1]]
    """
    pairs = list(itertools.combinations(range(n_classes), 2))
    code = np.zeros((n_classes, len(pairs)), np.int8)
    for j, (a, b) in enumerate(pairs):
        code[a, j], code[b, j] = -1, 1
    return code


def dense(n_classes: int, n_columns: int | None, rng: np.random.Generator) -> Code:
    """Random questions to all classes, -1 or +1; ⌈10 log₂ K⌉ of them where no number is given.

    Where there are no more different questions than that, all are asked.
    """
    n = n_columns or math.ceil(10 * math.log2(n_classes))
    return _drawn(n_classes, n, (-1, 1), (0.5, 0.5), 2 ** (n_classes - 1) - 1, rng)


def sparse(n_classes: int, n_columns: int | None, rng: np.random.Generator) -> Code:
    """Random questions to half of the classes; ⌈15 log₂ K⌉ of them where no number is given."""
    n = n_columns or math.ceil(15 * math.log2(n_classes))
    n_different = (3**n_classes - 2 ** (n_classes + 1) + 1) // 2
    return _drawn(n_classes, n, (-1, 0, 1), (0.25, 0.5, 0.25), n_different, rng)


FLAT: dict[str, Callable[[int, int | None, np.random.Generator], Code]] = {
    "one_vs_all": lambda n_classes, n_columns, rng: one_vs_all(n_classes),
    "one_vs_one": lambda n_classes, n_columns, rng: one_vs_one(n_classes),
    "dense": dense,
    "sparse": sparse,
}
"""Codings that are not trees, by name."""


def _drawn(
    n_classes: int,
    n_columns: int,
    symbols: tuple[int, ...],
    odds: tuple[float, ...],
    n_different: int,
    rng: np.random.Generator,
) -> Code:
    """n columns, no two asking the same, of the candidate with the largest least distance."""
    if n_different <= n_columns:
        every = np.array(list(itertools.product(symbols, repeat=n_classes)), np.int8).T
        return _different(every)
    best, furthest = None, -1.0
    for _ in range(CANDIDATES):
        code = np.zeros((n_classes, 0), np.int8)
        while code.shape[1] < n_columns:
            more = rng.choice(symbols, size=(n_classes, n_columns), p=odds).astype(np.int8)
            code = _different(np.concatenate([code, more], axis=1))
        code = code[:, :n_columns]
        wide = code.astype(np.int64)
        apart = (n_columns - wide @ wide.T) / 2
        least = float(apart[~np.eye(n_classes, dtype=bool)].min())
        is_told = len(np.unique(code, axis=0)) == n_classes
        if is_told and least > furthest:
            best, furthest = code, least
    # Too few columns to tell all classes apart: with pairs as well, they are.
    return np.concatenate([code, one_vs_one(n_classes)], axis=1) if best is None else best


def _different(code: Code) -> Code:
    """Columns with both signs, the first of each question; one turned round asks the same."""
    code = code[:, (code.max(axis=0) > 0) & (code.min(axis=0) < 0)]
    first = np.take_along_axis(code, np.argmax(code != 0, axis=0)[None], axis=0)
    # By bytes: np.unique along an axis takes as long as fitting a learner.
    asked = {question.tobytes(): j for j, question in reversed(list(enumerate((code * first).T)))}
    return code[:, sorted(asked.values())]
