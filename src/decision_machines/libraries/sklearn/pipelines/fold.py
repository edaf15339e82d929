"""The machine that reads raw features, from a machine that reads what steps make of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ....errors import DecisionMachinesError, UnsupportedModelError
from ....machine import Accepted, CategorySets, Columns, DecisionMachine, Rule, Trees, layout
from ....machine.columns import ZERO
from ....run.inputs.features import read_features
from ...nodes import nodes_of
from .doors import door_of
from .floats import Ordered
from .graph import Graph, blocks_of, gives_sparse
from .handlers import around
from .questions import Asker, Questions, pulled_back
from .stage import Run, dense, rested

if TYPE_CHECKING:
    from .questions import Changes

DOING = "folding a pipeline"
UNSEEN = "a label that no training row had"


def fold(graph: Graph, model: Any, inner: DecisionMachine) -> DecisionMachine:
    """The machine that answers raw features as `inner` answers what the graph makes of them.

    Parameters
    ----------
    model
        The fitted object that `inner` was read from, which may refuse some numbers.
    """
    if inner.is_oblique or inner.linear is not None:
        raise UnsupportedModelError(
            DOING,
            f"the model ({inner.source}) weighs several columns in a test or a leaf",
            "convert the last step alone and pass it what the steps before make of X",
        )
    if len(graph.last.origin) != inner.n_features:
        raise UnsupportedModelError(
            DOING,
            f"the steps give {len(graph.last.origin)} columns, the model reads {inner.n_features}",
            "check that all steps were fitted together",
        )
    try:
        return _Fold(graph, model, inner).machine()
    except DecisionMachinesError:
        raise
    except (ValueError, TypeError, IndexError, AttributeError) as error:
        raise UnsupportedModelError(
            DOING,
            f"a step does not take the values that we ask it about ({error})",
            "run the steps yourself, pipe[:-1].transform(X), and convert the model alone",
        ) from error


@dataclass(frozen=True)
class _Tests:
    """The distinct tests of a machine, each with its answers to raw values."""

    column: np.ndarray
    t: np.ndarray
    missing: np.ndarray
    of_test: np.ndarray
    """(J,) which of them each test of the machine is."""


class _Part(NamedTuple):
    """Some features of the inner machine, and the columns that they make."""

    features: list[int]
    columns: np.ndarray
    reads: Columns


class _Fold:
    def __init__(self, graph: Graph, model: Any, inner: DecisionMachine) -> None:
        self.graph, self.inner, self.raw = graph, inner, graph.raw
        self.asker = Asker(self.raw)
        self.refuses = door_of(model, gives_sparse(graph.last))
        self.keys = inner.columns.column_keys()
        self.parts: dict[frozenset[int], _Part] = {}
        self.origin = np.array([*graph.last.origin, -1])[inner.columns.feature]
        """The raw feature of every column of the inner machine."""
        self.rounded = np.array([*graph.last.is_rounded, False])[inner.columns.feature]

    # -------------------------------------------------------------- asking

    def columns(self, run: Run) -> np.ndarray:
        """What the inner machine's tests read of raw values; of features not asked about, anything.

        A run may have many rows and ask about few features: other columns are not touched.
        """
        given = self.graph.last.run(run)
        part = self._part(frozenset(run.active))
        found = np.empty((run.n, len(self.inner.columns)))
        if not len(part.columns):
            return found
        x = dense(given[:, part.features] if not hasattr(given, "iloc") else given)
        if x.shape[1] != len(part.features):
            x = x[:, part.features]
        if x.dtype == object and not part.reads.categories:
            x = x.astype(np.float64)
        origin = [self.graph.last.origin[i] for i in part.features]
        x = rested(x, origin, run, self.refuses, lambda _: 1.0)
        read = read_features(x, part.reads)
        found[:, part.columns] = part.reads.coded().read(read.block(0, read.n_rows))
        return found

    def _part(self, active: frozenset[int]) -> _Part:
        """The inner machine's columns that these raw features make."""
        found = self.parts.get(active)
        if found is None:
            columns = self.inner.columns
            origin = np.array(self.graph.last.origin)
            features = np.flatnonzero(np.isin(origin, list(active))).tolist()
            place = {feature: i for i, feature in enumerate(features)}
            which = np.flatnonzero(np.isin(columns.feature, features))
            keys = self.keys
            reads = columns.with_keys(
                [(place[keys[c][0]], *keys[c][1:]) for c in which.tolist()], len(features)
            )
            labels = {place[f]: found for f, found in columns.categories.items() if f in place}
            reads = replace(reads, names=None, categories=labels, table_categories=None)
            found = self.parts[active] = _Part(features, which, reads)
        return found

    # -------------------------------------------------------------- the machine

    def machine(self) -> DecisionMachine:
        inner = self.inner
        tests = self._tests()
        self._find_breaks()
        numeric = [f for f in range(self.raw.n_features) if f not in self.raw.labels]
        takes = self.asker.taken(numeric, self.columns)
        is_number = ~np.isin(self.origin[tests.column], list(self.raw.labels))
        numbers = np.flatnonzero(is_number)
        questions = Questions(
            feature=self.origin[tests.column[numbers]],
            column=tests.column[numbers],
            t=tests.t[numbers],
            missing_left=tests.missing[numbers] < 0,
            is_rounded=self.rounded[tests.column[numbers]],
        )
        changes = self.asker.changes(questions, self.columns)
        found = _Found(self, tests, numbers, questions, changes, numeric, takes)
        found.ask_missing()
        found.ask_labels()
        columns, selection, t, missing, swap = found.assemble()
        machine = replace(
            inner,
            columns=columns,
            selection=selection[tests.of_test].astype(np.int32),
            t=t[tests.of_test],
            missing=missing[tests.of_test],
            source=self._source(),
        )
        return _swapped(machine, swap[tests.of_test])

    def _source(self) -> str:
        steps = list(dict.fromkeys(self.raw.steps))
        return f"{', '.join(steps)} folded into {self.inner.source}" if steps else self.inner.source

    def _tests(self) -> _Tests:
        inner = self.inner
        keys = np.empty(inner.n_tests, [("column", "i8"), ("t", "f8"), ("missing", "i1")])
        keys["column"], keys["t"], keys["missing"] = inner.selection, inner.t, inner.missing
        unique, of_test = np.unique(keys, return_inverse=True)
        return _Tests(unique["column"], unique["t"], unique["missing"], of_test.reshape(-1))

    def _find_breaks(self) -> None:
        for stage in self.graph.transforms:
            limits = {
                i: stage.handler.boundaries(stage.step, i) for i in range(len(stage.parent.origin))
            }
            pulled_back(self.asker, stage.parent, {i: b for i, b in limits.items() if len(b)})
        pulled_back(self.asker, self.graph.last, self._model_boundaries())

    def _model_boundaries(self) -> dict[int, np.ndarray]:
        """Numbers at which the model's own look-ups of categories may change."""
        columns = self.inner.columns
        found: dict[int, np.ndarray] = {}
        for feature, labels in columns.categories.items():
            known = [v for v in labels if isinstance(v, (int, float)) and v == v]
            found[feature] = around(np.array(known, np.float64))
        if not np.isnan(columns.missing_value):
            for feature in range(columns.n_features):
                found[feature] = around(np.array([columns.missing_value], columns.dtype))
        for c in np.flatnonzero(columns.rule == Rule.MEMBER).tolist():
            feature = int(columns.feature[c])
            if feature not in columns.categories:
                members = columns.members(c)[0].astype(columns.dtype)
                ends = np.array([-1.0, 0.0, 2.0**31], columns.dtype)
                more = around(np.concatenate([members, members + 1, ends]), columns.dtype)
                found[feature] = np.union1d(found.get(feature, np.empty(0)), more)
        for c in np.flatnonzero(columns.rule == Rule.ZERO_AS_NAN).tolist():
            feature = int(columns.feature[c])
            near = around(np.array([-ZERO, ZERO]), columns.dtype)
            found[feature] = np.union1d(found.get(feature, np.empty(0)), near)
        return found


