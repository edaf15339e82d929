"""A proof, by probes, that a machine and a model route every input alike."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...libraries.oracles import answers_of, members_of, oracle_of, rows_that_differ
from ...machine import Assembly
from ...machine.words import words_of_row
from ...progress import Progress, Verbosity
from ...run.assemblies import has
from ...run.quantiles import CERTIFIED
from .combinations import Combinations
from .probes import probe_tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...libraries.oracles import Oracle
    from ...machine import Columns, DecisionMachine

Difference = tuple[np.ndarray, str, Any, Any]
"""Rows that differ, in what, and both values of the first one."""
WHOLE_ROWS = 2000
"""How many probes also go through the whole model, to prove the sum and not only the trees."""


@dataclass(frozen=True)
class Disagreement:
    """One input that the machine and the model answer differently."""

    tree: int | None
    """None where whole margins differ while every tree agrees."""
    test: int | None
    """What the source calls the node that the input probes, where it has a name for it."""
    x: np.ndarray
    what: str
    ours: Any
    theirs: Any
    words: str = ""
    """The input by the names of its features, with its values or labels."""

    def __str__(self) -> str:
        where = "the whole model" if self.tree is None else f"tree {self.tree}"
        node = "" if self.test is None else f", at node {self.test}"
        return f"{self.what} in {where}{node}: ours {self.ours}, the model's {self.theirs}"


@dataclass(frozen=True)
class Certificate:
    """What was proven, and what was not."""

    source: str
    trees: int
    tests: int
    proven: int
    """Tests whose boundary was probed on every side that an input can reach, all in agreement."""
    one_sided: int
    """Of these, tests that every input which reaches them answers alike."""
    unreachable: int
    """Tests that no input reaches: their path contradicts itself."""
    unknown: int
    """Tests on labels that the model keeps no text of, or on statistics that such labels find: give
    rows that hold them."""
    probes: int
    compared: str
    """What the library let us compare: leaves, values, margins."""
    first_disagreement: Disagreement | None
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether no probe disagreed and every reachable test was probed."""
        return self.first_disagreement is None and self.proven + self.unreachable == self.tests

    @property
    def verdict(self) -> str:
        """What came of it.

        "proven"; "differs" where a probe was answered differently; "partly proven" where none was,
        and some tests could not be probed.
        """
        if self.first_disagreement is not None:
            return "differs"
        return "proven" if self.holds else "partly proven"

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        lines = [
            f"{self.verdict.upper()}: {self.source}",
            f"  {self.proven} of {self.tests} tests in {self.trees} trees proven by {self.probes} "
            f"probes ({self.compared}) in {self.seconds:.1f} s",
        ]
        if self.one_sided:
            lines.append(
                f"  {self.one_sided} of them always answer the same where they are reached: no "
                "input reaches what is behind their other side"
            )
        if self.unreachable:
            lines.append(f"  {self.unreachable} tests are reached by no input")
        if self.unknown:
            lines.append(
                f"  {self.unknown} tests ask for labels that the model does not keep, or for what "
                "such labels find: they could not be probed; give rows that hold these labels "
                "(--data)"
            )
        if self.first_disagreement is not None:
            lines.append(f"  first disagreement: {self.first_disagreement}")
            lines.append(f"  at {self.first_disagreement.words}")
        return "\n".join(lines)


