"""`SoftMachine`: the parameters of a relaxed machine, and the way from features to answers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from ..errors import InputError
from .best_first import BestFirst
from .columns import ColumnReader
from .frozen import cannot_freeze, frozen
from .harden import agreement, harden
from .heads import Heads
from .keys import Keys
from .leaves import Leaves, is_traced
from .linear_attention import LinearAttention
from .links import link_named
from .native_soft import soft_tree_sum_native
from .paths import Paths
from .queries import LARGEST, QUERIES
from .selection import Selection
from .soft_structure import SoftStructure
from .soft_tree import has_kernel, soft_tree_sum
from .soft_tree_plain import soft_tree_sum_by_level, soft_tree_weights
from .straight_through import straight_through
from .walk import Walk
from .weighing import Weighing
from .weights import delta

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable
    from typing import Self

    from jaxtyping import Bool, Float
    from torch import Tensor

    from ..machine import Assembly, DecisionMachine
    from .build import Options
    from .forms import Form
    from .gaps import Thresholds
    from .harden import Agreement

DOING = "running a softened machine"
ROWS_AT_ONCE = 8192


class SoftMachine(nn.Module):
    """weights(keys(B) · query(slope (S z - t) / τ)) · V, with any part of it trainable.

    Made by `DecisionMachine.soften`. Takes (..., n_features) tensors of the features that the
    machine reads (`machine.features(X)` makes them of tables and labels) and gives the response,
    or the margin, with the same leading dimensions. It runs on any device that torch knows, which
    is our answer to trees on GPUs (Paper: cites `lettich2016gpu`).

    Attributes
    ----------
    selection.S, t, log_slope, keys.factor, leaves.V, log_tau, weighing.log_prior, \
