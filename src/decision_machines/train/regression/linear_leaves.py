"""Hard oblique regression trees, with linear functions or constants in their leaves."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...progress import Verbosity, Watch
from ..fit import Fit
from ..rows import check_depth
from ..torch_setup import require_torch, threads
from .scaled_rows import DOING, Units, number_hold_out, number_rows, number_validation

if TYPE_CHECKING:
    from .search import RegressionEffort

MOST_DEPTH = 14
LEAVES = ("linear", "constant")


def linear_leaves_tree(
    X: Any,
    y: Any,
    *,
    depth: int = 4,
    leaves: str = "linear",
    sample_weight: Any = None,
    validation: tuple[Any, ...] | None = None,
    caps: bool = True,
    effort: RegressionEffort | None = None,
    seed: int = 0,
    n_threads: int | None = None,
    verbose: Verbosity = None,
    keep_best_on_interrupt: bool = False,
) -> Fit:
    """A hard oblique tree of at most the given depth that predicts numbers.

    Trees of this depth, and of a little less with caps on their leaves' answers, are trained by
    gradients from many starts. Their leaves are fitted in closed form, and the best trees are
    finished node by node; rows held out choose among them. Features and targets need no scaling:
    the machine reads and answers in their own units.

    Parameters
    ----------
    X
        (m, n) features; NaN is missing.
    y
        (m,) numbers, or (m, q) for several targets.
    depth
        Most tests on any path, caps included.
    leaves
        "linear", functions of the features, or "constant".
    sample_weight
        (m,) weights of the rows.
    validation
        (X, y) or (X, y, sample_weight) to choose by, never trained on. By default a fifth of the
        rows is held out, and the leaves are fitted to all rows in the end.
    caps
        Whether a leaf's answers may be cut off, by tests of its own, at what it answers for the
        rows it was trained on. Not done for several targets.
    effort
        How much is tried; by default what the number of rows asks for.
    seed
        The same seed gives the same tree.
    n_threads
        Threads of torch while training; by default as it is set.
    verbose
        Whether to show progress; None shows it, too, but not for quick work in a pipe.
    keep_best_on_interrupt
        Whether Ctrl-C ends training early and gives the best so far, with ``"interrupted"`` in the
        report. By default it raises `KeyboardInterrupt`, so that a search around this ends, too.

    Returns
    -------
    Fit
        `machine`, hard; `soft`, the same machine softened with the slopes learned; `report`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = np.where(X[:, 0] > X[:, 1], X[:, 0], -2 * X[:, 1])
    >>> fit = linear_leaves_tree(X, y, depth=1, n_threads=1, verbose=False)
    >>> fit.machine
    DecisionMachine(1 tree, 2 leaves, depth 1, 2 features, oblique; tree with linear leaves)
    >>> fit.machine.predict([[3.0, 1.0], [1.0, 3.0]]).round()
    array([ 3., -6.])
    """
    if leaves not in LEAVES:
        raise InputError(DOING, f"leaves={leaves!r}", f"use one of {', '.join(LEAVES)}")
    check_depth(depth, 0, MOST_DEPTH, DOING)
    require_torch(DOING)
    from .machine import regression_machine
    from .search import RegressionEffort, RegressionSearch

    started = time.perf_counter()
    given = number_rows(X, y, sample_weight)
    if validation is None:
        train, held = number_hold_out(given, seed)
    else:
        train, held = given, number_validation(validation, given)
    is_linear = leaves == "linear"
    units = Units.of(given.X, given.y, linear=is_linear)
    rows, judged = units.rows(train), units.rows(held)
    if effort is None:
        effort = RegressionEffort.usual(len(rows), is_linear)
    is_capped = caps and is_linear and given.y.shape[1] == 1
    search = RegressionSearch(
        rows, judged, depth=int(depth), effort=effort, is_capped=is_capped, seed=seed
    )
    keep = keep_best_on_interrupt
    watch = Watch("regression tree", search.n_steps, verbose, keep_best=keep)
    with threads(n_threads, DOING), watch:
        search.run(watch)
    best = search.best()
    tree = best.tree
    is_refitted = validation is None and len(given) > len(train)
    if is_refitted:
        tree = search.refitted(best, units.rows(given))
    machine, slope = regression_machine(
        tree, units, "tree with linear leaves" if is_linear else "oblique regression tree"
    )
    report = {
        "chosen": best.group,
        "validation RMSE": float(np.sqrt(best.loss) * _root_mean_square(units.spread)),
        "scores": search.scores(),
        "rows": len(rows),
        "rows held out": len(judged),
        "leaves refitted to all rows": is_refitted,
        "interrupted": watch.interrupted,
        "seconds": time.perf_counter() - started,
    }
    soft = machine.soften(
        "soft_tree", slope=np.clip(slope, 1e-30, 1e30), learn=("S", "t", "slope", "V")
    )
    return Fit(machine, soft, report, watch.history)


def _root_mean_square(spread: np.ndarray) -> float:
    """Of spreads of any size: the squares of 1e200 are not numbers."""
    largest = float(spread.max(initial=0.0))
    return largest * float(np.sqrt(np.mean((spread / largest) ** 2))) if largest else 0.0
