"""A machine in one fixed order, and its fingerprint.

Two machines can hold the same trees and yet differ in their arrays: tests numbered differently,
columns in another order, given twice, or not used at all. Here tests stand in preorder, columns are
what they read, and what is left is what decides every answer.
"""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UnsupportedModelError
from ...machine import Rule, layout
from ...machine.digest import digest
from ...machine.schema import steps_by_number

if TYPE_CHECKING:
    from jaxtyping import Int

    from ...machine import DecisionMachine

VERSION = "dm1"
"""Changes where the same machine would get another fingerprint."""


def fingerprint(machine: DecisionMachine) -> str:
    """See `DecisionMachine.fingerprint`."""
    form = Canonical(machine)
    whole = hashlib.sha256()
    _put(whole, VERSION, header(machine))
    for tree in range(machine.n_trees):
        whole.update(form.tree_hash(tree))
    return f"{VERSION}:{whole.hexdigest()}"


def header(machine: DecisionMachine) -> dict[str, Any]:
    """What is not in the trees and yet decides answers: how x is read, what becomes of sums."""
    columns, output = machine.columns, machine.output
    reads = {
        name: getattr(columns, name)
        for name in (
            *("n_features", "absent", "missing_value", "encodes_arrays", "label_hash"),
            *("refuses_new_labels", "table_categories"),
        )
    }
    reads |= {"dtype": columns.dtype.name, "integers_as": columns.integers_as.name}
    reads["categories"] = {str(f): labels for f, labels in sorted(columns.categories.items())}
    # Named only where they are there: older machines keep their fingerprints.
    if columns.edges:
        reads["edges"] = {str(f): list(bounds) for f, bounds in sorted(columns.edges.items())}
    if columns.accepted is not None:
        reads["accepted"] = digest(columns.accepted)
    if columns.sets is not None:
        reads["sets"] = [columns.sets.negative_fractions, columns.sets.whole]
    if columns.look_ups is not None:
        # Columns are taken by their tables' numbers: which columns there are is in the trees.
        tables = columns.look_ups.of_columns(())
        whole = hashlib.sha256()
        for f in fields(tables):
            _put_array(whole, getattr(tables, f.name))
        reads["look_ups"] = whole.hexdigest()
    answers = {
        name: getattr(output, name)
        for name in (
            *("base_first", "divisor", "scale", "aggregate", "link", "decision"),
            *("decision_params", "groups", "squeeze"),
        )
    }
    # Steps by number, as when the first fingerprints were taken: they stay what they were.
    answers["link_params"] = steps_by_number(output.link_params)
    answers |= {"dtype": output.dtype.name, "base": output.base.tolist()}
    answers["weights"] = None if output.weights is None else output.weights.tolist()
    if output.classes is not None:
        answers["classes"] = [c.tolist() for c in output.classes]
    return {"reads": reads, "answers": answers, "values": machine.V.dtype.name}


class Canonical:
    """The tests of a machine in preorder, tree after tree."""

    def __init__(self, machine: DecisionMachine) -> None:
        self.machine = machine
        trees = machine.trees
        tree_of = trees.of_test
        local = np.where(
            machine.children >= 0,
            machine.children - trees.test_start[tree_of][:, None],
            np.diff(trees.test_start)[tree_of][:, None]
            + (~machine.children - trees.leaf_start[tree_of][:, None]),
        )
        node_start = trees.test_start + trees.leaf_start
        left = np.full(node_start[-1], -1, np.int64)
        right = left.copy()
        at = np.arange(machine.n_tests) + trees.leaf_start[tree_of]
        left[at], right[at] = local[:, 0], local[:, 1]
        found = layout(left, right, node_start, "ordering a machine's tests")
        self.order: Int[np.ndarray, "J"] = (
            found.tests - trees.leaf_start[tree_of] if machine.n_tests else np.empty(0, np.int64)
        )
        """The machine's test that stands at each place."""
        self.children = found.children

    @functools.cached_property
    def keys(self) -> list[tuple[Any, ...]]:
        """What each column of the machine reads."""
        return self.machine.columns.column_keys()

    def tests(self, tree: int) -> Int[np.ndarray, "J"]:
        return self.order[self.machine.trees.tests(tree)]

    def local_children(self, tree: int) -> np.ndarray:
        trees = self.machine.trees
        own = self.children[trees.tests(tree)].astype(np.int64)
        found: np.ndarray = np.where(
            own >= 0, own - trees.tests(tree).start, own + trees.leaves(tree).start
        )
        return found

    def questions(self, tree: int) -> list[tuple[Any, ...]]:
        """What every test of a tree reads, thresholds apart."""
        m, tests = self.machine, self.tests(tree)
        if not m.is_oblique:
            return [self.keys[c] for c in m.selection[tests]]
        S = m.S
        return [
            tuple(
                (self.keys[c], float(w)) for c, w in zip(S.indices[a:b], S.data[a:b], strict=True)
            )
            for a, b in zip(S.indptr[tests], S.indptr[tests + 1], strict=True)
        ]

    def tree_hash(self, tree: int) -> bytes:
        """Of everything in one tree that decides its value."""
        m = self.machine
        tests, leaves = self.tests(tree), m.trees.leaves(tree)
        found = hashlib.sha256()
        _put(found, self.questions(tree), int(m.trees.feeds[tree]))
        # 0.0 and -0.0 are one threshold.
        for array in (m.t[tests] + m.t.dtype.type(0), m.missing[tests], self.local_children(tree)):
            _put_array(found, array)
        _put_array(found, m.V[leaves])
        if m.linear is not None:
            own = m.linear.keep(np.arange(leaves.start, leaves.stop))
            for array in (own.intercept, own.start, own.feature, own.coefficient):
                _put_array(found, array)
        return found.digest()


def use_columns(machine: DecisionMachine) -> DecisionMachine:
    """The machine with the columns that its tests read, each once, in the order of their keys."""
    if machine.is_oblique:
        return machine
    columns, keys = machine.columns, machine.columns.column_keys()
    used = sorted(
        {keys[c]: int(c) for c in np.unique(machine.selection)[::-1]}.items(), key=_by_content
    )
    place = {key: i for i, (key, _) in enumerate(used)}
    fewer = columns.with_keys(place)
    selection = np.array([place[keys[c]] for c in machine.selection], np.int32)
    return replace(machine, columns=fewer, selection=selection)


def _by_content(item: tuple[Any, ...]) -> tuple[Any, ...]:
    """An order of column keys: by feature, then by rule, then by set."""
    key = item[0]
    if key[1] == Rule.LOOK_UP:
        return (key[0], key[1], key[2:], (), 0)
    return (key[0], key[1], *(key[2:] or ((), (), 0)))


def _put(into: Any, *values: Any) -> None:
    into.update(json.dumps(values, sort_keys=True, default=_plain).encode())


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, (tuple, list, set, frozenset)):
        return list(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if type(value).__module__ == "builtins" or hasattr(value, "__str__"):
        return f"{type(value).__name__}:{value}"
    raise UnsupportedModelError(
        "taking a fingerprint", f"a label of type {type(value).__name__}", "use plain labels"
    )


def _put_array(into: Any, array: np.ndarray) -> None:
    """An array's dtype, shape and bytes, the lowest byte first on every machine."""
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
    _put(into, little.dtype.str, list(little.shape))
    into.update(little.tobytes())
