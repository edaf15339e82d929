"""The best hard tree of a given number of leaves whose tests read one feature each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...progress import Verbosity, Watch
from ...run.engines.processor import cpu_count
from ..defaults import MAX_LEAVES
from ..fit import Fit
from ..hold_out import every_nth
from ..rows import read_rows, read_validation
from .choice import SHRINKS, TEACHING, Candidate, Choice
from .search import Limits, Setting
from .standard_rows import DOING, StandardRows, standardised

if TYPE_CHECKING:
    from collections.abc import Sequence

FEWEST_TO_HOLD_OUT = 50
"""Rows; with fewer none is held out, nothing is chosen, and a plain search learns from all."""


def axis_tree(
    X: Any,
    y: Any,
    *,
    n_classes: int | None = None,
    classes: Sequence[Any] | None = None,
    max_leaves: int = MAX_LEAVES,
    max_depth: int | None = None,
    min_samples_leaf: int = 1,
    sample_weight: Any = None,
    validation: tuple[Any, ...] | None = None,
    n_restarts: int = 1,
    n_iterations: int = 1000,
    seed: int = 0,
    n_threads: int | None = None,
    verbose: Verbosity = None,
    keep_best_on_interrupt: bool = False,
) -> Fit:
    """Search for the hard axis-aligned tree of at most `max_leaves` leaves that predicts best.

    Greedy trees (CART's) with several settings are improved by iterated local search: another test
    at a node, a subtree grown again, a leaf moved to where it gains more, each followed by TAO's
    exact best test for the nodes around. Validation chooses among all trees on the way, greedy
    ones included, and how far leaves are drawn towards their parents.

    Parameters
    ----------
    X
        (m, n) numbers; NaN is missing, and each test learns where missing values go.
    y
        Codes 0..n_classes - 1 where `n_classes` is given, else numbers, (m,) or (m, k).
    classes
        Labels for the codes; the codes themselves by default.
    max_leaves, max_depth, min_samples_leaf
        Size of the tree: the most leaves, the most tests on a path, the fewest rows in a leaf.
    sample_weight
        (m,) weights of the rows.
    validation
        (X, y) or (X, y, weights) that decides. Without it a fifth of the rows is held out to
        decide, and the tree is then searched for again with what was chosen, on all rows.
    n_restarts
        Searches for each setting.
    n_iterations
        Moves of each search; 0 gives the best greedy tree.
    seed
        The same seed gives the same tree.
    n_threads
        All processors by default. The tree does not depend on it.
    verbose
        Whether to show progress; None shows it, too, but not for quick work in a pipe.
    keep_best_on_interrupt
        Whether Ctrl-C ends training early and gives the best so far, with ``"interrupted"`` in the
        report. By default it raises `KeyboardInterrupt`, so that a search around this ends, too.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(size=(400, 2))
    >>> y = ((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5)).astype(int)  # no single test helps
    >>> fit = axis_tree(X, y, n_classes=2, max_leaves=4, seed=1)
    >>> fit.machine
    DecisionMachine(1 tree, 4 leaves, depth 2, 2 features, 2 outputs; an axis-aligned search)
    >>> bool(np.mean(fit.machine.predict(X) == y) > 0.98)
    True
    """
    _check_sizes(max_leaves, max_depth, min_samples_leaf, n_restarts, n_iterations, n_threads, seed)
    if classes is not None and n_classes is None:
        n_classes = len(classes)
    if classes is not None and len(classes) != n_classes:
        raise InputError(
            DOING, f"{len(classes)} labels for {n_classes} classes", "give a label for each class"
        )
    given = read_rows(X, y, sample_weight, n_classes, doing=DOING, takes_infinity=True)
    rows = standardised(given, n_classes)
    limits = Limits(max_leaves, max_depth, seed, n_threads or cpu_count())
    if validation is not None:
        judges = read_validation(validation, n_classes, given, doing=DOING, takes_infinity=True)
        valid: StandardRows | None = standardised(judges, n_classes, rows)
        learn = rows
    else:
        learn, valid = _held_out(rows, seed)
    settings = _settings(rows, min_samples_leaf, n_restarts, n_iterations)
    if valid is None:
        settings = [Setting(least=min_samples_leaf, n_moves=n_iterations)]
    choice = Choice(learn, valid, settings, limits)
    keep = keep_best_on_interrupt
    watch = Watch("searching for a tree", choice.n_steps, verbose, keep_best=keep)
    if valid is None:
        choice.look(watch, [0.0], [0.0])
    else:
        choice.look(watch, SHRINKS, TEACHING)
    best = chosen = choice.best
    history, interrupted = watch.history, watch.interrupted
    if learn is not rows and not interrupted:
        # The chosen search once more, as long as the chosen one, on all rows.
        again = Choice(rows, None, [best.setting], limits)
        watch = Watch("searching again on all rows", again.n_steps, verbose, keep_best=keep)
        again.look(watch, [best.shrink], [best.teaching])
        history = [*history, *watch.history]
        interrupted = watch.interrupted
        chosen = best if interrupted else again.found[-1]
    if n_classes is not None and classes is None:
        classes = np.arange(n_classes).tolist()
    machine = chosen.nodes.machine(
        rows.original(chosen.values), rows.X.shape[1], classes, "an axis-aligned search"
    )
    return Fit(machine, report=_report(chosen, choice, interrupted), history=history)


def _settings(
    rows: StandardRows, min_samples_leaf: int, n_restarts: int, n_iterations: int
) -> list[Setting]:
    """The settings that are tried, whatever the data."""
    if rows.label is None:
        aims: list[dict[str, Any]] = [{}, {"ridge": 5.0}, {"taught": 0.6}]
        leasts = (1, 20)
    else:
        aims = [{}, {"gini": 0.0, "entropy": 1.0}, {"gini": 0.3, "error": 1.0}]
        aims += [{"taught": 0.6}]
        leasts = (1, 10)
    settings = []
    for aim in aims:
        for least in sorted({max(least, min_samples_leaf) for least in leasts}):
            setting = Setting(
                **aim, least=least, n_moves=n_iterations, n_finish=(n_iterations + 3) // 4
            )
            settings += [setting] * n_restarts
    # Greedy trees with other leaves, as a tuned CART would try.
    for aim in aims[:2]:
        for least in (2, 5, 50):
            if least > min_samples_leaf:
                settings.append(Setting(**aim, least=least))
    return settings


def _held_out(rows: StandardRows, seed: int) -> tuple[StandardRows, StandardRows | None]:
    """Four fifths to learn from and a fifth to decide, of each class alike."""
    if len(rows) < FEWEST_TO_HOLD_OUT:
        return rows, None
    held = every_nth(len(rows), 5, seed, rows.label)
    return rows.take(~held), rows.take(held)


def _report(chosen: Candidate, choice: Choice, interrupted: bool) -> dict[str, Any]:
    best = choice.best
    greedy = [c for c in choice.found if c.setting.n_moves == 0]
    return {
        "leaves": chosen.nodes.n_leaves,
        "setting": vars(best.setting).copy(),
        "shrink": best.shrink,
        "teaching": best.teaching,
        "loss": chosen.loss,
        "valid": best.valid,
        "valid_greedy": min((c.valid for c in greedy), default=float("nan")),
        "candidates": len(choice.found),
        "interrupted": interrupted,
    }


def _check_sizes(
    max_leaves: Any,
    max_depth: Any,
    min_samples_leaf: Any,
    n_restarts: Any,
    n_iterations: Any,
    n_threads: Any,
    seed: Any,
) -> None:
    for name, value, least in (
        ("max_leaves", max_leaves, 1),
        ("max_depth", max_depth, 0),
        ("min_samples_leaf", min_samples_leaf, 1),
        ("n_restarts", n_restarts, 1),
        ("n_iterations", n_iterations, 0),
        ("n_threads", n_threads, 1),
        ("seed", seed, 0),
    ):
        if value is None and name in ("max_depth", "n_threads"):
            continue
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
            raise InputError(
                DOING, f"{name} = {value!r}", f"pass a whole number of at least {least}"
            )
