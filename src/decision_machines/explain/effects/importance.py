"""Which features matter: how often they are tested, and what their loss costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...machine.coded import coded
from ...machine.digits import rounded
from ...progress import Progress, Verbosity
from ..given import features_of
from ..shapley.shares import has_path_values
from .delta import can_delta, trees_that_test

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float, Int

    from ...machine import DecisionMachine

DOING = "measuring importance"


@dataclass(frozen=True, repr=False)
class Importance:
    """Counts for every feature and, where rows and answers were given, what shuffling it costs."""

    names: tuple[str, ...]
    splits: Int[np.ndarray, "n"]
    """How many tests read the feature."""
    trees: Int[np.ndarray, "n"]
    """How many trees test it."""
    score: float | None
    """Of the machine on the rows as they are."""
    drops: Float[np.ndarray, "n repeats"] | None
    """How much of the score is lost when the feature's values are shuffled."""
    attribution: Float[np.ndarray, "n"] | None = None
    """Mean of ``|φ|`` over the rows, by paths, added over outputs; None without covers."""

    @property
    def mean(self) -> Float[np.ndarray, "n"]:
        """Mean loss of score by shuffling; mean of ``|φ|`` where rows came without answers; shares
        of all tests where no rows came."""
        if self.drops is not None:
            return np.asarray(self.drops.mean(axis=1))
        if self.attribution is not None:
            return self.attribution
        return self.splits / max(int(self.splits.sum()), 1)

    @property
    def std(self) -> Float[np.ndarray, "n"]:
        return np.zeros(len(self.names)) if self.drops is None else self.drops.std(axis=1)

    def __repr__(self) -> str:
        order = np.argsort(-self.mean, kind="stable")[:20]
        width = max((len(self.names[f]) for f in order), default=0)
        lines = []
        for f in order.tolist():
            cost = (
                ""
                if self.drops is None
                else f"{rounded(self.mean[f]):>10} ± {rounded(self.std[f])}"
            )
            share = "" if self.attribution is None else f"|φ| {rounded(self.attribution[f])}"
            lines.append(f"{self.names[f]:{width}} {cost:20} {share:14} {self.splits[f]} tests")
        if len(self.names) > len(order):
            lines.append(f"… and {len(self.names) - len(order)} more")
        return "\n".join(line.rstrip() for line in lines)


def importance(
    machine: DecisionMachine,
    X: Any = None,
    y: Any = None,
    *,
    n_repeats: int = 5,
    seed: int = 0,
    metric: Callable[[Any, Any], float] | None = None,
    n_threads: int | None = None,
    verbose: Verbosity = False,
) -> Importance:
    """See `DecisionMachine.importance`."""
    n = machine.n_features
    names = tuple(machine.columns.feature_name(f) for f in range(n))
    splits, trees = _counts(machine)
    if X is None and y is None:
        return Importance(names, splits, trees, None, None)
    if X is None:
        raise InputError(DOING, "y alone", "give rows and their answers, rows alone, or neither")
    attribution = _attribution(machine, X, n_threads)
    if y is None:
        if attribution is None:
            raise InputError(
                DOING,
                "X alone, of a machine whose Shapley values by paths cannot be computed",
                "give rows and their answers; or covers, machine.with_cover(rows)",
            )
        return Importance(names, splits, trees, None, None, attribution)
    if not isinstance(n_repeats, (int, np.integer)) or n_repeats < 1:
        raise InputError(DOING, f"n_repeats={n_repeats!r}", "give a whole number of at least 1")
    x, answers = features_of(machine, X), np.atleast_1d(np.asarray(y))
    if len(answers) != len(x) or not len(x):
        raise InputError(
            DOING, f"{len(answers)} answers for {len(x)} rows", "give one for each row"
        )
    score = metric if metric is not None else _default_metric(machine)
    plain = coded(machine)
    baseline = float(score(answers, machine.decide(plain.margin(x, n_threads=n_threads))))
    shuffle = _shuffles(len(x), int(n_repeats), seed)
    drops = np.zeros((n, n_repeats))
    with Progress("shuffling features", n, verbose) as shown:
        for feature in range(n):
            if trees[feature] or machine.linear is not None:
                rescore = _rescorer(plain, x, feature, n_threads)
                for i, order in enumerate(shuffle):
                    found = machine.decide(rescore(x[order, feature]))
                    drops[feature, i] = baseline - float(score(answers, found))
            shown.update(feature + 1)
    return Importance(names, splits, trees, baseline, drops, attribution)


