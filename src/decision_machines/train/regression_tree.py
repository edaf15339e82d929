"""A hard oblique tree with linear functions in its leaves, in training's units, and as a machine.

The tree is complete, its tests in level order (the children of test j are 2j + 1 and 2j + 2). A
test that sends all training rows one way is kept open: it sends every row there, and the machine
is built without it.

A leaf may be capped: its answers are cut off below and above. In the machine a cap is one more
test, whose weights are the leaf's own function, and one more leaf, which answers the constant. A
row far from all others then cannot be answered by a number far from all others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from ..errors import InputError
from ..machine import Columns, DecisionMachine, LinearLeaves, Output, Trees
from ..machine.columns import Rule
from .regression_rows import DOING

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    from .regression_rows import Rows, Units


@dataclass(frozen=True)
class RegressionTree:
    """One complete tree: a row goes right where W z > t, and its leaf answers A u.

    Parameters
    ----------
    goes_right
        Where a test goes that reads a NaN.
    slope
        How steep each test was when it was learned, for softening it again.
    V
        What leaves answer where a term is missing.
    low, high
        Caps of each leaf's answer; infinite where there is none.
    """

    W: Float[np.ndarray, "J v"]
    t: Float[np.ndarray, "J"]
    goes_right: Bool[np.ndarray, "J"]
    slope: Float[np.ndarray, "J"]
    A: Float[np.ndarray, "L p q"]
    V: Float[np.ndarray, "L q"]
    low: Float[np.ndarray, "L"]
    high: Float[np.ndarray, "L"]

    @classmethod
    def of_tests(
        cls,
        W: Float[np.ndarray, "J v"],
        t: Float[np.ndarray, "J"],
        slope: Float[np.ndarray, "J"],
        A: Float[np.ndarray, "L p q"],
        rows: Rows,
    ) -> RegressionTree:
        """The tree with tests closed that divide no rows, missing sides and constants settled."""
        n_leaves, _, q = A.shape
        caps = np.full(n_leaves, -np.inf), np.full(n_leaves, np.inf)
        empty = np.zeros(len(t), bool)
        tree = cls(W, t, empty, slope, A, np.zeros((n_leaves, q)), *caps)
        return tree.settled(rows).with_leaves(A, rows)

    def settled(self, rows: Rows) -> RegressionTree:
        """Tests that divide no rows send all their way; NaN goes the way of more rows."""
        W, t, goes_right = self.W.copy(), self.t.copy(), self.goes_right.copy()
        is_right = self.answers(rows.Z)
        at = np.zeros(len(rows), np.int64)
        for level in range(self.n_levels):
            first, width = 2**level - 1, 2**level
            goes = is_right[first + at, np.arange(len(rows))]
            right = np.bincount(at, rows.weight * goes, width)
            left = np.bincount(at, rows.weight * ~goes, width)
            tests = slice(first, first + width)
            goes_right[tests] = right > left
            is_idle = (right == 0) | (left == 0)
            W[tests][is_idle] = 0.0
            t[tests][is_idle] = np.where(right > left, -np.inf, np.inf)[is_idle]
            at = 2 * at + goes
        return replace(self, W=W, t=t, goes_right=goes_right)

    def with_leaves(self, A: Float[np.ndarray, "L p q"], rows: Rows) -> RegressionTree:
        """The tree with these functions, and constants for rows with a missing term.

        A constant is the mean of its leaf's rows, with the mean of all as one row more: of those
        with a missing term, where there are any.
        """
        exits = self.exit_leaves(rows.Z)
        n_leaves, q = self.V.shape
        mean = np.average(rows.y, axis=0, weights=rows.weight)
        is_meant = ~rows.is_whole
        if not is_meant.any():
            is_meant = np.ones(len(rows), bool)
        exits, weight, y = exits[is_meant], rows.weight[is_meant], rows.y[is_meant]
        count = np.bincount(exits, weight, n_leaves)
        total = np.stack([np.bincount(exits, weight * y[:, k], n_leaves) for k in range(q)], 1)
        caps = np.full(n_leaves, -np.inf), np.full(n_leaves, np.inf)
        V = (total + mean) / (count + 1.0)[:, None]
        if A.shape[1] == 1:
            V = A[:, 0]
        return replace(self, A=A, V=V, low=caps[0], high=caps[1])

    @property
    def n_levels(self) -> int:
        return (len(self.t) + 1).bit_length() - 1

    def answers(self, Z: Float[np.ndarray, "m v"]) -> Bool[np.ndarray, "J m"]:
        """Whether each row goes right at each test."""
        is_nan = np.isnan(Z)
        has_nan = bool(is_nan.any())
        q = self.W @ (np.where(is_nan, 0.0, Z) if has_nan else Z).T
        is_right = q > self.t[:, None]
        if not has_nan:
            return is_right
        is_missing = (self.W != 0).astype(float) @ is_nan.T.astype(float) > 0
        return np.where(is_missing, self.goes_right[:, None], is_right)

    def exit_leaves(self, Z: Float[np.ndarray, "m v"]) -> Int[np.ndarray, "m"]:
        is_right = self.answers(Z)
        at, each = np.zeros(len(Z), np.int64), np.arange(len(Z))
        for _ in range(self.n_levels):
            at = 2 * at + 1 + is_right[at, each]
        return at - len(self.t)

    def predict(self, rows: Rows) -> Float[np.ndarray, "m q"]:
        """The answer for each row, in the targets' scaled units."""
        exits = self.exit_leaves(rows.Z)
        return self.answers_of(exits, rows)

    def answers_of(self, exits: Int[np.ndarray, "m"], rows: Rows) -> Float[np.ndarray, "m q"]:
        """What the leaves `exits` answer for the rows."""
        linear = np.einsum("mp,mpq->mq", rows.U, self.A[exits])
        linear = np.clip(linear, self.low[exits, None], self.high[exits, None])
        return np.where(rows.is_whole[:, None], linear, self.V[exits])

    def capped(self, rows: Rows, share: float, low: bool, high: bool) -> RegressionTree:
        """The tree, leaves' answers held within those for their rows but this share at an end."""
        n_leaves = len(self.V)
        lows, highs = np.full(n_leaves, -np.inf), np.full(n_leaves, np.inf)
        exits = self.exit_leaves(rows.Z)
        linear = np.einsum("mp,mp->m", rows.U, self.A[exits, :, 0])
        has_slope = np.any(self.A[:, :-1, 0] != 0, axis=1)
        for leaf in np.flatnonzero(has_slope):
            own = (exits == leaf) & rows.is_whole
            if not own.any():
                continue
            if low:
                lows[leaf] = weighted_quantile(linear[own], rows.weight[own], share)
            if high:
                highs[leaf] = -weighted_quantile(-linear[own], rows.weight[own], share)
        return replace(self, low=np.minimum(lows, highs), high=highs)

    def machine(self, units: Units, source: str) -> tuple[DecisionMachine, np.ndarray]:
        """The machine in the user's own units, and the slope of each of its tests."""
        found = _Nodes(self, units)
        found.visit(0, 0)
        return found.machine(source)


