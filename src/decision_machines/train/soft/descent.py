"""Soft oblique trees trained to answer softly: averages of leaves by the weights over them.

Their tests start steep enough to tell rows apart at once and grow steeper while they learn, so that
the tree is nearly hard at the end: its soft answer is the better one, its hard answer is near.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..complete import CompleteTrees, train_complete
from ..oblique.descent import train_classes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float
    from torch import Tensor

    from ...progress import Watch

BATCH_SIZE = 256
GOING_ON = 0.3
"""Learning rate of trees that go on, relative to that of their recipe."""


@dataclass(frozen=True)
class SoftRecipe:
    """How tests' weights are held, and how steep tests are: at the start, and in the end.

    Parameters
    ----------
    length
        Of the rows of W at the start.
    """

    name: str
    lr: float = 0.1
    decay: float = 0.1
    length: float = 3.0
    slopes: tuple[float, float] = (1.0, 4.0)
    l1: float = 0.0
    normalised: bool = False


RECIPES = (
    SoftRecipe("slow", lr=0.05),
    SoftRecipe("light decay"),
    SoftRecipe("decay", decay=0.3),
    SoftRecipe("strong decay", decay=1.0),
)
"""Measured in docs/decisions/0009-linear-leaves-and-soft-trees.md: each is the best on some set."""


@dataclass
class SoftTrees:
    """R soft trees; leaves hold logits of classes, or numbers."""

    trees: CompleteTrees
    V: Float[Tensor, "R L k"]
    beta: Float[Tensor, "R"]
    recipes: list[Any]
    is_classifier: bool

    @classmethod
    def start(
        cls,
        n_features: int,
        n_values: int,
        depth: int,
        recipes: Sequence[SoftRecipe],
        *,
        is_classifier: bool,
        seed: int,
    ) -> SoftTrees:
        """Trees as they are before training."""
        R = len(recipes)
        trees = CompleteTrees(n_features, depth, R, scale=[r.length for r in recipes], seed=seed)
        made = torch.Generator().manual_seed(seed + 1)
        V = 0.1 * torch.randn(R, trees.n_leaves, n_values, generator=made)
        beta = torch.tensor([recipe.slopes[1] for recipe in recipes])
        return cls(trees, V.requires_grad_(), beta, list(recipes), is_classifier)

    def values(self) -> Float[Tensor, "R L k"]:
        """What the leaves answer: probabilities, or numbers."""
        return self.V.softmax(-1) if self.is_classifier else self.V

    def train(
        self,
        Z: Float[Tensor, "m n"],
        target: Float[Tensor, "k m"],
        weight: Float[Tensor, "m"],
        *,
        n_steps: int,
        seed: int,
        is_going_on: bool = False,
        watch: Watch | None = None,
    ) -> None:
        """Least log-loss, or squared error, over the rows; classes are one-hot in `target`.

        With `is_going_on`, trees that are trained already go on, slowly and as steep as they are.
        """
        learned = self.recipes
        if is_going_on:
            self.recipes = [
                replace(recipe, lr=GOING_ON * recipe.lr, slopes=(recipe.slopes[1],) * 2)
                for recipe in learned
            ]
        try:
            if self.is_classifier:
                train_classes(
                    self,  # type: ignore[arg-type]
                    Z,
                    target * weight,
                    n_steps=n_steps,
                    batch_size=BATCH_SIZE,
                    seed=seed,
                    watch=watch,
                )
            else:
                self._train_numbers(Z, target.contiguous(), weight, n_steps, seed, watch)
        finally:
            self.recipes = learned

    def _train_numbers(
        self,
        Z: Float[Tensor, "m n"],
        target: Float[Tensor, "k m"],
        weight: Float[Tensor, "m"],
        n_steps: int,
        seed: int,
        watch: Watch | None,
    ) -> None:
        def loss(p: Tensor, rows: Tensor) -> Tensor:
            answer = torch.bmm(self.V.transpose(1, 2), p)
            found: Tensor = ((answer - target[:, rows]).square().sum(1) * weight[rows]).mean(1)
            return found

        slopes = np.array([recipe.slopes for recipe in self.recipes])
        train_complete(
            self.trees,
            Z,
            loss,
            [self.V],
            n_steps=n_steps,
            batch_size=BATCH_SIZE,
            lr=[recipe.lr for recipe in self.recipes],
            slopes=(slopes[:, 0], slopes[:, 1]),
            decay=[recipe.decay for recipe in self.recipes],
            seed=seed,
            watch=watch,
        )

    def keep(self, which: int) -> SoftTrees:
        """One of the trees, a copy."""
        V = self.V.detach()[[which]].clone().requires_grad_()
        trees = self.trees.keep([which])
        return SoftTrees(trees, V, self.beta[[which]], [self.recipes[which]], self.is_classifier)

    @torch.no_grad()
    def answers(self, Z: Float[Tensor, "m n"]) -> Float[np.ndarray, "R k m"]:
        """The soft answer of every tree."""
        return self.trees.answers(Z, self.values(), self.beta).double().numpy()
