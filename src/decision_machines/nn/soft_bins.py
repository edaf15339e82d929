"""`SoftBins`: every feature cut into bins, and a leaf for each combination of them."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from ..errors import InputError
from ..machine import Columns, DecisionMachine, Trees
from .sizes import check_rows, check_size
from .soft_leaves import SoftLeaves
from .standardise import Standardise

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

DOING = "building soft bins"
RUNNING = "running soft bins"
MOST_LEAVES = 2**16


class SoftBins(SoftLeaves):
    """(..., in_features) → (..., out_features) by soft bins of each feature and their products.

    A feature's cuts divide it into bins; its weight in bin i is softmax((i x - Σ_{j<i} cut_j)/τ)_i,
    which is 1 in the bin that x is in as τ → 0. The weights of all combinations of bins are the
    Kronecker product over features, and each combination is a leaf. *Exact: in the limit* of a
    small τ. Paper: cites `yang2018deep`.

    Parameters
    ----------
    in_features, out_features
        Widths. The product has bins^in_features leaves: for many features use `groups`.
    bins
        Of each feature.
    groups
        Lists of features, one for each tree; a tree cuts the features of its list. By default one
        tree of all features. An int g makes that many lists of `group_size` features at random.
    group_size
        Features of a random group.
    tau
        The temperature, in units of the features' spread.
    leaves
        "values", or "probabilities": as in `TreeLayer`.
    device, dtype
        Of the parameters.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> layer = SoftBins(3, 1, bins=3)
    >>> layer(torch.randn(5, 3)).shape
    torch.Size([5, 1])
    >>> layer.harden()
    DecisionMachine(1 tree, 27 leaves, depth 6, 3 features; SoftBins)
    """

    features: Tensor

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bins: int = 2,
        *,
        groups: list[list[int]] | int | None = None,
        group_size: int = 8,
        tau: float = 0.1,
        leaves: str = "values",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = check_size(DOING, "in_features", in_features)
        self.out_features = check_size(DOING, "out_features", out_features)
        self.bins = check_size(DOING, "bins", bins, least=2)
        self._take_leaves(DOING, leaves)
        features = self._groups(groups, group_size)
        self.register_buffer("features", features)
        self.trees, self.group_size = features.shape
        if self.group_size * math.log(self.bins) > math.log(MOST_LEAVES):
            raise InputError(
                DOING,
                f"{self.bins} bins of {self.group_size} features: "
                f"{self.bins}^{self.group_size} leaves",
                f"use groups of fewer features, for at most {MOST_LEAVES} leaves: groups=10, "
                f"group_size={int(math.log(MOST_LEAVES) / math.log(self.bins))}",
            )
        self.inputs = Standardise(self.in_features)
        n_leaves = self.bins**self.group_size
        self.cuts = nn.Parameter(torch.empty(self.trees, self.group_size, self.bins - 1))
        self.V = nn.Parameter(torch.empty(self.trees, n_leaves, self.out_features))
        self._take_tau(DOING, tau)
        self.reset_parameters()
        self.to(device=device, dtype=dtype)

    def _groups(self, groups: Any, size: Any) -> Int[Tensor, "T s"]:
        n = self.in_features
        if groups is None:
            return torch.arange(n)[None]
        if isinstance(groups, int) and not isinstance(groups, bool):
            check_size(DOING, "groups", groups)
            size = check_size(DOING, "group_size", size, most=n)
            return torch.stack([torch.randperm(n)[:size].sort().values for _ in range(groups)])
        found = [list(group) for group in groups]
        fits = found and len({len(group) for group in found}) == 1 and found[0]
        if not fits or not all(0 <= f < n for group in found for f in group):
            raise InputError(
                DOING,
                f"groups={groups!r:.80}",
                f"give lists of equal length with features from 0 to {n - 1}",
            )
        return torch.tensor(found)

    def reset_parameters(self) -> None:
        """Start anew, from torch's own random numbers."""
        # The normal distribution's quantiles, a little moved.
        share = torch.arange(1, self.bins) / self.bins
        normal = torch.special.ndtri(share.double()).to(self.cuts.dtype)
        with torch.no_grad():
            self.cuts.copy_(normal + 0.1 * torch.randn(self.cuts.shape))
        self._reset_leaves()

    def forward(self, x: Float[Tensor, "... n"]) -> Float[Tensor, "... k"]:
        """The sum of leaf values by soft weights; of probabilities, their average."""
        p = self._kronecker((self._scores(x) / self.log_tau.exp()).softmax(-1))
        out = torch.einsum("mtl,tlk->mk", p, self.values())
        return out.reshape(*x.shape[:-1], self.out_features)

    @torch.no_grad()
    def exit_leaves(self, x: Float[Tensor, "... n"]) -> Int[Tensor, "... T"]:
        """The leaf of the bins that each row is in, as `harden().apply(x)` says."""
        bin = self._bins(x)
        power = self.bins ** torch.arange(self.group_size - 1, -1, -1, device=bin.device)
        return (bin * power).sum(-1).reshape(*x.shape[:-1], self.trees)

    def hard(self, x: Float[Tensor, "... n"]) -> Float[Tensor, "... k"]:
        """The answer of hard bins, in torch; gradients reach the leaves' values alone."""
        leaf = self.exit_leaves(x)
        tree = torch.arange(self.trees, device=leaf.device)
        return self.values()[tree, leaf].sum(-2)

    def _standard(self, x: Tensor) -> Float[Tensor, "m T s"]:
        check_rows(RUNNING, x, self.in_features, self.cuts.device)
        z: Tensor = self.inputs(x.reshape(-1, self.in_features))
        return z[:, self.features]

    def _bins(self, x: Tensor) -> Int[Tensor, "m T s"]:
        z = self._standard(x)
        return (z[..., None] > self.cuts.sort(-1).values).sum(-1)

    def _scores(self, x: Tensor) -> Float[Tensor, "m T s b"]:
        """i x - Σ_{j<i} cut_j of bin i: the largest is that of the bin that x is in."""
        z = self._standard(x)
        cuts = self.cuts.sort(-1).values
        above = torch.cat([torch.zeros_like(cuts[..., :1]), cuts.cumsum(-1)], -1)
        number = torch.arange(self.bins, dtype=z.dtype, device=z.device)
        return z[..., None] * number - above

    @staticmethod
    def _kronecker(p: Float[Tensor, "m T s b"]) -> Float[Tensor, "m T l"]:
        found = p[:, :, 0]
        for feature in range(1, p.shape[2]):
            found = (found[..., None] * p[:, :, feature, None]).flatten(2)
        return found

    def harden(self) -> DecisionMachine:
        """The axis-aligned machine of the bins: the first feature's cuts, below each the next's.

        Scaling is folded into thresholds, in float64.
        """
        mean, spread = (
            part.double().cpu().numpy() for part in (self.inputs.mean, self.inputs.spread)
        )
        features = self.features.cpu().numpy()
        cuts = self.cuts.detach().sort(-1).values.double().cpu().numpy()
        raw = mean[features][..., None] + spread[features][..., None] * cuts
        parts = [_nested(raw[tree], features[tree]) for tree in range(self.trees)]
        size = self.bins**self.group_size - 1
        children = np.concatenate(
            [
                np.where(c >= 0, c + tree * size, c - tree * (size + 1))
                for tree, (c, _, _) in enumerate(parts)
            ]
        )
        with torch.no_grad():
            V = self.values().double().cpu().numpy().reshape(-1, self.out_features)
        t = np.concatenate([t for _, _, t in parts])
        column = np.concatenate([column for _, column, _ in parts])
        is_gap_right = np.concatenate([mean[c] > t for _, c, t in parts])  # gaps stand at the mean
        return DecisionMachine(
            columns=Columns(self.in_features, np.float64),
            selection=column.astype(np.int32),
            t=t,
            missing=np.where(is_gap_right, 1, -1),
            children=children,
            V=V,
            trees=Trees(np.arange(self.trees + 1) * size),
            output=self._output(),
            source="SoftBins",
        )

    def extra_repr(self) -> str:
        return (
            f"{self.in_features}, {self.out_features}, bins={self.bins}, trees={self.trees}, "
            f"leaves={self.leaves!r}"
        )


def _nested(
    cuts: Float[np.ndarray, "s b-1"], features: Int[np.ndarray, "s"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Children, columns and thresholds of one tree, parents first; leaves from left to right."""
    children: list[list[int]] = []
    columns: list[int] = []
    thresholds: list[float] = []
    n_bins = cuts.shape[1] + 1
    next_leaf = itertools.count()

    def build(level: int, low: int, high: int) -> int:
        """The tree that finds the bin of a feature among low..high, and then the next features."""
        if low == high:
            if level + 1 == len(cuts):
                return ~next(next_leaf)
            return build(level + 1, 0, n_bins - 1)
        middle = (low + high) // 2
        at = len(children)
        children.append([0, 0])
        columns.append(int(features[level]))
        thresholds.append(float(cuts[level, middle]))
        left = build(level, low, middle)
        children[at] = [left, build(level, middle + 1, high)]
        return at

    build(0, 0, n_bins - 1)
    return np.array(children), np.array(columns), np.array(thresholds)
