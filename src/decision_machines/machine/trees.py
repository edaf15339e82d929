"""Which tests and leaves belong to which tree, and which output each tree feeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, InvariantError
from .arrays import Part, frozen

if TYPE_CHECKING:
    from jaxtyping import Int

ALL_OUTPUTS = -1
"""`feeds` of a tree whose leaves hold a value for every output."""


@dataclass(frozen=True, eq=False)
class Trees(Part):
    """Where each tree's tests start; its leaves follow: a tree has one leaf more than tests.

    Parameters
    ----------
    test_start
        Tests of tree i are test_start[i] to test_start[i + 1], its root first.
    feeds
        The output that tree i adds to, or `ALL_OUTPUTS`. By default all.
    test_ids, leaf_ids
        What the source calls each test and leaf, where it has names for them.
    """

    test_start: Int[np.ndarray, "T+1"]
    feeds: Int[np.ndarray, "T"] | Any = None
    test_ids: Int[np.ndarray, "J"] | None = None
    leaf_ids: Int[np.ndarray, "L"] | None = None

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "test_start", frozen(self.test_start, np.int64, "trees.test_start"))
        start = self.test_start
        if start.ndim != 1 or len(start) < 1 or start[0] != 0 or np.any(np.diff(start) < 0):
            raise InvariantError(
                "tests start in order",
                f"trees.test_start = {start}",
                "give one start for each tree and the total, from 0 upwards",
            )
        if self.feeds is None:
            set_(self, "feeds", np.full(len(self), ALL_OUTPUTS))
        set_(self, "feeds", frozen(self.feeds, np.int32, "trees.feeds"))
        if self.feeds.shape != (len(self),):
            raise InvariantError(
                "one output per tree",
                f"{self.feeds.shape} entries in trees.feeds for {len(self)} trees",
                "name the output that each tree feeds",
            )
        for name, size in (("test_ids", self.n_tests), ("leaf_ids", self.n_leaves)):
            ids = getattr(self, name)
            if ids is None:
                continue
            set_(self, name, frozen(ids, np.int32, f"trees.{name}"))
            if getattr(self, name).shape != (size,):
                raise InvariantError(
                    f"one entry of {name} each",
                    f"{name} of shape {np.shape(ids)} where {size} are needed",
                    f"leave {name} out or give all of them",
                )

    def __len__(self) -> int:
        return len(self.test_start) - 1

    @property
    def n_tests(self) -> int:
        return int(self.test_start[-1])

    @property
    def n_leaves(self) -> int:
        return self.n_tests + len(self)

    @property
    def leaf_start(self) -> Int[np.ndarray, "T+1"]:
        """Leaves of tree i are leaf_start[i] to leaf_start[i + 1], left to right."""
        return self.test_start + np.arange(len(self) + 1)

    def tests(self, tree: int) -> slice:
        return slice(int(self.test_start[tree]), int(self.test_start[tree + 1]))

    def leaves(self, tree: int) -> slice:
        return slice(int(self.test_start[tree]) + tree, int(self.test_start[tree + 1]) + tree + 1)

    @property
    def of_test(self) -> Int[np.ndarray, "J"]:
        """The tree that each test belongs to."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.test_start))

    @property
    def of_leaf(self) -> Int[np.ndarray, "L"]:
        """The tree that each leaf belongs to."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.leaf_start))

    def choose(self, trees: Any) -> Int[np.ndarray, "t"]:
        """The numbers of trees given as one number, as several, or as None for all.

        A negative number counts from the last tree.

        Examples
        --------
        >>> Trees(np.array([0, 1, 2, 3])).choose([0, -1]).tolist()
        [0, 2]
        """
        n = len(self)
        if trees is None:
            return np.arange(n)
        try:
            several = trees if np.ndim(trees) or np.isscalar(trees) else list(trees)
            numbers = np.atleast_1d(np.asarray(several))
        except (TypeError, ValueError):
            numbers = np.array([None])
        is_whole = numbers.dtype.kind in "iu" or not numbers.size
        if not is_whole or numbers.ndim != 1 or np.any((numbers < -n) | (numbers >= n)):
            raise InputError(
                "choosing trees",
                f"trees {np.asarray(numbers).tolist()!r:.80} of {n}",
                f"use numbers from 0 to {n - 1}",
            )
        return numbers.astype(np.int64) % max(n, 1)

    def keep(self, trees: Int[np.ndarray, "t"]) -> Trees:
        """These trees alone, renumbered."""
        tests = ranges(self.test_start, trees)
        leaves = ranges(self.leaf_start, trees)
        sizes = np.diff(self.test_start)[trees]
        return Trees(
            np.concatenate([[0], np.cumsum(sizes)]),
            self.feeds[trees],
            None if self.test_ids is None else self.test_ids[tests],
            None if self.leaf_ids is None else self.leaf_ids[leaves],
        )


def ranges(start: Int[np.ndarray, "T+1"], which: Int[np.ndarray, "t"]) -> Int[np.ndarray, "n"]:
    """The entries start[i] to start[i + 1] for each i of `which`, one after the other."""
    sizes = start[which + 1] - start[which]
    before = np.concatenate([[0], np.cumsum(sizes)])
    return np.repeat(start[which] - before[:-1], sizes) + np.arange(before[-1])
