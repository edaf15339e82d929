"""Whether a margin never falls (never rises) as one feature grows, all others held.

Between two neighbouring cells of the feature only the trees that test it *there* change, so each
step is a question about a few trees: over all pairs of leaves, one on either side, that an
input and its neighbour reach together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError, UnsupportedModelError
from ...machine.digits import digits
from ...machine.feature_names import feature_number
from ...machine.words import words_of_value
from ..change.goal_functions import leaf_sums
from ..change.moves import is_categorical
from .bounds import margins
from .cells import Cells
from .regions import regions, some_input

if TYPE_CHECKING:
    from jaxtyping import Float

    from ...machine import DecisionMachine

DOING = "checking monotonicity"
Pair = tuple[float, dict[int, int]]
"""What is gained across a step by two leaves of a tree, and the inputs that they share."""


@dataclass(frozen=True, repr=False)
class Monotonicity:
    """A verdict, with the pair of inputs that refutes it where one does."""

    machine: DecisionMachine
    verdict: str
    """"proven", "refuted" or "unknown" (the budget was spent)."""
    feature: int
    direction: str
    output: int
    steps: int
    """Boundaries of the feature, each a question of its own."""
    proven: int
    """Steps that hold."""
    X: Float[np.ndarray, "2 n"] | None = None
    """Two inputs that differ in the feature alone, the lower value first."""
    margins: Float[np.ndarray, "2"] | None = None
    """Their margins, by the machine itself."""
    in_each_tree: bool = False
    """Whether every tree is monotone by itself: then so is the sum as it is rounded."""

    def __bool__(self) -> bool:
        return self.verdict == "proven"

    def __repr__(self) -> str:
        columns, output = self.machine.columns, self.machine.output
        text = f"Monotonicity({self.verdict}: {self.direction} in "
        text += f"{columns.feature_name(self.feature)}{_of_output(self.machine, self.output)}"
        if self.X is not None and self.margins is not None:
            values = self.X[:, self.feature].tolist()
            a, b = (words_of_value(columns, self.feature, v) for v in values)
            before, after = (digits(v, output.dtype) for v in self.margins)
            text += f"; {a} → {b} takes the margin from {before} to {after}"
        if self.verdict == "unknown":
            text += f"; {self.proven} of {self.steps} steps proven"
        return text + ")"


def is_monotone(
    machine: DecisionMachine,
    feature: Any,
    direction: str = "increasing",
    *,
    output: Any = None,
    budget: int = 200_000,
) -> Monotonicity:
    """See `DecisionMachine.is_monotone`."""
    if direction not in ("increasing", "decreasing"):
        raise InputError(DOING, f"direction={direction!r}", "use 'increasing' or 'decreasing'")
    if not isinstance(budget, (int, np.integer)) or budget < 1:
        raise InputError(DOING, f"budget={budget!r}", "give a whole number of pairs, at least 1")
    if machine.linear is not None:
        raise UnsupportedModelError(
            DOING, "its leaves are linear functions", "use a machine whose leaves are constants"
        )
    cells = Cells(machine, DOING)
    f = feature_number(machine.columns, feature)
    which = _output(machine, output)
    if f not in cells.tests:
        return Monotonicity(machine, "proven", f, direction, which, 0, 0, in_each_tree=True)
    if is_categorical(cells, f):
        raise InputError(
            DOING,
            f"feature {feature!r} is tested as a category; categories have no order",
            "ask about a feature that is compared with thresholds",
        )
    return _Check(cells, f, direction, which, int(budget)).run()


def _labels(machine: DecisionMachine) -> list[Any]:
    """The label of each output, where outputs are the classes of one target."""
    classes = machine.output.classes
    is_each = classes is not None and len(classes) == 1 and len(classes[0]) == machine.n_outputs
    return classes[0].tolist() if classes is not None and is_each else []


def _of_output(machine: DecisionMachine, output: int) -> str:
    """Which margin is meant, where there are several."""
    if machine.n_outputs == 1:
        return ""
    labels = _labels(machine)
    return f", margin of {labels[output]}" if labels else f", margin {output}"


def _output(machine: DecisionMachine, output: Any) -> int:
    k, labels = machine.n_outputs, _labels(machine)
    if output is None and k == 1:
        return 0
    if isinstance(output, str) and output in labels:
        return labels.index(output)
    if not isinstance(output, (int, np.integer)) or not 0 <= output < k:
        raise InputError(
            DOING,
            f"output={output!r} for a machine with {k} outputs",
            f"name the output: a number from 0 to {k - 1}"
            + (f", or a label: {', '.join(map(repr, labels[:12]))}" if labels else ""),
        )
    return int(output)


class _Check:
    def __init__(self, cells: Cells, f: int, direction: str, output: int, budget: int) -> None:
        self.cells, self.f, self.direction, self.output = cells, f, direction, output
        self.machine = m = cells.machine
        self.left = budget
        if m.output.aggregate == "sum":
            W, _, slack = leaf_sums(m)
            self.w, self.slack = W[:, output].copy(), float(slack[output])
        else:
            self.w = (m.V[:, output] * (m.output.scale / m.output.divisor)).astype(float)
            self.slack = 0.0
        if direction == "decreasing":
            self.w = -self.w
        self.trees: dict[int, set[int]] = {}
        for j in cells.tests[f].tolist():
            left = cells.left(j)[:-1]
            for c in np.flatnonzero(left[1:] != left[:-1]).tolist():
                self.trees.setdefault(c, set()).add(int(m.trees.of_test[j]))

    def run(self) -> Monotonicity:
        X = self._drawn()
        if X is not None:
            return self._answer("refuted", 0, X)
        proven, in_each_tree, open_steps = 0, True, 0
        for c, trees in sorted(self.trees.items()):
            found = [self._pairs(tree, c) for tree in sorted(trees)]
            pairs = [p for p in found if p is not None]
            if len(pairs) < len(found):
                open_steps += 1
                continue
            falls = [p[0][0] if p else 0.0 for p in pairs]
            in_each_tree &= min(falls, default=0.0) >= 0
            if min(falls, default=0.0) >= 0:
                proven += 1
                continue
            if self.machine.output.aggregate != "sum" and self.machine.n_trees > 1:
                open_steps += 1
                continue
            verdict, X = self._joint(pairs, c)
            if X is not None:
                return self._answer("refuted", proven, X)
            proven += verdict
            open_steps += not verdict
        return self._answer("unknown" if open_steps else "proven", proven, None, in_each_tree)

    def _drawn(self, n_rows: int = 16, most: int = 512) -> Float[np.ndarray, "2 n"] | None:
        """Two inputs that refute it among some drawn ones: most that is not so fails at once."""
        rng = np.random.default_rng(0)
        cells, f = self.cells, self.f
        along = np.arange(len(cells.ends[f]))
        if len(along) > most:
            along = np.sort(rng.choice(along, most, replace=False))
        values = np.array([cells.representative(f, 1 << int(c)) for c in along])
        rows = np.zeros((n_rows, self.machine.n_features))
        for g in cells.tests:
            drawn = rng.integers(len(cells.ends[g]) + 1, size=n_rows).tolist()
            rows[:, g] = [cells.representative(g, 1 << c) for c in drawn]
        X = np.repeat(rows, len(values), axis=0)
        X[:, f] = np.tile(values, n_rows)
        found = margins(self.machine, X)[:, self.output].reshape(n_rows, -1)
        fall = -np.diff(found, axis=1) if self.direction == "increasing" else np.diff(found, axis=1)
        at = int(np.argmax(fall)) if fall.size else 0
        if not fall.size or not fall.flat[at] > self.slack:
            return None
        row, step = divmod(at, fall.shape[1])
        first = row * len(values) + step
        return X[first : first + 2]

    def _answer(
        self,
        verdict: str,
        proven: int,
        X: Float[np.ndarray, "2 n"] | None,
        in_each_tree: bool = False,
    ) -> Monotonicity:
        found = None if X is None else margins(self.machine, X)[:, self.output]
        return Monotonicity(
            self.machine,
            verdict,
            self.f,
            self.direction,
            self.output,
            len(self.trees),
            proven,
            X,
            found,
            in_each_tree and verdict == "proven",
        )

    def _pairs(self, tree: int, c: int) -> list[Pair] | None:
        """(gain, sets) of leaves on both sides of a step that share inputs, least gain first."""
        if self.left < 0:
            return None
        below, above = (
            [
                (float(self.w[leaf]), {f: bits for f, bits in sets.items() if f != self.f})
                for leaf, sets in regions(self.cells, tree, {self.f: 1 << cell})
            ]
            for cell in (c, c + 1)
        )
        self.left -= len(below) * len(above) + len(below) + len(above)
        if self.left < 0:
            return None
        found = []
        for v, a in below:
            for u, b in above:
                both = _meet(a, b)
                if both is not None:
                    found.append((u - v, both))
        found.sort(key=lambda pair: pair[0])
        return found

    def _joint(
        self, pairs: list[list[Pair]], c: int
    ) -> tuple[bool, Float[np.ndarray, "2 n"] | None]:
        """Whether the trees together never fall; or two inputs between which they do."""
        pairs = sorted(pairs, key=lambda p: p[0][0])
        rest = np.cumsum([0.0] + [p[0][0] for p in reversed(pairs)])[::-1].tolist()
        # Our own sums of gains are in float64: below their rounding a fall is none.
        ratio = np.finfo(np.float64).eps / np.finfo(self.machine.output.dtype).eps
        tolerance = self.slack * float(ratio)
        is_unsure = False
        stack: list[tuple[int, float, dict[int, int]]] = [(0, 0.0, {})]
        while stack:
            depth, gain, sets = stack.pop()
            if depth == len(pairs):
                X = self._verified(sets, c)
                if X is not None:
                    return False, X
                is_unsure = True
                continue
            below = []
            for step, own in pairs[depth]:
                if gain + step + rest[depth + 1] >= -tolerance:
                    break
                self.left -= 1
                if self.left < 0:
                    return False, None
                both = _meet(sets, own)
                if both is not None:
                    below.append((depth + 1, gain + step, both))
            stack += reversed(below)  # the steepest fall first
        return not is_unsure, None

    def _verified(self, sets: dict[int, int], c: int) -> Float[np.ndarray, "2 n"] | None:
        """The two inputs, if the machine's own margins fall between them."""
        X = np.stack([some_input(self.cells, {**sets, self.f: 1 << cell}) for cell in (c, c + 1)])
        before, after = margins(self.machine, X)[:, self.output]
        falls = after < before if self.direction == "increasing" else after > before
        return X if falls else None


def _meet(a: dict[int, int], b: dict[int, int]) -> dict[int, int] | None:
    """The inputs in both, or None where there are none."""
    found = dict(a)
    for f, bits in b.items():
        own = found.get(f)
        both = bits if own is None else own & bits
        if not both:
            return None
        found[f] = both
    return found
