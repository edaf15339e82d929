"""The table of forms: one choice on each of the three axes, and how near it is to the tree.

*Exact: yes* means the weights of Eq. `tree` on every input, ties included, at any temperature.
*Exact: in the limit* means that they are reached as τ → 0. A smooth gate is one half at q = 0,
whatever the temperature; but soft thresholds stand between the values that their columns can
hold, or between the rows given as `data` (see `gaps`), so that no such row stands on one.
*Exact: no* means that some rows are never answered as the tree does.

In the bounds, for one row and one tree: d is the depth of the exit leaf, w is its weight, and the
sums run over its path. The error of the tree's value is at most (largest value - smallest value)
times 1 - w.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..errors import InputError
from .keys import KEYS
from .queries import QUERIES
from .weights import WEIGHTS

if TYPE_CHECKING:
    from collections.abc import Callable

    Describe = Callable[[], None]

NEVER = ("positive_part", "kernel", "sparsehourglass", "constrained_sparsemax")
"""Weights that other leaves keep a share of, at any temperature."""
ALL_WEIGHTS = ("argmax", "exp", "kernel", "straight_through", *WEIGHTS)


@dataclass(frozen=True)
class Form:
    """A row of the table: query, keys, weights, and what is known of it."""

    query: str
    keys: str
    weights: str
    exact: str = "no"
    says: str = ""

    @property
    def is_hard(self) -> bool:
        """Whether each tree answers with one leaf."""
        return self.weights in ("argmax", "delta", "straight_through")


FORMS: dict[str, Form] = {}
"""The named forms; `help(decision_machines.relax.forms.logical)` and so on describe each."""


def _form(query: str, keys: str, weights: str) -> Callable[[Describe], Describe]:
    """Enter a form into the table under the name of the function that describes it."""

    def enter(describe: Describe) -> Describe:
        says = describe.__doc__ or ""
        exact = next(word for word in ("yes", "in the limit", "no") if f"Exact: {word}" in says)
        FORMS[describe.__name__] = Form(query, keys, weights, exact, says)
        return describe

    return enter


@_form("sign", "normalised", "argmax")
def logical() -> None:
    """Eq. `tree` itself: the leaf of the largest logical similarity.

    Exact: yes. V is all that learns. Bound at the start: 0.
    """


@_form("sign", "normalised", "delta")
def delta() -> None:
    """Eq. `delta`: every leaf weighed by δ(1 - similarity).

    Exact: yes. V is all that learns. Bound at the start: 0.
    """


@_form("relu", "templates", "argmax")
def relu() -> None:
    """The ReLU form: F · ReLU(W x - b), then the first maximum.

    Paper: Eq. `defK`. Exact: yes, ties included, because leaves stand from left to right and the
    first maximum wins. V is all that learns; `weights="softmax"` trains the rest.
    Bound at the start: 0.
    """


@_form("affine", "templates", "softmax")
def softmax() -> None:
    """Scaled dot-product attention of S z - t over the templates.

    Paper: Eq. `GT2`. NOTE[PAPER]: Exact: no, even as τ → 0, because one large margin outweighs
    the others: a leaf that fails a test narrowly and passes others widely can win. With
    `query="relu"` it is exact in the limit, 1 - w ≤ (L - 1) exp(-m/τ), where m is the smallest
    abs(q) on the exit path; with `query="sign"` or `"tanh"` and `keys="normalised"` too.
    Bound at the start: none but that of any average of the leaves' values.
    """


@_form("affine", "templates", "sparsemax")
def sparsemax() -> None:
    """Sparse attention: leaves far from the best get exactly 0.

    Paper: Eq. `GT2` with the sparse alternatives to softmax. Exact: no, for `softmax`'s reason.
    With `query="relu"` it is the tree wherever every abs(q) on the exit path is at least τ; with
    `query="sign"`, `keys="normalised"` wherever τ ≤ 2 / d.
    Bound at the start: none but that of any average of the leaves' values.
    """


@_form("affine", "templates", "entmax15")
def entmax15() -> None:
    """Sparse attention by 1.5-entmax, between softmax and sparsemax.

    Paper: Eq. `GT2` with the sparse alternatives to softmax. Exact: no, for `softmax`'s reason.
    With `query="relu"` it is the tree wherever every abs(q) on the exit path is at least 2 τ; with
    `query="sign"`, `keys="normalised"` wherever τ ≤ 1 / d.
    Bound at the start: none but that of any average of the leaves' values.
    """


@_form("affine", "templates", "entmax")
def entmax() -> None:
    """Sparse attention by α-entmax, `alpha` from just above 1 (softmax) to 2 (sparsemax).

    Paper: Eq. `GT2` with the sparse alternatives to softmax. Exact: no, for `softmax`'s reason.
    With `query="relu"` it is the tree wherever every abs(q) on the exit path is at least
    τ / (α - 1). With "alpha" in `learn` every tree learns an α of its own (Paper: cites
    `correia2019adaptively`).
    Bound at the start: none but that of any average of the leaves' values.
    """


@_form("relu", "templates", "sigsoftmax")
def sigsoftmax() -> None:
    """Attention by exp(p) σ(p), which falls off faster than exp(p) below 0.

    Paper: cites `Sigsoftmax1`. Exact: in the limit. Bound at the start:
    1 - w ≤ (L - 1) exp(-m/τ), where m is the smallest abs(q) on the exit path, as in `softmax`.
    """


@_form("relu", "templates", "weighted_softmax")
def weighted_softmax() -> None:
    """Attention by π exp(p): `prior` is a positive number for each leaf, its cover for example.

    Paper: cites `zhang2018weighted`. Exact: in the limit. With "prior" in `learn` π is learned.
    Bound at the start: 1 - w ≤ exp(-m/τ) times the other leaves' π over that of the exit leaf,
    where m is the smallest abs(q) on the exit path.
    """


@_form("relu", "templates", "gumbel")
def gumbel() -> None:
    """Gumbel-softmax: in training nearly a draw of one leaf from softmax(p), with a gradient.

    Paper: cites `jang2016categorical`. Exact: in the limit, for any noise drawn: the exit leaf is
    the largest of p + noise but with a probability of at most (L - 1) exp(-m/τ). `sample_tau` is
    how near a draw is to one leaf; `seed` makes the draws again. In evaluation mode (`net.eval()`)
    there is no noise and the form is `softmax`. Bound at the start: that of `softmax`, in
    evaluation mode.
    """


@_form("relu", "templates", "gumbel_hard")
def gumbel_hard() -> None:
    """Straight-through Gumbel-softmax: draws one leaf, learns as `gumbel` does.

    Paper: cites `jang2016categorical`. Exact: in the limit, as `gumbel` is. In evaluation mode the
    leaf of the largest score answers. Bound at the start: another leaf is drawn with a probability
    of at most (L - 1) exp(-m/τ).
    """


@_form("relu", "templates", "sampled")
def sampled() -> None:
    """Hard attention: one leaf is drawn from softmax(p); the draw learns by its score function.

    Paper: cites `xu2015show`. Exact: in the limit, as `gumbel_hard` is. V learns by itself; the
    rest needs `net.sample` and `score_function.ScoreFunction`, because a draw has no gradient. In
    evaluation mode the leaf of the largest score answers. Bound at the start: another leaf is drawn
    with a probability of at most (L - 1) exp(-m/τ).
    """


@_form("relu", "templates", "top_k")
def top_k() -> None:
    """softmax over the `k` best leaves; with k = 1 the best alone, which learns V only.

    Paper: cites `gupta2021memoryefficient`. Exact: in the limit. With the queries "relu" and
    "log_sigmoid" and the keys "templates" the leaves are found best-first down the tree, and no
    others are scored (outside of compiled and exported graphs). Bound at the start:
    1 - w ≤ (k - 1) exp(-m/τ), where m is the smallest abs(q) on the exit path.
    """


@_form("relu", "templates", "sparsegen")
def sparsegen() -> None:
    """sparsemax(p / (1 - λ)): `strength` λ < 1 sets how sparse it is, apart from τ.

    Paper: cites `laha2018controllable`. Exact: in the limit. Bound at the start: 0 wherever every
    abs(q) on the exit path is at least (1 - λ) τ.
    """


@_form("relu", "templates", "sparsehourglass")
def sparsehourglass() -> None:
    """sparsemax of scores divided by their own size, more so the smaller `strength` q is.

    Paper: cites `laha2018controllable`. Exact: no, at no τ and no q: as τ → 0 all scores grow alike
    and are divided by their sum, so that a leaf near the best in proportion keeps weight. As q
    grows with 1/τ it becomes `sparsemax`.
    Bound at the start: none but that of any average of the leaves' values.
    """


@_form("relu", "templates", "fusedmax")
def fusedmax() -> None:
    """Sparse weights in which neighbouring leaves share weight: a soft pruning of the tree.

    Paper: cites `niculae2017regularized`. Exact: in the limit. `strength` λ is the price of a jump
    between neighbours. Bound at the start: 0 wherever every abs(q) on the exit path is at least
    (1 + 3 λ) τ.
    """


@_form("relu", "templates", "oscarmax")
def oscarmax() -> None:
    """Sparse weights in which leaves of nearly equal score share one weight.

    Paper: cites `niculae2017regularized`. Exact: in the limit. `strength` λ is the price of the
    larger of each pair of weights. Bound at the start: 0 wherever every abs(q) on the exit path is
    at least (1 + λ L / 2) τ.
    """


@_form("relu", "templates", "constrained_sparsemax")
def constrained_sparsemax() -> None:
    """sparsemax in which no leaf gets more than its `budget`.

    Paper: cites `malaviya2018sparse`. Exact: no, wherever the exit leaf's budget is below 1: it
    gets all of it, and others the rest. With budgets of 1 it is `sparsemax`.
    Bound at the start: 1 - w is 1 less the exit leaf's budget wherever every abs(q) on the exit
    path is at least τ.
    """


@_form("affine", "templates", "positive_part")
def positive_part() -> None:
    """(α p₊ + 1 - α) over its sum: leaves that agree with the query share the weight.

    Paper: the alternative after Eq. `GT2`, with `alpha` in (0, 1]. Exact: no, at no τ and no α:
    every leaf of positive score keeps weight.
    Bound at the start: none but that of any average of the leaves' values.
    """


@_form("log_sigmoid", "templates", "exp")
def soft_tree() -> None:
    """The soft tree: each test sends a row right with probability σ(slope (S z - t) / τ).

    Paper: Eq. `defM`, Eq. `soft`. Exact: in the limit. Bound at the start:
    1 - w ≤ Σ σ(-abs(q)), q being slope (S z - t) / τ.
    """


@_form("log_sigmoid", "templates", "straight_through")
def straight_through() -> None:
    """Answers as `logical` does, learns as `soft_tree` does.

    Exact: yes, before and after every step. Bound at the start: 0.
    """


@_form("affine", "templates", "kernel")
def linear() -> None:
    """Linear attention: weights φ(B_i) · φ(q), whose sums over leaves are taken before q is known.

    Paper: the linear transformers after Eq. `MultiHead`. Exact: no, at no τ: the kernel is a sum
    over tests where a path is a conjunction. No weights are formed; a row costs O(tests), not
    O(leaves × depth). Bound at the start: none but that of any average of the leaves' values.
    """


@_form("affine", "templates", "softmax")
def multi_head() -> None:
    """Every tree a head with projections W^Q, W^K, W^V and W^O, the identity at first.

    Paper: Eq. `dot-product`, Eq. `MultiHead`. Exact: no, for `softmax`'s reason; equal to
    `softmax` at the start. Bound at the start: none but that of any average of the leaves' values.
    """


def choose_form(
    form: str | None, query: str | None, keys: str | None, weights: str | None
) -> tuple[str, Form]:
    """The named form with any axis replaced, or the three axes alone; and its name."""
    doing = "softening a machine"
    if form is None and not (query and weights):
        raise InputError(
            doing,
            "no form, and no query or no weights",
            f"name a form ({', '.join(FORMS)}), or give query=, keys= and weights=",
        )
    if form is not None and form not in FORMS:
        raise InputError(doing, f"form={form!r}", f"use one of {', '.join(FORMS)}")
    for name, choice, table in (
        ("query", query, QUERIES),
        ("keys", keys, KEYS),
        ("weights", weights, ALL_WEIGHTS),
    ):
        if choice is not None and choice not in table:
            raise InputError(doing, f"{name}={choice!r}", f"use one of {', '.join(table)}")
    row = Form(query or "", keys or "templates", weights or "") if form is None else FORMS[form]
    chosen = replace(
        row, query=query or row.query, keys=keys or row.keys, weights=weights or row.weights
    )
    is_changed = (chosen.query, chosen.keys, chosen.weights) != (row.query, row.keys, row.weights)
    if is_changed and form in ("multi_head", "linear", "straight_through"):
        raise InputError(
            doing,
            f"form={form!r} with another query, keys or weights",
            f"leave the axes of {form!r} as they are, or name the axes without a form",
        )
    if chosen.weights in ("exp", "straight_through") and chosen.query != "log_sigmoid":
        raise InputError(
            doing,
            f"weights={chosen.weights!r} of the query {chosen.query!r}, which do not sum to 1",
            "use query='log_sigmoid', or weights='softmax'",
        )
    if chosen.weights == "kernel" and chosen.query != "affine":
        raise InputError(
            doing,
            f"weights='kernel' of the query {chosen.query!r}",
            "use query='affine': the feature map is the query of linear attention",
        )
    if chosen.weights == "delta" and (chosen.query, chosen.keys) != ("sign", "normalised"):
        raise InputError(
            doing,
            f"weights='delta' with query={chosen.query!r} and keys={chosen.keys!r}",
            "use query='sign' and keys='normalised': only there is the exit leaf's score 1",
        )
    return form or "custom", replace(chosen, exact=exactness(chosen))


def exactness(form: Form) -> str:
    """'yes', 'in the limit' or 'no' for any choice on the three axes."""
    if form.weights == "straight_through":
        return "yes"
    if form.weights in NEVER or form.query == "affine":
        return "no"
    if form.query in ("sign", "tanh") and form.keys == "templates":
        return "no"  # a deep leaf that fails one test outscores a shallow one that fails none
    if form.weights == "argmax" or form.weights == "delta":
        return "yes" if form.query in ("sign", "relu") else "in the limit"
    return "in the limit"