def weighted_quantile(values: np.ndarray, weight: np.ndarray, share: float) -> float:
    """The least value at or below which more than this share of the weight lies."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weight[order])
    return float(
        values[order][
            np.searchsorted(total, share * total[-1], side="right").clip(max=len(order) - 1)
        ]
    )


class _Nodes:
    """Tests and leaves in a machine's order, gathered from the root down."""

    def __init__(self, tree: RegressionTree, units: Units) -> None:
        self.tree, self.units = tree, units
        scaling = units.features
        self.n = len(scaling.varies)
        self.varying = np.flatnonzero(scaling.varies)
        self.S: list[np.ndarray] = []
        self.t: list[float] = []
        self.missing: list[int] = []
        self.slope: list[float] = []
        self.children: list[list[int]] = []
        self.V: list[np.ndarray] = []
        self.functions: list[tuple[np.ndarray, np.ndarray]] = []
        self.terms = self.varying[units.is_term]
        # Caps must see that a term is missing, also where tests read it as 0.
        is_twice = units.nan_as_zero[self.terms] & np.any(np.isfinite([tree.low, tree.high]))
        self.twice = self.terms[is_twice]
        self.term_column = self.terms.copy()
        self.term_column[is_twice] = self.n + np.arange(len(self.twice))
        self.n_columns = self.n + len(self.twice)
        centre, spread = scaling.centre[self.terms], scaling.spread[self.terms]
        with np.errstate(over="ignore", invalid="ignore"):
            slopes = units.spread * tree.A[:, :-1] / spread[:, None]
            self.coefficient = slopes
            self.intercept = units.centre + units.spread * (
                tree.A[:, -1] - np.einsum("lpq,p->lq", tree.A[:, :-1], centre / spread)
            )
        if not (np.isfinite(self.coefficient).all() and np.isfinite(self.intercept).all()):
            raise InputError(
                DOING,
                "features and targets whose scales differ by more than floating point holds",
                "rescale the targets or the features",
            )

    def visit(self, level: int, place: int) -> int:
        """Take in the node at this place of the level; gives it as a child is written."""
        tree = self.tree
        if level == tree.n_levels:
            return self.leaf(place)
        j = 2**level - 1 + place
        if np.isinf(tree.t[j]):
            return self.visit(level + 1, 2 * place + int(tree.t[j] < 0))
        S, t = self.units.features.raw_tests(tree.W[[j]], tree.t[[j]])
        wide = np.concatenate([S[0], np.zeros(len(self.twice))])
        at = self.test(wide, float(t[0]), 1 if tree.goes_right[j] else -1, tree.slope[j])
        self.children[at][0] = self.visit(level + 1, 2 * place)
        self.children[at][1] = self.visit(level + 1, 2 * place + 1)
        return at

    def test(self, S: np.ndarray, t: float, missing: int, slope: float) -> int:
        self.S.append(S)
        self.t.append(t)
        self.missing.append(missing)
        self.slope.append(slope)
        self.children.append([0, 0])
        return len(self.t) - 1

    def leaf(self, i: int) -> int:
        """A leaf, behind a test for each of its caps; a missing term goes past them."""
        tree, units = self.tree, self.units
        low, high = float(tree.low[i]), float(tree.high[i])
        if units.spread[0] > 0:
            low, high = (float(units.centre[0] + units.spread[0] * cap) for cap in (low, high))
        else:
            low, high = -np.inf, np.inf
        direction = np.zeros(self.n_columns)
        direction[self.term_column] = self.coefficient[i, :, 0]
        base = float(self.intercept[i, 0])
        slope = 10.0 / max(high - low, 1e-300) if np.isfinite(high - low) else 1.0
        upper = lower = None
        if np.isfinite(high):
            upper = self.test(direction, high - base, -1, slope)
        if np.isfinite(low):
            lower = self.test(direction, low - base, 1, slope)
            if upper is not None:
                self.children[upper][0] = lower
            self.children[lower][0] = self._add(np.array([low]), None)
        own = self._add(units.centre + units.spread * tree.V[i], i)
        if lower is not None:
            self.children[lower][1] = own
        elif upper is not None:
            self.children[upper][0] = own
        if upper is not None:
            self.children[upper][1] = self._add(np.array([high]), None)
        return next(node for node in (upper, lower, own) if node is not None)

    def _add(self, V: np.ndarray, function: int | None) -> int:
        self.V.append(V)
        if function is None:
            self.functions.append((V, np.zeros((len(self.terms), len(V)))))
        else:
            self.functions.append((self.intercept[function], self.coefficient[function]))
        return ~(len(self.V) - 1)

    def machine(self, source: str) -> tuple[DecisionMachine, np.ndarray]:
        n_tests, q = len(self.t), len(self.units.centre)
        S = sp.csr_array(np.array(self.S).reshape(n_tests, self.n_columns))
        V = np.array(self.V).reshape(-1, q)
        rule = np.where(self.units.nan_as_zero, Rule.NAN_AS_ZERO, Rule.VALUE)
        rule = np.concatenate([rule, np.full(len(self.twice), Rule.VALUE)])
        feature = np.concatenate([np.arange(self.n), self.twice])
        used = [np.flatnonzero(np.any(a != 0, axis=1)) for _, a in self.functions]
        linear = None
        if any(len(terms) for terms in used):
            linear = LinearLeaves(
                np.array([b for b, _ in self.functions]).reshape(-1, q),
                np.cumsum([0, *map(len, used)]),
                np.concatenate([self.terms[terms] for terms in used]),
                np.concatenate(
                    [a[terms] for (_, a), terms in zip(self.functions, used, strict=True)]
                ),
            )
        else:
            V = np.array([b for b, _ in self.functions]).reshape(-1, q)
        machine = DecisionMachine(
            columns=Columns(self.n, np.float64, feature=feature, rule=rule),
            selection=S,
            t=np.array(self.t, np.float64),
            missing=np.array(self.missing, np.int8),
            children=np.array(self.children, np.int32).reshape(n_tests, 2),
            V=V,
            trees=Trees(np.array([0, n_tests])),
            output=Output(np.zeros(q)),
            linear=linear,
            source=source,
        )
        return machine, np.array(self.slope, np.float64)