class _Found:
    """What was found of every distinct test, and the columns that it makes."""

    def __init__(
        self,
        fold: _Fold,
        tests: _Tests,
        numbers: np.ndarray,
        questions: Questions,
        changes: Changes,
        numeric: list[int],
        takes: Changes,
    ) -> None:
        self.fold, self.tests, self.raw = fold, tests, fold.raw
        self.numbers, self.questions, self.changes = numbers, questions, changes
        self.numeric, self.takes = numeric, takes
        n = self.raw.n_features
        self.missing_left = tests.missing < 0
        self.low, self.high = np.full(n, -np.inf), np.full(n, np.inf)
        self.takes_missing = np.ones(n, bool)
        self.refused: dict[int, list[int]] = {}
        self.categories: dict[int, tuple[Any, ...]] = {}
        self.edges: dict[int, tuple[float, ...]] = {}
        self.left: dict[int, np.ndarray] = {}
        """label feature → (codes, tests of it) whether each label goes left."""
        self.outside_left: dict[int, np.ndarray] = {}

    def ask_missing(self) -> None:
        """Where NaN goes, and whether it may be given."""
        rows = {f: np.full(1, np.nan, self.raw.dtype(f)) for f in self.numeric}
        if not rows:
            return
        run = Run(self.raw, rows)
        z = self.fold.columns(run)[0]
        which = self.numbers
        at = z[self.tests.column[which]]
        self.missing_left[which] = np.where(
            at != at, self.tests.missing[which] < 0, at <= self.tests.t[which]
        )
        self.takes_missing[self.numeric] = ~run.bad[0, self.numeric]

    def ask_labels(self) -> None:
        """Which labels go left, and which may be given."""
        features = list(self.raw.labels)
        if not features:
            return
        atoms = {}
        for f in features:
            labels = list(self.raw.labels[f])
            atoms[f] = np.empty(len(labels) + 3, object)
            atoms[f][:] = [UNSEEN, None, float("nan"), *labels]
        run = Run(self.raw, atoms)
        z = self.fold.columns(run)
        for f in features:
            n = len(atoms[f])
            which = np.flatnonzero(self.fold.origin[self.tests.column] == f)
            at = z[:n][:, self.tests.column[which]]
            left = np.where(at != at, self.tests.missing[which] < 0, at <= self.tests.t[which])
            bad = run.bad[:n, f]
            labels = [*self.raw.labels[f]]
            left_of, bad_of = left[3:], bad[3:]
            if bad[1] != bad[2] or not (bad[1] or np.array_equal(left[1], left[2])):
                labels.append(None)
                left_of = np.concatenate([left_of, left[1:2]])
                bad_of = np.append(bad_of, bad[1])
            self.categories[f] = tuple(labels)
            self.left[f], self.outside_left[f] = left_of, left[0]
            self.missing_left[which] = left[2]
            self.takes_missing[f] = not bad[2]
            refused = np.flatnonzero(bad_of).tolist() + [-1] * bool(bad[0])
            if refused:
                self.refused[f] = refused

    # -------------------------------------------------------------- columns

    def assemble(self) -> tuple[Columns, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The columns, and the column, threshold, missing answer and swap of every test."""
        n_tests = len(self.tests.t)
        n = self.raw.n_features
        selection = self.fold.origin[self.tests.column].copy()
        t = np.full(n_tests, np.inf)
        swap = np.zeros(n_tests, bool)
        by_range = self._by_range()
        sets: dict[tuple[Any, ...], int] = {}
        for k, test in enumerate(self.numbers.tolist()):
            f = int(self.questions.feature[k])
            keys, first = self.changes.keys[k], bool(self.changes.first[k])
            if f in by_range:
                codes = np.searchsorted(keys, by_range[f], side="left")
                last = len(keys)
                left = np.append(codes, last) % 2 == (0 if first else 1)
                selection[test] = n + sets.setdefault((f, left.tobytes(), 0), len(sets))
                t[test] = 0.5
                continue
            swap[test] = not first
            if len(keys):
                t[test] = float(Ordered(self.raw.dtype(f)).values(keys)[0])
        for f in self.raw.labels:
            which = np.flatnonzero(self.fold.origin[self.tests.column] == f)
            for i, test in enumerate(which.tolist()):
                key = (f, self.left[f][:, i].tobytes(), int(self.outside_left[f][i]))
                selection[test] = n + sets.setdefault(key, len(sets))
                t[test] = 0.5
        missing = np.where(self.missing_left ^ swap, -1, 1).astype(np.int8)
        return self._columns(sets, by_range), selection, t, missing, swap

    def _by_range(self) -> dict[int, np.ndarray]:
        """Features whose numbers must be read as ranges: the keys of their bounds."""
        found = {}
        for position, f in enumerate(self.numeric):
            own = np.flatnonzero(self.questions.feature == f)
            taken, first_bad = self.takes.keys[position], not self.takes.first[position]
            # A question asks whether 0 for "taken" is at most a half.
            pieces = len(taken) + (0 if first_bad else 1)
            is_interval = pieces <= 2
            if is_interval and all(len(self.changes.keys[q]) <= 1 for q in own.tolist()):
                self._bounds(f, taken, first_bad)
                continue
            keys = [self.changes.keys[q] for q in own.tolist()]
            every = np.unique(np.concatenate([*keys, taken])).astype(np.int64)
            found[f] = every
            self.edges[f] = tuple(Ordered(self.raw.dtype(f)).values(every).astype(float).tolist())
            codes = np.append(np.searchsorted(taken, every, side="left"), len(taken))
            bad = codes % 2 == (0 if first_bad else 1)
            if np.any(bad):
                self.refused[f] = np.flatnonzero(bad).tolist()
        return found

    def _bounds(self, f: int, changes: np.ndarray, first_bad: bool) -> None:
        """The smallest and the largest number that is taken."""
        numbers = Ordered(self.raw.dtype(f))
        left: list[int] = changes.tolist()
        if first_bad:
            start = left.pop(0) + 1 if left else numbers.highest
            self.low[f] = float(numbers.values(np.array([start]))[0])
        if left:
            self.high[f] = float(numbers.values(np.array([left[0]]))[0])

    def _columns(
        self, sets: dict[tuple[Any, ...], int], by_range: dict[int, np.ndarray]
    ) -> Columns:
        n = self.raw.n_features
        members, answers, starts, outsides = [], [], [0], []
        for f, packed, outside in sets:
            left = np.frombuffer(packed, bool)
            base = bool(outside) if f in self.categories else False
            told_apart = left != base
            told_apart[[c for c in self.refused.get(f, ()) if c >= 0]] = False
            apart = np.flatnonzero(told_apart)
            members.append(apart)
            answers.append(np.where(left[apart], -1, 1))
            starts.append(starts[-1] + len(apart))
            outsides.append(-1 if base else 1)
        found = None
        if sets:
            found = CategorySets(
                np.array(starts),
                np.concatenate(members),
                np.concatenate(answers).astype(np.int8),
                np.array(outsides, np.int8),
                whole=True,
            )
        graph = self.fold.graph
        needed = np.zeros(n, bool)
        needed[list(graph.needed)] = True
        accepted = Accepted(
            self.low,
            self.high,
            self.takes_missing | ~needed,
            needed,
            {feature: tuple(codes) for feature, codes in self.refused.items()},
            graph.ignores_further,
            tuple((block, self.raw.dtype(block[0]).name) for block in blocks_of(graph)),
            tuple(sorted(self.raw.functions)),
        )
        return Columns(
            n,
            np.float64,
            feature=np.concatenate([np.arange(n), [key[0] for key in sets]]),
            rule=np.repeat([Rule.VALUE, Rule.MEMBER], [n, len(sets)]),
            names=self.raw.names,
            sets=found,
            categories=self.categories,
            encodes_arrays=bool(self.categories or by_range),
            edges=self.edges,
            accepted=accepted,
        )


def _swapped(machine: DecisionMachine, swap: np.ndarray) -> DecisionMachine:
    """The machine with the sides of some tests exchanged, its leaves again from left to right."""
    if not np.any(swap):
        return machine
    nodes = nodes_of(machine, swap)
    found = layout(nodes.left, nodes.right, nodes.start, DOING)
    tests, leaves = nodes.test[found.tests], nodes.leaf[found.leaves]
    trees = machine.trees
    return replace(
        machine,
        selection=machine.selection[tests],
        t=machine.t[tests],
        missing=machine.missing[tests],
        children=found.children,
        V=machine.V[leaves],
        trees=Trees(
            found.test_start,
            trees.feeds,
            None if trees.test_ids is None else trees.test_ids[tests],
            None if trees.leaf_ids is None else trees.leaf_ids[leaves],
        ),
        cover=None if machine.cover is None else machine.cover.keep(tests, leaves),
    )
