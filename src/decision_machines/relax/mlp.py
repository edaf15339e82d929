"""A forest cast as a plain network of two hidden layers, trained on, and taken back.

Paper: cites `EntropyNet`, `welbl2014casting`, `biau2019neural`. The first hidden layer has a unit
for each test, h = sgn(S z - t). The second has a unit for each leaf, which fires where its template
matches: B_i · h is the depth d of leaf i at the exit leaf and at most d - 2 at every other, so
B_i · h - (d - 1) is at least 1 there and at most -1 elsewhere. The last layer holds the values.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn

from ..errors import InputError, UnsupportedModelError
from ..machine.look_ups import check_single_features
from .columns import ColumnReader
from .gaps import Gaps
from .harden import thresholds_rounded_down
from .links import link_named
from .straight_through import straight_through

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jaxtyping import Bool, Float
    from torch import Tensor

    from ..machine import DecisionMachine

DOING = "casting a machine as a network"
HARDENING = "hardening a network"
ACTIVATIONS = ("tanh", "sign", "straight_through")
CONNECTIONS = ("paths", "trees", "all")
PARTS = ("S", "t", "B", "V")
LARGEST = 1 << 28
"""Weights of the second layer that are made at most: 2 GiB in float64."""


class MaskedLinear(nn.Linear):
    """A linear layer in which weights that are masked stay 0.

    Parameters
    ----------
    weight, bias
        What it starts with.
    mask
        Which weights there are; None where all are.
    """

    mask: Tensor | None

    def __init__(
        self,
        weight: Float[Tensor, "out in"],
        bias: Float[Tensor, "out"],
        mask: Bool[Tensor, "out in"] | None,
    ) -> None:
        super().__init__(weight.shape[1], weight.shape[0], device="meta", dtype=weight.dtype)
        self.weight, self.bias = nn.Parameter(weight.clone()), nn.Parameter(bias.clone())
        self.register_buffer("mask", mask, persistent=False)

    def reset_parameters(self) -> None:
        """Nothing is drawn: weights come from a machine."""

    def effective(self) -> Float[Tensor, "out in"]:
        """The weights that act."""
        return self.weight if self.mask is None else self.weight * self.mask

    def forward(self, x: Float[Tensor, "m in"]) -> Float[Tensor, "m out"]:
        return nn.functional.linear(x.to(self.weight.dtype), self.effective(), self.bias)


class TestLayer(MaskedLinear):
    """S z - t for columns that may be missing or infinite.

    A test that reads a NaN answers as the machine's `missing` says, from far away.
    """

    missing: Tensor

    def __init__(
        self,
        weight: Float[Tensor, "J n"],
        bias: Float[Tensor, "J"],
        mask: Bool[Tensor, "J n"] | None,
        missing: Float[Tensor, "J"],
    ) -> None:
        super().__init__(weight, bias, mask)
        self.register_buffer("missing", missing, persistent=False)

    def forward(self, z: Float[Tensor, "m n"]) -> Float[Tensor, "m J"]:
        z = z.to(self.weight.dtype)
        is_nan = z.isnan()
        # Finite, because 0 · inf is NaN; the sum of a few such numbers may still be infinite.
        bound = torch.finfo(z.dtype).max / 4
        known = torch.where(is_nan, torch.zeros_like(z), z.clamp(-bound, bound))
        weight = self.effective()
        q = nn.functional.linear(known, weight, self.bias)
        is_missing = is_nan.to(z.dtype) @ (weight != 0).to(z.dtype).t() > 0
        return torch.where(is_missing | q.isnan(), self.missing * bound, q)


class Signs(nn.Module):
    """-1 or +1, or tanh between them; 0 is -1, because z ≤ t goes left."""

    def __init__(self, activation: str, slope: float) -> None:
        super().__init__()
        self.activation, self.slope = activation, slope

    def forward(self, q: Float[Tensor, "m J"]) -> Float[Tensor, "m J"]:
        hard = torch.where(q > 0, torch.ones_like(q), -torch.ones_like(q))
        if self.activation == "sign":
            return hard
        soft = (self.slope * q).tanh()
        return soft if self.activation == "tanh" else straight_through(hard, soft)

    def extra_repr(self) -> str:
        return f"{self.activation!r}, slope={self.slope:g}"


class Fires(Signs):
    """0 or 1, or (1 + tanh) / 2 between them: whether a leaf is the exit leaf."""

    def forward(self, q: Float[Tensor, "m L"]) -> Float[Tensor, "m L"]:
        return (super().forward(q) + 1) / 2


class Answer(nn.Module):
    """The machine's average, scale, base and link, after the sum."""

    base: Tensor

    def __init__(self, machine: DecisionMachine, output: str, dtype: torch.dtype) -> None:
        super().__init__()
        self.output = machine.output
        late = np.zeros_like(self.output.base) if self.output.base_first else self.output.base
        self.register_buffer("base", torch.from_numpy(late.copy()).to(dtype), persistent=False)
        self.is_response = output == "response"

    def forward(self, total: Float[Tensor, "m k"]) -> Float[Tensor, "m k"]:
        output = self.output
        margin = total / output.divisor * output.scale + self.base
        if not self.is_response:
            return margin
        link = link_named(output.link)
        spans = zip(output.groups, output.groups[1:], strict=False)
        return torch.cat([link(margin[:, a:b], *output.link_params) for a, b in spans], -1)


