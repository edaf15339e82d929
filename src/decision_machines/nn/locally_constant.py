"""`LocallyConstantNetwork`: oblique trees from the derivatives of ReLU networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from ..errors import InputError
from .complete import class_output, complete_machine, value_output
from .sizes import MOST_DEPTH, check_choice, check_rows, check_size
from .standardise import Standardise

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

    from ..machine import DecisionMachine

DOING = "building a locally constant network"
RUNNING = "running a locally constant network"
LEAVES = ("values", "logits")
MOST_AT_ONCE = 2**22
"""Numbers of the derivatives that stand in memory while leaves are asked for their values."""


class LocallyConstantNetwork(nn.Module):
    """(..., in_features) → (..., out_features), constant wherever the same neurons are active.

    A chain of `depth` ReLU neurons, each reading the input and all neurons before it. Which of
    them are active is a path in a tree: given the ones before, a neuron is linear in x, so "is it
    active?" is an oblique test. The derivatives of the neurons by x are constant on each of the
    2^depth patterns, and the answer is a function of these derivatives alone: few weights, shared
    by all tests and leaves of an oblique tree (lee2020oblique).

    In training the step of an active neuron is mixed with a sigmoid, ``hardness`` parts of the
    step: raise it from 0 to 1 as training goes on. In `eval`, and at hardness 1, steps are steps.
    *Exact: yes*; `harden` gives the tree that the network is, up to the rounding of a neuron that
    is within rounding of 0.

    Parameters
    ----------
    in_features, out_features
        Widths.
    depth
        Neurons of each chain: M neurons are a tree of 2^M leaves.
    trees
        Chains whose answers are added up.
    hidden
        Width of a hidden layer between derivatives and answer; 0 for a linear function of them.
    leaves
        "values"; "logits" where answers are the logits of classes, so that the machine's
        predictions are classes.
    device, dtype
        Of the parameters.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> net = LocallyConstantNetwork(3, 1, depth=4).double().eval()
    >>> x = torch.randn(100, 3, dtype=torch.float64)
    >>> machine = net.harden()
    >>> machine
    DecisionMachine(1 tree, 16 leaves, depth 4, 3 features, oblique; LocallyConstantNetwork)
    >>> bool(np.allclose(machine.margin(x.numpy()), net(x).detach().numpy()))
    True
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        depth: int = 6,
        *,
        trees: int = 1,
        hidden: int = 0,
        leaves: str = "values",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = check_size(DOING, "in_features", in_features)
        self.out_features = check_size(DOING, "out_features", out_features)
        self.depth = check_size(DOING, "depth", depth, most=MOST_DEPTH)
        self.trees = check_size(DOING, "trees", trees)
        self.hidden = check_size(DOING, "hidden", hidden, least=0)
        self.leaves = check_choice(DOING, "leaves", leaves, LEAVES)
        T, M, n = self.trees, self.depth, self.in_features
        self.inputs = Standardise(n)
        self.W = nn.Parameter(torch.empty(T, M, n))
        self.b = nn.Parameter(torch.empty(T, M))
        self.U = nn.Parameter(torch.empty(T, M, M))  # entry (i, k): from neuron k < i to neuron i
        width = self.hidden or self.out_features
        self.H = nn.Parameter(torch.empty(T, M, width, n))
        self.c = nn.Parameter(torch.empty(T, width))
        if self.hidden:
            self.last = nn.Parameter(torch.empty(T, self.hidden, self.out_features))
        self.base = nn.Parameter(torch.empty(self.out_features))
        self._hardness = 0.0
        self.reset_parameters()
        self.to(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Start anew, from torch's own random numbers."""
        n, M = self.in_features, self.depth
        nn.init.normal_(self.W, std=n**-0.5)
        nn.init.normal_(self.b, std=0.3)
        nn.init.normal_(self.U, std=M**-0.5)
        # Derivatives have squares of 1 on average: M of them are half active.
        nn.init.normal_(self.H, std=(2.0 / M) ** 0.5)
        for part in (self.c, self.base):
            nn.init.zeros_(part)
        if self.hidden:
            nn.init.normal_(self.last, std=(2.0 / (self.hidden * self.trees)) ** 0.5)

    @property
    def hardness(self) -> float:
        """The share of the step in a neuron's activity while training, from 0 to 1."""
        return self._hardness

    @hardness.setter
    def hardness(self, value: float) -> None:
        if not (isinstance(value, (int, float)) and 0 <= value <= 1):
            raise InputError("setting hardness", f"hardness={value!r}", "use a number from 0 to 1")
        self._hardness = float(value)

    def forward(self, x: Float[Tensor, "... n"]) -> Float[Tensor, "... k"]:
        """The network's answer."""
        check_rows(RUNNING, x, self.in_features, self.W.device)
        z = self.inputs(x.reshape(-1, self.in_features))
        active = self._activity(z)
        out = self._answers(active) + self.base
        return out.reshape(*x.shape[:-1], self.out_features)

    @torch.no_grad()
    def pattern(self, x: Float[Tensor, "... n"]) -> Bool[Tensor, "... T M"]:
        """Which neurons are active."""
        check_rows(RUNNING, x, self.in_features, self.W.device)
        z = self.inputs.measured(x.reshape(-1, self.in_features))
        active = self._activity(z, 1.0) > 0
        return active.reshape(*x.shape[:-1], self.trees, self.depth)

    def _activity(self, z: Float[Tensor, "m n"], hardness: float | None = None) -> Tensor:
        """(m, T, M): 1 where a neuron is active and 0 where it is not, or between."""
        if hardness is None:
            hardness = self._hardness if self.training else 1.0
        T, M, n = self.W.shape
        own = (z @ self.W.reshape(T * M, n).t()).reshape(-1, T, M) + self.b
        active: list[Tensor] = []
        outputs: list[Tensor] = []
        for i in range(M):
            a = own[:, :, i]
            if i:
                a = a + (torch.stack(outputs, -1) * self.U[:, i, :i]).sum(-1)
            step = (a > 0).to(a.dtype)
            gate = step if hardness == 1 else hardness * step + (1 - hardness) * a.sigmoid()
            active.append(gate)
            outputs.append(gate * a)
        return torch.stack(active, -1)

    def _mixes(self, active: Float[Tensor, "m T M"], U: Tensor) -> Float[Tensor, "m T M M"]:
        """A with derivative of neuron i = Σ_k A_ik W_k, before its own step."""
        m, T, M = active.shape
        eye = torch.eye(M, dtype=active.dtype, device=active.device)
        rows: list[Tensor] = []
        for i in range(M):
            row = eye[i].expand(m, T, M)
            if i:
                through = U[:, i, :i] * active[:, :, :i]
                row = row + (through[..., None] * torch.stack(rows, 2)).sum(2)
            rows.append(row)
        return torch.stack(rows, 2)

    def _answers(
        self, active: Float[Tensor, "m T M"], chains: slice = slice(None)
    ) -> Float[Tensor, "m k"]:
        """A function of the derivatives of the active neurons, Σ_i H_i (active_i dz_i/dx).

        The derivatives are mixes of M weight vectors, so H meets these first: no row needs n
        numbers. The base is not in it.
        """
        mixes = self._mixes(active, self.U[chains]) * active[..., None]
        seen = torch.einsum("tihn,tkn->tikh", self.H[chains], self.W[chains])
        inner = torch.einsum("mtik,tikh->mth", mixes, seen * self.in_features**-0.5)
        inner = inner + self.c[chains]
        if not self.hidden:
            total: Tensor = inner.sum(1) / self.trees**0.5
            return total
        return torch.einsum("mth,thk->mk", inner.relu(), self.last[chains])

    @torch.no_grad()
    def harden(self) -> DecisionMachine:
        """The oblique machine of 2^depth leaves a tree that the network is.

        Every pattern is walked through once, in float64.
        """
        twin = type(self)(
            self.in_features,
            self.out_features,
            self.depth,
            trees=self.trees,
            hidden=self.hidden,
            leaves=self.leaves,
            dtype=torch.float64,
        )
        twin.load_state_dict({k: v.cpu() for k, v in self.state_dict().items()})
        twin.eval()
        return _machine(twin)

    def extra_repr(self) -> str:
        return (
            f"{self.in_features}, {self.out_features}, depth={self.depth}, trees={self.trees}, "
            f"hidden={self.hidden}, leaves={self.leaves!r}"
        )


def _machine(net: LocallyConstantNetwork) -> DecisionMachine:
    T, M = net.trees, net.depth
    mean, spread = net.inputs.mean.numpy(), net.inputs.spread.numpy()
    S, t, V = [], [], []
    patterns = _patterns(M)
    for tree in range(T):
        weights, offset = _tests(net, tree)
        raw = weights / spread
        S.append(raw)
        t.append(raw @ mean - offset)
        V.append(_leaf_values(net, tree, patterns))
    is_classes = net.leaves == "logits"
    output = (class_output if is_classes else value_output)(net.out_features)
    return complete_machine(
        np.concatenate(S),
        np.concatenate(t),
        np.concatenate(V),
        net.in_features,
        M,
        output=output,
        source="LocallyConstantNetwork",
    )


def _patterns(M: int) -> Float[Tensor, "L M"]:
    """Which neurons are active in each leaf, leaves from left to right."""
    leaf = torch.arange(2**M)[:, None]
    return (leaf >> torch.arange(M - 1, -1, -1) & 1).double()


def _tests(
    net: LocallyConstantNetwork, tree: int
) -> tuple[Float[np.ndarray, "J n"], Float[np.ndarray, "J"]]:
    """Neuron i given the activity of those before: its weights by z and its offset."""
    W, b, U = net.W[tree], net.b[tree], net.U[tree]
    weights, offsets = [], []
    for i in range(net.depth):
        active = _patterns(i) if i else torch.zeros(1, 0, dtype=torch.float64)
        # Coefficients of W_0..W_i in neuron i, for every pattern of those before.
        mix = torch.zeros(len(active), i + 1, i + 1, dtype=torch.float64)
        for at in range(i + 1):
            mix[:, at, at] = 1.0
            if at:
                through = U[at, :at] * active[:, :at]
                mix[:, at] += (through[..., None] * mix[:, :at]).sum(1)
        weights.append(mix[:, i] @ W[: i + 1])
        offsets.append(mix[:, i] @ b[: i + 1])
    return torch.cat(weights).numpy(), torch.cat(offsets).numpy()


def _leaf_values(
    net: LocallyConstantNetwork, tree: int, patterns: Float[Tensor, "L M"]
) -> Float[np.ndarray, "L k"]:
    """The network's own answer to each pattern of one chain, and the chain's share of the base."""
    size = max(1, MOST_AT_ONCE // net.depth**2)
    own = slice(tree, tree + 1)
    found = [net._answers(part[:, None], own) for part in patterns.split(size)]
    return (torch.cat(found) + net.base / net.trees).numpy()
