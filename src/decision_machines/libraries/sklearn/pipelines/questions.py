"""Where the answers to questions about columns change, as numbers of the raw features.

A question asks of one column whether it is at most t. Between breaks the answer, as a function of
the raw feature, changes at most once, because every step is monotone there; where it does is found
by bisection over the ordered floats with the steps' own `transform`. All questions of all features
are asked at once, a feature's in its own rows.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import UnsupportedModelError
from .floats import Ordered, between
from .stage import Run

if TYPE_CHECKING:
    from collections.abc import Callable

    from .stage import Raw

    Ask = Callable[[Run], np.ndarray]
    """From a run of the stages to the columns that questions are asked about."""

WINDOW = 256
"""Neighbours on each side of a change that are looked at, where rounding may undo the order. All
changes must lie in the inner half of them; else more neighbours are looked at."""
WIDEST = 1 << 16
"""So many at most: a step with changes that are further apart is not monotone."""
ROWS_AT_ONCE = 1 << 17
VALUES_AT_ONCE = 1 << 17
"""Values that a search asks about at once: a run of the steps costs little more for some more."""
CENTRES = (-1.0, 0.0, 1.0)
"""Numbers that steps take; from them outwards there is a last one that is taken."""
FAR = 48
"""Numbers between two breaks that are looked at to see whether a step is monotone at all."""


@dataclass(frozen=True)
class Questions:
    """One entry for each question."""

    feature: np.ndarray
    column: np.ndarray
    t: np.ndarray
    missing_left: np.ndarray
    """The answer where the column is NaN."""
    is_rounded: np.ndarray

    def __len__(self) -> int:
        return len(self.feature)

    def answers(self, columns: np.ndarray, rows: np.ndarray, which: np.ndarray) -> np.ndarray:
        """Whether question `which[k]` is answered yes in row `rows[k]`."""
        z = columns[rows, self.column[which]]
        return np.asarray(np.where(z != z, self.missing_left[which], z <= self.t[which]))


@dataclass
class Changes:
    """For each question, its answer for the smallest number and the keys after which it changes."""

    first: np.ndarray
    keys: list[np.ndarray]


class Asker:
    """Asks questions of the numbers of raw features."""

    def __init__(self, raw: Raw) -> None:
        self.raw = raw
        centres = {f: self.ordered(f).keys(np.array(CENTRES)) for f in range(raw.n_features)}
        self.breaks: dict[int, np.ndarray] = {f: np.unique(keys) for f, keys in centres.items()}
        """feature → ascending keys; between one and the next all columns are monotone, and all
        numbers are taken or none is."""

    def ordered(self, feature: int) -> Ordered:
        return Ordered(self.raw.dtype(feature))

    def add_breaks(self, feature: int, keys: np.ndarray) -> None:
        own = self.breaks.get(feature, np.empty(0, np.int64))
        self.breaks[feature] = np.union1d(own, keys)

    def run(self, ask: Ask, keys: dict[int, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The columns for numbers of these keys, and which numbers are refused."""
        run = Run(self.raw, {f: self.ordered(f).values(k) for f, k in keys.items()})
        return ask(run), run.bad

    def taken(self, features: list[int], ask: Ask) -> Changes:
        """From where to where each feature's numbers are taken; noted as breaks."""
        which = np.array(features, np.int64)
        questions = Questions(
            feature=which,
            column=which,
            t=np.full(len(which), 0.5),
            missing_left=np.zeros(len(which), bool),
            is_rounded=np.zeros(len(which), bool),
        )

        def refused(run: Run) -> np.ndarray:
            ask(run)
            found = run.bad.astype(np.float64)
            run.bad[:] = False
            return found

        changes = self.changes(questions, refused)
        for f, keys in zip(features, changes.keys, strict=True):
            self.add_breaks(f, keys)
        return changes

    def changes(self, questions: Questions, ask: Ask) -> Changes:
        """Where the answers to questions change."""
        first = np.zeros(len(questions), bool)
        found: list[list[int]] = [[] for _ in range(len(questions))]
        if not len(questions):
            return Changes(first, [])
        features = np.unique(questions.feature).tolist()
        points = {f: self._points(f) for f in features}
        columns, bad = self.run(ask, points)
        jobs: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        for f in features:
            which = np.flatnonzero(questions.feature == f)
            at = points[f]
            z = columns[: len(at)][:, questions.column[which]]
            yes = np.where(z != z, questions.missing_left[which], z <= questions.t[which])
            yes = _filled(yes, bad[: len(at), f])
            first[which] = yes[0]
            place, changed = np.nonzero(yes[1:] != yes[:-1])
            jobs.append((which[changed], at[place], at[place + 1]))
        which, low, high = (np.concatenate(part) for part in zip(*jobs, strict=True))
        low = self._bisect(questions, ask, which, low, high)
        for q, key in zip(which.tolist(), low.tolist(), strict=True):
            found[q].append(key)
        changes = Changes(first, [np.array(sorted(keys), np.int64) for keys in found])
        self._look_closer(questions, ask, changes)
        return changes

    def _points(self, feature: int) -> np.ndarray:
        """The ends of every cell between breaks, ascending."""
        numbers = self.ordered(feature)
        inner = self.breaks.get(feature, np.empty(0, np.int64))
        inner = inner[(inner >= numbers.lowest) & (inner < numbers.highest)]
        # The infinities are cells of their own: some steps refuse them, others do not.
        ends = [numbers.lowest, numbers.lowest + 1, numbers.highest - 1, numbers.highest]
        return np.unique(np.concatenate([inner, inner + 1, ends]))

    def _bisect(
        self,
        questions: Questions,
        ask: Ask,
        which: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
    ) -> np.ndarray:
        """The last key with the answer of `low`, of pairs whose answers differ."""
        low, high = low.copy(), high.copy()
        if not len(low):
            return low
        at_low, _ = self._ask(questions, ask, which, low)
        counts = np.bincount(questions.feature[which])
        size = int(counts.max()) * int(np.count_nonzero(counts))
        n_points = int(np.clip(VALUES_AT_ONCE // size, 1, 63))
        while True:
            wide = np.flatnonzero((low + 1) < high)
            if not len(wide):
                return low
            keys = between(low[wide], high[wide], n_points)  # (wide, points), ascending
            asked = self._ask(questions, ask, np.repeat(which[wide], n_points), keys.reshape(-1))[0]
            same = asked.reshape(keys.shape) == at_low[wide, None]
            # How many of the points from the left on are answered as the left end is.
            n_same = np.argmin(np.column_stack([same, np.zeros(len(wide), bool)]), axis=1)
            ends = np.column_stack([low[wide], keys, high[wide]])
            row = np.arange(len(wide))
            low[wide], high[wide] = ends[row, n_same], ends[row, n_same + 1]

    def _ask(
        self, questions: Questions, ask: Ask, which: np.ndarray, keys: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The answer to each question at a key of its feature; whether the number is refused."""
        found, refused = np.empty(len(which), bool), np.empty(len(which), bool)
        for start in range(0, len(which), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            found[part], refused[part] = self._ask_some(questions, ask, which[part], keys[part])
        return found, refused

    def _ask_some(
        self, questions: Questions, ask: Ask, which: np.ndarray, keys: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        feature = questions.feature[which]
        order = np.argsort(feature, kind="stable")
        begins = np.flatnonzero(np.r_[True, np.diff(feature[order]) != 0])
        sizes = np.diff(np.r_[begins, len(order)])
        rows = np.empty(len(order), np.int64)
        rows[order] = np.arange(len(order)) - np.repeat(begins, sizes)
        values = {
            int(feature[order[a]]): keys[order[a : a + n]]
            for a, n in zip(begins.tolist(), sizes.tolist(), strict=True)
        }
        columns, bad = self.run(ask, values)
        return questions.answers(columns, rows, which), bad[rows, feature]

    # -------------------------------------------------------------- rounding, and false claims

    def _look_closer(self, questions: Questions, ask: Ask, changes: Changes) -> None:
        """Look at the neighbours of every change, where rounding may undo the order."""
        self._look_far(questions, ask, changes)
        pairs = [
            (q, key)
            for q in np.flatnonzero(questions.is_rounded).tolist()
            for key in changes.keys[q].tolist()
        ]
        window = WINDOW
        while pairs:
            if window > WIDEST:
                raise self._not_monotone(int(questions.feature[pairs[0][0]]), pairs[0][1])
            pairs = self._look_around(questions, ask, changes, pairs, window)
            window *= 4

    def _look_around(
        self,
        questions: Questions,
        ask: Ask,
        changes: Changes,
        pairs: list[tuple[int, int]],
        window: int,
    ) -> list[tuple[int, int]]:
        """Mend the changes (question, key) by their neighbours; those that need a wider look."""
        unsettled = []
        per = max(1, ROWS_AT_ONCE // (2 * window))
        offsets = np.arange(-window + 1, window + 1)
        for start in range(0, len(pairs), per):
            some = pairs[start : start + per]
            which = np.repeat([q for q, _ in some], len(offsets))
            keys = (np.array([key for _, key in some])[:, None] + offsets).reshape(-1)
            limits = [self.ordered(int(questions.feature[q])) for q, _ in some]
            low = np.repeat([n.lowest for n in limits], len(offsets))
            high = np.repeat([n.highest for n in limits], len(offsets))
            yes, refused = self._ask(questions, ask, which, np.clip(keys, low, high))
            yes, refused = yes.reshape(len(some), -1), refused.reshape(len(some), -1)
            for k, (q, key) in enumerate(some):
                clear = _filled(yes[k][:, None], refused[k])[:, 0]
                if not _mend(changes, q, key, clear, offsets):
                    unsettled.append((q, key))
        return unsettled

    def _look_far(self, questions: Questions, ask: Ask, changes: Changes) -> None:
        """Refuse a step that is far from monotone between two breaks."""
        rounded = np.flatnonzero(questions.is_rounded)
        if not len(rounded):
            return
        between = {f: self._between(f) for f in np.unique(questions.feature[rounded]).tolist()}
        per_question = [between[f] for f in questions.feature[rounded].tolist()]
        which = np.repeat(rounded, [len(keys) for keys in per_question])
        keys = np.concatenate(per_question)
        yes, refused = self._ask(questions, ask, which, keys)
        start = 0
        for q, own in zip(rounded.tolist(), per_question, strict=True):
            odd = np.searchsorted(changes.keys[q], own, side="left") % 2 == 1
            part = slice(start, start + len(own))
            wrong = (yes[part] != (changes.first[q] ^ odd)) & ~refused[part]
            start += len(own)
            if np.any(wrong):
                raise self._not_monotone(int(questions.feature[q]), int(own[np.argmax(wrong)]))

    def _between(self, feature: int) -> np.ndarray:
        """Keys spread over the cells between breaks."""
        points = self._points(feature)
        spread = [
            np.linspace(a, b, FAR).astype(np.int64)
            for a, b in itertools.pairwise(points.tolist())
            if b - a > FAR
        ]
        return np.clip(np.unique(np.concatenate(spread)), points[0], points[-1])

    def _not_monotone(self, feature: int, key: int) -> UnsupportedModelError:
        value = self.ordered(feature).values(np.array([key]))[0]
        name = self.raw.names[feature] if self.raw.names is not None else f"x[{feature}]"
        return UnsupportedModelError(
            "folding a pipeline",
            f"a step on {name!r} that should be monotone is not, at {value!s}",
            "take the step out of the pipeline and run it yourself, or correct what you declared "
            "with monotone=",
        )


def _mend(changes: Changes, q: int, key: int, yes: np.ndarray, offsets: np.ndarray) -> bool:
    """Put all changes that a window shows in the place of the one that was found.

    Returns whether the window shows them all: beyond it answers are as they were thought to be, so
    that as many changes, or 2, 4, … more, lie within; and those of one change keep from its ends.
    """
    seen = key + offsets[:-1][yes[1:] != yes[:-1]]
    own = changes.keys[q]
    window = int(offsets[-1])
    inside = own[(own > key - window) & (own < key + window)]
    if np.array_equal(seen, inside):
        return True
    is_near = bool(np.all(np.abs(seen - key) <= window // 2))
    if len(seen) % 2 != len(inside) % 2 or (len(inside) == 1 and not is_near):
        return False
    changes.keys[q] = np.union1d(np.setdiff1d(own, inside), seen)
    return True


def _filled(yes: np.ndarray, refused: np.ndarray) -> np.ndarray:
    """(points, questions) answers, those at refused points as at the taken point next to them."""
    if not np.any(refused) or np.all(refused):
        return yes
    taken = np.flatnonzero(~refused)
    before = np.searchsorted(taken, np.arange(len(refused)), side="right") - 1
    return yes[taken[np.maximum(before, 0)]]


def pulled_back(asker: Asker, stage: Any, boundaries: dict[int, np.ndarray]) -> None:
    """Note as breaks the raw numbers at which columns of a stage pass boundaries.

    Parameters
    ----------
    boundaries
        column of the stage → numbers.
    """
    from .stage import dense

    origin = stage.origin
    labelled = asker.raw.labels
    asked = [
        (i, b) for i, bs in boundaries.items() if origin[i] not in labelled for b in np.unique(bs)
    ]
    if not asked:
        return
    column = np.array([i for i, _ in asked])
    questions = Questions(
        feature=np.array([origin[i] for i in column]),
        column=column,
        t=np.array([b for _, b in asked], np.float64),
        missing_left=np.zeros(len(asked), bool),
        is_rounded=np.zeros(len(asked), bool),
    )

    def ask(run: Run) -> np.ndarray:
        found = dense(stage.run(run))
        return _numbers(found, column) if found.dtype == object else found.astype(np.float64)

    asker.taken(np.unique(questions.feature).tolist(), ask)
    changes = asker.changes(questions, ask)
    for q, keys in enumerate(changes.keys):
        asker.add_breaks(int(questions.feature[q]), keys)


def _numbers(found: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The columns that hold numbers, of an array that holds labels too."""
    z = np.zeros(found.shape)
    for i in np.unique(columns).tolist():
        z[:, i] = found[:, i].astype(np.float64)
    return z
