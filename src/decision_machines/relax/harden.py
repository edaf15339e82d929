"""From a trained module back to a machine, and how far the two agree."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch

from ..errors import InputError

if TYPE_CHECKING:
    from ..machine import DecisionMachine
    from .module import SoftMachine


def harden(net: SoftMachine, *, axis_aligned: bool = False) -> DecisionMachine:
    """The machine whose tests are sgn(S z - t) and whose leaves hold V, as trained.

    Slopes, temperature and learned keys have no place in a machine and are left behind.

    Parameters
    ----------
    net
        A module made by `DecisionMachine.soften`. Untrained, it hardens to the machine it came
        from, bit for bit, wherever its soft thresholds stood; a test that was trained gets the
        threshold at which its gate is one half.
    axis_aligned
        Whether a learned S keeps only the largest weight of each test, so that the machine reads
        one column per test. Otherwise weights stay as they are: an oblique machine, unless every
        test reads one column with weight 1.
    """
    machine = net.machine
    changes: dict[str, Any] = {}
    is_start = net.is_start().cpu().numpy()
    t = np.where(is_start, machine.t, net.t.detach().cpu().double().numpy())
    selection = machine.selection
    if net.selection.kind != "fixed":
        selection, t = _selection(net, t, axis_aligned)
    V = _kept(net.leaves.V, machine.V)
    if machine.linear is not None:
        changes["linear"] = replace(
            machine.linear,
            intercept=_kept(net.leaves.intercept, machine.linear.intercept),
            coefficient=_kept(net.leaves.coefficient, machine.linear.coefficient),
        )
    head = net.leaves.head.cpu().numpy()
    hard = replace(
        machine,
        selection=selection,
        t=thresholds_rounded_down(t, machine.columns.dtype),
        V=V,
        **changes,
    )
    return hard.mask(np.flatnonzero(head == 0)) if np.any(head == 0) else hard


def _kept(part: torch.Tensor, was: np.ndarray) -> np.ndarray:
    """A part in the dtype of what it was; untouched entries come back bit for bit."""
    now = part.detach().cpu().double().numpy()
    start = torch.from_numpy(np.array(was)).to(part.dtype).double().numpy()
    return np.where(now == start, was, now.astype(was.dtype))


def thresholds_rounded_down(t: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """t in the columns' dtype, rounded down: z ≤ t stays true of the same z."""
    with np.errstate(over="ignore"):
        found = t.astype(dtype)
    return np.where(found > t, np.nextafter(found, dtype.type(-np.inf)), found)


