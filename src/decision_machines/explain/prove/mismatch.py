"""Why a machine and a model answer some rows differently."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...libraries.oracles import oracle_of, rows_that_differ
from ...machine import Rule
from ...machine.columns import ZERO
from ...machine.words import words_of_test, words_of_value

if TYPE_CHECKING:
    from ...libraries.oracles import Oracle
    from ...machine import DecisionMachine

MOST_ROWS = 1000
"""How many differing rows are traced to their nodes."""


@dataclass(frozen=True)
class Mismatch:
    """One row that differs, and why."""

    row: int
    cause: str
    tree: int | None = None
    node: int | None = None
    """What the source calls the test where both paths separate (our number, if it has none)."""
    feature: str | None = None
    value: float | None = None
    threshold: float | None = None
    ours: Any = None
    theirs: Any = None
    asked: str = ""
    """What the test asks for to answer left."""
    words: str = ""
    """The feature's value, as a label where it has one."""

    def __str__(self) -> str:
        if self.tree is None:
            return f"row {self.row}: {self.cause} (ours {self.ours}, the model's {self.theirs})"
        if self.node is None:
            return (
                f"row {self.row}, tree {self.tree}: {self.cause} (ours goes to leaf {self.ours}, "
                f"the model to {self.theirs})"
            )
        return (
            f"row {self.row}, tree {self.tree}, node {self.node}: {self.feature} = {self.words}, "
            f"asked is {self.asked}: {self.cause} (ours goes to leaf {self.ours}, "
            f"the model to {self.theirs})"
        )


@dataclass(frozen=True)
class MismatchReport:
    """All rows that differ; truthy where there are any."""

    n_rows: int
    rows: np.ndarray
    mismatches: tuple[Mismatch, ...]

    def __bool__(self) -> bool:
        return len(self.rows) > 0

    def __len__(self) -> int:
        return len(self.mismatches)

    def __str__(self) -> str:
        if not self:
            return f"equal on all {self.n_rows} rows, to the bit"
        causes = Counter(found.cause for found in self.mismatches)
        lines = [f"{len(self.rows)} of {self.n_rows} rows differ"]
        lines += [f"  {n} × {cause}" for cause, n in causes.most_common()]
        lines += [f"  {found}" for found in self.mismatches[:10]]
        if len(self.mismatches) > 10:
            lines.append(f"  … and {len(self.mismatches) - 10} more")
        return "\n".join(lines)


def explain_mismatch(machine: DecisionMachine, model: Any, X: Any) -> MismatchReport:
    """For rows that differ between a machine and a model: row, tree, node, and the cause in words.

    Parameters
    ----------
    machine
        What `dm.convert(model)` gave, or any machine with as many trees.
    model
        The fitted object that it should equal.
    X
        Rows as `machine.predict` takes them: an array, a sparse matrix or a table.

    Examples
    --------
    >>> import decision_machines as dm
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(random_state=0).fit(X, y)
    >>> print(explain_mismatch(dm.convert(model), model, X))
    equal on all 150 rows, to the bit
    """
    x = machine.features(X, dtype=np.float64)
    if not len(x):
        raise InputError("comparing answers", "no rows", "give data with rows")
    oracle = oracle_of(model, machine)
    oracle.learn_labels(X, x)
    labelled, machine = machine, oracle.machine
    found = _leaf_mismatches(labelled, oracle, x)
    what, ours, theirs = oracle.whole(x)
    differs = rows_that_differ(ours, theirs)
    routed = {m.row for m in found}
    rest = np.array([r for r in differs if r not in routed], int)
    found += _sum_mismatches(machine, oracle, x, rest, what, ours, theirs)
    rows = np.union1d(differs, np.array(sorted(routed), int)).astype(int)
    return MismatchReport(len(x), rows, tuple(found))


def _leaf_mismatches(machine: DecisionMachine, oracle: Oracle, x: np.ndarray) -> list[Mismatch]:
    """Rows that reach different leaves of a tree, each traced to where the paths separate."""
    found: list[Mismatch] = []
    if machine.trees.leaf_ids is None:
        return found
    ours = oracle.machine.apply(x) + machine.trees.leaf_start[:-1]
    for tree in range(machine.n_trees):
        theirs = oracle.leaves(x, tree)
        if theirs is None:
            return found
        leaves = machine.trees.leaves(tree)
        ids = machine.trees.leaf_ids[leaves]
        wrong = np.flatnonzero(ids[ours[:, tree] - leaves.start] != theirs)
        number = {int(name): leaves.start + i for i, name in enumerate(ids)}
        for row in wrong[: MOST_ROWS - len(found)]:
            other = number.get(int(theirs[row]))
            found.append(
                _trace(machine, x[row], int(row), tree, int(ours[row, tree]), other, theirs[row])
            )
    return found


