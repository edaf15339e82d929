"""Oblique trees: hard trees whose tests weigh all features, learned softly and then hardened."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...progress import Verbosity, Watch
from ..fit import Fit
from ..fold import class_output, machine_of
from ..hold_out import every_nth
from ..rows import check_depth, read_rows, read_validation
from ..scaling import Scaling
from ..torch_setup import require_torch, threads

if TYPE_CHECKING:
    from ..regression.search import RegressionEffort
    from ..rows import Rows
    from .candidates import Judged
    from .search import Effort

DOING = "training an oblique tree"
MOST_DEPTH = 14
LEAST_TO_HOLD_OUT = 20
"""Fewer rows choose by themselves."""
MISSING = ("auto", "answer", "zero")
SHARPER = (1.0, 2.0, 4.0, 8.0, 16.0, 64.0)
"""Factors of the slopes learned that the soft module may take."""
MOST_TO_SHARPEN_BY = 4000
LEAST_OF_INDICATORS = 0.3
"""The spread by which indicators are divided at least; one in ten rows has a 1 at this spread."""
LEAST = 1e-3
"""Added to a probability under the logarithm: leaves may hold a 0."""


def oblique_tree(
    X: Any,
    y: Any,
    *,
    n_classes: int | None = None,
    depth: int = 4,
    leaves: str = "constant",
    sample_weight: Any = None,
    validation: tuple[Any, ...] | None = None,
    missing: str = "auto",
    effort: Effort | RegressionEffort | None = None,
    seed: int = 0,
    n_threads: int | None = None,
    verbose: Verbosity = None,
    keep_best_on_interrupt: bool = False,
    **options: Any,
) -> Fit:
    """A hard oblique tree of at most the given depth: every test weighs all features.

    Soft trees are trained by gradients from many starts and by several recipes, hardened, and
    finished node by node; rows held out choose among them. Features need no scaling: the machine
    reads them as they are.

    Parameters
    ----------
    X
        (m, n) features; NaN is missing.
    y
        (m,) codes 0..K-1 where `n_classes` is given, else numbers, (m,) or (m, q).
    depth
        Of the complete tree that is trained.
    leaves
        "constant"; "linear" for regression with linear functions in the leaves.
    sample_weight
        (m,) weights of the rows.
    validation
        (X, y) or (X, y, sample_weight) to choose by, never trained on. By default a quarter of
        the rows is held out.
    missing
        Where X has NaN: "answer" sends a test that reads one to its missing side, "zero" reads
        NaN as 0, "auto" tries both.
    effort
        How much is tried, an `Effort`, or a `RegressionEffort` for numbers; by default what the
        number of rows and the depth ask for.
    seed
        The same seed gives the same tree.
    n_threads
        Threads of torch while training; by default as it is set.
    verbose
        Whether to show progress; None shows it, too, but not for quick work in a pipe.
    keep_best_on_interrupt
        Whether Ctrl-C ends training early and gives the best so far, with ``"interrupted"`` in the
        report. By default it raises `KeyboardInterrupt`, so that a search around this ends, too.
    **options
        Of regression, handed to `linear_leaves`.

    Returns
    -------
    Fit
        `machine`, hard; `soft`, the same machine softened with the slopes learned (its `tau` as
        the rows to choose by like it best); `report`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> fit = oblique_tree(X, (X[:, 0] > X[:, 1]).astype(int), n_classes=2, depth=1, verbose=False)
    >>> fit.machine
    DecisionMachine(1 tree, 2 leaves, depth 1, 2 features, 2 outputs, oblique; oblique tree)
    >>> fit.machine.predict([[1.0, 0.5], [0.5, 1.0]])
    array([1, 0])
    """
    require_torch(DOING)
    if n_classes is None:
        from ..regression.linear_leaves import linear_leaves_tree

        return linear_leaves_tree(
            X,
            y,
            depth=depth,
            leaves=leaves,
            sample_weight=sample_weight,
            validation=validation,
            effort=effort,  # type: ignore[arg-type]
            seed=seed,
            n_threads=n_threads,
            verbose=verbose,
            keep_best_on_interrupt=keep_best_on_interrupt,
            **options,
        )
    if options:
        raise InputError(
            DOING, f"an unknown option {next(iter(options))!r}", "see the options of oblique_tree"
        )
    if leaves != "constant":
        raise InputError(DOING, f"leaves={leaves!r} for classification", "use leaves='constant'")
    if missing not in MISSING:
        raise InputError(DOING, f"missing={missing!r}", f"use one of {', '.join(MISSING)}")
    check_depth(depth, 0, MOST_DEPTH, DOING)
    given = read_rows(X, y, sample_weight, n_classes, doing=DOING)
    if validation is None:
        train, judged = class_hold_out(given, seed)
    else:
        train, judged = given, read_validation(validation, n_classes, given, doing=DOING)
    with threads(n_threads, DOING):
        return _classify(
            train,
            judged,
            n_classes,
            int(depth),
            missing,
            effort,  # type: ignore[arg-type]
            seed,
            verbose,
            keep_best_on_interrupt,
        )


def class_hold_out(given: Rows, seed: int) -> tuple[Rows, Rows]:
    """Rows to train on and a quarter to choose by, each class divided alike; few serve as both."""
    if len(given) < LEAST_TO_HOLD_OUT:
        return given, given
    is_held = every_nth(len(given), 4, seed, given.y)
    return given.take(~is_held), given.take(is_held)


def _classify(
    train: Rows,
    judged: Rows,
    n_classes: int,
    depth: int,
    missing: str,
    effort: Effort | None,
    seed: int,
    verbose: Verbosity,
    keep_best: bool,
) -> Fit:
    from .search import ClassSearch, Effort

    started = time.perf_counter()
    X, y, weight = train.X, train.y, train.w
    is_nan = np.isnan(X).any(0)
    modes = ["answer"]
    if is_nan.any():
        modes = ["zero", "answer"] if missing == "auto" else [missing]
    if not (weight > 0).any() or len(np.unique(y[weight > 0])) < 2 or depth == 0:
        return _one_leaf(y, weight, n_classes, X.shape[1])
    effort = Effort.usual(len(X), X.shape[1], depth) if effort is None else effort
    searches = []
    total = effort.total * len(modes)
    with Watch("oblique tree", total, verbose, keep_best=keep_best) as watch:
        for mode in modes:
            zero = np.logical_and(is_nan, mode == "zero")
            scaling = Scaling.of(_filled(X, zero), LEAST_OF_INDICATORS)
            if not scaling.varies.any():
                continue
            rows, held = (
                _scaled(_filled(part.X, zero), part.y, part.w, scaling) for part in (train, judged)
            )
            search = ClassSearch(
                rows, held, n_classes=n_classes, depth=depth, effort=effort, seed=seed
            )
            searches.append((mode, zero, scaling, search))
            search.run(watch)
    if not searches:
        return _one_leaf(y, weight, n_classes, X.shape[1])
    for _, _, _, search in searches[:1]:
        search.finish_early()
    done = [found for found in searches if found[3].candidates.groups]
    found = [search.candidates.best() for *_, search in done]
    which = int(np.argmax([candidate.accuracy for candidate in found]))
    (mode, zero, scaling, search), best = done[which], found[which]
    tree = best.trees
    machine = machine_of(
        tree.W[0],
        tree.t[0],
        tree.goes_right[0],
        best.P,
        scaling,
        output=class_output(n_classes),
        nan_as_zero=zero,
    )
    report = {
        "chosen": best.group,
        "validation accuracy": best.accuracy,
        "scores": {group: search.candidates.score(group) for group in search.candidates.ranked()},
        "missing": mode if is_nan.any() else None,
        "rows": len(X),
        "rows held out": len(judged),
        "interrupted": watch.interrupted,
        "seconds": time.perf_counter() - started,
    }
    return Fit(machine, _softened(machine, tree.slope[0], judged), report, watch.history)


def _softened(machine: Any, slope: np.ndarray, judged: Rows | None = None) -> Any:
    """The machine with tests as steep as they were learned, all sharpened by one factor.

    Tests that were swept came one by one, each as steep as its own rows asked for; the factor with
    the least log-loss on the rows to choose by makes one soft tree of them.
    """
    import torch

    soft = machine.soften(
        "soft_tree", slope=np.clip(slope, 1e-6, 1e9), learn=("S", "t", "slope", "V")
    )
    if judged is None:
        return soft
    X, y, weight = (part[:MOST_TO_SHARPEN_BY] for part in (judged.X, judged.y, judged.w))
    rows = torch.from_numpy(X)
    losses = []
    for factor in SHARPER:
        soft.tau = 1 / factor
        with torch.no_grad():
            own = soft(rows).numpy()[np.arange(len(y)), y]
        losses.append(-np.sum(weight * np.log(own + LEAST)))
    soft.tau = 1 / SHARPER[int(np.argmin(losses))]
    return soft


def _one_leaf(y: np.ndarray, weight: np.ndarray, n_classes: int, n_features: int) -> Fit:
    """A machine without tests: there is nothing to tell apart, or nothing to tell it by."""
    counts = np.bincount(y, weight, n_classes)
    V = (counts / counts.sum() if counts.sum() > 0 else np.full(n_classes, 1 / n_classes))[None]
    nothing = Scaling(*(np.zeros(n_features, kind) for kind in (float, float, bool)))
    machine = machine_of(
        np.zeros((0, 0)),
        np.zeros(0),
        np.zeros(0, bool),
        V,
        nothing,
        output=class_output(n_classes),
    )
    return Fit(machine, _softened(machine, np.ones(0)), {"chosen": "one leaf"})


def _filled(X: np.ndarray, zero: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(X) & zero, 0.0, X) if zero.any() else X


def _scaled(X: np.ndarray, y: np.ndarray, weight: np.ndarray, scaling: Scaling) -> Judged:
    from .candidates import Judged

    mean = weight.mean() if len(weight) else 1.0
    return Judged(scaling(X), y, weight / (mean if mean > 0 else 1.0))
