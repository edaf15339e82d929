"""The steps of training soft trees that classify, with the gradient written out.

`complete.train_complete` does the same for any loss, by autograd; here the loss is known, the
negative log-likelihood of p · softmax(V), and so is its gradient. A step of small trees is hundreds
of tiny operations there, and their overhead takes most of the time: written out in NumPy, in memory
that every step uses again, it takes a quarter of it. The tests hold the one to the other.

Parameters and gradients each lie in one vector: the tests' weights, (J, R, n + 1) with minus the
threshold as weight of a column of ones, then the leaves' logits, (R, L, K).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..adam import BETAS, Batches
from ..complete import GROW, with_ones

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from ..watch import Watch
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
    """Parameters, Adam's memory, and room for one step."""

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
        self.shape = R, J, L, K, n
        self.X = with_ones(X).float().numpy()
        self.target = np.ascontiguousarray(target.float().numpy())
        self.batches = Batches(len(X), batch_size, torch.Generator().manual_seed(seed))
        m = min(len(X), batch_size)
        n_weights = J * R * (n + 1)
        self.theta, self.gradient, self.first, self.second, self.rate = (
            np.zeros(n_weights + R * L * K, np.float32) for _ in range(5)
        )
        self.W, self.dW, rate_W = (
            part[:n_weights].reshape(J, R, n + 1) for part in (self.theta, self.gradient, self.rate)
        )
        self.V, self.dV, rate_V = (
            part[n_weights:].reshape(R, L, K) for part in (self.theta, self.gradient, self.rate)
        )
        self.W[:, :, :n] = batch.trees.W.detach().transpose(0, 1).numpy()
        self.W[:, :, n] = -batch.trees.t.detach().t().numpy()
        self.V[:] = batch.V.detach().numpy()

        def of_recipes(name: str) -> np.ndarray:
            found = [getattr(recipe, name) for recipe in batch.recipes]
            return np.array(found, np.float32)

        lr = of_recipes("lr")
        rate_W[:], rate_V[:] = lr[:, None], lr[:, None, None]
        self.decay, self.l1 = lr * of_recipes("decay"), lr * of_recipes("l1")
        self.is_unit = np.array([recipe.normalised for recipe in batch.recipes])
        self.log_from, self.log_to = np.log(of_recipes("slopes")).T
        self.count = 0
        self.g, self.dq = np.empty((2, J, R, m), np.float32)
        self.nodes = np.empty((J + L, R, m), np.float32)
        self.difference, self.E = np.empty((2, max(L // 2, 1), R, m), np.float32)
        self.E_leaves = np.empty((R, L, m), np.float32)
        self.work = np.empty_like(self.theta)

    def step(self, share: float) -> float:
        """One step, at this share of all; the mean loss before it."""
        grown = min(1.0, max(0.0, (share - GROW[0]) / (GROW[1] - GROW[0])))
        beta = np.exp(self.log_from + grown * (self.log_to - self.log_from))
        rows = self.batches.next()
        rows = rows if isinstance(rows, slice) else rows.numpy()
        loss = self._differentiate(self.X[rows], self.target[:, rows], beta)
        now = 0.5 * (1.0 + math.cos(math.pi * share))
        self._adam(now)
        self._hold(now)
        return loss

    def _differentiate(self, X: np.ndarray, target: np.ndarray, beta: np.ndarray) -> float:
        """Write the gradient of all parameters at these rows."""
        R, J, L, _, n = self.shape
        m = len(X)
        slopes = beta[:, None]
        g, dq, nodes = self.g, self.dq, self.nodes
        rows = torch.from_numpy(X)
        q = torch.from_numpy(g).view(J * R, m)
        torch.mm(torch.from_numpy((self.W * slopes).reshape(J * R, n + 1)), rows.t(), out=q)
        q.sigmoid_()
        nodes[0] = 1.0
        width = 1
        while width <= J:
            level, below = slice(width - 1, 2 * width - 1), nodes[2 * width - 1 : 4 * width - 1]
            np.multiply(nodes[level], g[level], out=below[1::2])
            np.subtract(nodes[level], below[1::2], out=below[0::2])
            width *= 2
        p = nodes[J:].transpose(1, 0, 2)
        S = np.exp(self.V - self.V.max(2, keepdims=True))
        S /= S.sum(2, keepdims=True)
        answer = np.matmul(S.transpose(0, 2, 1), p)
        answer += LEAST
        G = target / answer
        G *= -1.0 / m
        loss = -float(np.sum(np.log(answer, out=answer) * target)) / (m * R)
        np.matmul(S, G, out=self.E_leaves)
        dS = np.matmul(p, G.transpose(0, 2, 1))
        np.multiply(S, dS - np.sum(S * dS, axis=2, keepdims=True), out=self.dV)
        # g (1 - g), then times P (E_right - E_left), level by level from below.
        np.multiply(g, g, out=dq)
        np.subtract(g, dq, out=dq)
        E = self.E_leaves.transpose(1, 0, 2)
        # Levels take turns in two places: one is read while the other is written.
        here, there = self.E.reshape(-1), self.E_leaves.reshape(-1)
        width = L // 2
        while width:
            level = slice(width - 1, 2 * width - 1)
            difference = self.difference[:width]
            np.subtract(E[1::2], E[0::2], out=difference)
            above = here[: width * R * m].reshape(width, R, m)
            np.multiply(g[level], difference, out=above)
            above += E[0::2]
            E, here, there = above, there, here
            np.multiply(difference, nodes[level], out=difference)
            dq[level] *= difference
            width //= 2
        dW = torch.from_numpy(self.dW).view(J * R, n + 1)
        torch.mm(torch.from_numpy(dq).view(J * R, m), rows, out=dW)
        self.dW *= slopes
        return loss

    def _adam(self, now: float) -> None:
        self.count += 1
        b1, b2 = BETAS
        gradient, first, second, work = self.gradient, self.first, self.second, self.work
        if not math.isfinite(float(np.dot(gradient, gradient))):
            np.nan_to_num(gradient, copy=False, nan=0.0, posinf=0.0, neginf=0.0)
        np.subtract(gradient, first, out=work)
        work *= 1 - b1
        first += work
        second *= b2
        np.multiply(gradient, gradient, out=work)
        work *= 1 - b2
        second += work
        np.sqrt(second, out=work)
        work += 1e-8
        np.divide(first, work, out=work)
        work *= self.rate
        work *= now * math.sqrt(1 - b2**self.count) / (1 - b1**self.count)
        self.theta -= work

    def _hold(self, now: float) -> None:
        """Decay, soft thresholds and lengths of the tests' weights; thresholds are left alone."""
        n = self.shape[4]
        W = self.W[:, :, :n]
        if self.decay.any():
            W *= 1 - now * self.decay[:, None]
        if self.l1.any():
            size = np.maximum(np.abs(W) - now * self.l1[:, None], 0)
            np.copysign(size, W, out=W)
        if self.is_unit.any():
            length = np.sqrt(np.einsum("jrn,jrn->jr", W, W))
            W /= np.where(self.is_unit, np.maximum(length, 1e-12), 1)[:, :, None]

    def write_back(self) -> None:
        """Give the batch what was learned."""
        n = self.shape[4]

        def into(tensor: Any, values: np.ndarray) -> None:
            with torch.no_grad():
                tensor.copy_(torch.from_numpy(np.ascontiguousarray(values)))

        into(self.batch.trees.W, self.W[:, :, :n].transpose(1, 0, 2))
        into(self.batch.trees.t, -self.W[:, :, n].T)
        into(self.batch.V, self.V)
