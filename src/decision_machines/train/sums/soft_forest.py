"""A forest of soft oblique trees, all trained together from nothing.

Every test weighs all columns that have no gaps; leaf values of all trees are summed into margins.
Among boosted trees it is the stranger: it is smooth, and sees sums of features at once.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine import Columns, DecisionMachine, Trees
from ...machine.soft import soft_trees

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from ...machine import Assembly
    from ..rows import Rows
    from .goal import SumGoal

TREES, DEPTH = 48, 5
STEPS, BATCH, FEWEST_EPOCHS, MOST_EPOCHS, PATIENCE = 8000, 256, 20, 80, 15
RATE, DECAY = 0.02, 0.01


def soft_forest(
    rows: Rows,
    stop: Rows,
    goal: SumGoal,
    *,
    without: tuple[int, ...] = (),
    seed: int = 0,
    n_threads: int = 1,
    time_limit: float = np.inf,
) -> Assembly | None:
    """Soft trees of rows, as many epochs as the rows to stop by find good.

    Parameters
    ----------
    without
        Features that are not numbers, and left out.

    Returns
    -------
    Assembly
        Of soft trees; None where fewer than two columns have no gaps.
    """
    used = np.array([f for f in range(rows.X.shape[1]) if f not in without], np.int64)
    for part in (rows, stop):
        used = used[np.isfinite(part.X[:, used]).all(axis=0)]
    mean, spread = rows.X[:, used].mean(axis=0), rows.X[:, used].std(axis=0)
    used, mean, spread = (a[spread > 0] for a in (used, mean, spread))
    if len(used) < 2:
        return None
    found = _Forest(rows, stop, goal, (used, mean, spread), seed, n_threads).train(time_limit)
    W, b, V, base, scale = found
    S = W / spread
    machine = _machine(S, -b + S @ mean, V * scale, used, rows.X.shape[1], goal, base)
    # Products are taken in float64; after that float32 tells apart all that counts.
    return soft_trees(machine, np.ones(len(b), np.float32))


class _Forest:
    """Parameters in units of standardised columns, and their training."""

    def __init__(
        self,
        rows: Rows,
        stop: Rows,
        goal: SumGoal,
        scaling: tuple[np.ndarray, np.ndarray, np.ndarray],
        seed: int,
        n_threads: int,
    ) -> None:
        import torch

        from ...relax.paths import Paths
        from ..tune.objectives import objective_for

        self.goal, self.n_threads = goal, n_threads
        used, mean, spread = scaling
        probe = goal.constant(1, np.zeros(goal.n_outputs))
        self.loss = objective_for(probe, None if goal.is_classes else goal.objective).loss
        self.base = goal.best_constant(rows)
        is_scaled = goal.kind in ("squared", "absolute", "quantile", "huber")
        y = rows.y.reshape(len(rows), -1)[:, 0]
        self.scale = float(np.std(y)) or 1.0 if is_scaled else 1.0

        def tensors(part: Rows) -> tuple[Any, Any, Any]:
            x = torch.from_numpy(((part.X[:, used] - mean) / spread).astype(np.float32))
            y = torch.from_numpy(np.asarray(part.y, np.float64).reshape(len(part), -1)[:, :1])
            return x, y, torch.from_numpy(part.w / part.w.mean())

        self.train_rows, self.stop_rows = tensors(rows), tensors(stop)
        rng = torch.Generator().manual_seed(seed)
        n_tests, n_leaves = TREES * (2**DEPTH - 1), TREES * 2**DEPTH
        W = torch.randn((n_tests, len(used)), generator=rng)
        # A test looks at a few columns first of all, and stands where rows are.
        W = W * (torch.rand(W.shape, generator=rng) < max(0.3, 3.0 / len(used)))
        W = 2.0 * W / W.norm(dim=1, keepdim=True).clamp(min=1e-3)
        at = torch.randint(len(rows), (n_tests,), generator=rng)
        b = -(W * self.train_rows[0][at]).sum(1)
        V = 0.01 * torch.randn((n_leaves, goal.n_outputs), generator=rng)
        self.parts = [part.requires_grad_(True) for part in (W, b, V)]
        self.paths = Paths(*_complete())
        self.rng = rng

    def margin(self, x: Any) -> Any:
        from ...relax import native_soft

        W, b, V = self.parts
        q = (W @ x.t() + b[:, None]).t()
        return native_soft.soft_tree_sum(q, self.paths, V, n_threads=self.n_threads)

    def losses(self, x: Any, y: Any) -> Any:
        import torch

        margin = self.margin(x).double() * self.scale + torch.from_numpy(self.base)
        return self.loss(margin, y)

    def train(self, time_limit: float) -> tuple[Any, ...]:
        import torch

        begin = time.perf_counter()
        x, y, w = self.train_rows
        epochs = int(np.clip(STEPS * BATCH / len(x), FEWEST_EPOCHS, MOST_EPOCHS))
        adam = torch.optim.AdamW(self.parts, lr=RATE, weight_decay=DECAY, betas=(0.9, 0.99))
        unit = max(self._judged(), 1e-12)
        best, kept, since = np.inf, [part.detach().clone() for part in self.parts], 0
        for epoch in range(epochs):
            order = torch.randperm(len(x), generator=self.rng)
            batches = order.split(BATCH)
            for i, index in enumerate(batches):
                progress = (epoch + i / len(batches)) / epochs
                for group in adam.param_groups:
                    group["lr"] = RATE * 0.5 * (1 + np.cos(np.pi * progress))
                adam.zero_grad()
                loss = (self.losses(x[index], y[index]) * w[index]).mean() / unit
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.parts, 1.0)
                adam.step()
            judged = self._judged()
            since += 1
            if judged < best:
                best, since = judged, 0
                kept = [part.detach().clone() for part in self.parts]
            if since >= PATIENCE or time.perf_counter() - begin > time_limit:
                break
        return *(part.double().numpy() for part in kept), self.base, self.scale

    def _judged(self) -> float:
        import torch

        x, y, w = self.stop_rows
        with torch.no_grad():
            parts = [self.losses(*pair) for pair in zip(x.split(4096), y.split(4096), strict=True)]
            found = float((torch.cat(parts) * w).mean())
        return found if np.isfinite(found) else np.inf


def _complete() -> tuple[Int[np.ndarray, "J 2"], Int[np.ndarray, "T+1"]]:
    """The children and the starts of complete trees, level by level."""
    n = 2**DEPTH - 1
    child = 2 * np.arange(n)[:, None] + np.array([1, 2])
    leaf = child - n
    one = np.where(child < n, child, ~leaf)
    tree = np.arange(TREES)[:, None, None]
    children = np.where(one >= 0, one + n * tree, one - (n + 1) * tree)
    return children.reshape(-1, 2), n * np.arange(TREES + 1)


def _machine(
    S: Float[np.ndarray, "J c"],
    t: Float[np.ndarray, "J"],
    V: Float[np.ndarray, "L k"],
    used: Int[np.ndarray, "c"],
    n_features: int,
    goal: SumGoal,
    base: Float[np.ndarray, "k"],
) -> DecisionMachine:
    import scipy.sparse as sp

    children, starts = _complete()
    whole = np.zeros((len(S), n_features))
    whole[:, used] = S
    return DecisionMachine(
        columns=Columns(n_features),
        selection=sp.csr_array(whole),
        t=t,
        missing=np.full(len(t), -1, np.int8),
        children=children.astype(np.int32),
        V=V,
        trees=Trees(starts),
        output=goal.output(base),
        source="soft oblique forest",
    )
