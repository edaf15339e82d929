"""What a target cannot say: how it is refused, and what of a machine most targets share."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..errors import MissingLibraryError, UnsupportedModelError
from ..machine import Rule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jaxtyping import Bool, Int

    from ..machine import DecisionMachine


@dataclass(frozen=True)
class Limits:
    """A machine on its way to a target; whatever does not fit is refused through it."""

    machine: DecisionMachine
    target: str

    @property
    def doing(self) -> str:
        return f"writing a machine as {self.target}"

    def refuse(self, found: str, remedy: str) -> NoReturn:
        raise UnsupportedModelError(self.doing, found, remedy)

    def where(self, wrong: Bool[np.ndarray, "J"], found: str, remedy: str) -> None:
        """Refuse where any test is wrong; `found` may name {t}, the threshold of the first."""
        if not np.any(wrong):
            return
        test = int(np.argmax(wrong))
        trees = self.machine.trees
        name = test if trees.test_ids is None else int(trees.test_ids[test])
        place = f"node {name} of tree {int(trees.of_test[test])}"
        self.refuse(f"{place} {found.format(t=self.machine.t[test])}", remedy)

    def columns(self, rules: tuple[Rule, ...], dtype: Any = None) -> None:
        """Refuse oblique tests, other rules, another dtype, and values read as missing."""
        machine, columns = self.machine, self.machine.columns
        if machine.is_oblique:
            self.refuse(
                "its tests weigh several columns (S is not one-hot)",
                "keep it in our own file, machine.save(path)",
            )
        if dtype is not None and columns.dtype != dtype:
            self.refuse(
                f"columns.dtype is {columns.dtype}; {self.target} compares {np.dtype(dtype)}, in "
                "which other values lie on the two sides of a threshold",
                "write it for a library that compares in float64 (to_lightgbm, to_onnx), or train "
                f"on values of {np.dtype(dtype)}",
            )
        if not np.isnan(columns.missing_value):
            self.refuse(
                f"columns.missing_value is {columns.missing_value}, which the model would not "
                "know for missing",
                "set it to NaN with dataclasses.replace, and turn these values into NaN in the "
                "data (xgboost.DMatrix has missing= for it)",
            )
        tested = columns.rule[machine.selection]
        for rule in Rule:
            if rule not in rules:
                self.where(
                    tested == rule,
                    f"reads a column of the rule {rule.name}, which {self.target} does not have",
                    "keep the machine in our own file, machine.save(path)",
                )

    def no_labels(self) -> None:
        """Refuse features that are known by labels: the target knows numbers alone."""
        columns = self.machine.columns
        if columns.categories or columns.table_categories or columns.encodes_arrays:
            self.refuse(
                "columns.categories: features given as labels, which the model would not look up",
                "turn labels into their codes first, X = machine.features(table), and write the "
                "machine without them: "
                "dataclasses.replace(machine, columns=machine.columns.coded())",
            )

    def constant_leaves(self) -> None:
        if self.machine.linear is not None:
            self.refuse(
                "linear: its leaves are linear functions", "write it with to_lightgbm or save"
            )

    def plain_sum(self) -> None:
        """Refuse what is more than a sum with base scores."""
        output = self.machine.output
        if output.aggregate != "sum":
            self.refuse(
                f"output.aggregate is {output.aggregate!r}; {self.target} adds its trees",
                "write it with to_onnx, or keep it in our own file, machine.save(path)",
            )
        if not np.all(np.isfinite(output.base)):
            self.refuse(
                f"output.base has {output.base[~np.isfinite(output.base)][0]}",
                "keep the machine in our own file, machine.save(path)",
            )

    def unknown_link(self, why: str = "") -> NoReturn:
        output = self.machine.output
        why = why or f"{self.target} has nothing that answers so to the bit"
        self.refuse(
            f"output.link is {output.link!r}, with {len(output)} outputs and the decision "
            f"{output.decision!r}: {why}",
            "write the margins alone, with margins=True, and apply the link to what the model "
            "predicts",
        )


def margins_only(machine: DecisionMachine) -> DecisionMachine:
    """The machine whose answer is its margin: no link, no labels."""
    return replace(machine, output=machine.output.as_margins())


def require(package: str, doing: str, extra: str | None = None) -> Any:
    """The package, imported; its absence names the extra that brings it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        raise MissingLibraryError(
            doing,
            f"{package} is not installed",
            f"pip install 'decision-machines[{extra or package}]'",
        ) from None


def missing_answers(machine: DecisionMachine) -> Int[np.ndarray, "J"]:
    """Where NaN in the raw feature goes, -1 or +1; a column that reads NaN as 0 sends it with 0."""
    as_zero = machine.columns.rule[machine.selection] == Rule.NAN_AS_ZERO
    return np.where(as_zero, np.where(machine.t >= 0, -1, 1), machine.missing).astype(np.int8)


@dataclass(frozen=True)
class Membership:
    """Where the categories go at a test of a set: -1 left, +1 right."""

    left: Int[np.ndarray, "a"]
    """The members of the set that go left."""
    right: Int[np.ndarray, "b"]
    outside: int
    """Where all other values go."""
    nan: int


def memberships(machine: DecisionMachine) -> dict[int, Membership]:
    """For each test on a column of a category set, where everything goes."""
    columns, sets = machine.columns, machine.columns.sets
    if sets is None or machine.is_oblique:
        return {}
    which = np.cumsum(columns.rule == Rule.MEMBER) - 1
    found = {}
    known: dict[tuple[Any, ...], Membership] = {}
    for test in np.flatnonzero(columns.rule[machine.selection] == Rule.MEMBER).tolist():
        column, t, nan = int(machine.selection[test]), machine.t[test], int(machine.missing[test])
        side = {-1: -1 if t >= 0 else 1, 1: -1 if t >= 1 else 1, 0: nan}
        key = (column, side[-1], side[1], nan)
        if key not in known:
            i = which[column]
            span = slice(int(sets.start[i]), int(sets.start[i + 1]))
            goes = np.array([side[a] for a in sets.answer[span].tolist()], np.int8)
            members = sets.members[span]
            known[key] = Membership(
                members[goes < 0], members[goes > 0], side[int(sets.outside[i])], nan
            )
        found[test] = known[key]
    return found


def flags(machine: DecisionMachine, tests: Iterable[int]) -> Bool[np.ndarray, "J"]:
    """(J,) whether each test is among these."""
    found = np.zeros(machine.n_tests, bool)
    found[list(tests)] = True
    return found
