"""From the answers of binary learners to scores of classes, one function for each decoding.

Paper: Algorithm `ECOC`, dis(r, p). M is the code, a row for each class; h = ±1 are the learners'
answers, f their margins (log-odds where a learner has probabilities). Larger scores are better.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float, Int

    Margins = Float[np.ndarray, "m ell"]
    Code = Int[np.ndarray, "K ell"]
    Scores = Float[np.ndarray, "m K"]


def logical(f: Margins, M: Code) -> Scores:
    """Logical similarity: of the answers that a class asks for, right ones less wrong ones.

    Paper: Eq. `zhang_similarity`. From -1 to 1, whatever the number of questions.
    """
    asked = np.maximum(np.abs(M).sum(axis=1, dtype=np.int64), 1)
    found: np.ndarray = (signs(f) @ M.T.astype(np.int64)) / asked
    return found


def hamming(f: Margins, M: Code) -> Scores:
    """Minus the Hamming distance; a question that a class does not ask counts one half."""
    found: np.ndarray = (signs(f) @ M.T.astype(np.int64) - M.shape[1]) / 2
    return found


def loss(f: Margins, M: Code) -> Scores:
    """Minus the logistic loss of the margins over the questions that a class asks.

    For log-odds and one tree this is the log of the product of probabilities down the path, so
    that it is a distribution over the classes: Eq. `soft` with learners for tests.
    """
    found: np.ndarray = -(np.logaddexp(0, -f) @ (M > 0).T + np.logaddexp(0, f) @ (M < 0).T)
    return found


def even_loss(f: Margins, M: Code) -> Scores:
    """`loss`, with ln 2, the loss of a margin of 0, for every question that a class does not ask.

    For codes that are not trees, whose classes may ask different numbers of questions: without it
    those that ask few would win.
    """
    unasked = np.sum(M == 0, axis=1)
    found: np.ndarray = loss(f, M) - np.log(2) * unasked
    return found


def signs(f: Margins) -> Int[np.ndarray, "m ell"]:
    """sgn, with sgn(0) = -1 as in Eq. `signum`."""
    return np.where(f <= 0, -1, 1)


DECODINGS: dict[str, Callable[[Margins, Code], Scores]] = {
    "logical": logical,
    "hamming": hamming,
    "loss": loss,
}
