"""A machine's trees as the nodes of ONNX's tree operators.

A test z ≤ t is a BRANCH_LEQ whose true side is the left one. A category set is a BRANCH_MEMBER in
version 5, where ONNX Runtime reads fractions in it as the machine does. In version 3 it is a chain
of BRANCH_EQ where only whole numbers are categories; where a fraction is cut off, category k is
k ≤ x < k + 1, and a set is a chain of BRANCH_LT along its runs of categories. The nodes of a chain
share their two ends, as ONNX Runtime allows in version 3 alone. So do the nodes that tell zeros
apart where zero is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine import Rule
from ...machine.columns import ZERO
from ..limits import flags, memberships, missing_answers
from ..nodes import nodes_of

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    from ...machine import DecisionMachine
    from ..limits import Limits, Membership

LEQ, LT, EQ, MEMBER, LEAF = 0, 1, 4, 6, 7
CUT_BEYOND = 30
"""ONNX Runtime cuts fractions off where a membership set has a value beyond this."""


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes tree by tree, the root of each first; `yes` and `no` count over all nodes."""

    tree: Int[np.ndarray, "N"]
    mode: Int[np.ndarray, "N"]
    feature: Int[np.ndarray, "N"]
    value: Float[np.ndarray, "N"]
    yes: Int[np.ndarray, "N"]
    no: Int[np.ndarray, "N"]
    nan_is_yes: Bool[np.ndarray, "N"]
    leaf: Int[np.ndarray, "N"]
    """The machine's leaf at each leaf; -1 at a test."""
    members: dict[int, Int[np.ndarray, "m"]]
    """The sets of the nodes of mode MEMBER."""

    @property
    def start(self) -> Int[np.ndarray, "T+1"]:
        n_trees = int(self.tree[-1]) + 1 if len(self.tree) else 0
        return np.searchsorted(self.tree, np.arange(n_trees + 1))


def graph_of(machine: DecisionMachine, limits: Limits, *, has_sets: bool) -> Graph:
    """The nodes of all trees.

    Parameters
    ----------
    has_sets
        Whether the operator has the mode MEMBER.
    """
    nodes = nodes_of(machine)
    first = np.repeat(nodes.start[:-1], np.diff(nodes.start))
    is_test = nodes.test >= 0
    found: dict[str, Any] = {
        "tree": np.repeat(np.arange(machine.n_trees), np.diff(nodes.start)),
        "mode": np.where(is_test, LEQ, LEAF),
        "feature": nodes.spread(machine.columns.feature[machine.selection], 0),
        "value": nodes.spread(machine.t.astype(np.float64), 0.0),
        "yes": np.where(is_test, first + nodes.left, -1),
        "no": np.where(is_test, first + nodes.right, -1),
        "nan_is_yes": nodes.spread(missing_answers(machine) < 0, False),
        "leaf": nodes.leaf,
    }
    sets = memberships(machine)
    zeros = np.flatnonzero(machine.columns.rule[machine.selection] == Rule.ZERO_AS_NAN)
    if not sets and not len(zeros):
        return Graph(**found, members={})
    _check_sets(machine, limits, sets, has_sets)
    if has_sets:
        limits.where(
            flags(machine, zeros.tolist()),
            "takes zeros for missing (the rule ZERO_AS_NAN), which nodes of version 5 cannot say",
            "use operator='v3'",
        )
    place = np.empty(machine.n_tests, np.int64)
    place[nodes.test[is_test]] = np.flatnonzero(is_test)
    chains = _Chains(machine, found, has_sets)
    for test, m in sets.items():
        chains.replace(int(place[test]), m)
    for test in zeros.tolist():
        chains.tell_zeros_apart(int(place[test]), bool(machine.missing[test] < 0))
    return chains.graph()


def _check_sets(
    machine: DecisionMachine, limits: Limits, sets: dict[int, Membership], has_sets: bool
) -> None:
    if has_sets:
        limits.where(
            flags(machine, (j for j, m in sets.items() if not _is_member(machine, _members(m)))),
            "reads a category set that ONNX Runtime would read otherwise: up to 30 it knows whole "
            "numbers alone, beyond it cuts off fractions (columns.sets.whole, "
            ".negative_fractions)",
            "use operator='v3', which has no such sets and is given intervals instead",
        )
    if machine.columns.dtype == np.float32:
        limits.where(
            flags(machine, (j for j, m in sets.items() if max(_members(m), default=0) >= 2**24)),
            "has a category of 2**24 or more, which float32 does not tell from its neighbours",
            "number the categories from 0 on",
        )


def _is_member(machine: DecisionMachine, members: np.ndarray) -> bool:
    """Whether the mode MEMBER takes fractions as the machine's sets do."""
    sets = machine.columns.sets
    assert sets is not None
    if not len(members):
        return True
    is_cut = int(members.max()) > CUT_BEYOND
    return not is_cut if sets.whole else is_cut and sets.negative_fractions


def _members(m: Membership) -> np.ndarray:
    """What does not go where all other values go."""
    return m.right if m.outside < 0 else m.left