class ForestNetwork(nn.Sequential):
    """columns → tests → signs → templates → fires → values → answer.

    Made by `DecisionMachine.to_mlp`. Paper: cites `EntropyNet`, `welbl2014casting`,
    `biau2019neural`. The layers are modules of a `Sequential` under these names, so
    ``net.tests.weight`` is S, ``net.templates.weight`` is B and ``net.values.weight`` is Vᵀ. Takes
    (..., n_features) tensors, as softened machines do.

    Exact: yes with the activations "sign" and "straight_through": the leaf of every row is the
    machine's, ties included (for oblique machines up to the rounding of S z); trees are added in
    another order, so that margins of several trees may differ in the last digits. In the limit of
    large slopes with "tanh", but at z = t, where tanh is 0: pass `data`.
    """

    tests: TestLayer
    templates: MaskedLinear
    values: MaskedLinear
    tests_weight_start: Tensor
    tests_bias_start: Tensor
    values_weight_start: Tensor
    values_bias_start: Tensor

    def __init__(
        self,
        machine: DecisionMachine,
        activation: str,
        connections: str,
        slope: tuple[float, float],
        learn: tuple[str, ...],
        output: str,
        dtype: torch.dtype,
        gaps: Gaps,
    ) -> None:
        trees = machine.trees

        def tensor(array: Any) -> Tensor:
            return torch.from_numpy(np.array(array, np.float64)).to(dtype)

        S, B = machine.S.toarray(), machine.B.toarray()
        at = gaps.thresholds(dtype)
        t = (at.soft if activation == "tanh" else at.hard).clamp(-_far(dtype), _far(dtype))
        V = _wide(machine)
        is_fed = np.arange(machine.n_outputs)[:, None] == trees.feeds[trees.of_leaf]
        masks = {
            "paths": (S != 0, B != 0, is_fed if machine.is_narrow else None),
            "trees": (None, trees.of_leaf[:, None] == trees.of_test[None], None),
            "all": (None, None, None),
        }[connections]
        of_tests, of_templates, of_values = (
            None if mask is None else torch.from_numpy(np.array(mask)) for mask in masks
        )
        depth = np.asarray(machine.structure.leaf_depth)
        base = machine.output.base if machine.output.base_first else np.zeros(machine.n_outputs)
        missing = tensor(machine.missing)
        layers = OrderedDict(
            columns=ColumnReader(machine.columns),
            tests=TestLayer(tensor(S), -t, of_tests, missing),
            signs=Signs(activation, slope[0]),
            templates=MaskedLinear(tensor(B), tensor(1.0 - depth), of_templates),
            fires=Fires(activation, slope[1]),
            values=MaskedLinear(tensor(V.T), tensor(base), of_values),
            answer=Answer(machine, output, dtype),
        )
        super().__init__(layers)
        self.machine = machine
        for part, parameters in (
            ("S", [self.tests.weight]),
            ("t", [self.tests.bias]),
            ("B", [self.templates.weight, self.templates.bias]),
            ("V", [self.values.weight, self.values.bias]),
        ):
            for parameter in parameters:
                parameter.requires_grad_(part in learn)
        for name, layer in (("tests", self.tests), ("values", self.values)):
            for part in ("weight", "bias"):
                start = getattr(layer, part).detach().clone()
                self.register_buffer(f"{name}_{part}_start", start, persistent=False)

    def forward(self, X: Float[Tensor, "... n_features"]) -> Float[Tensor, "... k"]:
        n = self.machine.n_features
        if not isinstance(X, torch.Tensor) or X.dim() == 0 or X.shape[-1] != n:
            shape = tuple(X.shape) if isinstance(X, torch.Tensor) else type(X).__name__
            raise InputError(
                "running a network of a machine",
                f"X of {shape}; the machine reads {n} features",
                f"pass a tensor of shape (..., {n}): torch.from_numpy(machine.features(X))",
            )
        lead = X.shape[:-1]
        found: Tensor = super().forward(X.reshape(-1, n))  # type: ignore[no-untyped-call]
        return found.reshape(*lead, found.shape[-1])

    def harden(self) -> DecisionMachine:
        """The machine that the network still is, where its signs are hard.

        Tests and values may be any numbers: tests of several columns make an oblique machine.
        Every leaf must still fire for the answers of its own path and for no others, whatever other
        tests answer; where training broke that, the network is not a forest any more and is
        refused. Untrained, the machine that it came from is given back, bit for bit.
        """
        self._check_templates()
        machine, dtype = self.machine, self.machine.columns.dtype
        weight = _numbers(self.tests.effective())
        is_start = (self.tests.effective() == self.tests_weight_start).all(-1)
        is_start &= self.tests.bias == self.tests_bias_start
        same = is_start.cpu().numpy()
        own = machine.S.toarray().astype(np.float64)
        S = np.where(same[:, None], own, weight)
        t = np.where(same, machine.t, -_numbers(self.tests.bias))
        t = t if machine.is_oblique else thresholds_rounded_down(t, dtype)
        is_one = np.count_nonzero(S, axis=1) == 1
        is_straight = bool(np.all(is_one) and np.all(S.max(axis=1, initial=0.0) == 1.0))
        selection: Any = sp.csr_array(S.astype(dtype))
        if is_straight and not machine.is_oblique:
            selection = S.argmax(axis=1).astype(np.int32) if S.size else machine.selection
        if np.all(same):
            selection = machine.selection
        return replace(
            machine,
            selection=selection,
            t=np.asarray(t, dtype),
            **self._values(),
            output=replace(machine.output, base=self._base()),
        )

    def _values(self) -> dict[str, Any]:
        """V and the outputs that trees feed: as narrow as the machine's where they still are."""
        machine = self.machine
        if torch.equal(self.values.effective(), self.values_weight_start):
            return {"V": machine.V}
        V = _numbers(self.values.effective()).T
        feeds = machine.trees.feeds
        if machine.is_narrow:
            own = feeds[machine.trees.of_leaf]
            others = V.copy()
            np.put_along_axis(others, own[:, None].astype(np.int64), 0.0, axis=1)
            if not others.any():
                V = np.take_along_axis(V, own[:, None].astype(np.int64), axis=1)
                return {"V": V.astype(machine.V.dtype)}
        trees = replace(machine.trees, feeds=None)
        return {"V": V.astype(machine.V.dtype), "trees": trees}

    def _base(self) -> np.ndarray:
        output = self.machine.output
        if torch.equal(self.values.bias, self.values_bias_start):
            return output.base
        bias = _numbers(self.values.bias)
        late = bias if output.base_first else output.base + bias / output.divisor * output.scale
        return np.asarray(late, output.base.dtype)

    def _check_templates(self) -> None:
        """Every leaf fires for its own path alone, for all 2^J answers of the tests."""
        B = _numbers(self.templates.effective())
        bias = _numbers(self.templates.bias)
        own = self.machine.B.toarray()
        along = np.where(own != 0, B * own, 0.0)  # positive where the weight still asks as before
        least = np.where(own != 0, along, np.inf).min(axis=1, initial=np.inf)
        off = np.where(own == 0, np.abs(B), 0.0).sum(axis=1)
        total = along.sum(axis=1)
        fires_on_path = total - off + bias > 0
        # With one answer wrong, that of the least weight, and every other test in its favour.
        slip = np.where(np.isfinite(least), total - 2 * least + off + bias, -np.inf)
        is_leaf = (least > 0) & fires_on_path & (slip <= 0)
        if not np.all(is_leaf):
            i = int(np.argmin(is_leaf))
            cause = (
                "a weight on its path has changed its sign"
                if least[i] <= 0
                else f"it can stay silent on its path (sum {total[i] - off[i] + bias[i]:.3g})"
                if not fires_on_path[i]
                else f"it can fire off its path (sum {slip[i]:.3g})"
            )
            raise InputError(
                HARDENING,
                f"leaf {i} is not the leaf of one path any more: {cause}",
                "keep B as it is (learn=('S', 't', 'V')), or use the network as a network",
            )