def _selection(
    net: SoftMachine, t: np.ndarray, axis_aligned: bool
) -> tuple[np.ndarray | sp.csr_array, np.ndarray]:
    dtype = net.machine.columns.dtype
    S = net.selection.weights().detach().cpu().double().numpy()
    largest = np.abs(S).argmax(1) if S.size else np.zeros(len(S), np.int64)
    if axis_aligned and S.size:
        weight = S[np.arange(len(S)), largest]
        # w z ≤ t is z ≤ t / w, and a test without weight answers the same for every row.
        never = np.where(t >= 0, np.inf, -np.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            return largest.astype(np.int32), _positive(weight, t, never)
    is_one_hot = np.all(np.count_nonzero(S, axis=1) == 1) and np.all(S.max(1, initial=0) == 1)
    if is_one_hot and not net.machine.is_oblique:
        return largest.astype(np.int32), t
    return sp.csr_array(S.astype(dtype)), t


def _positive(weight: np.ndarray, t: np.ndarray, never: np.ndarray) -> np.ndarray:
    """t / w for positive weights; a negative weight would turn the test round."""
    if np.any(weight < 0):
        j = int(np.argmax(weight < 0))
        raise InputError(
            "hardening to one column per test",
            f"test {j}'s largest weight is negative ({weight[j]:.3g})",
            "harden without axis_aligned=True, to an oblique machine",
        )
    return np.where(weight > 0, t / np.where(weight > 0, weight, 1.0), never)


@dataclass(frozen=True)
class Agreement:
    """How alike a module and a machine answer on the same rows."""

    n_rows: int
    leaves: float
    """Share of rows × trees where the leaf of the largest weight is the exit leaf."""
    answers: float | None
    """Share of rows with the same class; None where nothing is classified."""
    margin_mean: float
    margin_max: float
    """Mean and largest absolute difference of margins."""
    exit_weight: float
    """Mean weight that the module gives to the exit leaf."""

    def __str__(self) -> str:
        classes = "" if self.answers is None else f", {self.answers:.2%} of the classes"
        return (
            f"{self.n_rows} rows: soft and hard agree on {self.leaves:.2%} of the leaves{classes}; "
            f"margins differ by {self.margin_mean:.3g} on average, {self.margin_max:.3g} at most; "
            f"exit leaves hold {self.exit_weight:.2%} of the weight"
        )


def agreement(net: SoftMachine, X: Any, machine: DecisionMachine | None = None) -> Agreement:
    """Compare a module with its hardened machine (or the given one) on rows X.

    X is what the module takes: a tensor of features.
    """
    hard = net.harden() if machine is None else machine
    net._check(X)
    kept = np.flatnonzero(net.leaves.head.cpu().numpy() != 0)
    was_training = net.training
    net.eval()  # without the noise of forms that draw
    try:
        with torch.no_grad():
            margin, weights = net._margin(X.reshape(-1, X.shape[-1]), True)
    finally:
        net.train(was_training)
    assert weights is not None
    rows = X.detach().reshape(-1, X.shape[-1]).cpu().numpy()
    exits = hard.apply(rows)
    by_tree = [net.by_tree(weights)[tree].cpu() for tree in kept]
    best = [np.asarray(w.argmax(-1)) for w in by_tree]
    on_exit = [
        np.asarray(w.gather(-1, torch.from_numpy(exits[:, i : i + 1].astype(np.int64))))
        for i, w in enumerate(by_tree)
    ]
    hard_margin = hard.margin(rows)
    gap = np.abs(margin.cpu().double().numpy() - hard_margin)
    return Agreement(
        n_rows=len(rows),
        leaves=float(np.mean([b == exits[:, i] for i, b in enumerate(best)])) if best else 1.0,
        answers=_same_classes(net, margin, hard, rows),
        margin_mean=float(gap.mean()) if gap.size else 0.0,
        margin_max=float(gap.max()) if gap.size else 0.0,
        exit_weight=float(np.mean(on_exit)) if on_exit else 1.0,
    )


def _same_classes(
    net: SoftMachine, margin: torch.Tensor, hard: DecisionMachine, rows: np.ndarray
) -> float | None:
    from .links import link_named

    output = hard.output
    if output.classes is None:
        return None
    spans = list(zip(output.groups, output.groups[1:], strict=False))
    link = link_named(output.link)
    both = []
    for answer in (margin.detach().cpu(), torch.from_numpy(hard.margin(rows))):
        parts = [link(answer[:, a:b], *output.link_params) for a, b in spans]
        both.append([p[:, 0] > 0.5 if p.shape[1] == 1 else p.argmax(1) for p in parts])
    same = [(a == b).double().mean().item() for a, b in zip(*both, strict=True)]
    return float(np.mean(same))


def harden_heads(net: Any, *, axis_aligned: bool = False) -> DecisionMachine:
    """A machine of a multi-head module, W^V and W^O multiplied into its values."""
    hard = harden(net, axis_aligned=axis_aligned)
    eye = torch.eye(net.W_Q.shape[-1], dtype=net.W_Q.dtype, device=net.W_Q.device)
    if not (
        torch.equal(net.W_Q, eye.expand_as(net.W_Q))
        and torch.equal(net.W_K, eye.expand_as(net.W_K))
    ):
        raise InputError(
            "hardening attention heads",
            "W^Q or W^K was trained: a test then mixes others and a leaf has no template",
            "train t, V, W_V and W_O only, or keep the module as it is",
        )
    c = net.W_V.shape[-1]
    W_O = net.W_O.detach().reshape(-1, c, net.machine.n_outputs)
    into = (net.W_V.detach() @ W_O).cpu().double().numpy()
    start = type(net)(net.machine, net.form, net.options)
    if torch.equal(start.W_V, net.W_V) and torch.equal(start.W_O, net.W_O):
        return hard
    kept = np.flatnonzero(net.leaves.head.cpu().numpy() != 0)
    V = np.einsum("lc,lck->lk", hard.V.astype(np.float64), into[kept][hard.trees.of_leaf])
    trees = replace(hard.trees, feeds=None)
    return replace(hard, V=V.astype(hard.V.dtype), trees=trees)
