"""The steps before a model as stages, which can be run up to any point for any raw values."""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .handlers import Handler

NO_ORIGIN = -1
"""The origin of a column that no feature makes."""


@dataclass
class Raw:
    """The features as the user gives them."""

    n_features: int
    names: tuple[str, ...] | None
    dtypes: dict[int, np.dtype[Any]]
    """The dtype in which each feature's numbers are given; float64 where it is not here."""
    labels: dict[int, dict[Any, None]] = field(default_factory=dict)
    """The labels that steps know of each feature that is given as labels, in order."""
    functions: set[int] = field(default_factory=set)
    """Features that pass through a function of the user's or of NumPy's."""
    steps: list[str] = field(default_factory=list)
    """The classes of all steps, for people."""

    @functools.cached_property
    def origin(self) -> list[int]:
        return list(range(self.n_features))

    @functools.cached_property
    def is_rounded(self) -> list[bool]:
        return [False] * self.n_features

    def dtype(self, feature: int) -> np.dtype[Any]:
        return self.dtypes.get(feature, np.dtype(np.float64))

    def resting(self, feature: int, n: int) -> np.ndarray:
        """Values of a feature that nothing is asked about, which every step takes."""
        if feature in self.labels:
            found = np.empty(n, object)
            found[:] = next(iter(self.labels[feature]), "")
            return found
        return np.ones(n, self.dtype(feature))

    def run(self, run: Run) -> Any:
        if run.given is None:
            run.given = self._given(run)
        return run.given

    def _given(self, run: Run) -> Any:
        """A table of named columns, or an array, as the user would give it."""
        columns = [
            run.values[f] if f in run.values else self.resting(f, run.n)
            for f in range(self.n_features)
        ]
        if self.names is not None:
            import pandas

            held = {f: _as_objects(c) if c.dtype == object else c for f, c in enumerate(columns)}
            return pandas.DataFrame(held, copy=False).set_axis(list(self.names), axis=1)
        if any(column.dtype == object for column in columns):
            found = np.empty((run.n, self.n_features), object)
            for f, column in enumerate(columns):
                found[:, f] = column
            return found
        return np.stack(columns, axis=1)


class Run:
    """One evaluation of the stages: raw values in, columns and refusals out."""

    def __init__(self, raw: Raw, values: dict[int, np.ndarray]) -> None:
        self.raw = raw
        self.n = max((len(v) for v in values.values()), default=1)
        self.values = {f: _padded(v, self.n) for f, v in values.items()}
        self.active = set(values)
        self.bad = np.zeros((self.n, raw.n_features), bool)
        """Which of the raw values some step refuses."""
        self.given: Any = None
        """The raw values as the first step gets them, made when it asks."""


def _as_objects(values: np.ndarray) -> Any:
    """A column of objects: a type of text, which pandas would choose, makes NaN of None."""
    import pandas

    return pandas.Series(values, dtype=object)


def _padded(values: np.ndarray, n: int) -> np.ndarray:
    if len(values) == n:
        return values
    return np.concatenate([values, values[-1:].repeat(n - len(values))])


@dataclass
class Select:
    """Some columns of a stage."""

    parent: Any
    which: list[int]

    @functools.cached_property
    def origin(self) -> list[int]:
        return [self.parent.origin[i] for i in self.which]

    @functools.cached_property
    def is_rounded(self) -> list[bool]:
        return [self.parent.is_rounded[i] for i in self.which]

    def run(self, run: Run) -> Any:
        found = self.parent.run(run)
        return found.iloc[:, self.which] if hasattr(found, "iloc") else found[:, self.which]


