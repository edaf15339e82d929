"""A machine as the text of one SELECT: trees as CASE expressions, or in DuckDB as `masks`.

NULL and NaN are missing. Numbers are compared in float64; over columns of float32 the thresholds
are moved to where a cast would turn, so that the same rows go left. Sums are made in the machine's
dtype, one tree after the other; many trees are added in stages, because databases limit the
depth of an expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...machine.trees import ALL_OUTPUTS
from ..limits import Limits
from ..write_thresholds import double_thresholds
from .answers import answer_columns
from .columns import feature_stage, refusals, sides
from .dialects import CASELESS, DOING, SINGLE, Dialect
from .masks import Masks, listed

if TYPE_CHECKING:
    from jaxtyping import Float

    from ...machine import DecisionMachine

OUTPUTS = ("margin", "response", "predict_proba", "predict")
STAGE = 100
"""Trees that one stage adds."""


def to_sql(
    machine: DecisionMachine,
    dialect: str = "duckdb",
    *,
    table: str = "rows",
    columns: Sequence[str] | Mapping[str, str] | None = None,
    outputs: str = "margin",
    keep: Sequence[str] = (),
) -> str:
    """The text of the SELECT; see `DecisionMachine.to_sql`."""
    if outputs not in OUTPUTS:
        raise InputError(DOING, f"outputs={outputs!r:.60}", f"use one of {', '.join(OUTPUTS)}")
    if isinstance(keep, str):
        raise InputError(DOING, f"keep={keep!r:.60}", "give a list of names")
    _check(machine, dialect)
    spoken = Dialect.named(dialect)
    names, t = _names(machine, columns), double_thresholds(machine)
    _check_case(names, dialect)
    return _Select(machine, spoken, table, names, outputs, tuple(keep), t).text()


def sql_content(
    machine: DecisionMachine,
    suffix: str,
    *,
    margins: bool = False,
    columns: Sequence[str] | None = None,
) -> bytes:
    """The bytes of a DuckDB query, for `dm convert`: predictions, or margins."""
    outputs = "margin" if margins else "predict"
    return (to_sql(machine, "duckdb", columns=columns, outputs=outputs) + "\n").encode("utf-8")


def _names(
    machine: DecisionMachine, columns: Sequence[str] | Mapping[str, str] | None
) -> list[str]:
    """The column of every feature."""
    known = [machine.columns.feature_name(f) for f in range(machine.n_features)]
    if columns is None:
        if machine.columns.names is None and machine.n_features:
            raise InputError(
                DOING,
                "the machine has no names of features",
                "name their columns, in the order of the training data: columns=[...], or "
                "--column for each",
            )
        return known
    if isinstance(columns, Mapping):
        unknown = [name for name in columns if name not in known]
        if unknown:
            raise InputError(DOING, f"columns names {unknown[0]!r:.60}", "use names of features")
        return [columns.get(name, name) for name in known]
    found = list(columns) if not isinstance(columns, str) else []
    if len(found) != len(known):
        raise InputError(
            DOING,
            f"{len(found)} columns for {len(known)} features",
            "name one for each feature, in the order of the training data",
        )
    return found


def _check_case(names: Sequence[str], dialect: str) -> None:
    if dialect not in CASELESS:
        return
    known: dict[str, str] = {}
    for name in names:
        other = known.setdefault(name.lower(), name)
        if other != name:
            raise InputError(
                DOING,
                f"the columns {other!r:.60} and {name!r:.60}, which are one to {dialect}",
                "name one of them otherwise in the table, and here: columns={feature: column}",
            )


def _check(machine: DecisionMachine, dialect: str) -> None:
    limits = Limits(machine, "SQL")
    limits.constant_leaves()
    if machine.is_oblique:
        limits.refuse("its tests weigh several columns (S is not one-hot)", "use to_c")
    if machine.columns.look_ups is not None:
        limits.refuse(
            "columns.look_ups: statistics of combinations of features",
            "train CatBoost with max_ctr_complexity=1, or use stream.duckdb_function",
        )
    if machine.output.aggregate != "sum":
        limits.refuse(f"output.aggregate is {machine.output.aggregate!r}", "use to_c")
    if machine.output.dtype == np.float32 and dialect not in SINGLE:
        limits.refuse(
            f"it adds in float32, which {dialect} does not compute in",
            f"use a dialect that does: {', '.join(SINGLE)}",
        )


@dataclass(frozen=True)
class _Select:
    machine: DecisionMachine
    dialect: Dialect
    table: str
    names: list[str]
    outputs: str
    keep: tuple[str, ...]
    t: Float[np.ndarray, "J"]
    """Thresholds for x in float64."""

    def text(self) -> str:
        """Stages as common table expressions: features, sums of trees, and the answer."""
        name = self.dialect.identifier
        kept = [name(column) for column in self.keep]
        own = [f"k{i}" for i in range(len(kept))]
        features = feature_stage(self.machine, self.dialect, self.names)
        refused = refusals(self.machine, self.dialect)
        first = [*(f"{k} AS {o}" for k, o in zip(kept, own, strict=True))]
        first += [f"{text} AS f{f}" for f, text in features.items()]
        source = ".".join(name(part) for part in self.table.split("."))
        stages = [f"s0 AS (\nSELECT {_listed(first or ['1 AS one'])}\nFROM {source}\n)"]
        carried = [*own, *(f"f{f}" for f in features)]
        before, masks = "s0", Masks.of(self.machine, self.dialect, self.t)
        if masks is not None:
            carried = carried if refused else own
            stages += [*masks.stages(carried), self._leaf_values()]
            before = "v"
        sums: dict[int, str] = {o: self._start(o) for o in range(self.machine.n_outputs)}
        for at in range(0, max(self.machine.n_trees, 1), STAGE):
            trees = range(at, min(at + STAGE, self.machine.n_trees))
            term = self._tree if masks is None else masks.leaf
            summed = [f"{self._sum(o, sums[o], trees, term)} AS m{o}" for o in sums]
            after = f"s{at // STAGE + 1}"
            rest = [f"v{tree}" for tree in range(trees.stop, self.machine.n_trees)] if masks else []
            source = before if masks is None else f"{before}, x"
            stages.append(
                f"{after} AS (\nSELECT {_listed([*carried, *rest, *summed])}\nFROM {source}\n)"
            )
            before, sums = after, {o: f"m{o}" for o in sums}
        done = [f"{self._finish(o)} AS m{o}" for o in sums]
        if refused:
            done = [
                f"CASE WHEN {' OR '.join(refused)} THEN NULL ELSE {text} END AS {alias}"
                for text, alias in (found.rsplit(" AS ", 1) for found in done)
            ]
        stages.append(f"done AS (\nSELECT {_listed([*own, *done])}\nFROM {before}\n)")
        answers = answer_columns(self.machine, self.dialect, self.outputs, self.keep)
        last = [f"{o} AS {k}" for o, k in zip(own, kept, strict=True)]
        return "WITH " + ",\n".join(stages) + f"\nSELECT {_listed([*last, *answers])}\nFROM done"

    @property
    def _single(self) -> bool:
        return bool(self.machine.output.dtype == np.float32)

    def _number(self, value: float) -> str:
        return self.dialect.number(value, self._single)

    def _start(self, output: int) -> str:
        base = self.machine.output.base[output] if self.machine.output.base_first else 0.0
        return self._number(base)

    def _sum(self, output: int, before: str, trees: range, term: Callable[[int, int], str]) -> str:
        feeds = self.machine.trees.feeds
        fed = [t for t in trees if feeds[t] in (ALL_OUTPUTS, output)]
        return "\n + ".join([before, *(term(t, output) for t in fed)])

    def _finish(self, o: int) -> str:
        output = self.machine.output
        text = f"m{o}"
        if output.divisor != 1.0:
            text = f"({text} / {self._number(output.dtype.type(output.divisor))})"
        if output.scale != 1.0:
            text = f"({text} * {self._number(output.dtype.type(output.scale))})"
        if not output.base_first:
            text = f"({text} + {self._number(output.base[o])})"
        return text

    def _values(self, output: int, leaves: slice) -> np.ndarray:
        """What leaves add to an output, in the dtype of the sum."""
        machine = self.machine
        column = 0 if machine.V.shape[1] == 1 else output
        return machine.V[leaves, column].astype(machine.output.dtype)

    def _leaf_values(self) -> str:
        """A stage of one row: for each output, what all leaves add to it, as lists x0, x1 …"""
        kind = SINGLE[self.dialect.name] if self._single else self.dialect.double
        found = (
            f"{listed(self._values(o, slice(None)).tolist(), kind)} AS x{o}"
            for o in range(self.machine.n_outputs)
        )
        return f"x AS (SELECT {', '.join(found)})"

    def _tree(self, tree: int, output: int) -> str:
        """The CASE of one tree."""
        machine = self.machine
        tests, leaves = machine.trees.tests(tree), machine.trees.leaves(tree)
        values = self._values(output, slice(leaves.start, leaves.stop))

        def leaf(at: int) -> str:
            return self._number(values[at - leaves.start])

        if tests.start == tests.stop:
            return leaf(leaves.start)
        # Children come after their parents, so that from the last test up every part is there.
        order = _preorder(machine.children, tests.start)
        done: dict[int, str] = {}
        for test in reversed(order):
            left, right = (
                done.pop(child) if child >= 0 else leaf(~child)
                for child in machine.children[test].tolist()
            )
            condition, says_left = sides(machine, self.dialect, test, float(self.t[test]))
            yes, no = (left, right) if says_left else (right, left)
            done[test] = f"CASE WHEN {condition} THEN {yes} ELSE {no} END"
        return done[tests.start]


def _preorder(children: Any, root: int) -> list[int]:
    found, waiting = [], [root]
    while waiting:
        test = waiting.pop()
        found.append(test)
        waiting += [c for c in children[test].tolist() if c >= 0]
    return found


def _listed(parts: Sequence[str]) -> str:
    return ",\n  ".join(parts)
