"""What differs between two machines, and an input that shows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...machine import DecisionMachine
from ...machine.digits import digits
from .canonical import Canonical, fingerprint, header
from .simplify import simplify
from .witness import differing_input

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from .witness import Witness

MOST_SHOWN = 20
MOST_NAMED = 5


@dataclass(frozen=True)
class TreeChange:
    """One tree of A and the tree of B that stands in its place."""

    tree_a: int
    tree_b: int
    same_shape: bool
    """Whether both ask the same columns in the same places."""
    thresholds: int = 0
    """How many thresholds moved."""
    furthest: float = 0.0
    """The largest move."""
    missing: int = 0
    """How many tests send missing values elsewhere."""
    values: int = 0
    """How many leaves have other values."""
    largest: float = 0.0
    """The largest change of a value."""
    leaves: tuple[int, int] = (0, 0)
    features: tuple[str, ...] = ()
    """The features whose thresholds moved, by name, those that moved furthest first."""

    def __str__(self) -> str:
        where = f"tree {self.tree_a}" + ("" if self.tree_a == self.tree_b else f" → {self.tree_b}")
        if not self.same_shape:
            return f"{where}: another tree, {self.leaves[0]} → {self.leaves[1]} leaves"
        parts = []
        if self.thresholds:
            moved = _count(self.thresholds, "threshold")
            parts.append(f"{moved} moved, by {_exactly(self.furthest)} at most")
        if self.missing:
            parts.append(f"{_count(self.missing, 'test')} send missing values elsewhere")
        if self.values:
            changed = _count(self.values, "leaf", "leaves")
            parts.append(f"{changed} changed, by {_exactly(self.largest)} at most")
        named = ", ".join(
            [*self.features[:MOST_NAMED], *(["…"] if len(self.features) > MOST_NAMED else [])]
        )
        of = f" (thresholds of {named})" if self.thresholds else ""
        return f"{where}: {'; '.join(parts) or 'feeds another output'}{of}"


@dataclass(frozen=True)
class MachineDiff:
    """Everything that differs between A and B; truthy where anything does."""

    fingerprints: tuple[str, str]
    reading: tuple[str, ...]
    """What differs in how inputs are read."""
    output: tuple[str, ...]
    """What differs in what becomes of the sums."""
    same: int
    """Trees found in both, in the same order."""
    changed: tuple[TreeChange, ...]
    added: tuple[int, ...]
    """Trees of B alone."""
    removed: tuple[int, ...]
    """Trees of A alone."""
    reordered: bool
    """Whether both hold the same trees in another order, which decides the last bits of sums."""
    same_answers: bool
    """Whether both are proven to answer every input alike, though their arrays differ."""
    witness: Witness | None = field(default=None)
    """An input that both answer differently, by their own predictions."""

    def __bool__(self) -> bool:
        return self.fingerprints[0] != self.fingerprints[1]

    def __str__(self) -> str:
        if not self:
            return f"equal: {self.fingerprints[0]}"
        lines = [
            f"different: {self.same} trees alike, {len(self.changed)} changed, "
            f"{len(self.added)} added, {len(self.removed)} removed"
        ]
        lines += [f"  reading: {text}" for text in self.reading]
        lines += [f"  output: {text}" for text in self.output]
        if self.reordered:
            lines.append("  the same trees stand in another order")
        lines += [f"  {change}" for change in self.changed[:MOST_SHOWN]]
        if len(self.changed) > MOST_SHOWN:
            lines.append(f"  … and {len(self.changed) - MOST_SHOWN} more")
        for word, trees in (("added", self.added), ("removed", self.removed)):
            if trees:
                shown = ", ".join(map(str, trees[:MOST_SHOWN]))
                lines.append(f"  {word}: {shown}{' …' if len(trees) > MOST_SHOWN else ''}")
        if self.same_answers:
            lines.append("  both answer every input alike (proven: they are equal when simplified)")
        elif self.witness is not None:
            lines.append(f"  {self.witness}")
        else:
            lines.append("  no input that they answer differently was found")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        witness = None if self.witness is None else self.witness.to_dict()
        return {
            "different": bool(self),
            "fingerprints": list(self.fingerprints),
            "reading": list(self.reading),
            "output": list(self.output),
            "same trees": self.same,
            "changed": [{**vars(c), "text": str(c)} for c in self.changed],
            "added": list(self.added),
            "removed": list(self.removed),
            "reordered": self.reordered,
            "same answers": self.same_answers,
            "witness": witness,
        }


def diff(a: DecisionMachine, b: DecisionMachine) -> MachineDiff:
    """What differs between two machines: trees, thresholds, values, outputs, and an input.

    Trees are matched by what they hold, so that a tree put in or left out does not make all
    others differ.

    Parameters
    ----------
    a, b
        Machines, as `dm.convert` and `dm.load` give them.

    Examples
    --------
    >>> import decision_machines as dm, numpy as np
    >>> from dataclasses import replace
    >>> one = dm.figure_one()
    >>> print(dm.diff(one, one))
    equal: dm1:...
    >>> print(dm.diff(one, replace(one, t=np.array([1.0, 4.0, 3.5, 2.0, 5.0]))))
    different: 0 trees alike, 1 changed, 0 added, 0 removed
      tree 0: 1 threshold moved, by 0.5 at most (thresholds of x[3])
      predictions 6.0 and 5.0 at x[1] = 2, x[2] = 0, x[3] = 3.5, x[4] = 0
    """
    for name, machine in (("first", a), ("second", b)):
        if not isinstance(machine, DecisionMachine):
            raise InputError(
                "comparing two machines",
                f"the {name} is a {type(machine).__name__}",
                "convert it first: dm.convert(model), or dm.load(path)",
            )
    prints = fingerprint(a), fingerprint(b)
    if prints[0] == prints[1]:
        return MachineDiff(prints, (), (), a.n_trees, (), (), (), False, True)
    form_a, form_b = Canonical(a), Canonical(b)
    hashes_a = [form_a.tree_hash(i) for i in range(a.n_trees)]
    hashes_b = [form_b.tree_hash(i) for i in range(b.n_trees)]
    pairs, removed, added, same = _matched(hashes_a, hashes_b)
    changed = tuple(_change(form_a, form_b, i, j) for i, j in pairs)
    reads, answers = _header_lines(a, b)
    alike = not reads and not answers
    same_answers = alike and fingerprint(simplify(a)) == fingerprint(simplify(b))
    witness = None
    if not same_answers:
        witness = differing_input(a, b, pairs, removed, added)
    return MachineDiff(
        prints,
        reads,
        answers,
        same,
        changed,
        tuple(added),
        tuple(removed),
        alike and same != a.n_trees and sorted(hashes_a) == sorted(hashes_b),
        same_answers,
        witness,
    )


def _matched(
    a: list[bytes], b: list[bytes]
) -> tuple[list[tuple[int, int]], list[int], list[int], int]:
    """Trees that changed in place, trees of one side alone, and how many are equal."""
    pairs: list[tuple[int, int]] = []
    removed: list[int] = []
    added: list[int] = []
    same = 0
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    for kind, a0, a1, b0, b1 in matcher.get_opcodes():
        if kind == "equal":
            same += a1 - a0
            continue
        n = min(a1 - a0, b1 - b0)
        pairs += [(a0 + i, b0 + i) for i in range(n)]
        removed += list(range(a0 + n, a1))
        added += list(range(b0 + n, b1))
    return pairs, removed, added, same


def _change(a: Canonical, b: Canonical, i: int, j: int) -> TreeChange:
    own, other = a.machine, b.machine
    leaves_a, leaves_b = own.trees.leaves(i), other.trees.leaves(j)
    sizes = leaves_a.stop - leaves_a.start, leaves_b.stop - leaves_b.start
    if (
        sizes[0] != sizes[1]
        or not np.array_equal(a.local_children(i), b.local_children(j))
        or a.questions(i) != b.questions(j)
        or own.V.shape[1] != other.V.shape[1]
    ):
        return TreeChange(i, j, False, leaves=sizes)
    tests_a, tests_b = a.tests(i), b.tests(j)
    moved = own.t[tests_a].astype(float), other.t[tests_b].astype(float)
    V = own.V[leaves_a].astype(float), other.V[leaves_b].astype(float)
    with np.errstate(invalid="ignore"):
        far = np.abs(np.where(moved[0] == moved[1], 0.0, moved[0] - moved[1]))
        gap = np.abs(np.where(V[0] == V[1], 0.0, V[0] - V[1])).max(axis=1, initial=0.0)
    return TreeChange(
        i,
        j,
        True,
        int(np.count_nonzero(far)),
        float(far.max(initial=0.0)),
        int(np.count_nonzero(own.missing[tests_a] != other.missing[tests_b])),
        int(np.count_nonzero(gap)),
        float(gap.max(initial=0.0)),
        sizes,
        _names_of(own, tests_a, far),
    )


def _names_of(
    machine: DecisionMachine, tests: Int[np.ndarray, "J"], far: Float[np.ndarray, "J"]
) -> tuple[str, ...]:
    """The features of the tests whose thresholds moved, the furthest first."""
    order = tests[np.argsort(-far, kind="stable")[: np.count_nonzero(far)]].tolist()
    if machine.is_oblique:
        columns = [c for j in order for c in machine.S[[j]].indices.tolist()]
    else:
        columns = machine.selection[order].tolist()
    return tuple(dict.fromkeys(machine.columns.name(c) for c in columns))


def _header_lines(
    a: DecisionMachine, b: DecisionMachine
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What differs outside the trees, in words."""
    one, two = header(a), header(b)
    found = []
    for part in ("reads", "answers"):
        lines = []
        if part == "reads":
            lines += _label_lines(a, b)
        for name in sorted((one[part].keys() | two[part].keys()) - {"categories"}):
            x, y = one[part].get(name), two[part].get(name)
            if x != y and not (x != x and y != y):
                lines.append(f"{name.replace('_', ' ')} {_short(x)} → {_short(y)}")
        found.append(lines)
    if one["values"] != two["values"]:
        found[1].append(f"values {one['values']} → {two['values']}")
    return tuple(found[0]), tuple(found[1])


def _label_lines(a: DecisionMachine, b: DecisionMachine) -> list[str]:
    """The features that are given as other labels."""
    one, two = a.columns.categories, b.columns.categories
    return [
        f"labels of {a.columns.feature_name(f) if f < a.n_features else b.columns.feature_name(f)} "
        f"{_short(one.get(f))} → {_short(two.get(f))}"
        for f in sorted(one.keys() | two.keys())
        if one.get(f) != two.get(f)
    ]


def _exactly(value: float) -> str:
    return digits(value, np.dtype(np.float64))


def _short(value: Any) -> str:
    if isinstance(value, float):
        return _exactly(value)
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _count(n: int, word: str, words: str | None = None) -> str:
    return f"{n} {word if n == 1 else words or word + 's'}"