@dataclass
class Transform:
    """A fitted step, run by its own `transform`."""

    parent: Any
    step: Any
    handler: Handler
    sources: list[int]
    """The input column that each output column is made of."""

    @functools.cached_property
    def origin(self) -> list[int]:
        return [self.parent.origin[i] for i in self.sources]

    @functools.cached_property
    def is_rounded(self) -> list[bool]:
        return [self.handler.is_rounded or self.parent.is_rounded[i] for i in self.sources]

    def run(self, run: Run) -> Any:
        origin = self.parent.origin
        if not origin:  # a step before it, which keeps no column, may refuse all the same
            self.parent.run(run)
        if not run.active.intersection(origin):
            return np.empty((run.n, len(self.sources)))  # asked by nobody, so never touched
        given = rested(self.parent.run(run), origin, run, self.refuses, self.benign)
        if isinstance(self.parent, Stack) and self.parent.is_sparse:
            given = sp.csr_matrix(given)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return self.step.transform(given)

    def refuses(self, i: int, column: np.ndarray) -> np.ndarray:
        return self.handler.refuses(self.step, i, column)

    def benign(self, i: int) -> Any:
        return self.handler.benign(self.step, i)


@dataclass
class Scale:
    """A stage times a number: `transformer_weights`."""

    parent: Any
    weight: float

    @functools.cached_property
    def origin(self) -> list[int]:
        found: list[int] = self.parent.origin
        return found

    @functools.cached_property
    def is_rounded(self) -> list[bool]:
        found: list[bool] = self.parent.is_rounded
        return found

    def run(self, run: Run) -> Any:
        return self.parent.run(run) * self.weight


@dataclass
class Stack:
    """Stages side by side."""

    parents: list[Any]
    is_sparse: bool
    """Whether the next step gets a sparse matrix."""

    @functools.cached_property
    def origin(self) -> list[int]:
        return [f for parent in self.parents for f in parent.origin]

    @functools.cached_property
    def is_rounded(self) -> list[bool]:
        return [r for parent in self.parents for r in parent.is_rounded]

    def run(self, run: Run) -> Any:
        widths = [len(parent.origin) for parent in self.parents]
        starts = np.cumsum([0, *widths]).tolist()
        asked = [
            (start, dense(parent.run(run)))
            for start, parent in zip(starts, self.parents, strict=False)
            # A step that gives no column may refuse all the same.
            if not parent.origin or run.active.intersection(parent.origin)
        ]
        dtypes = [part.dtype for _, part in asked if part.shape[1]]
        dtype = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)
        # Columns that nobody asks about are neither made nor touched.
        make = np.zeros if dtype.hasobject else np.empty
        found = make((run.n, starts[-1]), dtype, order="F")
        for start, part in asked:
            found[:, start : start + part.shape[1]] = part
        return found


def rested(
    given: Any,
    origin: Iterable[int],
    run: Run,
    refuses: Callable[[int, np.ndarray], np.ndarray],
    benign: Callable[[int], Any],
) -> Any:
    """Columns with what is refused noted in the run and replaced by what is not."""
    changed = given
    for i, feature in enumerate(origin):
        column = column_of(given, i)
        wrong = refuses(i, column)
        if not np.any(wrong):
            continue
        if feature != NO_ORIGIN:
            run.bad[:, feature] |= wrong
        if changed is given:
            changed = given.copy()
        rest = np.array(column)
        rest[wrong] = benign(i)
        if hasattr(changed, "iloc"):
            changed.isetitem(i, _as_objects(rest) if rest.dtype == object else rest)
        elif sp.issparse(changed):
            array = changed.toarray()
            array[:, i] = rest
            changed = type(changed)(array)
        else:
            changed[:, i] = rest
    return changed


def column_of(given: Any, i: int) -> np.ndarray:
    """One column of an array, a sparse matrix or a table."""
    if hasattr(given, "iloc"):
        return np.asarray(given.iloc[:, i])
    if sp.issparse(given):
        return np.asarray(given[:, [i]].toarray()[:, 0])
    return np.asarray(given[:, i])


def dense(found: Any) -> np.ndarray:
    """What a step gives, as an array."""
    if sp.issparse(found):
        return np.asarray(found.toarray())
    return np.asarray(found)
