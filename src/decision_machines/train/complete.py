"""Complete oblique trees, soft, many at once: the part of training that goes by gradients.

R trees of one depth are trained side by side as one batch, each from its own start and with its own
learning rate, slopes and penalties. Tests are in level order: the children of test j are 2j + 1 and
2j + 2, a leaf is counted from the left. Rows come last in every array, (R, J, m), so that a level
of all trees is a handful of long vector operations.

What the leaves hold is not decided here. `train_complete` hands the weights over leaves to a loss,
and trains whatever parameters that loss uses beside the tests::

    trees = CompleteTrees(n_features, depth=4, n_restarts=8, seed=0)
    V = torch.zeros(8, trees.n_leaves, requires_grad=True)

    def loss(p, rows):                            # p (R, L, m), rows: indices into X
        answer = torch.einsum("rlm,rl->rm", p, V)
        return ((answer - y[rows]) ** 2).mean(1)  # (R,): one loss for each tree

    train_complete(trees, X, loss, [V], n_steps=1000, batch_size=256)
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any

import torch

from .adam import Adam, Batches, fitting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jaxtyping import Float, Int
    from torch import Tensor

    from ..progress import Watch


MOST_AT_ONCE = 2**24
"""Weights over leaves that may stand in memory while trees are asked."""
GROW = (0.0, 0.9)
"""Shares of the steps between which slopes grow, where nothing else is said."""


class Weigh(torch.autograd.Function):
    """From rows to weights over leaves, forwards and backwards level by level.

    Paper: Eq. `soft`. With E the gradient at the leaves, averaged upwards by the gates, the
    gradient of a test's q is P (E_right - E_left) g (1 - g): no gate is divided by, and nothing
    is formed that is larger than the weights of all nodes.

    `space` holds the large arrays from one step to the next: fresh memory for each of them, given
    back and asked for again by every step, took longer than the arithmetic.
    """

    @staticmethod
    def forward(
        ctx: Any, W: Tensor, t: Tensor, X: Tensor, beta: Tensor, is_hard: bool, space: Space
    ) -> Tensor:
        R, J, n = W.shape
        # Thresholds are the weights of a column of ones, and slopes are in the weights: one product
        # makes q, and one product makes the gradients of both.
        whole = torch.cat([W, -t[:, :, None]], -1).mul_(beta).transpose(0, 1).reshape(J * R, n + 1)
        q = space.take("q", (J * R, len(X)), W)
        torch.mm(whole, X.t(), out=q)
        q = q.view(J, R, len(X))
        nodes = weigh_nodes(q, is_hard, space)
        ctx.save_for_backward(X, beta)
        ctx.space, ctx.is_hard, ctx.q, ctx.nodes = space, is_hard, q, nodes
        return nodes[J:].transpose(0, 1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, E: Tensor) -> tuple[Any, ...]:
        X, beta = ctx.saved_tensors
        J, R, m = ctx.q.shape
        dq = weigh_back(E.transpose(0, 1), ctx.q, ctx.nodes, ctx.is_hard, ctx.space)
        whole = (dq.view(J * R, m) @ X).view(J, R, -1).transpose(0, 1) * beta
        return whole[:, :, :-1], -whole[:, :, -1], None, None, None, None


class Space:
    """Arrays that are used again by the next step of the same shape."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, tuple[int, ...]], Tensor] = {}

    def take(self, name: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
        found = self.kept.get((name, shape))
        if found is None or found.dtype != like.dtype:
            found = self.kept[name, shape] = like.new_empty(shape)
        return found


def weigh_nodes(q: Tensor, is_hard: bool, space: Space) -> Float[Tensor, "J+L R m"]:
    """The weight of every node, in level order, the leaves last; soft, q becomes the gates.

    Nodes come first: what one operation reads of a level is then one stretch of memory.
    """
    J, R, m = q.shape
    gates = (q > 0).to(q.dtype) if is_hard else q.sigmoid_()
    nodes = space.take("nodes", (2 * J + 1, R, m), q)
    nodes[0] = 1.0
    width = 1
    while width <= J:
        first = width - 1
        P = nodes[first : first + width]
        below = nodes[first + width : first + 3 * width].view(width, 2, R, m)
        torch.mul(P, gates[first : first + width], out=below[:, 1])
        torch.sub(P, below[:, 1], out=below[:, 0])
        width *= 2
    return nodes


def weigh_back(E: Tensor, q: Tensor, nodes: Tensor, is_hard: bool, space: Space) -> Tensor:
    """The gradient (J, R, m) of q from that of the leaves' weights (L, R, m)."""
    J, R, m = q.shape
    g = q.sigmoid() if is_hard else q
    gates = (q > 0).to(q.dtype) if is_hard else q
    dq = torch.addcmul(g, g, g, value=-1, out=space.take("dq", (J, R, m), q))
    width = (J + 1) // 2
    while width:
        span = slice(width - 1, 2 * width - 1)
        pair = E.unflatten(0, (width, 2))
        difference = space.take("difference", (width, R, m), q)
        torch.sub(pair[:, 1], pair[:, 0], out=difference)
        E = space.take("E", (width, R, m), q)
        torch.addcmul(pair[:, 0], gates[span], difference, out=E)
        dq[span] *= difference.mul_(nodes[span])
        width //= 2
    return dq


class CompleteTrees:
    """The tests of R complete oblique trees: q = β (W x - t), level by level.

    Parameters
    ----------
    n_features, depth, n_restarts
        Sizes: n, J = 2^depth - 1 tests and R trees.
    normalised
        Whether rows of W keep length 1, so that β alone says how steep a test is; one answer for
        all trees or one each.
    scale
        Length of the rows of W at the start where they are not normalised, one or one each.
    spread
        Thresholds start normal with this deviation.
    seed
        Of the starting directions, which are uniform on the sphere.

    Attributes
    ----------
    W (R, J, n), t (R, J)
        The parameters.
    """

    def __init__(
        self,
        n_features: int,
        depth: int,
        n_restarts: int,
        *,
        normalised: bool | Sequence[bool] = False,
        scale: float | Sequence[float] = 1.0,
        spread: float = 0.5,
        seed: int = 0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.depth, self.n_tests, self.n_leaves = depth, 2**depth - 1, 2**depth
        self.n_restarts, self.dtype = n_restarts, dtype
        made = torch.Generator().manual_seed(seed)
        W = torch.randn(n_restarts, self.n_tests, n_features, generator=made, dtype=dtype)
        t = torch.randn(n_restarts, self.n_tests, generator=made, dtype=dtype) * spread
        self.is_normalised = each(normalised, n_restarts, torch.bool)[:, None, None]
        length = torch.where(self.is_normalised, 1.0, each(scale, n_restarts, dtype)[:, None, None])
        W = unit(W) * length
        self.W = W.requires_grad_()
        self.t = (t * length[:, :, 0]).requires_grad_()

    @torch.no_grad()
    def queries(self, X: Float[Tensor, "m n"]) -> Float[Tensor, "R J m"]:
        """q = W x - t, without its slope."""
        R, J, n = self.W.shape
        q = torch.addmm(self.t.reshape(R * J, 1), self.W.reshape(R * J, n), X.t(), beta=-1)
        return q.view(R, J, len(X))

    def weights(
        self,
        X: Float[Tensor, "m n"],
        beta: float | Tensor = 1.0,
        straight_through: bool = False,
        space: Space | None = None,
    ) -> Float[Tensor, "R L m"]:
        """The weights over leaves, each row's summing to 1, with gradients to W and t.

        Parameters
        ----------
        beta
            Slope of the tests: a number, or one for each tree.
        straight_through
            Whether rows go one way only, right where q > 0, and gradients come through σ's slope.
        space
            Arrays to write to; what an earlier call wrote there is lost.
        """
        slopes = each(beta, self.n_restarts, self.dtype)[:, None, None]
        # torch does not annotate `apply`.
        found: Float[Tensor, "R L m"] = Weigh.apply(  # type: ignore[no-untyped-call]
            self.W, self.t, with_ones(X), slopes, straight_through, space or Space()
        )
        return found

    @torch.no_grad()
    def answers(
        self, X: Float[Tensor, "m n"], values: Float[Tensor, "R L k"], beta: Tensor
    ) -> Float[Tensor, "R k m"]:
        """The average of the leaves' values by their weights, for every tree."""
        size = max(1, MOST_AT_ONCE // (2 * self.n_restarts * self.n_leaves))
        values = values.transpose(1, 2)
        parts = [torch.bmm(values, self.weights(x, beta)) for x in X.split(size)]
        return torch.cat(parts, -1)

    def keep(self, which: Sequence[int]) -> CompleteTrees:
        """These trees alone, as they are now."""
        kept = copy.copy(self)
        kept.W, kept.t = (part.detach()[which].requires_grad_() for part in (self.W, self.t))
        kept.is_normalised, kept.n_restarts = self.is_normalised[which], len(which)
        return kept

    @torch.no_grad()
    def exit_leaves(self, X: Float[Tensor, "m n"]) -> Int[Tensor, "R m"]:
        """The leaf that every row exits at in every tree, hard; a tie goes left."""
        is_right = (self.queries(X) > 0).to(torch.int64)
        at = torch.zeros_like(is_right[:, 0])
        for _ in range(self.depth):
            at = 2 * at + 1 + is_right.gather(1, at[:, None])[:, 0]
        found: Int[Tensor, "R m"] = at - self.n_tests
        return found


def train_complete(
    trees: CompleteTrees,
    X: Float[Tensor, "m n"],
    loss: Callable[[Tensor, Any], Tensor],
    leaf_parameters: Sequence[Tensor],
    *,
    n_steps: int,
    batch_size: int | None = None,
    lr: Any = 0.05,
    lr_leaves: Any = None,
    slopes: tuple[Any, Any] = (1.0, 1.0),
    grow: tuple[float, float] = GROW,
    decay: Any = 0.0,
    l1: Any = 0.0,
    straight_through: bool = False,
    seed: int = 0,
    watch: Watch | None = None,
    at_step: Callable[[int, Tensor], None] | None = None,
) -> Float[Tensor, "R"]:
    """Adam with a cosine to 0 on the tests and on what the loss keeps in the leaves.

    Parameters
    ----------
    loss
        loss(p, rows) gives one loss for each tree, (R,); p (R, L, m) are the weights over leaves of
        the rows X[rows], in memory that the next step writes over. `rows` is an index tensor, or
        slice(None) where a step takes all rows.
    leaf_parameters
        Tensors that the loss uses, with the trees as first dimension. They are neither decayed nor
        normalised; add penalties to the loss.
    batch_size
        Rows in a step; None takes all of them.
    lr, lr_leaves, decay, l1
        Rates at the start, decoupled decay and L1 (by soft threshold) of W: a number, or one for
        each tree.
    slopes, grow
        β at the start and at the end, a number or one for each tree, and the shares of the steps
        between which it grows geometrically.
    at_step
        Called as at_step(step, β) after each step, for snapshots.

    Returns
    -------
    Tensor
        β at the end, one for each tree.
    """
    R = trees.n_restarts
    made = torch.Generator().manual_seed(seed)
    log_from, log_to = (each(s, R, trees.dtype).log() for s in slopes)
    rate, decays, l1s = (each(v, R, trees.dtype)[:, None, None] for v in (lr, decay, l1))
    leaf_rate = rate if lr_leaves is None else each(lr_leaves, R, trees.dtype)[:, None, None]
    parameters = [trees.W, trees.t, *leaf_parameters]
    rates = [rate, rate[:, :, 0], *(fitting(leaf_rate, p) for p in leaf_parameters)]
    adam = Adam(parameters, rates)
    batches = Batches(len(X), batch_size, made)
    is_decayed, is_l1 = bool((decays > 0).any()), bool((l1s > 0).any())
    is_normalised = bool(trees.is_normalised.any())
    beta, space, X = log_from.exp(), Space(), with_ones(X)
    for step in range(n_steps):
        share = step / n_steps
        grown = min(1.0, max(0.0, (share - grow[0]) / max(grow[1] - grow[0], 1e-9)))
        beta = (log_from + grown * (log_to - log_from)).exp()
        rows = batches.next()
        slopes_now = beta[:, None, None]
        p = Weigh.apply(  # type: ignore[no-untyped-call]  # see `weights`
            trees.W, trees.t, X[rows], slopes_now, straight_through, space
        )
        losses = loss(p, rows)
        gradients = torch.autograd.grad(losses.sum(), parameters)
        now = 0.5 * (1.0 + math.cos(math.pi * share))
        adam.step(gradients, now)
        with torch.no_grad():
            if is_decayed:
                trees.W.mul_(1 - now * rate * decays)
            if is_l1:
                trees.W.copy_(
                    torch.nn.functional.relu(trees.W.abs() - now * rate * l1s) * trees.W.sign()
                )
            if is_normalised:
                trees.W.copy_(torch.where(trees.is_normalised, unit(trees.W), trees.W))
        if watch is not None:
            watch.step(loss=float(losses.detach().mean()))
        if at_step is not None:
            at_step(step, beta)
    return beta


def each(value: Any, n: int, dtype: torch.dtype) -> Tensor:
    """One entry for each tree: the number given n times, or what was given."""
    return torch.as_tensor(value, dtype=dtype).expand(n).clone()


def unit(W: Tensor) -> Tensor:
    """Rows of length 1; a row of zeros stays."""
    found: Tensor = W / W.norm(dim=-1, keepdim=True).clamp_min(1e-12)
    return found


def with_ones(X: Tensor) -> Tensor:
    """X and a last column of ones, which thresholds are the weights of."""
    return torch.cat([X, X.new_ones((len(X), 1))], 1)
