"""A machine as a kernel over rows: proximities, and the training rows behind a prediction.

Paper: the kernel estimate of a leaf's value, with δ(‖h, hᵢ‖_B). A row's exit leaves are a one-hot
matrix Z, so all of it is products of sparse matrices, Z Zᵀ.

NOTE[PAPER]: B has full column rank (Theorem `rank`), so ‖B(h - hᵢ)‖ = 0 only where *all* tests
answer alike, those off the path too. The leaf's mean, which the formula is meant to be, takes every
row of the leaf; that is `by="leaf"`. The formula as printed is `by="code"`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ...errors import InputError, UnsupportedModelError
from ...machine.coded import coded
from ...machine.digits import rounded
from ...run.engines.reference import test_results
from ..given import features_of, leaves_of

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from ...machine import DecisionMachine

DOING = "comparing rows by a machine"


def leaf_indicators(machine: DecisionMachine, X: Any, n_threads: int | None = None) -> sp.csr_array:
    """(m, L) Z: 1 at the exit leaf of every row in every tree."""
    leaf = leaves_of(machine, X, n_threads) + machine.trees.leaf_start[:-1]
    return _one_hot(leaf, machine.n_leaves)


def codes(machine: DecisionMachine, X: Any, Y: Any) -> tuple[sp.csr_array, sp.csr_array]:
    """One-hot matrices of the codes h that rows have in every tree, all its tests counted."""
    z = [machine.columns.read(features_of(machine, rows)) for rows in (X, Y)]
    both = np.asfortranarray(np.concatenate(z))
    found = np.zeros((len(both), machine.n_trees), np.int64)
    seen = 0
    for tree in range(machine.n_trees):
        h = test_results(machine, both, tree)
        words = np.packbits(h < 0, axis=1) if h.shape[1] else np.zeros((len(h), 1))
        _, code = np.unique(words, axis=0, return_inverse=True)
        found[:, tree] = seen + code.reshape(-1)
        seen = int(found[:, tree].max(initial=seen - 1)) + 1
    return _one_hot(found[: len(z[0])], seen), _one_hot(found[len(z[0]) :], seen)


def _one_hot(leaf: Int[np.ndarray, "m T"], size: int) -> sp.csr_array:
    m, n_trees = leaf.shape
    start = np.arange(m + 1, dtype=np.int64) * n_trees
    return sp.csr_array((np.ones(leaf.size), leaf.reshape(-1), start), shape=(m, size))


def proximity(
    machine: DecisionMachine,
    X: Any,
    Y: Any = None,
    *,
    by: str = "leaf",
    n_threads: int | None = None,
) -> sp.csr_array:
    """See `DecisionMachine.proximity`.

    Paper: cites `kernel2016`.
    """
    if by == "leaf":
        a = leaf_indicators(machine, X, n_threads)
        b = a if Y is None else leaf_indicators(machine, Y, n_threads)
        share = 1.0 / max(machine.n_trees, 1)
    elif by == "code":
        a, b = codes(machine, X, X if Y is None else Y)
        share = 1.0 / max(machine.n_trees, 1)
    elif by == "value":
        a = leaf_indicators(machine, X, n_threads)
        b = a if Y is None else leaf_indicators(machine, Y, n_threads)
        a, share = _by_value(machine, a), 1.0
    else:
        raise InputError(DOING, f"by={by!r}", "use 'leaf', 'code' or 'value'")
    return sp.csr_array(a @ b.T) * share


def _by_value(machine: DecisionMachine, Z: sp.csr_array) -> sp.csr_array:
    """Z with each leaf at its share of the row's values, by size; rows sum to 1."""
    size = np.sqrt((machine.V.astype(np.float64) ** 2).sum(axis=1))
    weighed = sp.csr_array((size[Z.indices], Z.indices, Z.indptr), shape=Z.shape)
    total = np.add.reduceat(np.append(weighed.data, 0.0), Z.indptr[:-1]) if Z.nnz else 0.0
    total = np.where(np.diff(Z.indptr) > 0, total, 0.0)
    weighed.data /= np.repeat(np.where(total > 0, total, 1.0), np.diff(Z.indptr))
    return weighed


@dataclass(frozen=True, repr=False)
class Neighbours:
    """Training rows and what each of them weighs in the answers to some rows."""

    weights: sp.csr_array
    """(m, training rows); each row sums to 1, where its leaves hold any training row."""
    by: str
    """"mean": a leaf's rows share it equally. "value": leaves count by the size of their value."""
    weighted: Float[np.ndarray, "m k"] | None
    """What the training answers give when weighed so."""
    residual: Float[np.ndarray, "m k"] | None
    """The machine's margins minus `weighted`."""
    reproduces: bool
    """Whether the residual is no more than rounding: leaves are means of these training rows."""
    y: Any = None

    def top(self, row: int = 0, n: int = 10) -> tuple[Int[np.ndarray, "n"], Float[np.ndarray, "n"]]:
        """The training rows that weigh most for one row, and their weights."""
        own = self.weights[[row]]
        order = np.lexsort((own.indices, -own.data))[:n]
        return own.indices[order], own.data[order]

    def __repr__(self) -> str:
        m, n = self.weights.shape
        text = f"Neighbours({m} row{'' if m == 1 else 's'}, {n} training rows, weights by {self.by}"
        if self.residual is not None:
            worst = rounded(np.abs(self.residual).max(initial=0.0))
            text += ", reproduces the margins" if self.reproduces else f", residual up to {worst}"
        return text + ")"