class _Chains:
    """Nodes in which tests of sets are replaced by chains, the new nodes at the end."""

    def __init__(self, machine: DecisionMachine, nodes: dict[str, np.ndarray], has_sets: bool):
        self.nodes, self.has_sets = nodes, has_sets
        self.new: list[dict[str, Any]] = []
        self.n = len(nodes["tree"])
        self.members: dict[int, np.ndarray] = {}
        sets = machine.columns.sets
        self.whole = sets is not None and sets.whole
        self.negative = sets is not None and sets.negative_fractions

    def replace(self, node: int, m: Membership) -> None:
        members = _members(m)
        left, right = int(self.nodes["yes"][node]), int(self.nodes["no"][node])
        inside, outside = (right, left) if m.outside < 0 else (left, right)
        nan_is_inside = m.nan != m.outside
        if not len(members):
            # Nothing is in the set: a number goes outside, whatever it is.
            self._chain(node, [(LEQ, np.inf, outside, inside, not nan_is_inside)])
        elif self.has_sets:
            self._chain(node, [(MEMBER, 0.0, inside, outside, nan_is_inside)])
            self.members[node] = members
        elif self.whole:
            steps = [(EQ, float(k), inside, None, nan_is_inside) for k in members.tolist()]
            self._chain(node, steps, outside)
        else:
            steps = []
            for low, high in self._runs(members):
                # NaN leaves at the first test or, if it belongs to the set, at the second.
                steps.append((*low, outside, None, not nan_is_inside))
                steps.append((LT, high, inside, None, nan_is_inside))
            self._chain(node, steps, outside)

    def tell_zeros_apart(self, node: int, goes_left: bool) -> None:
        """x < -Z: the test; x ≤ Z, or NaN: where missing values go; else the test again."""
        row = {name: array[node] for name, array in self.nodes.items()}
        missing = row["yes"] if goes_left else row["no"]
        zero, test = self.n + len(self.new), self.n + len(self.new) + 1
        self.new.append({**row, "value": ZERO, "yes": missing, "no": test, "nan_is_yes": True})
        self.new.append(row)
        below = {"mode": LT, "value": -ZERO, "yes": test, "no": zero, "nan_is_yes": False}
        for name, entry in below.items():
            self.nodes[name][node] = entry

    def _runs(self, members: np.ndarray) -> list[tuple[tuple[int, float], float]]:
        """For each run of categories the test for what lies below it, and its end."""
        breaks = np.flatnonzero(np.diff(members) > 1) + 1
        runs = []
        for run in np.split(members, breaks):
            below = (LT, float(run[0]))
            if run[0] == 0 and self.negative:
                below = (LEQ, -1.0)
            runs.append((below, float(run[-1]) + 1.0))
        return runs

    def _chain(self, node: int, steps: list[tuple[Any, ...]], end: int | None = None) -> None:
        """Write steps (mode, value, yes, no, nan_is_yes) from `node` on; no = None is the next."""
        at = node
        for i, (mode, value, yes, no, nan_is_yes) in enumerate(steps):
            after = no
            if no is None:
                after = end if i == len(steps) - 1 else self.n + len(self.new) + (at != node)
            row = {
                "tree": self.nodes["tree"][node],
                "mode": mode,
                "feature": self.nodes["feature"][node],
                "value": value,
                "yes": yes,
                "no": after,
                "nan_is_yes": nan_is_yes,
                "leaf": -1,
            }
            if at == node:
                for name, entry in row.items():
                    self.nodes[name][node] = entry
            else:
                self.new.append(row)
            at = after

    def graph(self) -> Graph:
        """All nodes, tree by tree."""
        joined = {
            name: np.concatenate([array, np.array([row[name] for row in self.new], array.dtype)])
            for name, array in self.nodes.items()
        }
        order = np.argsort(joined["tree"], kind="stable")
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        for name in ("yes", "no"):
            side = joined[name]
            joined[name] = np.where(side >= 0, place[np.maximum(side, 0)], -1)
        joined = {name: array[order] for name, array in joined.items()}
        return Graph(**joined, members={int(place[n]): m for n, m in self.members.items()})


def joined(before: int, graph: Graph, after: int, n_leaves: int) -> Graph:
    """The graph with trees of one leaf before and after it; their leaves are numbered on."""

    def ends(n: int, tree: int, leaf: int) -> dict[str, np.ndarray]:
        return {
            "tree": tree + np.arange(n),
            "mode": np.full(n, LEAF),
            "feature": np.zeros(n, np.int64),
            "value": np.zeros(n),
            "yes": np.full(n, -1),
            "no": np.full(n, -1),
            "nan_is_yes": np.zeros(n, bool),
            "leaf": leaf + np.arange(n),
        }

    n_trees = len(graph.start) - 1
    first = ends(before, 0, n_leaves)
    last = ends(after, before + n_trees, n_leaves + before)
    middle = {name: getattr(graph, name) for name in first}
    middle["tree"] = middle["tree"] + before
    for name in ("yes", "no"):
        middle[name] = np.where(middle[name] >= 0, middle[name] + before, -1)
    return Graph(
        **{name: np.concatenate([first[name], middle[name], last[name]]) for name in first},
        members={node + before: m for node, m in graph.members.items()},
    )
