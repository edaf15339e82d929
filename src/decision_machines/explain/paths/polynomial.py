"""A forest as a polynomial of step functions, equal monomials merged.

Paper: the remarks on MARS and on MonoForest: a leaf is a product of steps, one for each test on its
path, and (1 - step) for a test on the left. Multiplied out, left sides vanish and a forest is a sum
of products of right sides alone; products that many leaves and trees share are one monomial.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ...errors import InputError, UnsupportedModelError
from ...machine.digits import digits
from ...machine.values import wide_values
from ..given import features_of
from ..space.cell_words import words_of_cells
from ..space.cells import Cells, from_bits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxtyping import Float

    from ...machine import DecisionMachine

DOING = "writing a machine as a polynomial"
ROWS_AT_ONCE = 4096
MOST_SHOWN = 20

Monomial = tuple[tuple[int, int], ...]
"""(feature, bits of the cells where the step is 1), by feature."""
SignedSteps = list[tuple[int, tuple[int, int] | None]]
"""(sign, step) of one feature, the step None where it is 1 everywhere."""


@dataclass(frozen=True, repr=False)
class Polynomial:
    """margin(x) = Σ coefficient · Π step(x), up to the rounding of the sum."""

    machine: DecisionMachine
    cells: Cells
    monomials: tuple[Monomial, ...]
    coefficients: Float[np.ndarray, "M k"]
    """Correctly rounded sums of the leaves' values; what the sum is divided by comes after."""
    products: int
    """Products of steps before equal ones were merged, one or more for each leaf."""

    def __len__(self) -> int:
        return len(self.monomials)

    @property
    def degree(self) -> int:
        """Most features in one monomial."""
        return max((len(m) for m in self.monomials), default=0)

    @functools.cached_property
    def steps(self) -> tuple[tuple[int, int], ...]:
        """The distinct step functions."""
        return tuple(sorted({step for monomial in self.monomials for step in monomial}))

    def sizes(self) -> dict[str, int]:
        """The size of the forest and of the polynomial."""
        return {
            "trees": self.machine.n_trees,
            "leaves": self.machine.n_leaves,
            "tests": self.machine.n_tests,
            "products": self.products,
            "monomials": len(self),
            "steps": len(self.steps),
            "degree": self.degree,
        }

    def margin(self, X: Any) -> Float[np.ndarray, "m k"]:
        """The polynomial's value at rows: `machine.margin`, within the rounding of the sums."""
        x = features_of(self.machine, X)
        output = self.machine.output
        found = np.empty((len(x), self.machine.n_outputs))
        place = {step: i for i, step in enumerate(self.steps)}
        indices = [place[step] for monomial in self.monomials for step in monomial]
        degree = np.array([len(m) for m in self.monomials], np.int64)
        shape = (len(self), max(len(self.steps), 1))
        holds = sp.csr_array(
            (np.ones(len(indices), np.int32), indices, np.append(0, np.cumsum(degree))), shape=shape
        )
        for start in range(0, len(x), ROWS_AT_ONCE):
            block = x[start : start + ROWS_AT_ONCE]
            is_one = np.zeros((shape[1], len(block)), np.int32)
            for i, (feature, bits) in enumerate(self.steps):
                size = len(self.cells.ends[feature]) + 1
                is_one[i] = from_bits(bits, size)[self.cells.cell(feature, block[:, feature])]
            whole = (holds @ is_one) == degree[:, None]
            found[start : start + len(block)] = whole.T.astype(np.float64) @ self.coefficients
        base = output.base.astype(np.float64)
        total = found + base if output.base_first else found
        total = total / output.divisor * output.scale
        return total if output.base_first else total + base

    def __repr__(self) -> str:
        s = self.sizes()
        return (
            f"Polynomial({s['monomials']} monomials of {s['steps']} steps, degree {s['degree']}; "
            f"from {s['leaves']} leaves of {s['trees']} tree{'' if s['trees'] == 1 else 's'})"
        )

    def __str__(self) -> str:
        size = np.abs(self.coefficients).max(axis=1, initial=0.0)
        order = np.argsort(-size, kind="stable")[:MOST_SHOWN]
        lines = [repr(self)]
        for i in order.tolist():
            value = ", ".join(digits(v, self.coefficients.dtype) for v in self.coefficients[i])
            said = " · ".join(
                f"[{words_of_cells(self.cells, *step)}]" for step in self.monomials[i]
            )
            lines.append(f"  {value}{' · ' if said else ''}{said}")
        if len(self) > MOST_SHOWN:
            lines.append(f"  … and {len(self) - MOST_SHOWN} more")
        return "\n".join(lines)