def _attribution(
    machine: DecisionMachine, X: Any, n_threads: int | None
) -> Float[np.ndarray, "n"] | None:
    """Mean of ``|φ|`` over rows, added over outputs; None where there are no values by paths."""
    if not has_path_values(machine):
        return None
    values = np.abs(machine.shap_values(X, n_threads=n_threads))
    if not len(values):
        return None
    return np.asarray(values.reshape(len(values), machine.n_features, -1).sum(axis=2).mean(axis=0))


def _counts(machine: DecisionMachine) -> tuple[np.ndarray, np.ndarray]:
    """Tests and trees that read each feature."""
    n = machine.n_features
    if machine.is_oblique:
        S = machine.S
        test = np.repeat(np.arange(machine.n_tests), np.diff(S.indptr))
        feature = machine.columns.feature[S.indices]
        pairs = np.unique(np.stack([test, feature]), axis=1)
        test, feature = pairs
    else:
        test = np.arange(machine.n_tests)
        feature = machine.columns.feature[machine.selection]
    splits = np.bincount(feature, minlength=n)
    pairs = np.unique(np.stack([machine.trees.of_test[test], feature]), axis=1)
    return splits, np.bincount(pairs[1], minlength=n)


def _rescorer(
    machine: DecisionMachine, x: np.ndarray, feature: int, n_threads: int | None
) -> Callable[[np.ndarray], np.ndarray]:
    """Margins of the rows with other values of one feature: only trees that test it are redone."""
    changed = np.array(x)

    def whole(values: np.ndarray) -> np.ndarray:
        changed[:, feature] = values
        return machine.margin(changed, n_threads=n_threads)

    if not can_delta(machine):
        return whole
    own = trees_that_test(machine, [feature])
    if 4 * len(own) > 3 * machine.n_trees:
        return whole  # to the bit, and nothing to save
    from dataclasses import replace

    moved = machine.mask(np.setdiff1d(np.arange(machine.n_trees), own))
    moved = replace(moved, output=replace(moved.output, base=np.zeros_like(moved.output.base)))
    rest = machine.mask(own).margin(x, n_threads=n_threads)

    def parts(values: np.ndarray) -> np.ndarray:
        changed[:, feature] = values
        return np.asarray(rest + moved.margin(changed, n_threads=n_threads))

    return parts


def _default_metric(machine: DecisionMachine) -> Callable[[Any, Any], float]:
    """The share of right labels, or R² for values."""
    if machine.output.classes is not None:
        return lambda y, found: float(np.mean(np.asarray(y) == np.asarray(found)))

    def r2(y: Any, found: Any) -> float:
        y, found = np.asarray(y, float), np.asarray(found, float)
        y, found = y.reshape(len(y), -1), found.reshape(len(found), -1)
        spread = ((y - y.mean(axis=0)) ** 2).sum(axis=0)
        lost = ((y - found) ** 2).sum(axis=0)
        return float(np.mean(1 - lost / np.where(spread > 0, spread, 1)))

    return r2


def _shuffles(n: int, n_repeats: int, seed: int) -> list[np.ndarray]:
    """The orders in which scikit-learn's permutation_importance shuffles, for the same seed.

    NumPy's old generator, on purpose: so that both give the same numbers.
    """
    first = np.random.RandomState(seed)
    own = np.random.RandomState(first.randint(np.iinfo(np.int32).max + 1))
    order, values = np.arange(n), np.arange(n)
    found = []
    for _ in range(n_repeats):
        own.shuffle(order)
        values = values[order]  # what was shuffled before is shuffled further
        found.append(values)
    return found