weighing.alpha_logit
        The parts, parameters each; what is not in `learn` has `requires_grad` False. `selection.S`
        is there where S is not fixed, `keys.factor` where keys are learned, and those of `weighing`
        where the weights have them. `t` are the soft thresholds, in the middle of their gaps (see
        `gaps`).
    form
        The row of the table of forms, and its exactness.
    """

    missing: Tensor
    base: Tensor
    t_start: Tensor
    t_hard: Tensor
    nudge: Tensor

    def __init__(self, machine: DecisionMachine, form: Form, options: Options) -> None:
        super().__init__()
        self.machine, self.form, self.options = machine, form, options
        dtype, learn = options.dtype, options.learn
        self.columns = ColumnReader(machine.columns)
        self.paths = Paths.of(machine)
        self.heads = Heads(machine, self.paths.leaf_rank)
        self.selection = Selection(machine, options.selection, options.gap, dtype, "S" in learn)
        self.gaps = options.gaps
        at = self.gaps.thresholds(dtype)
        self.t = nn.Parameter(at.soft.clone(), requires_grad="t" in learn)
        self._keep(at)
        slope = torch.as_tensor(options.slope, dtype=torch.float64).expand(machine.n_tests)
        self.log_slope = nn.Parameter(slope.log().to(dtype), requires_grad="slope" in learn)
        self.log_tau = nn.Parameter(
            torch.tensor(math.log(options.tau), dtype=dtype), requires_grad="tau" in learn
        )
        self.keys = Keys(machine, self.paths, form.keys, "keys" in learn, dtype)
        self.leaves = Leaves(machine, dtype, "V" in learn)
        if form.weights == "straight_through":
            self.walk = Walk(machine)
        self.weighing = Weighing(machine, form.weights, options.given, learn, options.seed, dtype)
        if form.weights == "top_k":
            self.best_first = BestFirst(machine)
        if form.weights == "kernel":
            self.kernel = LinearAttention(
                machine, self.paths, options.feature_map, options.n_random, dtype, options.seed
            )
        missing = torch.from_numpy(machine.missing.astype(np.float64)).to(dtype)
        self.register_buffer("missing", missing, persistent=False)
        self.sum_dtype = getattr(torch, machine.output.dtype.name)
        base = torch.from_numpy(machine.output.base.copy())
        self.register_buffer("base", base, persistent=False)
        self._structure: SoftStructure | None = None  # of the native kernel, made on its first use
        self._frozen: tuple[Any, Assembly] | None = None  # as of the parameters' last versions
        self.link = link_named(machine.output.link) if options.output == "response" else None

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy, without what is looked up again: the link, the native structure."""
        return {**self.__dict__, "link": self.link is not None, "_structure": None, "_frozen": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]  # torch's own
        self.link = link_named(self.machine.output.link) if state["link"] else None

    # ------------------------------------------------------------------ thresholds

    def _keep(self, at: Thresholds) -> None:
        for name, part in (("t_start", at.soft), ("t_hard", at.hard), ("nudge", at.nudge)):
            self.register_buffer(name, part.to(self.t.device), persistent=False)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Move or cast everything; thresholds that were not trained stay between their values."""
        was, is_start = self.t.dtype, self.t.detach() == self.t_start
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]  # torch's own
        if self.t.dtype != was and not self.t.is_meta:
            self._keep(self.gaps.thresholds(self.t.dtype))
            with torch.no_grad():
                self.t.copy_(torch.where(is_start.to(self.t.device), self.t_start, self.t))
        return self

    def is_start(self) -> Bool[Tensor, "J"]:
        """Which tests are as they came: neither threshold nor selection was trained."""
        is_start = self.t == self.t_start
        return is_start if self.selection.kind == "fixed" else is_start & self.selection.is_start()

    def hard_thresholds(self) -> Float[Tensor, "J"]:
        """The machine's own t where a test is as it came, and the trained one elsewhere."""
        return torch.where(self.is_start(), self.t_hard, self.t)

    # ------------------------------------------------------------------ temperature and heads

    @property
    def tau(self) -> float:
        """The temperature. Setting it anneals: ``net.tau = 0.5 * net.tau``."""
        return float(self.log_tau.detach().exp())

    @tau.setter
    def tau(self, tau: float) -> None:
        from .build import check_tau

        with torch.no_grad():
            self.log_tau.fill_(math.log(check_tau(tau)))

    def mask(self, trees: Iterable[int]) -> SoftMachine:
        """Mask these trees (heads), and no others: they add nothing and learn nothing.

        Paper: the masking by W^B after Eq. `forest`.
        """
        masked = self.machine.trees.choose(trees)
        with torch.no_grad():
            self.leaves.head.fill_(1.0)
            self.leaves.head[torch.from_numpy(masked)] = 0.0
        return self

    # ------------------------------------------------------------------ from features to answers

    def forward(
        self, X: Float[Tensor, "... n_features"], return_weights: bool | str = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """The response of the machine's own link, or the margin.

        Parameters
        ----------
        X
            Features as the machine reads them, NaN where missing: `machine.features` makes them.
        return_weights
            Whether to give the (..., L) weights over leaves too: each tree's sum to 1, leaves in
            the order of the machine. "sparse" gives them as a sparse tensor. `by_tree` splits them
            into one tensor for each tree.
        """
        margin, weights = self._margin(X, bool(return_weights))
        answer = margin if self.link is None else self._respond(margin)
        if weights is None:
            return answer
        return answer, weights.to_sparse() if return_weights == "sparse" else weights

    def margin(self, X: Float[Tensor, "... n_features"]) -> Float[Tensor, "... k"]:
        """The sum before the link."""
        return self._margin(X, False)[0]

    def by_tree(self, weights: Float[Tensor, "... L"]) -> tuple[Tensor, ...]:
        """Weights over all leaves, cut into one (..., leaves) tensor for each tree."""
        found: tuple[Tensor, ...] = weights.split(
            np.diff(self.machine.trees.leaf_start).tolist(), dim=-1
        )
        return found

    def _respond(self, margin: Tensor) -> Tensor:
        output = self.machine.output
        assert self.link is not None
        if len(output.groups) == 2:
            return self.link(margin, *output.link_params)
        spans = zip(output.groups, output.groups[1:], strict=False)
        return torch.cat([self.link(margin[..., a:b], *output.link_params) for a, b in spans], -1)

    def _margin(self, X: Tensor, want_weights: bool) -> tuple[Tensor, Tensor | None]:
        """Margins, and the weights where they are wanted."""
        self._check(X)
        lead = X.shape[:-1]
        x = X.reshape(-1, X.shape[-1])
        z = self.columns(x).to(self.t.dtype)
        values = self.leaves.values(x)
        if self.form.is_hard:
            total, weights = self._hard(z, values, want_weights)
            if self.form.weights == "straight_through" and torch.is_grad_enabled():
                soft = self._finished(self._soft_tree(z, values, False)[0])
                total = straight_through(total, soft)
        else:
            total, weights = self._soft(z, values, want_weights)
            total = self._finished(total)
        margin = total.reshape(*lead, total.shape[-1])
        if weights is None or not want_weights:
            return margin, None
        return margin, weights.t().reshape(*lead, len(weights))

    def _hard(self, z: Tensor, values: Tensor, want_weights: bool) -> tuple[Tensor, Tensor | None]:
        """Each tree's exit leaf by the largest score, and the sum in the machine's own order."""
        if self.form.weights == "straight_through":
            exits = self.walk.exit_leaves(self.selection, z, self.hard_thresholds(), self.missing)
        else:
            exits = self.heads.exit_leaves(self._hard_scores(z))
        weights = self._one_hot(exits) if want_weights else None
        start = self.base if self.machine.output.base_first else torch.zeros_like(self.base)
        total = self.leaves.pick(exits, values, start.to(self.sum_dtype))
        return self._scaled(total).to(self.t.dtype), weights

    def _hard_scores(self, z: Tensor) -> Float[Tensor, "L m"]:
        name = self.form.query
        # The exact queries take S z - t as it is: a slope could make a small difference 0.
        is_scaled = name not in ("sign", "relu")
        q = self._query(z, name, self.paths.test_order, is_scaled)
        p = self.keys.scores(self.paths, *QUERIES[name].terms(q))
        if self.form.weights != "delta":
            return p
        p = self.heads.by_leaf(self.heads.normalise(p, lambda p, is_real, block: delta(p, is_real)))
        return p.index_select(0, self.paths.leaf_order)

    def _one_hot(self, exits: Tensor) -> Tensor:
        zero = torch.zeros(
            (self.paths.n_leaves, exits.shape[1]), dtype=self.t.dtype, device=exits.device
        )
        return zero.scatter(0, exits, 1.0)

    def _soft(self, z: Tensor, values: Tensor, want_weights: bool) -> tuple[Tensor, Tensor | None]:
        form, order = self.form, self.paths.test_order
        if form.weights == "exp" and self.keys.factor is None:
            return self._soft_tree(z, values, want_weights)
        if form.weights == "top_k" and self._can_search(z):
            return self._top_k(z, values, want_weights)
        if form.weights == "kernel":
            q = self._query(z, form.query, order)
            q = q.clamp(-LARGEST, LARGEST)
            by_tree = self.kernel(q, values, self.paths) * self.leaves.head[:, None, None]
            weights = self.kernel.weights(q, self.paths, len(values)) if want_weights else None
            return self.leaves.add_trees(by_tree), weights
        blocks = self._weigh(self._scores(z))
        if want_weights or not self.leaves.is_product:
            weights = self.heads.by_leaf(blocks)
            return self.leaves.weigh(weights, values), weights
        V = self.heads.of_leaves(self.leaves.masked(values))
        parts = [w.t() @ v for w, v in zip(blocks, V, strict=True)]
        zero = z.new_zeros((z.shape[0], self.machine.n_outputs))
        return sum(parts, zero), None

    def _scores(self, z: Tensor) -> Float[Tensor, "L m"]:
        """keys · query, over τ where the query does not have it; leaves in level order."""
        query = QUERIES[self.form.query]
        q = self._query(z, self.form.query, self.paths.test_order)
        p = self.keys.scores(self.paths, *query.terms(q))
        return p / self.log_tau.exp() if query.is_bounded else p

    def _weigh(self, p: Float[Tensor, "L m"]) -> list[Tensor]:
        """The weights of every block of trees."""
        draw = self.weighing.next_draw()
        return self.heads.normalise(
            p, lambda p, is_real, block: self.weighing(p, is_real, block, self.heads, draw)
        )

    def sample(
        self, X: Float[Tensor, "... n_features"]
    ) -> tuple[Float[Tensor, "... k"], Float[Tensor, "..."]]:
        """Answers of leaves drawn from softmax(scores), and ln of the probability of each draw.

        Of the weights "sampled", in training mode: `score_function.ScoreFunction` learns from it.
        One draw is a leaf in every tree that is not masked. In evaluation mode the most probable
        leaves answer.

        Parameters
        ----------
        X
            As `forward` takes it.
        """
        if self.form.weights != "sampled":
            raise InputError(
                "sampling leaves",
                f"weights={self.form.weights!r}, which draw no leaf",
                "soften with the form 'sampled'",
            )
        self._check(X)
        lead = X.shape[:-1]
        x = X.reshape(-1, X.shape[-1])
        p = self._scores(self.columns(x).to(self.t.dtype))
        weights = self.heads.by_leaf(self._weigh(p)) if self.heads.n_blocks else p
        log_soft = self.heads.normalise(p, lambda p, is_real, block: _log_softmax(p, is_real))
        log_prob = self.heads.by_leaf(log_soft) if self.heads.n_blocks else p
        drawn = torch.where(weights > 0, log_prob, 0.0) * self.leaves.heads_of_leaves()
        total = self._finished(self.leaves.weigh(weights, self.leaves.values(x)))
        margin = total.reshape(*lead, total.shape[-1])
        answer = margin if self.link is None else self._respond(margin)
        return answer, drawn.sum(0).reshape(lead)

    def _can_search(self, z: Tensor) -> bool:
        """Whether a test bounds the leaves below it, and torch lets the search look at numbers."""
        return (
            self.form.query in ("relu", "log_sigmoid")
            and self.form.keys == "templates"
            and self.keys.factor is None
            and not z.is_meta
            and not torch.compiler.is_compiling()
            and not is_traced()
            and not torch._C._functorch.is_functorch_wrapped_tensor(z)
            and self.machine.n_trees > 0
        )

    def _top_k(self, z: Tensor, values: Tensor, want_weights: bool) -> tuple[Tensor, Tensor | None]:
        """softmax over the k best leaves, found best-first; no other leaf is scored."""
        k, m = self.weighing.given.k, z.shape[0]
        assert k is not None
        k = min(k, int(self.best_first.size.max()))
        whole = None if self.selection.kind == "fixed" else self.selection(self._finite(z), None)

        def terms(tests: Tensor) -> tuple[Tensor, Tensor]:
            if not self.machine.n_tests:
                nothing = self.t.new_zeros(tests.shape)
                return nothing, nothing
            rows = torch.arange(m, device=z.device).reshape(1, m, *[1] * (tests.dim() - 2))
            if whole is None:
                at = rows * z.shape[1] + self.selection.column[tests]
                selected = self._finite(z).reshape(-1)[at]
                is_missing = selected.isnan()
            else:
                selected, is_missing = (part[tests, rows] for part in whole)
            q = self._soft_query(selected, is_missing, self.form.query, lambda part: part[tests])
            return QUERIES[self.form.query].terms(q)

        leaves = self.best_first.leaves(k, m, terms, self.t.dtype)
        weights = self.best_first.scores(leaves, terms).to(self.t.dtype).softmax(-1)
        at = leaves.clamp(min=0)
        if self.leaves.is_linear:
            picked = values[at, :, torch.arange(m, device=z.device)[None, :, None]]
        else:
            picked = values[at]
        by_tree = (weights[..., None] * picked).sum(2).transpose(1, 2)
        total = self.leaves.add_trees(by_tree * self.leaves.head[:, None, None])
        if not want_weights:
            return total, None
        # Leaves that a small tree does not have stand at 0 with weight 0.
        zero = weights.new_zeros((self.paths.n_leaves, m))
        index = at.permute(0, 2, 1).reshape(-1, m)
        return total, zero.scatter_add(0, index, weights.permute(0, 2, 1).reshape(-1, m))

    def _soft_tree(
        self, z: Tensor, values: Tensor, want_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        order = self.paths.test_order
        if want_weights or self.leaves.is_linear:
            q = self._query(z, "log_sigmoid", order)
            weights = soft_tree_weights(q, self.paths).index_select(0, self.paths.leaf_rank)
            return self.leaves.weigh(weights, values), weights
        if not has_kernel(z, values):
            q = self._query(z, "log_sigmoid", order)
            return soft_tree_sum_by_level(q, self.paths, self.leaves.masked(values)), None
        if self.selection.kind == "fixed":
            if self._structure is None:
                self._structure = SoftStructure.of(self.machine)
            V = values * self.leaves.heads_of_leaves()
            slopes, nudge = self.slopes(), self.nudge
            return soft_tree_sum_native(self._structure, z, self.t, slopes, V, nudge=nudge), None
        q = self._query(z, "log_sigmoid", None).t()
        return soft_tree_sum(q, self.paths, self.leaves.masked(values)), None

    def _query(
        self, z: Tensor, name: str, order: Tensor | None, is_scaled: bool = True
    ) -> Float[Tensor, "J m"]:
        """slope (S z - t) / τ, and the missing answer where S z is missing; or S z - t alone."""

        def taken(part: Tensor) -> Tensor:
            return (part if order is None else part.index_select(0, order))[:, None]

        if not is_scaled:
            far = taken(self.missing) * (LARGEST if QUERIES[name].is_missing_certain else 1.0)
            selected, is_missing = self.selection(z, order)
            # NaN only where S z is missing, or where both are the same infinity: a tie, and 0.
            q = torch.nan_to_num(selected - taken(self.hard_thresholds()), nan=0.0)
            return torch.where(is_missing, far, q)
        selected, is_missing = self.selection(self._finite(z), order)
        return self._soft_query(selected, is_missing, name, taken)

    @staticmethod
    def _finite(z: Tensor) -> Tensor:
        """Finite before it is scaled: infinite differences would make the slope's gradient NaN."""
        bound = torch.finfo(z.dtype).max / 4
        return z.clamp(-bound, bound)

    def _soft_query(
        self, selected: Tensor, is_missing: Tensor, name: str, taken: Callable[[Tensor], Tensor]
    ) -> Tensor:
        far = taken(self.missing) * (LARGEST if QUERIES[name].is_missing_certain else 1.0)
        bound = torch.finfo(selected.dtype).max / 2
        # In this order: near t the first difference is exact, so that the nudge is not lost.
        q = selected - taken(self.t.clamp(-bound, bound)) - taken(self.nudge)
        return torch.where(is_missing, far, q) * taken(self.slopes())

    def slopes(self) -> Float[Tensor, "J"]:
        """slope / τ of every test."""
        return (self.log_slope - self.log_tau).exp()

    def _finished(self, total: Tensor) -> Tensor:
        output = self.machine.output
        total = total.to(self.t.dtype)
        base = self.base.to(self.t.dtype)
        return self._scaled(total + base if output.base_first else total)

    def _scaled(self, total: Tensor) -> Tensor:
        output = self.machine.output
        if output.divisor != 1.0:
            total = total / output.divisor
        if output.scale != 1.0:
            total = total * output.scale
        return total if output.base_first else total + self.base.to(total.dtype)

    def _check(self, X: Tensor) -> None:
        if not isinstance(X, torch.Tensor):
            raise InputError(
                DOING,
                f"X is {type(X).__name__}, not a tensor",
                "pass torch.from_numpy(machine.features(X))",
            )
        n = self.machine.n_features
        if X.dim() == 0 or X.shape[-1] != n:
            raise InputError(
                DOING,
                f"X of shape {tuple(X.shape)}; the machine reads {n} features",
                f"give X the shape (..., {n})",
            )
        if X.device != self.t.device:
            raise InputError(
                DOING,
                f"X is on {X.device} and the module on {self.t.device}",
                f"move one of them: X.to({str(self.t.device)!r})",
            )

    # ------------------------------------------------------------------ without gradients

    def frozen(self) -> Assembly:
        """The module as it is now without torch: soft trees that predict by the native kernel.

        They are an `Assembly` that reads tables and labels as a machine does, is saved to a `.dm`
        file, served and streamed, and needs no torch. Hard forms freeze to hard tests.

        Raises
        ------
        UnsupportedModelError
            Where the module is more than soft trees: linear leaves, learned keys, other weights.

        Examples
        --------
        >>> import decision_machines as dm
        >>> net = dm.figure_one().soften("soft_tree", tau=0.1)
        >>> net.frozen().predict([[2, 1, 2, 2]]).round(3)
        array([5.])
        """
        parts = [*self.parameters(), *self.buffers()]
        now = [(id(part), part._version) for part in parts]
        if self._frozen is None or self._frozen[0] != now:
            self._frozen = now, frozen(self)
        return self._frozen[1]

    def predict(self, X: Any, *, n_threads: int | None = None) -> np.ndarray:
        """What the softened machine predicts for rows as `DecisionMachine.predict` takes them.

        Soft trees are computed by the native kernel, without autograd; other forms by torch.

        Examples
        --------
        >>> import decision_machines as dm
        >>> dm.figure_one().soften("soft_tree", tau=0.1).predict([[2, 1, 2, 2]]).round(3)
        array([5.])
        """
        from ..run.decide import decide

        return decide(self.machine, self._margins(X, n_threads))

    def predict_proba(
        self, X: Any, *, n_threads: int | None = None
    ) -> Float[np.ndarray, "m c"] | list[Float[np.ndarray, "m c"]]:
        """Probabilities of the classes for rows as `DecisionMachine.predict_proba` takes them."""
        from ..run.decide import check_classes, probabilities

        check_classes(self.machine)
        return probabilities(self.machine, self._margins(X, n_threads))

    def _margins(self, X: Any, n_threads: int | None) -> Float[np.ndarray, "m k"]:
        if not cannot_freeze(self):
            return self.frozen().margin(X, n_threads=n_threads)
        x = torch.from_numpy(np.array(self.machine.features(X))).to(self.t.device)
        with torch.no_grad():
            blocks = [self.margin(block).cpu().double() for block in x.split(ROWS_AT_ONCE)]
        return torch.cat(blocks).numpy().astype(self.machine.output.dtype)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the module as it is now to a `.dm` file; `dm.load` gives `frozen` again."""
        self.frozen().save(path)

    # ------------------------------------------------------------------ and back

    def harden(self, *, axis_aligned: bool = False) -> DecisionMachine:
        """An ordinary machine with the parameters as they are now.

        Untrained, it is the machine that the module came from, bit for bit.

        Parameters
        ----------
        axis_aligned
            Whether a learned S keeps only the largest weight of each test, so that each test reads
            one column. Otherwise all weights stay, and the machine is oblique.
        """
        return harden(self, axis_aligned=axis_aligned)

    def agreement(
        self, X: Float[Tensor, "m n_features"], machine: DecisionMachine | None = None
    ) -> Agreement:
        """How alike the module and its hardened machine answer on rows X.

        Parameters
        ----------
        X
            A tensor of features, as `forward` takes it.
        machine
            A machine to compare with instead of the hardened one.
        """
        return agreement(self, X, machine)

    def extra_repr(self) -> str:
        form = self.form
        learned = [name for name, part in self.named_parameters() if part.requires_grad]
        return (
            f"{self.machine!r}\nquery={form.query!r}, keys={form.keys!r}, "
            f"weights={form.weights!r}, exact: {form.exact}\n"
            f"learns {', '.join(learned) or 'nothing'}"
        )


def _log_softmax(p: Tensor, is_real: Tensor | None) -> Tensor:
    """ln of softmax over the leaves of each tree; padding at 0, so that it adds nothing."""
    if is_real is None:
        return p.log_softmax(1)
    return p.masked_fill(~is_real, -torch.inf).log_softmax(1).masked_fill(~is_real, 0.0)
