"""Tree alternating optimisation: a hard oblique tree made better node by node.

At a node the rest of the tree is held fixed. Only the rows matter that reach it and that exactly
one of its children answers rightly: the node's task is a two-class problem, which child. It is
solved by a ridge logistic regression and the exact best threshold along it; the answer is taken
where it makes fewer errors than the test that was there. Nodes of one level share no rows, so a
sweep goes level by level from the bottom up. Training errors never rise.
(Carreira-Perpiñán and Tavallali, "Alternating optimization of decision trees", 2018.)

Trees are complete, in the level order of `complete`, R of them side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..logistic import best_cuts, ridge_logistic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxtyping import Bool, Float, Int

MOST_NUMBERS = 2**24
"""How many numbers a batch of regressions may hold at once."""


@dataclass(frozen=True)
class HardTrees:
    """R complete hard trees that classify: a row goes right where W x > t.

    Parameters
    ----------
    W, t
        (R, J, n) and (R, J), tests in level order.
    label
        (R, L) the class that each leaf answers.
    goes_right
        (R, J) where a test goes that reads a NaN with a weight other than 0.
    slope
        (R, J) how steep the test was when it was learned, for softening it again.
    """

    W: Float[np.ndarray, "R J n"]
    t: Float[np.ndarray, "R J"]
    label: Int[np.ndarray, "R L"]
    goes_right: Bool[np.ndarray, "R J"]
    slope: Float[np.ndarray, "R J"]

    @property
    def n_levels(self) -> int:
        found: int = self.label.shape[1].bit_length() - 1
        return found

    def answers(self, X: Float[np.ndarray, "m n"]) -> Bool[np.ndarray, "R J m"]:
        """Whether each row goes right at each test."""
        is_nan = np.isnan(X)
        has_nan = bool(is_nan.any())
        known = np.where(is_nan, 0, X) if has_nan else X
        is_right = np.empty((*self.t.shape, len(X)), bool)
        # Tree by tree: the products of all would not fit where trees are deep and rows many.
        for W, t, goes_right, out in zip(self.W, self.t, self.goes_right, is_right, strict=True):
            np.greater(W @ known.T, t[:, None], out=out)
            if has_nan:
                is_missing = (W != 0).astype(np.float32) @ is_nan.T.astype(np.float32) > 0
                np.copyto(out, goes_right[:, None], where=is_missing)
        return is_right

    def nodes(self, is_right: Bool[np.ndarray, "R J m"]) -> list[Int[np.ndarray, "R m"]]:
        """For every level, and the leaves last, the node of that level that each row reaches."""
        reached = [np.zeros((len(is_right), is_right.shape[2]), np.int32)]
        for level in range(self.n_levels):
            tests = is_right[:, 2**level - 1 : 2 ** (level + 1) - 1]
            right = np.take_along_axis(tests, reached[-1][:, None, :], 1)[:, 0]
            reached.append(2 * reached[-1] + right)
        return reached

    def exit_leaves(self, X: Float[np.ndarray, "m n"]) -> Int[np.ndarray, "R m"]:
        return self.nodes(self.answers(X))[-1]

    def predict(self, X: Float[np.ndarray, "m n"]) -> Int[np.ndarray, "R m"]:
        """The class of every row in every tree."""
        return np.take_along_axis(self.label, self.exit_leaves(X), 1)

    def keep(self, trees: Int[np.ndarray, "r"] | list[int]) -> HardTrees:
        """These trees alone."""
        return HardTrees(*(part[trees] for part in self.parts()))

    def parts(self) -> tuple[np.ndarray, ...]:
        return self.W, self.t, self.label, self.goes_right, self.slope

    def level(self, level: int) -> HardTrees:
        """The tests of one level, as views of these."""
        tests = slice(2**level - 1, 2 ** (level + 1) - 1)
        cut = (part[:, tests] for part in (self.W, self.t, self.goes_right, self.slope))
        W, t, goes_right, slope = cut
        return HardTrees(W, t, self.label, goes_right, slope)

    def copy(self) -> HardTrees:
        return HardTrees(*(part.copy() for part in self.parts()))


def leaf_counts(
    exits: Int[np.ndarray, "R m"],
    y: Int[np.ndarray, "m"],
    weight: Float[np.ndarray, "m"],
    n_leaves: int,
    n_classes: int,
) -> Float[np.ndarray, "R L K"]:
    """The weight of every class in every leaf."""
    R = len(exits)
    cell = (np.arange(R)[:, None] * n_leaves + exits) * n_classes + y
    weights = np.broadcast_to(weight, exits.shape).ravel()
    counts = np.bincount(cell.ravel(), weights, R * n_leaves * n_classes)
    return counts.reshape(R, n_leaves, n_classes)


def relabel(
    trees: HardTrees, exits: np.ndarray, y: np.ndarray, weight: np.ndarray, n_classes: int
) -> HardTrees:
    """Leaves answer the heaviest class among their rows; a tie or an empty leaf keeps its own."""
    counts = leaf_counts(exits, y, weight, trees.label.shape[1], n_classes)
    own = np.take_along_axis(counts, trees.label[:, :, None], 2)[:, :, 0]
    return replace(trees, label=np.where(counts.max(2) > own, counts.argmax(2), trees.label))


def errors(trees: HardTrees, X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """(R,) the weight of the rows that each tree answers wrongly."""
    found: np.ndarray = ((trees.predict(X) != y) * weight).sum(1)
    return found


def alternate(
    trees: HardTrees,
    X: Float[np.ndarray, "m n"],
    y: Int[np.ndarray, "m"],
    weight: Float[np.ndarray, "m"],
    *,
    n_classes: int,
    ridge: float = 1.0,
    n_sweeps: int = 10,
) -> HardTrees:
    """The trees after sweeps of alternating optimisation, until none changes.

    Parameters
    ----------
    X
        Rows, features of about unit scale (the ridge is the same for all); NaN is missing.
    weight
        Of each row, 1 on average.
    """
    done, moving = trees.copy(), np.arange(len(trees.W))
    for _ in range(n_sweeps):
        swept, has_changed = _sweep(done.keep(moving), X, y, weight, n_classes, ridge)
        for part, new in zip(done.parts(), swept.parts(), strict=True):
            part[moving] = new
        moving = moving[has_changed]
        if not len(moving):
            break
    return done


def _sweep(
    trees: HardTrees,
    X: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    n_classes: int,
    ridge: float,
) -> tuple[HardTrees, np.ndarray]:
    """One pass from the leaves to the root, and which trees it changed."""
    is_right = trees.answers(X)
    reached = trees.nodes(is_right)
    swept = relabel(trees, reached[-1], y, weight, n_classes).copy()
    has_changed = np.any(swept.label != trees.label, axis=1)
    # Whether the subtree at each node of the level below would answer each row rightly.
    is_good = swept.label[:, :, None] == y
    for level in reversed(range(trees.n_levels)):
        tests = slice(2**level - 1, 2 ** (level + 1) - 1)
        good_left, good_right = is_good[:, 0::2], is_good[:, 1::2]
        at = reached[level]
        left, right, now = (
            np.take_along_axis(part, at[:, None], 1)[:, 0]
            for part in (good_left, good_right, is_right[:, tests])
        )
        changed = _improve(swept.level(level), X, weight, at, left, right, now, ridge)
        if len(changed):
            has_changed[changed] = True
            is_right[changed, tests] = swept.keep(changed).level(level).answers(X)
        is_good = np.where(is_right[:, tests], good_right, good_left)
    return swept, has_changed


def _improve(
    level: HardTrees,
    X: np.ndarray,
    weight: np.ndarray,
    at: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    now: np.ndarray,
    ridge: float,
) -> np.ndarray:
    """Better tests for the nodes of a level, written where they make fewer errors.

    Parameters
    ----------
    level
        The tests of this level alone, views into the arrays that are changed.
    at, left, right, now
        (R, m) the node of the level that a row reaches, whether its left and its right subtree
        answer the row rightly, and whether it goes right now.

    Returns
    -------
    np.ndarray
        The trees of which a test was changed.
    """
    R, width, n = level.W.shape
    is_nan = np.isnan(X)
    has_nan = is_nan.any(1)
    filled = np.where(is_nan, 0, X) if has_nan.any() else X
    matters = (left != right) & (weight > 0)
    tree, row = np.nonzero(matters)
    if not len(tree):
        return np.empty(0, np.int64)
    node = tree * width + at[tree, row]
    order = np.argsort(node, kind="stable")
    node, row, tree = node[order], row[order], tree[order]
    wanted, going = right[tree, row], now[tree, row]
    count = np.bincount(node, minlength=R * width)
    start = np.cumsum(count) - count
    wrong_now = np.bincount(node, weight[row] * (wanted != going), minlength=R * width)
    changed = []
    problems = np.flatnonzero(wrong_now > 0)
    for group in _groups(problems, count, n):
        c = count[group].max()
        place = start[group][:, None] + np.arange(c)
        is_there = np.arange(c) < count[group][:, None]
        place = np.where(is_there, place, 0)
        rows, want = row[place], wanted[place]
        c_weight = np.where(is_there, weight[rows], 0.0)
        # A row with a NaN takes the missing answer, whatever a dense direction is.
        lost = has_nan[rows]
        missing_right = np.sum(c_weight * lost * (2.0 * want - 1), axis=1)
        wrong_missing = np.sum(c_weight * lost * (want != (missing_right > 0)[:, None]), axis=1)
        known = c_weight * ~lost
        Xg = filled[rows]
        w = ridge_logistic(Xg, want, known, ridge)
        length = np.linalg.norm(w[:, :n], axis=1)
        is_direction = (length > 1e-9) & np.isfinite(length)
        w = w / np.where(is_direction, length, 1.0)[:, None]
        q = np.matmul(Xg, w[:, :n, None])[:, :, 0]
        cut, wrong = best_cuts(q, want, known, -w[:, n])
        is_better = is_direction & (wrong + wrong_missing < wrong_now[group] - 1e-9)
        for b in np.flatnonzero(is_better | (lost & is_there).any(1)):
            r, j = divmod(int(group[b]), width)
            if is_better[b]:
                level.W[r, j], level.t[r, j], level.slope[r, j] = w[b, :n], cut[b], length[b]
                balance = missing_right[b]
            else:
                # The test stays, and may still send its missing rows the other way.
                reads_nan = (is_nan[rows[b]] & (level.W[r, j] != 0)).any(1)
                balance = np.sum(c_weight[b] * reads_nan * (2.0 * want[b] - 1))
            is_turned = balance != 0 and level.goes_right[r, j] != (balance > 0)
            if is_turned:
                level.goes_right[r, j] = balance > 0
            if is_better[b] or is_turned:
                changed.append(r)
    return np.unique(np.array(changed, np.int64))


def _groups(problems: np.ndarray, count: np.ndarray, n: int) -> Iterator[np.ndarray]:
    """Problems of like size together, so that little of a batch is padding."""
    problems = problems[np.argsort(count[problems], kind="stable")]
    begin = 0
    while begin < len(problems):
        least = count[problems[begin]]
        end = begin + 1
        while (
            end < len(problems)
            and count[problems[end]] <= max(1.5 * least, least + 16)
            and (end + 1 - begin) * count[problems[end]] * (n + 1) <= MOST_NUMBERS
        ):
            end += 1
        yield problems[begin:end]
        begin = end
