"""The steps of training soft trees that classify, in native code.

`complete.train_complete` does the same for any loss, by autograd; here the loss is known, the
negative log-likelihood of p · softmax(V), and so is its gradient: native/soft/class_step.hpp has it
written out. The tests hold the one to the other.

Parameters, gradient and Adam's memory each lie in one vector: the tests' weights, (R, J, n + 1)
with minus the threshold as weight of a column of ones, then the leaves' logits, (R, L, K).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch

from ... import _native
from ...run.engines.processor import target as native_target
from ..adam import BETAS, Batches
from ..complete import GROW

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from ...progress import Watch
    from .soft_batch import SoftBatch

LEAST = 1e-7
"""Added to probabilities under a logarithm."""


def train_classes(
    batch: SoftBatch,
    X: Float[Tensor, "m n"],
    target: Float[Tensor, "K m"],
    *,
    n_steps: int,
    batch_size: int,
    seed: int = 0,
    watch: Watch | None = None,
) -> None:
    """Adam with a cosine to 0 on all trees of the batch, by each one's recipe.

    Paper: cites `hehn2019end`: soft oblique trees trained end to end, steeper step by step.

    Interrupted, it leaves the trees as far as they have come.
    """
    descent = ClassDescent(batch, X, target, batch_size, seed)
    try:
        for step in range(n_steps):
            loss = descent.step(step / n_steps)
            if watch is not None:
                watch.step(loss=loss)
    finally:
        descent.write_back()


class ClassDescent:
    """Parameters, Adam's memory, and the rows to learn from."""

    def __init__(
        self,
        batch: SoftBatch,
        X: Float[Tensor, "m n"],
        target: Float[Tensor, "K m"],
        batch_size: int,
        seed: int,
    ) -> None:
        self.batch = batch
        R, J, n = batch.trees.W.shape
        _, L, K = batch.V.shape
        self.X, self.target = (of_rows(part) for part in (X, target.t()))
        self.batches = Batches(len(X), batch_size, torch.Generator().manual_seed(seed))
        self.trees = _native.ClassTrees(native_target(), R, batch.trees.depth, n, K)
        n_weights = R * J * (n + 1)
        self.theta, self.gradient, self.first, self.second = np.zeros(
            (4, n_weights + R * L * K), np.float32
        )
        self.W = self.theta[:n_weights].reshape(R, J, n + 1)
        self.V = self.theta[n_weights:].reshape(R, L, K)
        self.W[:, :, :n] = batch.trees.W.detach().numpy()
        self.W[:, :, n] = -batch.trees.t.detach().numpy()
        self.V[:] = batch.V.detach().numpy()

        def of_recipes(name: str) -> np.ndarray:
            return np.array([getattr(recipe, name) for recipe in batch.recipes], np.float32)

        self.rate = of_recipes("lr")
        self.decay, self.l1 = self.rate * of_recipes("decay"), self.rate * of_recipes("l1")
        self.is_unit = of_recipes("normalised").astype(np.uint8)
        self.log_from, self.log_to = np.log(of_recipes("slopes")).T
        self.count = 0

    def step(self, share: float) -> float:
        """One step, at this share of all; the mean loss before it."""
        grown = min(1.0, max(0.0, (share - GROW[0]) / (GROW[1] - GROW[0])))
        beta = np.exp(self.log_from + np.float32(grown) * (self.log_to - self.log_from))
        rows = self.batches.next()
        rows = np.arange(len(self.X)) if isinstance(rows, slice) else rows.numpy()
        loss = self.trees.gradient(
            self.X, self.target, rows, beta, LEAST, self.theta, self.gradient
        )
        self.count += 1
        b1, b2 = BETAS
        now = 0.5 * (1.0 + math.cos(math.pi * share))
        unbiased = np.float32(now * math.sqrt(1 - b2**self.count) / (1 - b1**self.count))
        self.trees.update(
            self.gradient,
            self.theta,
            self.first,
            self.second,
            rate=unbiased * self.rate,
            decay=np.float32(now) * self.decay,
            threshold=np.float32(now) * self.l1,
            is_unit=self.is_unit,
            keep_first=b1,
            keep_second=b2,
        )
        return loss

    def write_back(self) -> None:
        """Give the batch what was learned."""
        n = self.X.shape[1]
        with torch.no_grad():
            self.batch.trees.W.copy_(torch.from_numpy(self.W[:, :, :n]))
            self.batch.trees.t.copy_(torch.from_numpy(-self.W[:, :, n]))
            self.batch.V.copy_(torch.from_numpy(self.V))


def of_rows(values: Tensor) -> np.ndarray:
    """Single precision, row after row in memory."""
    return np.ascontiguousarray(values.detach().float().numpy())
