"""A trained regression tree as a machine, in the user's own units.

A cap of a leaf becomes one more test, whose weights are the leaf's own function, and one more leaf,
which answers the constant. Tests that divide no rows are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from ...errors import InputError
from ...machine import Columns, DecisionMachine, LinearLeaves, Output, Trees
from ...machine.columns import Rule
from .scaled_rows import DOING

if TYPE_CHECKING:
    from .scaled_rows import Units
    from .tree import RegressionTree


def regression_machine(
    tree: RegressionTree, units: Units, source: str
) -> tuple[DecisionMachine, np.ndarray]:
    """The machine, and the slope of each of its tests."""
    found = _Nodes(tree, units)
    found.visit(0, 0)
    return found.machine(source)


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
