"""Soft oblique trees whose leaves hold class probabilities, trained side by side.

A tree answers p · softmax(V): an average of its leaves' probabilities by the weights over leaves.
The loss is the negative log-likelihood of targets that may be soft themselves: the answers of a
`Teacher`, an average of trees that were trained before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..complete import CompleteTrees
from .descent import train_classes
from .tao import HardTrees

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jaxtyping import Float
    from torch import Tensor

    from ...progress import Watch
    from .recipes import Recipe


@dataclass
class SoftBatch:
    """R soft trees and what each was trained by."""

    trees: CompleteTrees
    V: Float[Tensor, "R L K"]
    """Logits of the leaves' probabilities."""
    beta: Float[Tensor, "R"]
    recipes: list[Recipe]

    @classmethod
    def start(
        cls, n_features: int, n_classes: int, depth: int, recipes: Sequence[Recipe], seed: int
    ) -> SoftBatch:
        """Trees as they are before training."""
        R = len(recipes)
        trees = CompleteTrees(
            n_features, depth, R, normalised=[recipe.normalised for recipe in recipes], seed=seed
        )
        made = torch.Generator().manual_seed(seed + 1)
        V = 0.1 * torch.randn(R, trees.n_leaves, n_classes, generator=made)
        beta = torch.tensor([recipe.slopes[1] for recipe in recipes])
        return cls(trees, V.requires_grad_(), beta, list(recipes))

    def train(
        self,
        X: Float[Tensor, "m n"],
        target: Float[Tensor, "K m"],
        *,
        n_steps: int,
        batch_size: int,
        seed: int,
        watch: Watch | None = None,
    ) -> None:
        """Train all trees; `target` is weighted: its columns sum to the rows' weights."""
        train_classes(
            self, X, target, n_steps=n_steps, batch_size=batch_size, seed=seed, watch=watch
        )

    @torch.no_grad()
    def probabilities(self, X: Float[Tensor, "m n"]) -> Float[Tensor, "R K m"]:
        """The soft answer of every tree."""
        return self.trees.answers(X, self.V.softmax(-1), self.beta)

    def hard(self) -> tuple[HardTrees, Float[np.ndarray, "R L K"]]:
        """The trees without their softness, rows of W of length 1; and the leaves' probabilities.

        A test that has lost all its weights sends every row the way its threshold says.
        """
        W, t = self.trees.W.detach(), self.trees.t.detach()
        length = W.norm(dim=-1)
        length = torch.where(length > 1e-9, length, torch.ones_like(length))
        P = self.V.detach().double().softmax(-1).numpy()
        found = HardTrees(
            (W / length[..., None]).double().numpy(),
            (t / length).double().numpy(),
            P.argmax(2),
            np.zeros(t.shape, bool),
            (length * self.beta[:, None]).double().numpy(),
        )
        return found, P


@dataclass(frozen=True)
class Teacher:
    """The average answer of some trees of a batch."""

    batch: SoftBatch
    which: list[int]

    def __call__(self, X: Float[Tensor, "m n"]) -> Float[Tensor, "K m"]:
        """(K, m) probabilities."""
        part = SoftBatch(
            self.batch.trees.keep(self.which),
            self.batch.V.detach()[self.which],
            self.batch.beta[self.which],
            [self.batch.recipes[i] for i in self.which],
        )
        return part.probabilities(X).mean(0)


def taught(
    teacher: Callable[[Tensor], Tensor],
    X: Float[Tensor, "m n"],
    target: Float[Tensor, "K m"],
    *,
    n_rows: int,
    seed: int,
) -> tuple[Float[Tensor, "M n"], Float[Tensor, "K M"]]:
    """Rows to learn from a teacher: the rows themselves, and as many mixtures of two of them.

    A row's target is halfway between its own and the teacher's answer; a mixture, up to halfway
    from one row to another, has the teacher's alone. Rows are repeated until there are `n_rows`.
    """
    m = len(X)
    made = torch.Generator().manual_seed(seed)
    repeats = max(1, n_rows // m)
    weight = target.sum(0)
    own = 0.5 * target + 0.5 * teacher(X) * weight
    first, second = (torch.randint(m, (repeats * m,), generator=made) for _ in range(2))
    share = 0.5 * torch.rand(repeats * m, 1, generator=made)
    mixed = torch.lerp(X[first], X[second], share)
    answers = teacher(mixed) * weight[first]
    rows = torch.cat([X.repeat(repeats, 1), mixed])
    return rows, torch.cat([own.repeat(1, repeats), answers], 1)
