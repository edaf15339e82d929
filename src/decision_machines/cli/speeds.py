"""A model's own library against our engine: proven equal first, then timed, in one run."""

from __future__ import annotations

import functools
import importlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..libraries import convert
from ..libraries.oracles import oracle_of
from ..libraries.registry import library_of
from ..machine import Rule, single
from ..machine.coded import coded
from ..run.engines.processor import cpu_count, engine_info

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..machine import DecisionMachine

ROWS_FOR_MARGINS = 5000
SECONDS = 1.0
NEAR = 4
"""Units in the last place up to which answers that differ are timed all the same."""


@dataclass(frozen=True)
class Timing:
    """Seconds of one call for so many rows, ours and the library's."""

    rows: int
    threads: int
    library: float
    ours: float

    @property
    def ratio(self) -> float:
        """How many times as fast we are."""
        return self.library / self.ours


@dataclass(frozen=True)
class Bench:
    """What was found."""

    machine: str
    library: str
    engine: str
    equal: bool
    """To the bit, all that was compared."""
    compared: str
    timings: tuple[Timing, ...]
    """Empty where the answers are not even near: there is nothing to compare then."""


def bench(
    model: Any,
    X: Any = None,
    *,
    machine: DecisionMachine | None = None,
    n_rows: int = 100_000,
    n_threads: int | None = None,
    seconds: float = SECONDS,
) -> Bench:
    """Compare `predict` of a model's library with ours: the answers, then the time.

    Parameters
    ----------
    model
        A fitted model of a supported library.
    X
        A table of rows; by default rows are drawn around the model's own thresholds.
    machine
        Ours; by default what `dm.convert(model)` gives.
    seconds
        How long each call is tried for its best time.
    """
    machine = single(convert(model) if machine is None else machine, "comparing speeds")
    threads = n_threads or cpu_count()
    oracle = oracle_of(model, machine)
    ask: Callable[..., Any] = machine.predict
    if X is None:
        taken = codes = draw_rows(machine, n_rows)
    else:
        codes = machine.features(X, dtype=np.float64)
        oracle.learn_labels(X, codes)
        if machine.columns.categories or machine.columns.table_categories is not None:
            taken = _frame(X, machine)
        else:
            taken, ask = codes, coded(machine).predict
    if not len(codes):
        raise InputError("comparing speeds", "no rows", "give data with rows")
    rival, name = _rival(model)
    # ONNX Runtime's sums depend on its threads; what it answers on one is what we read.
    alone = name.startswith("onnxruntime")
    theirs, ours = rival(taken, 1 if alone else threads), ask(taken, n_threads=threads)
    found = [compare(ours, theirs)]
    compared = found[0].words + (" to those on one thread" if alone else "")
    if found[0].near:
        what, mine, their = oracle.whole(codes[:ROWS_FOR_MARGINS])
        found.append(compare(mine, their))
        compared += f"; {what} of {len(codes[:ROWS_FOR_MARGINS])} rows {found[1].words}"
    near, equal = all(part.near for part in found), all(part.equal for part in found)
    sizes = sorted({1, min(1000, len(codes)), len(codes)}) if near else []
    timings = []
    for size in sizes:
        # One row is done before a second thread has started: neither side is given one.
        used = 1 if size == 1 else threads
        library = _seconds(functools.partial(rival, taken[:size], used), seconds)
        own = _seconds(functools.partial(ask, taken[:size], n_threads=used), seconds)
        timings.append(Timing(size, used, library, own))
    target = engine_info()["target"]
    return Bench(repr(machine), name, target, equal, compared, tuple(timings))


def draw_rows(machine: DecisionMachine, n_rows: int, seed: int = 0) -> np.ndarray:
    """(n_rows, n_features) rows whose values lie around the thresholds, or in the category sets."""
    columns = machine.columns
    if columns.categories or columns.table_categories is not None or machine.is_oblique:
        raise InputError(
            "drawing rows for a comparison",
            "the model reads labels or combinations of columns, which rows cannot be drawn for",
            "give rows: --data FILE",
        )
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, columns.n_features))
    n_member = 0
    for column, (feature, rule) in enumerate(zip(columns.feature, columns.rule, strict=True)):
        if rule == Rule.MEMBER:
            assert columns.sets is not None
            span = slice(*columns.sets.start[n_member : n_member + 2])
            n_member += 1
            if columns.sets.members[span].size:
                X[:, feature] = rng.choice(columns.sets.members[span], n_rows)
            continue
        t = machine.t[machine.selection == column].astype(np.float64)
        t = t[np.abs(t) < 1e30]
        if t.size:
            X[:, feature] = rng.choice(t, n_rows) + X[:, feature] * (t.std() / 10 + 1e-3)
    return X.astype(columns.dtype)


class Compared(NamedTuple):
    """How two answers compare."""

    equal: bool
    """To the bit; NaN equals NaN."""
    near: bool
    """Equal, or at most `NEAR` units in the last place apart."""
    words: str


def compare(ours: Any, theirs: Any) -> Compared:
    """How two answers compare; floats of two sizes as the smaller of them."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if ours.size != theirs.size:
        return Compared(False, False, f"have the shapes {ours.shape} and {theirs.shape}")
    theirs = theirs.reshape(ours.shape)
    if ours.dtype.kind != "f" or theirs.dtype.kind != "f":
        n = int(np.count_nonzero(ours != theirs))
        return Compared(not n, not n, f"differ {n} times" if n else "equal")
    dtype = min(ours.dtype, theirs.dtype)
    narrowed = "" if ours.dtype == theirs.dtype else f" as {dtype}"
    ours, theirs = ours.astype(dtype), theirs.astype(dtype)
    differing = ~((ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
    n = int(np.count_nonzero(differing))
    if not n:
        return Compared(True, True, f"equal to the bit{narrowed}")
    ours, theirs = ours[differing], theirs[differing]
    if not np.all(np.isfinite(ours) & np.isfinite(theirs)):
        return Compared(False, False, "differ where one is not a finite number")
    ulps = np.abs(ours - theirs) / np.spacing(np.maximum(np.abs(ours), np.abs(theirs)))
    furthest = float(np.max(ulps))
    words = (
        f"NOT equal to the bit: {n} of {differing.size} differ, at most {furthest:.0f} ulp apart"
    )
    return Compared(False, furthest <= NEAR, words)


def _seconds(call: Callable[[], Any], tried: float) -> float:
    """The best time of a call, tried for so many seconds."""
    best, end = float("inf"), time.perf_counter() + tried
    while True:
        start = time.perf_counter()
        call()
        now = time.perf_counter()
        best = min(best, now - start)
        if now > end:
            return best


def _frame(X: Any, machine: DecisionMachine) -> Any:
    """A pandas frame of the features, labels as pandas' categories, as training data has them."""
    frame = X.to_pandas() if hasattr(X, "to_pandas") else X
    if machine.columns.names is not None:
        frame = frame[list(machine.columns.names)]
    text = frame.select_dtypes(["object", "string"]).columns
    return frame.astype(dict.fromkeys(text, "category"))


def _rival(model: Any) -> tuple[Callable[[Any, int], Any], str]:
    library = library_of(model, "comparing speeds")
    package = library.engine or library.package
    assert package is not None
    version = getattr(importlib.import_module(package), "__version__", "")
    return library.predictor(model), f"{package} {version}".strip()
