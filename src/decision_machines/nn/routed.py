"""`RoutedFeedForward`: a tree picks one small network for each row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from ..errors import InputError
from .hard_routed import Arrays, HardRouted
from .sizes import check_choice, check_rows, check_size
from .standardise import Standardise

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

DOING = "building a routed feed-forward layer"
RUNNING = "running a routed feed-forward layer"
ANSWERS = ("classes", "values")


class RoutedFeedForward(nn.Module):
    """(..., in_features) → (..., out_features): in_features → hidden → out_features by one expert.

    An oblique tree of the given depth sends each row to one of 2^depth experts, networks with one
    hidden layer each. Until `freeze` the answer is the experts' mixture by the soft tree's weights;
    afterwards each row runs down one path and through one expert, and training moves the experts
    alone. `harden` gives a `HardRouted`, which runs the chosen path only, by a native kernel.
    `fit_routed` is a whole recipe.

    Where it pays and where not: `docs/guides/trees-in-networks.md`.

    Parameters
    ----------
    in_features, out_features
        Widths.
    depth
        Of the tree; 0 for a single expert, a plain network.
    hidden
        Width of each expert.
    defer
        Width of a dense network in_features → defer → out_features that answers for rows of which
        the expert is not certain; 0 for none. Of classes only.
    certainty
        Rows whose expert gives no class this probability are deferred.
    answers
        "classes": log-probabilities; the mixture is one of likelihoods. "values": numbers; the
        mixture is an average.
    device, dtype
        Of the parameters.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> layer = RoutedFeedForward(20, 3, depth=2, hidden=4)
    >>> x = torch.randn(5, 20)
    >>> layer(x).exp().sum(-1).round(decimals=4).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    >>> fast = layer.freeze().eval().harden()
    >>> bool(torch.allclose(fast(x), layer(x), atol=1e-5))
    True
    >>> fast.multiply_adds()  # two tests of 20, 20 × 4 and 4 × 3
    132.0
    """

    is_frozen: Tensor

    def __init__(
        self,
        in_features: int,
        out_features: int,
        depth: int = 4,
        hidden: int = 16,
        *,
        defer: int = 0,
        certainty: float = 0.95,
        answers: str = "classes",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = check_size(DOING, "in_features", in_features)
        self.out_features = check_size(DOING, "out_features", out_features)
        self.depth = check_size(DOING, "depth", depth, least=0, most=10)
        self.hidden = check_size(DOING, "hidden", hidden)
        self.defer = check_size(DOING, "defer", defer, least=0)
        self.answers = check_choice(DOING, "answers", answers, ANSWERS)
        self.certainty = certainty
        if self.defer and self.answers != "classes":
            raise InputError(
                DOING, "defer for values, which have no certainty", "use answers='classes'"
            )
        E, n, h, k = 2**self.depth, self.in_features, self.hidden, self.out_features
        self.gates = Standardise(E - 1)
        self.W = nn.Parameter(torch.empty(E - 1, n))
        self.t = nn.Parameter(torch.empty(E - 1))
        self.log_slope = nn.Parameter(torch.empty(E - 1))
        self.first = nn.Parameter(torch.empty(E, h, n))
        self.first_bias = nn.Parameter(torch.empty(E, h))
        self.second = nn.Parameter(torch.empty(E, k, h))
        self.second_bias = nn.Parameter(torch.empty(E, k))
        self.dense = (
            nn.Sequential(nn.Linear(n, self.defer), nn.ReLU(), nn.Linear(self.defer, k))
            if self.defer
            else None
        )
        self.register_buffer("is_frozen", torch.tensor(False))
        self.reset_parameters()
        self.to(device=device, dtype=dtype)

    @property
    def certainty(self) -> float:
        """Rows whose expert gives no class this probability are deferred."""
        return self._certainty

    @certainty.setter
    def certainty(self, value: float) -> None:
        if not (isinstance(value, (int, float)) and 0 <= value <= 1):
            raise InputError(DOING, f"certainty={value!r}", "use a number from 0 to 1")
        self._certainty = float(value)

    def reset_parameters(self) -> None:
        """Start anew, from torch's own random numbers."""
        n, h = self.in_features, self.hidden
        nn.init.normal_(self.W, std=n**-0.5)
        nn.init.normal_(self.t, std=0.3)
        nn.init.zeros_(self.log_slope)
        for part, fan in (
            (self.first, n),
            (self.first_bias, n),
            (self.second, h),
            (self.second_bias, h),
        ):
            nn.init.uniform_(part, -1 / math.sqrt(fan), 1 / math.sqrt(fan))

    def freeze(self) -> RoutedFeedForward:
        """From now on each row takes one path, and the tree learns nothing more."""
        self.is_frozen.fill_(True)
        for part in (self.W, self.t, self.log_slope):
            part.requires_grad_(False)
        return self

    # ------------------------------------------------------------------ from rows to answers

    def forward(self, x: Float[Tensor, "... n"]) -> Float[Tensor, "... k"]:
        """Log-probabilities of classes, or values.

        Deferred to the dense network in `eval`, and only where the tree is frozen.
        """
        rows = self._rows(x)
        if not self.is_frozen:
            out = self._mixture(rows)
        else:
            out = self.experts(rows, self.route(rows))
            if self.dense is not None and not self.training:
                out = self._deferred(rows, out)
        return out.reshape(*x.shape[:-1], self.out_features)

    @torch.no_grad()
    def route(self, x: Float[Tensor, "... n"]) -> Int[Tensor, "..."]:
        """The expert of each row: the leaf that its path ends in."""
        right = (self._gate_values(self._rows(x), is_measured=True) > self.t).long()
        at = torch.zeros_like(right[:, :1]) if self.depth else right.new_zeros(len(right), 1)
        for _ in range(self.depth):
            at = 2 * at + 1 + right.gather(1, at)
        expert: Tensor = at[:, 0] - (2**self.depth - 1)
        return expert.reshape(x.shape[:-1])

    def experts(self, rows: Float[Tensor, "m n"], route: Int[Tensor, "m"]) -> Float[Tensor, "m k"]:
        """The answer of each row's own expert, an expert at a time."""
        order = route.argsort(stable=True)
        counts = torch.bincount(route, minlength=2**self.depth).tolist()
        parts = []
        for e, own in enumerate(rows[order].split(counts)):
            if len(own):
                inner = nn.functional.linear(own, self.first[e], self.first_bias[e]).relu()
                parts.append(nn.functional.linear(inner, self.second[e], self.second_bias[e]))
        if not parts:
            return rows.new_zeros(0, self.out_features)
        out = torch.cat(parts)[order.argsort()]
        return out.log_softmax(-1) if self.answers == "classes" else out

    def _deferred(self, rows: Tensor, out: Float[Tensor, "m k"]) -> Float[Tensor, "m k"]:
        assert self.dense is not None
        unsure = (out.max(-1).values < math.log(max(self.certainty, 1e-30))).nonzero()[:, 0]
        if not len(unsure):
            return out
        answers: Tensor = self.dense(rows[unsure])
        return out.index_copy(0, unsure, answers.log_softmax(-1))

    def _mixture(self, rows: Float[Tensor, "m n"]) -> Float[Tensor, "m k"]:
        E, h, n = self.first.shape
        inner = (rows @ self.first.reshape(E * h, n).t()).reshape(-1, E, h)
        inner = (inner + self.first_bias).relu()
        every = torch.einsum("meh,ekh->mek", inner, self.second) + self.second_bias
        log_p = self._log_weights(rows)[..., None]
        if self.answers == "classes":
            return (log_p + every.log_softmax(-1)).logsumexp(1)
        return (log_p.exp() * every).sum(1)

    def _log_weights(self, rows: Float[Tensor, "m n"]) -> Float[Tensor, "m E"]:
        """log of the soft tree's weights, experts from left to right."""
        q = (self._gate_values(rows) - self.t) * self.log_slope.exp()
        right = nn.functional.logsigmoid(q)
        left = right - q
        found = q.new_zeros(len(rows), 1)
        for level in range(self.depth):
            span = slice(2**level - 1, 2 ** (level + 1) - 1)
            both = torch.stack([found + left[:, span], found + right[:, span]], 2)
            found = both.flatten(1)
        return found

    def _gate_values(self, rows: Tensor, is_measured: bool = False) -> Float[Tensor, "m J"]:
        if is_measured:
            return self.gates.measured(rows @ self.W.t())
        gates: Tensor = self.gates(rows @ self.W.t())
        return gates

    def _rows(self, x: Tensor) -> Float[Tensor, "m n"]:
        check_rows(RUNNING, x, self.in_features, self.t.device)
        return x.reshape(-1, self.in_features)

    # ------------------------------------------------------------------ one path for each row

    @torch.no_grad()
    def harden(self) -> HardRouted:
        """The layer as it is now, for inference: each row's own path alone, natively on a CPU."""
        mean, spread, t = (p.double() for p in (self.gates.mean, self.gates.spread, self.t))
        dense = None
        if self.dense is not None:
            first, second = (part for part in self.dense if isinstance(part, nn.Linear))
            dense = _arrays(
                first.weight.t()[None], first.bias[None], second.weight.t()[None], second.bias[None]
            )
        return HardRouted(
            _array(self.W),
            _array(mean + spread * t),
            _arrays(
                self.first.transpose(1, 2),
                self.first_bias,
                self.second.transpose(1, 2),
                self.second_bias,
            ),
            dense,
            self.certainty,
            self.answers == "classes",
        )

    def extra_repr(self) -> str:
        return (
            f"{self.in_features}, {self.out_features}, depth={self.depth}, hidden={self.hidden}, "
            f"defer={self.defer}, answers={self.answers!r}, frozen={bool(self.is_frozen)}"
        )


def _array(part: Tensor) -> np.ndarray:
    found: np.ndarray = part.detach().float().cpu().contiguous().numpy().copy()
    return found


def _arrays(*parts: Tensor) -> Arrays:
    a, b, c, d = map(_array, parts)
    return a, b, c, d