def certify(
    machine: DecisionMachine | Assembly,
    model: Any,
    X: Any = None,
    *,
    progress: Callable[[int, int], None] | None = None,
    verbose: Verbosity = False,
) -> Certificate:
    """Prove by probes that `machine` and `model` route every input alike.

    A test reads one feature, so two trees agree on *all* inputs if they agree on both sides of
    the boundary of every test, among the inputs that reach it. For each test, rows are built that
    reach it and hold the threshold, its neighbours in the source's dtype, values that round
    across it, NaN, ±inf, ±0 and every category in and out of the set. A test of a statistic of
    several features (CatBoost) is given labels that find each row of its table. Leaf numbers and
    margins are compared with the library's own, bit for bit. The work is linear in the number of
    tests, where the library can be asked for one tree at a time.

    Parameters
    ----------
    machine
        What `dm.convert(model)` gave, or any machine. Of an assembly every member is proven, and
        all answers of the whole are compared on rows that probe the members.
    model
        The fitted object that it should equal.
    X
        Rows to compare besides the probes. A model that keeps only hashes of its labels
        (CatBoost) can be asked about the labels of these rows alone.
    progress
        Called with (trees done, trees).
    verbose
        Whether to show progress; None shows it, too, but not for quick work in a pipe.

    Examples
    --------
    >>> import decision_machines as dm
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(random_state=0).fit(X, y)
    >>> bool(certify(dm.convert(model), model))
    True
    """
    begin = time.perf_counter()
    if isinstance(machine, Assembly):
        return certify_assembly(machine, model, X, progress=progress, verbose=verbose)
    oracle = oracle_of(model, machine)
    if oracle.n_trees is not None and oracle.n_trees != machine.n_trees:
        raise InputError(
            "certifying a machine",
            f"the machine has {machine.n_trees} trees, the model {oracle.n_trees}",
            "compare a machine with the model that it was converted from",
        )
    proven = one_sided = unreachable = unknown = probes = 0
    given = None if X is None else machine.features(X, dtype=np.float64)
    if given is not None:
        oracle.learn_labels(X, given)
    first: Disagreement | None = None
    whole: list[np.ndarray] = []
    combinations = Combinations(machine, oracle.codes)
    per_tree = max(1, WHOLE_ROWS // max(machine.n_trees, 1))
    with Progress("probing trees", machine.n_trees, verbose) as shown:
        for tree in range(machine.n_trees):
            found = probe_tree(
                machine,
                tree,
                takes_infinity=oracle.takes_infinity,
                takes_nan=oracle.takes_nan,
                codes=oracle.codes,
                resting=oracle.resting,
                combinations=combinations,
            )
            keep = oracle.askable(found.X)
            found.X, found.test = oracle.as_given(found.X[keep]), found.test[keep]
            wrong = _compare_tree(oracle, tree, found.X)
            n_reached = int(np.count_nonzero(found.reached & ~found.unknown))
            probes += len(found.X)
            unknown += int(np.count_nonzero(found.unknown))
            unreachable += int(np.count_nonzero(~found.reached & ~found.unknown))
            if wrong is None:
                proven += n_reached
                one_sided += int(
                    np.count_nonzero(found.reached & ~found.both_sides & ~found.unknown)
                )
            else:
                row, what, ours, theirs = wrong
                failed = np.unique(found.test[row])
                proven += n_reached - len(failed)
                if first is None:
                    x = found.X[row[0]]
                    first = Disagreement(
                        tree,
                        _name(machine, found.test[row[0]]),
                        x,
                        what,
                        ours,
                        theirs,
                        words_of_row(machine.columns, x, _features_of(machine, tree)),
                    )
            step = max(1, len(found.X) // per_tree) if oracle.one_tree_at_a_time else 1
            whole.append(found.X[::step])
            if progress is not None:
                progress(tree + 1, machine.n_trees)
            shown.update(tree + 1)
    if given is not None:
        whole.append(given)
    whole.append(oracle.more_rows())
    rows = np.concatenate(whole)
    rows = rows if len(rows) else np.zeros((1, machine.n_features))
    if first is None:
        first = _compare_whole(oracle, machine.columns, rows)
    return Certificate(
        machine.source,
        machine.n_trees,
        machine.n_tests,
        proven,
        one_sided,
        unreachable,
        unknown,
        probes,
        oracle.compared,
        first,
        time.perf_counter() - begin,
    )


def certify_assembly(
    assembly: Assembly,
    model: Any,
    X: Any = None,
    *,
    progress: Callable[[int, int], None] | None = None,
    verbose: Verbosity = False,
) -> Certificate:
    """Prove every member of an assembly, then compare the whole on rows that probe the members."""
    begin = time.perf_counter()
    parts, rows = [], [] if X is None else [X]
    originals = members_of(model)
    if len(originals) > len(assembly.members):
        raise InputError(
            "certifying an assembly",
            f"it has {len(assembly.members)} members, the model {len(originals)}",
            "compare an assembly with the model that it was converted from",
        )
    for member, original in zip(assembly.members, originals, strict=False):
        # A later member of a chain reads more than the rows have.
        is_fed = member.n_features != assembly.machines[0].n_features
        given = None if is_fed else X
        parts.append(certify(member, original, given, progress=progress, verbose=verbose))
        rows += [] if is_fed else _rows_of(member, original)
    first = next((p.first_disagreement for p in parts if p.first_disagreement is not None), None)
    for given in rows if first is None else []:
        first = first or _whole_difference(assembly, model, given)
    return Certificate(
        assembly.source,
        **{name: sum(getattr(p, name) for p in parts) for name in COUNTED},
        compared="members one by one, then all answers of the whole model",
        first_disagreement=first,
        seconds=time.perf_counter() - begin,
    )


def _whole_difference(assembly: Assembly, model: Any, given: Any) -> Disagreement | None:
    """Where an answer of the assembly differs from the model's, for the rows given."""
    for verb, theirs_of in answers_of(model).items():
        if not has(assembly, verb):
            continue
        options = {"quantiles": CERTIFIED} if verb == "predict_quantiles" else {}
        ours, theirs = getattr(assembly, verb)(given, **options), theirs_of(given)
        if isinstance(ours, list):
            ours, theirs = np.hstack(ours), np.hstack(theirs)
        ours = np.asarray(ours)
        theirs = np.asarray(theirs).reshape(ours.shape)
        wrong = rows_that_differ(ours, theirs)
        if len(wrong):
            i = int(wrong[0])
            x = np.asarray(given[i : i + 1]) if not hasattr(given, "iloc") else given.iloc[[i]]
            return Disagreement(None, None, np.asarray(x)[0], verb, ours[i], theirs[i], str(x))
    return None


COUNTED = ("trees", "tests", "proven", "one_sided", "unreachable", "unknown", "probes")


def _rows_of(member: Any, original: Any) -> list[Any]:
    """Rows as the source takes them, that probe the first trees of a member."""
    if isinstance(member, Assembly) or not member.n_trees:
        return []
    oracle = oracle_of(original, member)
    found = probe_tree(
        member, 0, takes_infinity=oracle.takes_infinity, takes_nan=oracle.takes_nan,
        codes=oracle.codes, resting=oracle.resting,
    )  # fmt: skip
    X = oracle.as_given(found.X[oracle.askable(found.X)])
    table = getattr(oracle, "table", None)
    if table is not None:
        return [table(X)]
    finite = X[np.isfinite(X).all(axis=1) & (np.abs(X) < 1e30).all(axis=1)]
    return [finite] if not oracle.labels and len(finite) else []


def _name(machine: DecisionMachine, test: int) -> int | None:
    if test < 0 or machine.trees.test_ids is None:
        return None if test < 0 else int(test)
    return int(machine.trees.test_ids[test])


def _compare_tree(oracle: Oracle, tree: int, X: np.ndarray) -> Difference | None:
    """The rows that one tree answers differently, what differs, and both answers to the first."""
    if (theirs := oracle.leaves(X, tree)) is not None:
        ours = oracle.machine.tree(tree).source_leaves(X)[:, 0]
        if wrong := _first_difference("exit leaf", ours, theirs):
            return wrong
    margins = oracle.compare_tree(X, tree)
    return None if margins is None else _first_difference("margin", *margins)


def _features_of(machine: DecisionMachine, tree: int) -> list[int]:
    """The features that a tree tests; all, where it tests none."""
    read = machine.columns.feature[machine.selection[machine.trees.tests(tree)]]
    return np.unique(read).tolist() or list(range(machine.n_features))


def _compare_whole(oracle: Oracle, columns: Columns, X: np.ndarray) -> Disagreement | None:
    wrong = _first_difference(*oracle.whole(X))
    if wrong is None:
        return None
    rows, what, ours, theirs = wrong
    x = X[rows[0]]
    return Disagreement(None, None, x, what, ours, theirs, words_of_row(columns, x))


def _first_difference(what: str, ours: np.ndarray, theirs: np.ndarray) -> Difference | None:
    """Rows that differ, in what, and both values of the first one."""
    rows = rows_that_differ(ours, theirs)
    if not len(rows):
        return None
    return rows, what, ours[rows[0]].squeeze()[()], theirs[rows[0]].squeeze()[()]