def to_mlp(
    machine: DecisionMachine,
    *,
    activation: str = "tanh",
    connections: str = "paths",
    slope: Any = (10.0, 2.0),
    learn: Iterable[str] = PARTS,
    output: str = "response",
    dtype: Any = None,
    data: Any = None,
) -> ForestNetwork:
    """See `DecisionMachine.to_mlp`."""
    from .build import check_dtype

    check_single_features(machine, DOING)
    if machine.output.aggregate != "sum":
        raise UnsupportedModelError(
            DOING,
            f"output.aggregate={machine.output.aggregate!r}, which is not a sum of trees",
            "cast its trees one by one: machine.tree(i).to_mlp()",
        )
    if machine.linear is not None:
        raise UnsupportedModelError(
            DOING,
            "leaves that are linear functions, which a last layer of constants does not hold",
            "use machine.soften(...)",
        )
    for what, choice, table in (
        ("activation", activation, ACTIVATIONS),
        ("connections", connections, CONNECTIONS),
        ("output", output, ("response", "margin")),
    ):
        if choice not in table:
            raise InputError(DOING, f"{what}={choice!r}", f"use one of {', '.join(table)}")
    learned = (learn,) if isinstance(learn, str) else tuple(learn)
    for part in learned:
        if part not in PARTS:
            raise InputError(DOING, f"learn includes {part!r}", f"use any of {', '.join(PARTS)}")
    if machine.n_leaves * machine.n_tests > LARGEST:
        raise UnsupportedModelError(
            DOING,
            f"{machine.n_leaves} leaves × {machine.n_tests} tests, a layer of "
            f"{machine.n_leaves * machine.n_tests} weights",
            "cast fewer trees (machine.mask), or use machine.soften(...), which never forms them",
        )
    return ForestNetwork(
        machine,
        activation,
        connections,
        _check_slope(slope),
        learned,
        output,
        check_dtype(dtype, machine),
        Gaps.of(machine, data),
    )


def _check_slope(slope: Any) -> tuple[float, float]:
    both = (slope, slope) if isinstance(slope, (int, float)) else tuple(slope)
    is_good = len(both) == 2 and all(
        isinstance(s, (int, float)) and s > 0 and math.isfinite(s) for s in both
    )
    if not is_good:
        raise InputError(
            DOING, f"slope={slope!r}", "give a positive number, or one for each hidden layer"
        )
    return float(both[0]), float(both[1])


def _wide(machine: DecisionMachine) -> Float[np.ndarray, "L k"]:
    """A value for every output, 0 in those that a leaf's tree does not feed."""
    V = np.asarray(machine.V, np.float64)
    if not machine.is_narrow:
        return V
    wide = np.zeros((machine.n_leaves, machine.n_outputs))
    feeds = machine.trees.feeds[machine.trees.of_leaf]
    wide[np.arange(machine.n_leaves), feeds] = V[:, 0]
    return wide


def _far(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).max / 4


def _numbers(part: Tensor) -> np.ndarray:
    return np.asarray(part.detach().cpu().double().numpy())
