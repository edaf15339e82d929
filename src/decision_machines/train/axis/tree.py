"""The best hard tree of a given number of leaves whose tests read one feature each."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...progress import Verbosity, Watch
from ...run.engines.processor import cpu_count
from ..defaults import MAX_LEAVES
from ..fit import Fit
from ..hold_out import every_nth
from ..rows import read_rows, read_validation
from .choice import SHRINKS, TEACHING, Candidate, Choice, Options
from .constraints import read_costs, read_directions
from .criteria import Criterion
from .ranks import Ranks
from .search import Limits, Setting
from .standard_rows import DOING, StandardRows, standardised

if TYPE_CHECKING:
    from collections.abc import Sequence

MOVES = (300, 1000)
"""Of each search, the fewest and the most, if not said otherwise."""
ROW_MOVES = 3_000_000
"""Rows × moves of a search between these."""
LATE = 0.85
"""The part of a time limit after which the tree that is chosen goes to all rows."""
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
    criterion: str | None = None,
    quantile: float = 0.5,
    leaf_cost: float = 0.0,
    feature_costs: Any = None,
    monotone: Any = None,
    sample_weight: Any = None,
    validation: tuple[Any, ...] | None = None,
    n_restarts: int = 1,
    n_iterations: int | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    n_threads: int | None = None,
    verbose: Verbosity = None,
    keep_best_on_interrupt: bool = False,
) -> Fit:
    """Search for the hard axis-aligned tree of at most `max_leaves` leaves that predicts best.

    Greedy trees (CART's) with several settings are improved by iterated local search: another test
    at a node, a subtree grown again, two levels of tests at once, a leaf moved to where it gains
    more, each followed by TAO's exact best test for the nodes around. Validation chooses among all
    trees on the way, greedy ones included, how far leaves are drawn towards their parents, and
    which tests are taken off again. Of more than 6 000 rows a sample is searched on first.

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
    criterion
        What the search, the choice and the pruning look for. Of classes: "accuracy" (the default),
        "log_loss", "auc" (of several classes the mean of each against the others), "balanced" (the
        mean of the classes' accuracies) or "f1" (the mean of the classes' F1). With the last two
        the tree's probabilities are those of classes made more equal in number. Of numbers:
        "squared_error" (the default), "absolute_error", "quantile" or "poisson".
    quantile
        With ``criterion="quantile"``: the share of rows that should lie below the prediction.
    leaf_cost
        What a leaf must gain, in parts of the loss of a tree of one leaf.
    feature_costs
        What a row pays for being asked each feature, once on its path, in the same unit: a number
        for each feature, or a dictionary feature → cost.
    monotone
        1 for each feature along which predictions must not fall, -1 where they must not rise, else
        0; or a dictionary. Of two classes the probability of the second is meant.
    sample_weight
        (m,) weights of the rows.
    validation
        (X, y) or (X, y, weights) that decides. Without it a fifth of the rows is held out to
        decide, and the tree is then searched for again with what was chosen, on all rows.
    n_restarts
        Searches for each setting.
    n_iterations
        Moves of each search, by default 1 000 for up to 3 000 rows, 300 for 10 000 and more; 0
        gives the best greedy tree.
    time_limit
        Seconds after which the best so far is taken; the tree then depends on the machine's speed.
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
    begin = time.perf_counter()
    _check_sizes(max_leaves, max_depth, min_samples_leaf, n_restarts, n_iterations, n_threads, seed)
    if classes is not None and n_classes is None:
        n_classes = len(classes)
    if classes is not None and len(classes) != n_classes:
        raise InputError(
            DOING, f"{len(classes)} labels for {n_classes} classes", "give a label for each class"
        )
    sought = Criterion.of(criterion, n_classes, quantile)
    is_count = sought.name == "poisson"
    given = read_rows(X, y, sample_weight, n_classes, doing=DOING, takes_infinity=True)
    rows = standardised(given, n_classes, is_count=is_count)
    n = rows.X.shape[1]
    limits = Limits(
        max_leaves,
        max_depth,
        seed,
        n_threads or cpu_count(),
        _read_leaf_cost(leaf_cost),
        read_costs(feature_costs, n),
        read_directions(monotone, n, n_classes),
    )
    end = None if time_limit is None else begin + _read_time(time_limit)
    late = None if end is None else begin + LATE * (end - begin)
    ranks = Ranks.of(rows.X)
    if validation is not None:
        judges = read_validation(validation, n_classes, given, doing=DOING, takes_infinity=True)
        valid: StandardRows | None = standardised(judges, n_classes, rows, is_count=is_count)
        learn, own_ranks = rows, ranks
    else:
        own, valid = _held_out(rows, seed)
        learn, own_ranks = (rows, ranks) if own is None else (rows.take(own), ranks.take(own))
    if n_iterations is None:
        n_iterations = int(np.clip(ROW_MOVES // len(learn), *MOVES))
    settings = _settings(sought, rows, min_samples_leaf, n_restarts, n_iterations)
    options = Options(SHRINKS, TEACHING if _may_teach(sought) else (0.0,), sought.value_powers)
    if valid is None:
        aim = sought.aims[0]
        settings = [Setting(**aim, least=min_samples_leaf, n_moves=n_iterations)]
        options = Options(powers=sought.value_powers[:1])
    choice = Choice(learn, valid, own_ranks, settings, limits, sought, options)
    keep = keep_best_on_interrupt
    watch = Watch("searching for a tree", choice.n_steps, verbose, keep_best=keep)
    choice.look(watch, late)
    found = choice.best
    chosen = best = choice.prune()
    history, interrupted, is_late = watch.history, watch.interrupted, choice.is_late
    if learn is not rows and not interrupted:
        own_way = Options((best.shrink,), (best.teaching,), (best.power,))
        size = replace(limits, max_leaves=best.nodes.n_leaves)
        again = Choice(rows, None, ranks, [best.setting], size, sought, own_way)
        watch = Watch("searching again on all rows", again.n_steps, verbose, keep_best=keep)
        if choice.is_sampled or is_late:
            # The chosen tree itself, fitted to all rows.
            chosen = again.refine(best, watch, end)
        else:
            # The chosen search once more, as long as the chosen one, on all rows.
            again.look(watch, end)
            chosen = again.found[-1]
        history = [*history, *watch.history]
        interrupted = watch.interrupted
        if interrupted:
            chosen = best
    if n_classes is not None and classes is None:
        classes = np.arange(n_classes).tolist()
    machine = chosen.nodes.machine(
        rows.original(chosen.values), n, classes, "an axis-aligned search"
    )
    report = _report(sought, chosen, best, found, choice)
    return Fit(
        machine, report=report | {"interrupted": interrupted, "late": is_late}, history=history
    )


def _may_teach(sought: Criterion) -> bool:
    """Whether a forest's means are what leaves should say."""
    return any("taught" in aim for aim in sought.aims)


def _settings(
    sought: Criterion,
    rows: StandardRows,
    min_samples_leaf: int,
    n_restarts: int,
    n_iterations: int,
) -> list[Setting]:
    """The settings that are tried, whatever the data."""
    leasts = (1, 20) if rows.label is None else (1, 10)
    settings = []
    for aim in sought.aims:
        for least in sorted({max(least, min_samples_leaf) for least in leasts}):
            setting = Setting(
                **aim, least=least, n_moves=n_iterations, n_finish=(n_iterations + 3) // 4
            )
            settings += [setting] * n_restarts
    # Greedy trees with other leaves, as a tuned CART would try.
    for aim in sought.aims[:2]:
        for least in (2, 5, 50):
            if least > min_samples_leaf:
                settings.append(Setting(**aim, least=least))
    return settings


def _held_out(rows: StandardRows, seed: int) -> tuple[np.ndarray | None, StandardRows | None]:
    """Which four fifths to learn from, and the fifth that decides, of each class alike."""
    if len(rows) < FEWEST_TO_HOLD_OUT:
        return None, None
    held = every_nth(len(rows), 5, seed, rows.label)
    return np.flatnonzero(~held), rows.take(held)


def _report(
    sought: Criterion, chosen: Candidate, best: Candidate, found: Candidate, choice: Choice
) -> dict[str, Any]:
    greedy = [c for c in choice.found if c.setting.n_moves == 0]
    return {
        "criterion": sought.name,
        "leaves": chosen.nodes.n_leaves,
        "leaves before pruning": found.nodes.n_leaves,
        "setting": vars(best.setting).copy(),
        "shrink": best.shrink,
        "teaching": best.teaching,
        "loss": chosen.loss,
        "valid": best.valid,
        "valid_greedy": min((c.valid for c in greedy), default=float("nan")),
        "candidates": len(choice.found),
    }


def _read_time(limit: Any) -> float:
    is_number = isinstance(limit, (int, float, np.number)) and not isinstance(limit, bool)
    if not is_number or not limit > 0:
        raise InputError(DOING, f"time_limit={limit!r}", "give seconds above 0, or None")
    return float(limit)


def _read_leaf_cost(cost: Any) -> float:
    is_number = isinstance(cost, (int, float, np.number)) and not isinstance(cost, bool)
    if not is_number or not 0 <= cost < np.inf:
        raise InputError(DOING, f"leaf_cost={cost!r}", "give a number of at least 0")
    return float(cost)


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
        if value is None and name in ("max_depth", "n_threads", "n_iterations"):
            continue
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
            raise InputError(
                DOING, f"{name} = {value!r}", f"pass a whole number of at least {least}"
            )