def polynomial(machine: DecisionMachine, *, max_products: int = 1_000_000) -> Polynomial:
    """See `DecisionMachine.polynomial`.

    Paper: cites `fridedman1991multivariate`, `kuralenok2019monoforest`.
    """
    if machine.linear is not None or machine.output.aggregate != "sum":
        raise UnsupportedModelError(
            DOING,
            "its leaves are linear functions"
            if machine.linear is not None
            else "it is not a sum of trees",
            "use a machine that sums constant leaves",
        )
    if not isinstance(max_products, (int, np.integer)) or max_products < 1:
        raise InputError(
            DOING, f"max_products={max_products!r}", "give a whole number of at least 1"
        )
    cells = Cells(machine, DOING)
    terms: dict[Monomial, list[tuple[int, int]]] = {}
    products = 0
    for tree in range(machine.n_trees):
        for leaf, factors in _leaf_factors(cells, tree):
            products += math.prod(len(f) for f in factors)
            if products > max_products:
                raise UnsupportedModelError(
                    DOING,
                    f"more than {max_products} products by tree {tree} of {machine.n_trees}: a "
                    "leaf has up to 2^(features left of a test) of them",
                    "raise max_products, or use a machine of shallower trees",
                )
            for choice in itertools.product(*factors):
                sign = math.prod(s for s, _ in choice)
                key = tuple(step for _, step in choice if step is not None)
                terms.setdefault(key, []).append((sign, leaf))
    return _collected(machine, cells, terms, products)


def _leaf_factors(cells: Cells, tree: int) -> Iterator[tuple[int, list[SignedSteps]]]:
    """For each leaf: for each feature of its path, signed steps whose sum is its indicator.

    The right sides A of a path meet in one set; those on the left, B, are cut out of it:
    1[A and not B] = 1[A] - 1[A and B], once for each B that no other covers.
    """
    m = cells.machine
    B = m.templates(tree)
    first_test, first_leaf = m.trees.tests(tree).start, m.trees.leaves(tree).start
    for i in range(B.shape[0]):
        at = slice(B.indptr[i], B.indptr[i + 1])
        right: dict[int, int] = {}
        left: dict[int, list[int]] = {}
        for j, side in zip((B.indices[at] + first_test).tolist(), B.data[at].tolist(), strict=True):
            f = int(cells.feature[j])
            goes_right = cells.all_bits(f) & ~cells.left_bits(j)
            right.setdefault(f, cells.all_bits(f))
            if side > 0:
                right[f] &= goes_right
            else:
                left.setdefault(f, []).append(goes_right)
        factors = []
        for f, inside in sorted(right.items()):
            steps = _signed_steps(cells, f, inside, left.get(f, []))
            if not steps:
                break
            factors.append(steps)
        else:
            yield first_leaf + i, factors


def _signed_steps(cells: Cells, feature: int, inside: int, cut: list[int]) -> SignedSteps:
    """[(sign, step)] of one feature; a step that is 1 everywhere is None. Empty: never 1."""
    counts: dict[int, int] = {inside: 1} if inside else {}
    overlaps = {inside & c for c in cut}
    for overlap in overlaps:
        if any(overlap != other and overlap | other == other for other in overlaps):
            continue  # covered by another
        for bits, sign in list(counts.items()):
            both = bits & overlap
            if both:
                counts[both] = counts.get(both, 0) - sign
    return [
        (sign, None if bits == cells.all_bits(feature) else (feature, bits))
        for bits, sign in counts.items()
        if sign
    ]


def _collected(
    machine: DecisionMachine,
    cells: Cells,
    terms: dict[Monomial, list[tuple[int, int]]],
    products: int,
) -> Polynomial:
    """Coefficients: the leaves' values of each monomial summed, and rounded once."""
    V = wide_values(machine, np.float64)
    kept, rows = [], []
    for key in sorted(terms):
        parts = terms[key]
        signs = np.array([s for s, _ in parts], np.float64)[:, None]
        values = signs * V[[leaf for _, leaf in parts]]
        total = [math.fsum(values[:, k]) for k in range(machine.n_outputs)]
        if any(total):
            kept.append(key)
            rows.append(total)
    coefficients = np.array(rows).reshape(-1, machine.n_outputs)
    return Polynomial(machine, cells, tuple(kept), coefficients, products)