def _trace(
    machine: DecisionMachine,
    x: np.ndarray,
    row: int,
    tree: int,
    leaf: int,
    other: int | None,
    their_name: Any,
) -> Mismatch:
    assert machine.trees.leaf_ids is not None
    if other is None:
        return Mismatch(
            row,
            "the model's leaf does not exist in the machine: they are different trees",
            tree,
            ours=int(machine.trees.leaf_ids[leaf]),
            theirs=int(their_name),
        )
    test = _parting(machine, tree, leaf, other)
    column = int(machine.selection[test])
    feature = int(machine.columns.feature[column])
    ids = machine.trees.test_ids
    return Mismatch(
        row,
        _routing_cause(machine, test, column, float(x[feature])),
        tree,
        int(test if ids is None else ids[test]),
        machine.columns.name(column),
        float(x[feature]),
        float(machine.t[test]),
        int(machine.trees.leaf_ids[leaf]),
        int(their_name),
        words_of_test(machine, test),
        # All digits that were given: what a cast to the columns' dtype loses may be the cause.
        words_of_value(replace(machine.columns, dtype=np.float64), feature, float(x[feature])),
    )


def _parting(machine: DecisionMachine, tree: int, a: int, b: int) -> int:
    """The deepest test that has both leaves below it."""
    found = machine.structure
    tests = np.arange(machine.n_tests)[machine.trees.tests(tree)]
    first, n = found.first_leaf[tests], found.n_leaves[tests]
    covers = (first <= min(a, b)) & (max(a, b) < first + n)
    return int(tests[covers][np.argmax(found.depth[tests[covers]])])


def _routing_cause(machine: DecisionMachine, test: int, column: int, x: float) -> str:
    """In words, what about this value is read in two ways at this test."""
    rule, dtype, t = machine.columns.rule[column], machine.columns.dtype, machine.t[test]
    if x != x:
        return "missing value: NaN takes different sides"
    if rule == Rule.MEMBER:
        if x < 0:
            return "negative category"
        if x != int(x) if np.isfinite(x) else True:
            return "fractional or infinite category"
        return "category counted in by one and out by the other"
    if x == machine.columns.missing_value:
        return f"{x!r} is the value that means missing"
    if abs(x) <= ZERO:
        return "zero treated as missing, or not"
    with np.errstate(over="ignore"):
        cast = dtype.type(x)
    if float(cast) != x and (x <= float(t)) != (cast <= t):
        return "float32 rounding across the threshold"
    if np.isinf(x):
        return "infinity takes different sides"
    if cast == t or cast == np.nextafter(t, dtype.type(np.inf)):
        return "on the threshold: ≤ on one side, < on the other"
    return "different thresholds"


def _sum_mismatches(
    machine: DecisionMachine,
    oracle: Oracle,
    x: np.ndarray,
    rows: np.ndarray,
    what: str,
    ours: np.ndarray,
    theirs: np.ndarray,
) -> list[Mismatch]:
    """Rows whose trees agree but whose answers do not."""
    if not len(rows):
        return []
    a, b = ours.reshape(len(ours), -1)[rows], theirs.reshape(len(theirs), -1)[rows]
    cause = _sum_cause(machine, oracle, x, rows, what, a, b)
    return [
        Mismatch(int(row), cause, ours=a[i].squeeze().tolist(), theirs=b[i].squeeze().tolist())
        for i, row in enumerate(rows[:MOST_ROWS])
    ]


def _sum_cause(
    machine: DecisionMachine,
    oracle: Oracle,
    x: np.ndarray,
    rows: np.ndarray,
    what: str,
    a: np.ndarray,
    b: np.ndarray,
) -> str:
    if what != "margin":
        return f"different {what}"
    if (tree := _first_value_difference(oracle, x[rows])) is not None:
        return f"different leaf values, first in tree {tree}"
    a64, b64 = a.astype(float), b.astype(float)
    scale = np.spacing(np.maximum(np.abs(a), np.abs(b)).max(axis=0).astype(a.dtype)).astype(float)
    tolerance = 4 * (machine.n_trees + 2) * scale
    gap = b64 - a64
    if np.all(np.abs(gap) <= tolerance):
        return "summation order or dtype: the last bits of the sum"
    if np.all(np.abs(gap - gap[0]) <= tolerance):
        return f"base score: off by {gap[0].squeeze().tolist()}"
    with np.errstate(all="ignore"):
        ratio = b64 / a64
    if np.allclose(ratio, ratio[0], rtol=1e-5):
        return f"scale or average: off by a factor of {ratio[0].squeeze().tolist()}"
    return "different leaf values"


def _first_value_difference(oracle: Oracle, x: np.ndarray) -> int | None:
    """The first tree that adds another value though its leaf is the same, where the model tells."""
    for tree in range(oracle.machine.n_trees):
        margins = oracle.compare_tree(x, tree)
        if margins is None:
            return None
        if len(rows_that_differ(*margins)):
            return tree
    return None
