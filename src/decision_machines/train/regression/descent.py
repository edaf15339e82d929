"""Trees with linear leaves trained by gradients: rows go one way, gradients go both.

Soft trees average the functions of all their leaves, and what they learn is lost when they are
hardened. So training is straight-through: the forward pass is the hard tree's own answer, the
gradient is that of gates of slope β. A leaf's function is the sum of one that all leaves share and
its own departure from it, and the departure decays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..complete import CompleteTrees, each, train_complete
from .leaf_ridge import LeafSums, root_function

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float

    from ...progress import Watch
    from .scaled_rows import ScaledRows

BATCH_SIZE = 256
SHARED_RATE = 0.3
"""Learning rate of the shared function, relative: it starts where all rows' regression is."""


@dataclass(frozen=True)
class LeafRecipe:
    """How tests and leaves are held small while they learn.

    Parameters
    ----------
    decay
        Of the tests' weights.
    leaf_decay
        Of the leaves' departures from the function that they share.
    """

    name: str
    lr: float = 0.03
    decay: float = 1.0
    leaf_decay: float = 3.0
    slopes: tuple[float, float] = (1.0, 10.0)


RECIPES = (
    LeafRecipe("free leaves", decay=0.3, leaf_decay=0.3),
    LeafRecipe("held leaves", decay=1.0, leaf_decay=3.0),
    LeafRecipe("close leaves", decay=1.0, leaf_decay=10.0),
    LeafRecipe("fast, held leaves", lr=0.1, decay=1.0, leaf_decay=3.0),
)
"""Measured in docs/decisions/0009-linear-leaves-and-soft-trees.md: each is the best on some set."""


@dataclass(frozen=True)
class Learned:
    """R trees of one depth as training left them."""

    W: Float[np.ndarray, "R J v"]
    t: Float[np.ndarray, "R J"]
    slope: Float[np.ndarray, "R"]
    A: Float[np.ndarray, "R L p q"]
    recipes: list[LeafRecipe]


def descend(
    rows: ScaledRows,
    depth: int,
    recipes: Sequence[LeafRecipe],
    *,
    n_steps: int,
    seed: int,
    watch: Watch | None = None,
) -> Learned:
    """Trees, one for each entry of `recipes`, trained side by side."""
    R, (m, p), q = len(recipes), rows.U.shape, rows.y.shape[1]
    trees = CompleteTrees(rows.Z.shape[1], depth, R, spread=0.3, seed=seed)
    Z, U, y, weight = (
        torch.from_numpy(part).float() for part in (rows.Z, rows.U, rows.y, rows.weight)
    )
    everywhere = np.zeros(m, np.int64)
    root = root_function(LeafSums.of(rows.U, rows.y, rows.weight, everywhere, 1), 1e-2)[0]
    made = torch.Generator().manual_seed(seed + 1)
    own = 0.01 * torch.randn(R, trees.n_leaves, q, p, generator=made)
    own.requires_grad_()
    # Kept in units of its rate, so that one rate serves all parameters of the leaves.
    shared = (torch.from_numpy(root.T).float() / SHARED_RATE).expand(R, 1, q, p).clone()
    shared.requires_grad_()

    def functions() -> torch.Tensor:
        return own + SHARED_RATE * shared

    def loss(weights: torch.Tensor, at: Any) -> torch.Tensor:
        values = (functions().reshape(-1, p) @ U[at].t()).view(R, trees.n_leaves, q, -1)
        error = (weights[:, :, None] * values).sum(1) - y[at].t()
        return (error.square().sum(1) * weight[at]).mean(1)

    lr = each([recipe.lr for recipe in recipes], R, trees.dtype)
    leaf_decay = each([recipe.leaf_decay for recipe in recipes], R, trees.dtype)

    @torch.no_grad()
    def decay(step: int, _: torch.Tensor) -> None:
        now = 0.5 * (1.0 + math.cos(math.pi * step / n_steps))
        own.mul_((1 - now * lr * leaf_decay).clamp_min(0.0)[:, None, None, None])

    beta = train_complete(
        trees,
        Z,
        loss,
        [own, shared],
        n_steps=n_steps,
        batch_size=min(BATCH_SIZE, m),
        lr=lr,
        slopes=tuple([r.slopes[i] for r in recipes] for i in (0, 1)),  # type: ignore[arg-type]
        decay=[r.decay for r in recipes],
        straight_through=True,
        seed=seed + 2,
        watch=watch,
        at_step=decay,
    )
    with torch.no_grad():
        A = functions().transpose(2, 3).double().numpy()
    W, t = (part.detach().double().numpy() for part in (trees.W, trees.t))
    return Learned(W, t, beta.double().numpy(), A, list(recipes))