def nearest(
    machine: DecisionMachine,
    X: Any,
    X_train: Any,
    y_train: Any = None,
    *,
    counts: Any = None,
    by: str = "auto",
    n_threads: int | None = None,
) -> Neighbours:
    """See `DecisionMachine.nearest`."""
    if by == "auto":
        by = "mean" if _is_average(machine) else "value"
    if by not in ("mean", "value"):
        raise InputError(DOING, f"by={by!r}", "use 'auto', 'mean' or 'value'")
    Z, T = leaf_indicators(machine, X, n_threads), leaf_indicators(machine, X_train, n_threads)
    T = _counted(T, counts, machine.n_trees)
    held = np.asarray(T.sum(axis=0)).reshape(-1)
    share = np.where(held > 0, 1.0 / np.where(held > 0, held, 1.0), 0.0)
    if by == "mean":
        # Trees that hold a value for another output only do not share in this one's weights.
        rows = sp.csr_array((Z.data / max(machine.n_trees, 1), Z.indices, Z.indptr), shape=Z.shape)
    else:
        rows = _by_value(machine, Z)
    weights = sp.csr_array((rows @ sp.diags_array(share)) @ T.T)
    weights.sort_indices()
    weighted = residual = None
    reproduces = False
    if y_train is not None:
        Y = _answers(machine, y_train, T.shape[0])
        weighted = np.asarray(weights @ Y)
        margin = coded(machine).margin(features_of(machine, X), n_threads=n_threads).astype(float)
        if weighted.shape[1] == margin.shape[1]:
            residual = margin - weighted
            scale = max(np.abs(margin).max(initial=0.0), np.abs(Y).max(initial=0.0), 1e-300)
            eps = float(max(np.finfo(machine.V.dtype).eps, np.finfo(machine.output.dtype).eps))
            rounding = 16 * eps * np.sqrt(T.shape[0] + machine.n_trees) * scale
            reproduces = bool(by == "mean" and np.abs(residual).max(initial=0.0) <= rounding)
    return Neighbours(weights, by, weighted, residual, reproduces, y_train)


def _is_average(machine: DecisionMachine) -> bool:
    """Whether the answer is a mean over trees."""
    output = machine.output
    return (
        output.aggregate == "sum"
        and output.divisor == machine.n_trees
        and output.scale == 1
        and not np.any(output.base)
        and not machine.is_narrow
    )


def _counted(T: sp.csr_array, counts: Any, n_trees: int) -> sp.csr_array:
    """Training rows as often as each tree was given them."""
    if counts is None:
        return T
    times = np.asarray(counts)
    wanted = (T.shape[0], n_trees)
    if times.shape != wanted or not np.all(times >= 0):
        raise InputError(
            DOING,
            f"counts of shape {times.shape}"
            if times.shape != wanted
            else f"a count of {times[~(times >= 0)][0]}",
            f"give how often each tree drew each row: shape {wanted}, each at least 0",
        )
    found = sp.csr_array((times.astype(np.float64).reshape(-1), T.indices, T.indptr), shape=T.shape)
    found.eliminate_zeros()
    return found


def _answers(machine: DecisionMachine, y: Any, n: int) -> Float[np.ndarray, "n k"]:
    """The training answers as the leaves hold them: numbers, or a 1 at the class."""
    answers = np.asarray(y)
    if len(answers) != n:
        raise InputError(DOING, f"{len(answers)} answers for {n} rows", "give one for each row")
    classes = machine.output.classes
    if classes is not None:
        if len(classes) > 1:
            raise UnsupportedModelError(
                DOING, "a machine with several targets", "give no answers, or one target's machine"
            )
        labels = classes[0]
        known = np.isin(answers, labels)
        if not np.all(known):
            raise InputError(
                DOING,
                f"the label {answers[~known][0]!r}",
                f"use the machine's labels: {', '.join(map(repr, labels[:8].tolist()))}",
            )
        order = np.argsort(labels)
        at = order[np.searchsorted(labels, answers, sorter=order)]
        return np.eye(len(labels))[at]
    try:
        return answers.astype(np.float64).reshape(n, -1)
    except (TypeError, ValueError):
        raise InputError(DOING, "answers that are not numbers", "give y as numbers") from None
