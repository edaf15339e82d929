"""`TreeSoftmax`: many classes, chosen down a tree in O(log k) tests."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn

from ..errors import InputError
from ..machine import Columns, DecisionMachine, Trees
from ..machine.structure import layout
from .complete import value_output
from .sizes import check_classes, check_rows, check_size

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

DOING = "building a tree softmax"
RUNNING = "running a tree softmax"
MOST_AT_ONCE = 2**24
"""Numbers of the tests' weights along paths that stand in memory at once."""


class TreeSoftmax(nn.Module):
    """Probabilities of k classes as products of gates down a tree with a leaf for each class.

    A row is scored against the class given, or a class is drawn for it, by the tests on one path
    alone: about log2(k) products with the row where a softmax takes k.
    Paper: cites `pmlr-vR5-morin05a`, `hlm2008`, `hsc2018`.
    The probabilities sum to 1 by construction. What the paper sets itself apart from: here classes
    are leaves and every row trains the path of its own class; in a decision machine leaves are
    found by the tests and hold any value.

    Parameters
    ----------
    in_features, n_classes
        Sizes.
    counts
        How often each class comes: frequent classes get short paths (Huffman's code), which is
        fastest on average. By default the tree is balanced.
    order
        The classes from left to right; those that are alike side by side learn best. By default
        as they are numbered. Not with `counts`.
    device, dtype
        Of the parameters.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> head = TreeSoftmax(5, 1000)
    >>> x, y = torch.randn(3, 5), torch.tensor([0, 7, 999])
    >>> head(x, y).shape  # log-probabilities of the given classes: train with -head(x, y).mean()
    torch.Size([3])
    >>> bool(torch.allclose(head.log_prob(x).exp().sum(-1), torch.ones(3)))
    True
    >>> head.depth
    10
    """

    path: Tensor
    side: Tensor
    below: Tensor

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        *,
        counts: Any = None,
        order: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = check_size(DOING, "in_features", in_features)
        self.n_classes = check_size(DOING, "n_classes", n_classes, least=2)
        if counts is not None and order is not None:
            raise InputError(DOING, "counts and order", "give one of them")
        children = (
            _balanced(_check_order(order, self.n_classes))
            if counts is None
            else _huffman(_check_counts(counts, self.n_classes))
        )
        path, side = _paths(children)
        self.depth = path.shape[1]
        for name, part in (("path", path), ("side", side), ("below", children)):
            self.register_buffer(name, torch.from_numpy(part))
        self.W = nn.Parameter(torch.empty(self.n_classes - 1, self.in_features))
        self.b = nn.Parameter(torch.empty(self.n_classes - 1))
        self.reset_parameters()
        self.to(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Start anew, from torch's own random numbers: every class about as likely as its depth."""
        nn.init.normal_(self.W, std=0.01 * self.in_features**-0.5)
        nn.init.zeros_(self.b)

    def forward(
        self, x: Float[Tensor, "... n"], y: Int[Tensor, "..."] | None = None
    ) -> Float[Tensor, "..."]:
        """log P(y | x) of the classes given, by the tests on their paths; without y, of all."""
        return self.log_prob(x, y)

    def log_prob(
        self, x: Float[Tensor, "... n"], y: Int[Tensor, "..."] | None = None
    ) -> Float[Tensor, "..."]:
        """log P(y | x), shape (...), in O(log k); without y of all classes, (..., k), in O(k)."""
        rows = self._rows(x)
        if y is None:
            return self._all(rows).reshape(*x.shape[:-1], self.n_classes)
        classes = check_classes(RUNNING, y.reshape(-1), len(rows), self.n_classes)
        # Weights of a path are gathered: a few rows at a time where there are many.
        size = max(1, MOST_AT_ONCE // (self.depth * self.in_features))
        parts = [
            self._given(r, c) for r, c in zip(rows.split(size), classes.split(size), strict=True)
        ]
        found: Tensor = torch.cat(parts) if parts else rows.new_zeros(0)
        return found.reshape(x.shape[:-1])

    def _given(self, rows: Tensor, classes: Tensor) -> Float[Tensor, "m"]:
        path, side = self.path[classes], self.side[classes]
        q = torch.einsum("mdn,mn->md", self.W[path], rows) + self.b[path]
        terms = nn.functional.logsigmoid(side * q)
        return torch.where(side == 0, 0.0, terms).sum(-1)

    def _all(self, rows: Tensor) -> Float[Tensor, "m k"]:
        q = rows @ self.W.t() + self.b
        right = nn.functional.logsigmoid(q)
        left = right - q  # log(1 - σ) = log σ - q
        found = rows.new_zeros(len(rows), self.n_classes)
        # Level by level along paths: as many classes at a time as the longest path has tests.
        for level in range(self.depth):
            test, side = self.path[:, level], self.side[:, level]
            term = torch.where(side > 0, right[:, test], left[:, test])
            found = found + torch.where(side == 0, 0.0, term)
        return found

    @torch.no_grad()
    def sample(
        self, x: Float[Tensor, "... n"], *, generator: torch.Generator | None = None
    ) -> Int[Tensor, "..."]:
        """A class for each row, drawn by its probability: one gate after another."""
        return self._descend(
            x, lambda q: torch.rand(q.shape, generator=generator, device=q.device) < q.sigmoid()
        )

    @torch.no_grad()
    def predict(self, x: Float[Tensor, "... n"], *, exact: bool = True) -> Int[Tensor, "..."]:
        """The most probable class.

        Parameters
        ----------
        exact
            Whether to search best first: a part of the tree is left out where its probability is
            below that of a class found, so the answer is the largest of all, mostly in O(log k).
            False goes down by the larger gate at each test, as the hardened machine does.
        """
        if not exact:
            return self._descend(x, lambda q: q > 0)
        rows = self._rows(x)
        W, b = (part.detach().cpu().double().numpy() for part in (self.W, self.b))
        children = self.below.cpu().numpy()
        found = [_best_first(row, W, b, children) for row in rows.cpu().double().numpy()]
        return torch.tensor(found, dtype=torch.long, device=x.device).reshape(x.shape[:-1])

    def _descend(self, x: Tensor, goes_right: Any) -> Int[Tensor, "..."]:
        rows = self._rows(x)
        at = torch.zeros(len(rows), dtype=torch.long, device=rows.device)
        for _ in range(self.depth):
            test = at.clamp(min=0)
            q = (self.W[test] * rows).sum(-1) + self.b[test]
            below = self.below[test, goes_right(q).long()]
            at = torch.where(at >= 0, below, at)
        return (~at).reshape(x.shape[:-1])

    def _rows(self, x: Tensor) -> Float[Tensor, "m n"]:
        check_rows(RUNNING, x, self.in_features, self.b.device)
        return x.reshape(-1, self.in_features)

    def harden(self) -> DecisionMachine:
        """The oblique machine that goes by the larger gate; it predicts the number of the class."""
        children = self.below.cpu().numpy()
        k = self.n_classes
        # As `layout` numbers nodes: tests, then classes.
        ids = np.where(children >= 0, children, k - 1 + ~children).astype(np.int64)
        leaf = np.full(k, -1)
        left, right = (np.concatenate([ids[:, side], leaf]) for side in (0, 1))
        found = layout(left, right, np.array([0, 2 * k - 1]), "hardening a tree softmax")
        W, b = (part.detach().double().cpu().numpy() for part in (self.W, self.b))
        return DecisionMachine(
            columns=Columns(self.in_features, np.float64),
            selection=sp.csr_array(W[found.tests]),
            t=-b[found.tests],
            missing=np.full(k - 1, -1),
            children=found.children,
            V=(found.leaves - (k - 1)).astype(np.float64)[:, None],
            trees=Trees(found.test_start),
            output=value_output(1),
            source="TreeSoftmax",
        )

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.n_classes}, depth={self.depth}"


def _best_first(
    row: Float[np.ndarray, "n"],
    W: Float[np.ndarray, "J n"],
    b: Float[np.ndarray, "J"],
    children: Int[np.ndarray, "J 2"],
) -> int:
    """The leaf of the largest product of gates."""
    heap = [(0.0, 0)]
    while True:
        cost, node = heapq.heappop(heap)
        if node < 0:
            return ~node
        q = float(W[node] @ row) + float(b[node])
        right = cost + float(np.logaddexp(0.0, -q))
        left = cost + float(np.logaddexp(0.0, q))
        # Equal costs: the leaf further left comes first, as in argmax over classes of one order.
        heapq.heappush(heap, (left, int(children[node, 0])))
        heapq.heappush(heap, (right, int(children[node, 1])))


def _balanced(order: Int[np.ndarray, "k"]) -> Int[np.ndarray, "J 2"]:
    """Halves of the classes below every test; parents first."""
    children = np.zeros((len(order) - 1, 2), np.int64)
    spans, made = [(0, len(order), -1, 0)], 0
    while spans:
        low, high, parent, side = spans.pop()
        at = ~int(order[low]) if high - low == 1 else made
        if parent >= 0:
            children[parent, side] = at
        if high - low > 1:
            made += 1
            middle = (low + high + 1) // 2
            spans += [(middle, high, at, 1), (low, middle, at, 0)]
    return children


def _huffman(counts: Float[np.ndarray, "k"]) -> Int[np.ndarray, "J 2"]:
    """The tree of the shortest mean path; parents first."""
    heap = [(float(count), leaf, ~leaf) for leaf, count in enumerate(counts)]
    heapq.heapify(heap)
    pairs: list[tuple[int, int]] = []
    while len(heap) > 1:
        first, _, a = heapq.heappop(heap)
        second, _, b = heapq.heappop(heap)
        heapq.heappush(heap, (first + second, len(counts) + len(pairs), len(pairs)))
        pairs.append((a, b))
    last = len(pairs) - 1
    # The last pair is the root: numbered from it, parents come first.
    return np.array([[last - c if c >= 0 else c for c in pair] for pair in reversed(pairs)])


def _paths(children: Int[np.ndarray, "J 2"]) -> tuple[np.ndarray, np.ndarray]:
    """The tests above each class, the side that leads to it (0 where its path has ended)."""
    k = len(children) + 1
    above: list[list[tuple[int, int]]] = [[] for _ in range(k - 1)]
    found: list[list[tuple[int, int]]] = [[] for _ in range(k)]
    for test in range(k - 1):
        for side in (0, 1):
            below, way = int(children[test, side]), [*above[test], (test, 2 * side - 1)]
            (above if below >= 0 else found)[below if below >= 0 else ~below] = way
        above[test] = []
    depth = max(len(way) for way in found)
    path, sides = np.zeros((k, depth), np.int64), np.zeros((k, depth), np.int8)
    for leaf, way in enumerate(found):
        path[leaf, : len(way)] = [test for test, _ in way]
        sides[leaf, : len(way)] = [s for _, s in way]
    return path, sides


def _check_order(order: Any, k: int) -> Int[np.ndarray, "k"]:
    if order is None:
        return np.arange(k)
    found = np.asarray(order)
    if found.shape != (k,) or not np.array_equal(np.sort(found), np.arange(k)):
        raise InputError(DOING, f"order={order!r:.80}", f"give every class from 0 to {k - 1} once")
    return found.astype(np.int64)


def _check_counts(counts: Any, k: int) -> Float[np.ndarray, "k"]:
    found = np.asarray(counts, np.float64)
    if found.shape != (k,) or not np.all(np.isfinite(found) & (found >= 0)):
        raise InputError(
            DOING,
            f"counts={counts!r:.80}",
            f"give one number of at least 0 for each of {k} classes",
        )
    return found
