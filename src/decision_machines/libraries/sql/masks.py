"""Trees as masks of leaves, for DuckDB: tables that rows look things up in, and few expressions.

DuckDB takes longer to plan a thousand CASE expressions than to run them over some ten thousand
rows, so here the model is data. A column becomes the number of its thresholds below it, its rank.
For every rank a table holds the leaves that are left of each tree, as bits of whole numbers; a row
takes one line of each column's table, and the bits that all of them have are the leaves that no
test rules out. The exit leaf is the first of them: every leaf to its left is ruled out by a test
on the path, and the leaf itself by none.

All look-ups are in lists, one row of them beside the table. Joins would be faster still, but
DuckDB may turn a join around, and then the rows come in another order.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine import Rule
from .columns import reader, sides

if TYPE_CHECKING:
    from jaxtyping import Float

    from ...machine import DecisionMachine
    from .dialects import Dialect

BITS = 64
"""Of a word; trees with more leaves are written as CASE expressions."""
WORD = "UBIGINT"
LEAST_TESTS = 500
"""With fewer tests CASE expressions take no longer."""
MOST_CELLS = 2_000_000
"""Of all tables: DuckDB makes them anew for each query."""
BUCKETS = 4
"""For each threshold of a column."""


def listed(values: Iterable[Any], kind: str) -> str:
    """A list as one literal: a text is read faster than thousands of numbers are planned."""
    return f"CAST('[{','.join(map(str, values))}]' AS {kind}[])"


@dataclass(frozen=True)
class Search:
    """How the rank of a value among ascending thresholds is found: a bucket, then steps.

    Examples
    --------
    >>> Search.among(np.array([0.5, 1.5, 2.5])).steps
    2
    """

    t: Float[np.ndarray, "n"]
    start: list[int] | None
    """For each bucket, the thresholds in those before it; None without buckets."""
    low: float
    high: float
    scale: float
    steps: int

    @classmethod
    def among(cls, t: Float[np.ndarray, "n"]) -> Search:
        """The search with the fewest steps."""
        plain = cls(t, None, 0.0, 0.0, 0.0, len(t).bit_length())
        finite = t[np.isfinite(t)]
        if len(finite) < 8:
            return plain
        low, high, n = float(finite[0]), float(finite[-1]), BUCKETS * len(finite)
        with np.errstate(all="ignore"):
            scale = float(np.float64(n - 1) / (np.float64(high) - low))
            # Each step of this rounds upwards or downwards, but never turns the order around.
            bucket = np.floor((finite - low) * scale)
        if not (np.isfinite(high - low) and np.isfinite(scale) and scale > 0 and bucket[-1] < n):
            return plain
        before = int(np.isneginf(t).sum())
        start = before + np.searchsorted(bucket, np.arange(n))
        most = max(int(np.bincount(bucket.astype(np.int64)).max()), before)
        return cls(t, start.tolist(), low, high, scale, most.bit_length())

    def first(self, dialect: Dialect, z: str, at: int = 0, bucket: int = 0) -> str:
        """`at` and a rank that is not above the value's own.

        Parameters
        ----------
        bucket
            The place of the first bucket in the list b, which counts from `at`.
        """
        if self.start is None:
            return f"{at}"
        low, high = dialect.number(self.low), dialect.number(self.high)
        n = int(np.sum(self.t <= self.high))
        place = (
            f"CAST(FLOOR(({z} - {low}) * {dialect.number(self.scale)}) AS INTEGER) + {bucket + 1}"
        )
        return (
            f"CASE WHEN {z} <= {low} THEN {at} WHEN {z} > {high} THEN {at + n} "
            f"WHEN {z} IS NULL THEN {at} ELSE list_extract(b, {place}) END"
        )

    def padded(self) -> list[float]:
        """The thresholds, and what the steps may read behind them."""
        return [*self.t.tolist(), *([math.inf] * (1 << self.steps))]


@dataclass(frozen=True)
class Masks:
    """The stages that lead from features to the place of every tree's exit leaf."""

    machine: DecisionMachine
    dialect: Dialect
    t: Float[np.ndarray, "J"]

    @classmethod
    def of(
        cls, machine: DecisionMachine, dialect: Dialect, t: Float[np.ndarray, "J"]
    ) -> Masks | None:
        """The masks of a machine, or None where CASE expressions are better."""
        leaves = np.diff(machine.trees.leaf_start)
        if dialect.name != "duckdb" or machine.n_tests < max(LEAST_TESTS, 1):
            return None
        found = cls(machine, dialect, t)
        return found if leaves.max() <= BITS and found.n_cells <= MOST_CELLS else None

    @functools.cached_property
    def words(self) -> tuple[list[tuple[int, int]], list[int]]:
        """The word and the first bit of every tree, and how many bits each word has."""
        places: list[tuple[int, int]] = []
        used: list[int] = []
        for n in np.diff(self.machine.trees.leaf_start).tolist():
            if not used or used[-1] + n > BITS:
                used.append(0)
            places.append((len(used) - 1, used[-1]))
            used[-1] += n
        return places, used

    @functools.cached_property
    def ruled_out(self) -> list[int]:
        """For each test, the bits of the leaves that the answer right rules out: its left ones."""
        machine, (places, _) = self.machine, self.words
        below: list[int] = [0] * machine.n_tests
        found: list[int] = [0] * machine.n_tests
        trees = machine.trees
        for tree, (_, first) in enumerate(places):
            tests, start = trees.tests(tree), int(trees.leaf_start[tree])
            # Children come after their parents.
            for test in range(tests.stop - 1, tests.start - 1, -1):
                left, right = (
                    below[c] if c >= 0 else 1 << (~c - start + first)
                    for c in machine.children[test].tolist()
                )
                found[test], below[test] = left, left | right
        return found

    @functools.cached_property
    def by_column(self) -> dict[int, dict[int, list[int]]]:
        """column → word → its tests, of columns that are numbers."""
        machine, (places, _) = self.machine, self.words
        found: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        of_test = machine.trees.of_test.tolist()
        for test, column in enumerate(machine.selection.tolist()):
            if machine.columns.rule[column] != Rule.MEMBER:
                found[column][places[of_test[test]][0]].append(test)
        return found

    @functools.cached_property
    def by_condition(self) -> dict[str, dict[int, tuple[int, int]]]:
        """Condition → word → the bits it rules out where it holds, and where it does not."""
        machine, (places, _) = self.machine, self.words
        found: dict[str, dict[int, tuple[int, int]]] = defaultdict(dict)
        for test, column in enumerate(machine.selection.tolist()):
            if machine.columns.rule[column] != Rule.MEMBER:
                continue
            condition, says_left = sides(machine, self.dialect, test, float(self.t[test]))
            word = places[int(machine.trees.of_test[test])][0]
            yes, no = found[condition].get(word, (0, 0))
            out = self.ruled_out[test]
            found[condition][word] = (yes, no | out) if says_left else (yes | out, no)
        return found

    @functools.cached_property
    def searches(self) -> dict[int, Search]:
        return {
            column: Search.among(np.unique(self.t[[j for js in words.values() for j in js]]))
            for column, words in self.by_column.items()
        }

    @functools.cached_property
    def begin(self) -> dict[int, tuple[int, int]]:
        """For each column, where its ranks and its buckets begin in the tables of all columns."""
        found, rank, bucket = {}, 0, 0
        for column, search in self.searches.items():
            found[column] = rank, bucket
            rank, bucket = rank + len(search.padded()), bucket + len(search.start or ())
        return found

    @property
    def n_cells(self) -> int:
        """The numbers in the table of masks."""
        n_ranks = sum(len(search.padded()) for search in self.searches.values())
        return n_ranks * len(self.words[1])

    def stages(self, carried: Sequence[str]) -> list[str]:
        """What follows `s0`; the last one has what is carried and each tree's leaves v0, v1 …"""
        columns, (places, used) = list(self.by_column), self.words
        own, conditions = list(carried), list(self.by_condition)
        first = [f"{reader(self.machine, self.dialect, c)} AS z{c}" for c in columns]
        first += [f"({text}) AS h{i}" for i, text in enumerate(conditions)]
        found = [*self._tables(), f"z AS (SELECT {', '.join([*own, *first])} FROM s0)"]
        own += [f"h{i}" for i in range(len(conditions))]
        z = [f"z{c}" for c in columns]
        ranks = [
            f"{self.searches[c].first(self.dialect, f'z{c}', *self.begin[c])} AS r{c}"
            for c in columns
        ]
        found.append(f"r0 AS (SELECT {', '.join([*own, *z, 't', 'g', *ranks])} FROM z, tables)")
        steps = max((search.steps for search in self.searches.values()), default=0)
        for step in range(steps):
            ranks = [self._step(c, self.searches[c].steps - 1 - step) for c in columns]
            found.append(
                f"r{step + 1} AS (SELECT {', '.join([*own, *z, 't', 'g', *ranks])} FROM r{step})"
            )
        lines = [
            f"list_extract(g, COALESCE(r{c}, {self._missing(c)}) + 1) AS p{c}" for c in columns
        ]
        found.append(f"p AS (SELECT {', '.join([*own, *lines])} FROM r{steps})")
        words = [f"{self._word(w)} AS w{w}" for w in range(len(used))]
        found.append(f"w AS (SELECT {', '.join([*carried, *words])} FROM p)")
        shifted = [f"w{w}{f' >> {b}' if b else ''} AS v{i}" for i, (w, b) in enumerate(places)]
        found.append(f"v AS (SELECT {', '.join([*carried, *shifted])} FROM w)")
        return found

    def leaf(self, tree: int, output: int) -> str:
        """The value of the leaf where a row leaves a tree, from the list x of an output."""
        # v and v - 1 differ in the lowest bit of v and in those below it.
        place = f"bit_count(xor(v{tree}, v{tree} - CAST(1 AS {WORD})))"
        first = int(self.machine.trees.leaf_start[tree])
        return f"list_extract(x{output}, {place} + CAST({first} AS BIGINT))"

    def _step(self, column: int, step: int) -> str:
        rank = f"r{column}"
        if step < 0:
            return rank
        above = f"CAST(z{column} > list_extract(t, {rank} + {1 << step}) AS INTEGER)"
        return f"{rank} + {above if step == 0 else f'{1 << step} * {above}'} AS {rank}"

    def _word(self, word: int) -> str:
        """The leaves of a word that no test rules out."""
        full = (1 << self.words[1][word]) - 1
        parts = [f"p{c}.w{word}" for c, words in self.by_column.items() if word in words]
        for i, words in enumerate(self.by_condition.values()):
            if word in words:
                yes, no = (f"CAST({full & ~out} AS {WORD})" for out in words[word])
                parts.append(f"CASE WHEN h{i} THEN {yes} ELSE {no} END")
        return " & ".join(parts) or f"CAST({full} AS {WORD})"

    def _missing(self, column: int) -> int:
        """The place of the rank that stands for a missing value: the one behind the last."""
        return self.begin[column][0] + len(self.searches[column].t) + 1

    def _tables(self) -> list[str]:
        """One row: thresholds t, buckets b and masks g, those of one column after the other's."""
        ranges = [entry for c in self.by_column for entry in self._ranges(c)]
        names, kinds = ("w", "a", "e", "m"), ("INTEGER", "INTEGER", "INTEGER", WORD)
        # Without columns of numbers, one rank that nothing looks up.
        numbers = ", ".join(
            f"unnest({listed(values, kind)}) AS {name}"
            for values, kind, name in zip(
                zip(*(ranges or [(0, 0, 1, 0)]), strict=True), kinds, names, strict=True
            )
        )
        t = [value for search in self.searches.values() for value in search.padded()]
        b = [
            self.begin[c][0] + rank
            for c, search in self.searches.items()
            for rank in search.start or ()
        ]
        fields = ", ".join(f"w{w} := m[{w + 1}]" for w in range(len(self.words[1])))
        return [
            f"n AS (SELECT {numbers})",
            "m AS (SELECT k, list(m ORDER BY w) AS m "
            "FROM (SELECT w, m, unnest(range(a, e)) AS k FROM n) GROUP BY k)",
            f"tables AS (SELECT {listed(t, 'DOUBLE')} AS t, {listed(b, 'INTEGER')} AS b, "
            f"list(struct_pack({fields}) ORDER BY k) AS g FROM m)",
        ]

    def _ranges(self, column: int) -> list[tuple[int, int, int, int]]:
        """(word, from rank, to rank, mask) of one column, counted over all columns."""
        search, missing, found = self.searches[column], self.machine.missing, []
        begin, end, absent_at = self.begin[column][0], len(search.padded()), len(search.t) + 1
        for word, n_bits in enumerate(self.words[1]):
            full = (1 << n_bits) - 1
            mask, at, absent = full, 0, full
            tests = self.by_column[column].get(word, [])
            ranks = np.searchsorted(search.t, self.t[tests]).tolist()
            for rank, test in sorted(zip(ranks, tests, strict=True)):
                if rank + 1 > at:
                    found.append((word, begin + at, begin + rank + 1, mask))
                    at = rank + 1
                mask &= ~self.ruled_out[test]
                absent &= ~self.ruled_out[test] if missing[test] > 0 else full
            found.append((word, begin + at, begin + absent_at, mask))
            found.append((word, begin + absent_at, begin + end, absent))
        return found
