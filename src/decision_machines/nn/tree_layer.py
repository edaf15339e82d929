"""`TreeLayer`: a forest of complete soft trees, made from sizes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from ..relax.paths import Paths
from ..relax.soft_tree import has_kernel
from ..relax.soft_tree_plain import soft_tree_sum_by_level, soft_tree_weights
from ..relax.sparse import entmax15
from .complete import complete_children, complete_machine, completed, test_starts
from .mixed_soft import soft_tree_sum_mixed
from .sizes import MOST_DEPTH, check_choice, check_positive, check_rows, check_size
from .soft_leaves import SoftLeaves
from .standardise import Standardise

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jaxtyping import Float, Int
    from torch import Tensor

    from ..machine import DecisionMachine

DOING = "building a tree layer"
RUNNING = "running a tree layer"
FORMS = ("oblique", "axis")
NORMS = ("batch", "fixed")
SPREAD_OF_LOGITS = 2.0
"""Of the selection's logits at the start: 1.5-entmax of 32 of them keeps about 4 columns."""


class TreeLayer(SoftLeaves):
    """(..., in_features) → (..., out_features) by soft trees, each a product of gates down a tree.

    Test j sends a row right with σ(slope_j (g_j - t_j) / τ), where g_j is a weighted sum of the
    standardised features; a leaf's weight is the product along its path; the answer is the sum of
    the leaves' values by their weights, over all trees. Paper: Eq. `soft`; it
    cites `kontschieder2015deep`.

    Standardised inputs, and for oblique tests standardised sums too, keep gates in the range where
    they learn, at any depth, width and scale of the input.

    Parameters
    ----------
    in_features, out_features
        Widths.
    depth
        Tests from root to leaf: every tree has 2^depth leaves.
    trees
        How many trees are added up.
    form
        "oblique": tests weigh all features. "axis": each test weighs few features, by 1.5-entmax
        of learned logits, and hardens to the one of the largest weight.
    leaves
        "values": a leaf holds numbers, and the layer may answer anything. "probabilities": a leaf
        holds a distribution over `out_features` classes, and the layer answers the average of the
        leaves' distributions; train it by ``nll_loss(layer(x).log(), y)``. This mixture of
        likelihoods hardens with little loss.
    norm
        "batch": standardise by the batch in training and by what was seen in `eval`, as batch
        normalisation does. "fixed": by `measure`, or not at all.
    tau
        The temperature; ``layer.tau = 0.5`` changes it.
    device, dtype
        Of the parameters.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> layer = TreeLayer(4, 3, depth=2, trees=5)
    >>> layer(torch.randn(7, 4)).shape
    torch.Size([7, 3])
    >>> layer.harden()
    DecisionMachine(5 trees, 20 leaves, depth 2, 4 features, 3 outputs, oblique; TreeLayer)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        depth: int = 6,
        trees: int = 8,
        *,
        form: str = "oblique",
        leaves: str = "values",
        norm: str = "batch",
        tau: float = 1.0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = check_size(DOING, "in_features", in_features)
        self.out_features = check_size(DOING, "out_features", out_features)
        self.depth = check_size(DOING, "depth", depth, most=MOST_DEPTH)
        self.trees = check_size(DOING, "trees", trees)
        self.form = check_choice(DOING, "form", form, FORMS)
        self._take_leaves(DOING, leaves)
        self.norm = check_choice(DOING, "norm", norm, NORMS)
        self.paths = Paths(complete_children(self.depth, self.trees), self._starts())
        J, L, n = self.paths.n_tests, self.paths.n_leaves, self.in_features
        self.inputs = Standardise(n)
        if self.form == "oblique":
            self.W = nn.Parameter(torch.empty(J, n))
            self.gates = Standardise(J)
        else:
            self.logits = nn.Parameter(torch.empty(J, n))
        self.t = nn.Parameter(torch.empty(J))
        self.log_slope = nn.Parameter(torch.empty(J))
        self.V = nn.Parameter(torch.empty(L, self.out_features))
        self._take_tau(DOING, tau)
        self.reset_parameters()
        self.to(device=device, dtype=dtype)

    def _starts(self) -> Int[np.ndarray, "T+1"]:
        return test_starts(self.depth, self.trees)

    def reset_parameters(self) -> None:
        """Start anew, from torch's own random numbers."""
        if self.form == "oblique":
            nn.init.normal_(self.W, std=self.in_features**-0.5)
            nn.init.normal_(self.t, std=0.3)
        else:
            nn.init.normal_(self.logits, std=SPREAD_OF_LOGITS)
            nn.init.normal_(self.t, std=0.7)
        nn.init.zeros_(self.log_slope)
        self._reset_leaves()

    # ------------------------------------------------------------------ scale

    def slopes(self) -> Float[Tensor, "J"]:
        """slope / τ of every test."""
        return (self.log_slope - self.log_tau).exp()

    @torch.no_grad()
    def measure(self, x: Float[Tensor, "... n"]) -> TreeLayer:
        """Standardise by these rows from now on; with norm="fixed" nothing else does."""
        rows = self._rows(x)
        self.inputs.measure(rows)
        if self.form == "oblique":
            self.gates.measure((self.W @ self.inputs.measured(rows).t()).t())
        return self

    # ------------------------------------------------------------------ from rows to answers

    def forward(self, x: Float[Tensor, "... n"]) -> Float[Tensor, "... k"]:
        """The sum of leaf values by soft weights; of probabilities, their average."""
        rows = self._rows(x)
        V = self.values()
        if self.form == "axis":
            z = self._standard(self.inputs, rows)
            out = soft_tree_sum_mixed(self.paths, z, self.logits, self.t, self.slopes(), V)
        else:
            out = self._sum(self._gate_values(rows), V)
        return out.reshape(*x.shape[:-1], self.out_features)

    def selection(self) -> Float[Tensor, "J n"]:
        """The weight of every feature in every test."""
        return self.W if self.form == "oblique" else entmax15(self.logits)

    def weights(self, x: Float[Tensor, "... n"]) -> Float[Tensor, "... T l"]:
        """The soft weight of every leaf of every tree; each tree's sum to 1."""
        q = self._queries(self._gate_values(self._rows(x)))
        p = soft_tree_weights(q, self.paths).index_select(0, self.paths.leaf_rank)
        return p.t().reshape(*x.shape[:-1], self.trees, 2**self.depth)

    @torch.no_grad()
    def exit_leaves(self, x: Float[Tensor, "... n"]) -> Int[Tensor, "... T"]:
        """Where the hardened trees send each row, as `harden().apply(x)` says."""
        rows = self._rows(x)
        if self.form == "axis":
            column, t = self._hard_tests()
            right = self._standard(self.inputs, rows)[:, column] > t
        else:
            right = self._gate_values(rows) > self.t
        right = right.reshape(len(rows), self.trees, 2**self.depth - 1).long()
        at = torch.zeros_like(right[..., :1])
        for _ in range(self.depth):
            at = 2 * at + 1 + right.gather(-1, at)
        found: Tensor = at.squeeze(-1) - (2**self.depth - 1)
        return found.reshape(*x.shape[:-1], self.trees)

    def hard(self, x: Float[Tensor, "... n"]) -> Float[Tensor, "... k"]:
        """The answer of the hardened trees, in torch; gradients reach the leaves' values alone."""
        leaf = self.exit_leaves(x)
        first = torch.arange(self.trees, device=leaf.device) * 2**self.depth
        return self.values()[leaf + first].sum(-2)

    def _rows(self, x: Tensor) -> Float[Tensor, "m n"]:
        check_rows(RUNNING, x, self.in_features, self.t.device)
        return x.reshape(-1, self.in_features)

    def _standard(self, part: Standardise, values: Tensor) -> Tensor:
        return part(values) if self.norm == "batch" else part.measured(values)

    def _gate_values(self, rows: Float[Tensor, "m n"]) -> Float[Tensor, "m J"]:
        z = self._standard(self.inputs, rows)
        if self.form == "axis":
            return z @ self.selection().t()
        # Tests first in memory, as the kernel reads them.
        return self._standard(self.gates, (self.W @ z.t()).t())

    def _queries(self, g: Float[Tensor, "m J"]) -> Float[Tensor, "J m"]:
        """slope (g - t) / τ, tests first and in level order."""
        q = (g - self.t) * self.slopes()
        return q.t().index_select(0, self.paths.test_order)

    def _sum(self, g: Float[Tensor, "m J"], V: Float[Tensor, "L k"]) -> Float[Tensor, "m k"]:
        if has_kernel(g, V):
            from ..relax.native_soft import soft_tree_sum_native

            structure = self.paths.structure(self.out_features)
            return soft_tree_sum_native(structure, g, self.t, self.slopes(), V)
        return soft_tree_sum_by_level(self._queries(g), self.paths, V)

    # ------------------------------------------------------------------ leaves in closed form

    def update_leaves(
        self, batches: Iterable[tuple[Tensor, Tensor]], *, steps: int = 20, ridge: float = 1e-6
    ) -> TreeLayer:
        """The best leaves for the tests as they are, without gradients; call it between epochs.

        Probabilities are found by the fixed-point iteration of deep neural decision forests
        (kontschieder2015deep), for each tree by itself; values by least squares over all trees.

        Parameters
        ----------
        batches
            Pairs of (m, in_features) rows, as the layer reads them, and their (m,) classes or
            (m, out_features) targets.
        steps
            Iterations; of probabilities.
        ridge
            Added to the least squares in units of the mean squared weight; of values.
        """
        from .leaf_update import class_leaves, value_leaves

        if self.leaves == "probabilities":
            class_leaves(self, list(batches), check_size(DOING, "steps", steps))
        else:
            value_leaves(self, batches, check_positive(DOING, "ridge", ridge))
        return self

    # ------------------------------------------------------------------ to a machine, and back

    def harden(self, *, axis_aligned: bool | None = None) -> DecisionMachine:
        """The machine whose tests are the gates' signs; it reads what the layer reads.

        Scaling is folded into weights and thresholds, in float64: rows within rounding of a
        threshold may fall to its other side. Slopes and the temperature are left behind.

        Parameters
        ----------
        axis_aligned
            Whether tests keep the feature of their largest weight alone; by default where
            form="axis". False keeps all weights: an oblique machine with the gates' own signs.
        """
        keep_one = self.form == "axis" if axis_aligned is None else axis_aligned
        if keep_one and self.form == "oblique":
            from ..errors import InputError

            raise InputError(
                "hardening a tree layer",
                "axis_aligned=True for oblique tests",
                "make the layer with form='axis'",
            )
        with torch.no_grad():
            V = self.values().double().cpu().numpy()
        mean, spread = (
            part.double().cpu().numpy() for part in (self.inputs.mean, self.inputs.spread)
        )
        missing = None
        if keep_one:
            column, t = (part.cpu().numpy() for part in self._hard_tests())
            missing = np.where(t < 0, 1, -1)  # the features' means, where gaps stand
            selection = column.astype(np.int32)
            t = mean[column] + spread[column] * t.astype(np.float64)
        else:
            selection, t = self._raw_tests(mean, spread)
        return complete_machine(
            selection,
            t,
            V,
            self.in_features,
            self.depth,
            output=self._output(),
            source="TreeLayer",
            missing=missing,
        )

    @torch.no_grad()
    def _hard_tests(self) -> tuple[Int[Tensor, "J"], Float[Tensor, "J"]]:
        """The column of the largest weight, and the threshold where it alone is read.

        The other columns are at their mean of 0: w z ≤ t is z ≤ t / w.
        """
        weight, column = self.selection().max(-1)
        return column, self.t / weight

    @torch.no_grad()
    def _raw_tests(
        self, mean: Float[np.ndarray, "n"], spread: Float[np.ndarray, "n"]
    ) -> tuple[Float[np.ndarray, "J n"], Float[np.ndarray, "J"]]:
        """Weights and thresholds of the features as they come: gate (W z - m) / s ≤ t."""
        W, t = (part.double().cpu().numpy() for part in (self.selection(), self.t))
        if self.form == "oblique":
            m, s = (part.double().cpu().numpy() for part in (self.gates.mean, self.gates.spread))
            t = m + s * t
        S = W / spread
        return S, t + S @ mean

    @classmethod
    def soften(
        cls,
        machine: DecisionMachine,
        *,
        slope: float = 4.0,
        data: Any = None,
        gap: float = 2.0,
        dtype: Any = None,
    ) -> TreeLayer:
        """The layer whose hard trees are the machine's, filled up to complete ones.

        Its answer is the machine's margin without the base score.

        Parameters
        ----------
        machine
            Of tests on numbers; its margins are sums.
        slope
            Of every test, in units of the features' spread.
        data
            Rows whose mean and spread standardise the features; else they are taken as they are.
        gap
            How far a test's own column stands above the others where each test reads one column.
            1.5-entmax is exactly one-hot from 2 on, where the selection has no gradient any more.
        """
        doing = "softening a machine to a tree layer"
        slope, gap = check_positive(doing, "slope", slope), check_positive(doing, "gap", gap)
        depth, S, t, V = completed(machine, doing)
        check_size(doing, "the depth of the machine", depth, most=MOST_DEPTH)
        form = "oblique" if machine.is_oblique else "axis"
        layer = cls(
            machine.n_features,
            machine.n_outputs,
            depth,
            machine.n_trees,
            form=form,
            norm="fixed",
            dtype=dtype,
        )
        if data is not None:
            rows = torch.as_tensor(np.asarray(data), dtype=layer.t.dtype)
            layer.inputs.measure(rows.reshape(-1, machine.n_features))
        mean, spread = (part.double().numpy() for part in (layer.inputs.mean, layer.inputs.spread))
        t, W = t - S @ mean, S * spread
        length = np.linalg.norm(W, axis=1)
        is_test = length > 0
        length = np.where(is_test, length, 1.0)
        # A test without weights sends every row left: its threshold is far above the gates.
        t = np.where(is_test, t / length, FAR)
        scale = machine.output.scale / machine.output.divisor
        with torch.no_grad():
            layer.t.copy_(torch.from_numpy(t))
            layer.V.copy_(torch.from_numpy(V * scale))
            layer.log_slope.fill_(math.log(slope))
            if form == "oblique":
                layer.W.copy_(torch.from_numpy(W / length[:, None]))
            else:
                layer.logits.copy_(torch.from_numpy(np.where(S != 0, gap, 0.0)))
        return layer

    def extra_repr(self) -> str:
        return (
            f"{self.in_features}, {self.out_features}, depth={self.depth}, trees={self.trees}, "
            f"form={self.form!r}, leaves={self.leaves!r}, norm={self.norm!r}"
        )


FAR = 1e4
"""A threshold, in units of the spread, that no row reaches."""
