"""Decision paths as rules that people read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ...machine.conditions import conditions
from ...machine.feature_names import feature_numbers
from ...machine.words import words_of_leaf
from ..given import leaves_of, with_labels_of

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from rich.table import Table

    from ...machine import DecisionMachine
    from ...machine.conditions import Condition

MOST_SHOWN = 40


@dataclass(frozen=True)
class DecisionRule:
    """One leaf's path: its conditions, and the value that it gives."""

    tree: int
    leaf: int
    """Counted from 0 within the tree, as `apply` does."""
    conditions: tuple[Condition, ...]
    value: Float[np.ndarray, "k"]
    text: str
    row: int | None = None
    """The row that takes this path, where rows were given."""

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<tree {self.tree}, leaf {self.leaf}: {self.text}>"


class DecisionRules(Sequence[DecisionRule]):
    """Rules, made when they are looked at: a forest has as many as it has leaves."""

    def __init__(
        self,
        machine: DecisionMachine,
        trees: Int[np.ndarray, "r"],
        leaves: Int[np.ndarray, "r"],
        rows: Int[np.ndarray, "r"] | None = None,
        whole: frozenset[int] = frozenset(),
    ) -> None:
        self.machine, self.trees, self.leaves, self.rows = machine, trees, leaves, rows
        self.whole = whole
        """Features known to be whole numbers."""
        self._templates: tuple[int, Any] = (-1, None)

    def __len__(self) -> int:
        return len(self.trees)

    @overload
    def __getitem__(self, i: int) -> DecisionRule: ...
    @overload
    def __getitem__(self, i: slice) -> DecisionRules: ...
    def __getitem__(self, i: int | slice) -> DecisionRule | DecisionRules:
        if isinstance(i, slice):
            rows = None if self.rows is None else self.rows[i]
            return DecisionRules(self.machine, self.trees[i], self.leaves[i], rows, self.whole)
        i = range(len(self))[i]
        tree, leaf = int(self.trees[i]), int(self.leaves[i])
        if self._templates[0] != tree:
            self._templates = (tree, self.machine.templates(tree))
        B = self._templates[1]
        at = slice(B.indptr[leaf], B.indptr[leaf + 1])
        m = self.machine
        tests = (B.indices[at] + m.trees.tests(tree).start).tolist()
        asked = conditions(m, tests, B.data[at].tolist(), whole=self.whole)
        number = m.trees.leaves(tree).start + leaf
        is_one = len(asked) == 1
        said = " and ".join(f"({c.text})" if c.has_or and not is_one else c.text for c in asked)
        return DecisionRule(
            tree,
            leaf,
            asked,
            m.V[number],
            f"if {said} then {words_of_leaf(m, number)}" if asked else words_of_leaf(m, number),
            None if self.rows is None else int(self.rows[i]),
        )

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = []
        seen: tuple[int | None, ...] = ()
        for rule in (self[i] for i in range(min(len(self), MOST_SHOWN))):
            where = (rule.row, rule.tree)
            if where != seen and (self.machine.n_trees > 1 or rule.row is not None):
                row = "" if rule.row is None else f"row {rule.row}, "
                lines.append(f"{row}tree {rule.tree}:")
            seen = where
            lines.append(f"  {rule.text}")
        if len(self) > MOST_SHOWN:
            lines.append(f"  … and {len(self) - MOST_SHOWN} more")
        return "\n".join(lines)

    def __rich__(self) -> Table:
        """A table for rich's consoles."""
        from rich.table import Table
        from rich.text import Text

        table = Table(show_lines=False)
        names = ["row"] * (self.rows is not None) + ["tree", "leaf", "conditions", "value"]
        for name in names:
            table.add_column(name, justify="left" if name == "conditions" else "right")
        for rule in (self[i] for i in range(min(len(self), MOST_SHOWN))):
            number = self.machine.trees.leaves(rule.tree).start + rule.leaf
            row = [str(rule.row)] * (rule.row is not None)
            asked = "\n".join(c.text for c in rule.conditions)
            cells = [
                *row,
                str(rule.tree),
                str(rule.leaf),
                asked,
                words_of_leaf(self.machine, number),
            ]
            table.add_row(*(Text(cell) for cell in cells))
        if len(self) > MOST_SHOWN:
            table.caption = f"{MOST_SHOWN} of {len(self)} rules"
        return table


def rules(
    machine: DecisionMachine, X: Any = None, *, trees: Any = None, integers: Any = ()
) -> DecisionRules:
    """Paths as rules; see `DecisionMachine.rules`."""
    chosen = machine.trees.choose(trees)
    whole = frozenset(feature_numbers(machine.columns, integers, "integers").tolist())
    if X is None:
        sizes = np.diff(machine.trees.leaf_start)[chosen]
        leaves = np.concatenate([np.empty(0, np.int64), *(np.arange(n) for n in sizes)])
        return DecisionRules(machine, np.repeat(chosen, sizes), leaves, whole=whole)
    found = leaves_of(machine, X)[:, chosen]
    machine, told = with_labels_of(machine, X)
    whole |= told
    rows = np.repeat(np.arange(len(found)), len(chosen))
    return DecisionRules(machine, np.tile(chosen, len(found)), found.reshape(-1), rows, whole)
