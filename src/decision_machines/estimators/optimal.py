"""`OptimalTreeClassifier` and `OptimalTreeRegressor`: a small tree, proven to be the best."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..errors import InputError
from ..train.fit import Fit
from ..train.optimal import optimal_tree
from ..train.optimal.losses import mean_loss
from ..train.optimal.near import Problem, near_optimal_trees
from ..train.optimal.tree import DEEPEST, Limits, SolvedTree, tree_machine
from ..train.rows import Rows
from .auto_size import with_size
from .base import MachineClassifier, MachineRegressor, without_light_leaves
from .distinct_rows import merged_rows
from .importance import feature_importances
from .labels import with_bit_sets
from .parameters import (
    AUTO,
    CLASS_WEIGHT,
    NOTHING,
    SEED,
    THREADS,
    VERBOSE,
    Flag,
    Number,
    OneOf,
    Whole,
)

if TYPE_CHECKING:
    from ..machine import DecisionMachine
    from ..progress import Verbosity

LARGEST_SQUARED = 1e150
"""Targets beyond it have squares that are not finite."""

CONSTRAINTS: dict[str, tuple[Any, ...]] = {
    "max_depth": (Whole(0, DEEPEST),),
    "max_leaves": (NOTHING, Whole(1), AUTO),
    "leaf_penalty": (Number(0.0),),
    "min_samples_leaf": (Whole(1),),
    "time_limit": (NOTHING, Number(0.0, beyond=True)),
    "random_state": SEED,
    "n_threads": THREADS,
    "verbose": VERBOSE,
    "keep_best_on_interrupt": (Flag(),),
}


class _OptimalTree:
    """What classifier and regressor share: their parameters and the fit."""

    _takes_missing = True
    _takes_labels = True

    objective_: float
    bound_: float
    gap_: float
    is_optimal_: bool

    def _merge(self, x: np.ndarray, codes: np.ndarray, w: np.ndarray) -> Rows:
        return merged_rows(x, codes, w)

    @property
    def _criterion(self) -> str:
        return getattr(self, "criterion", "error")

    def _learned(self: Any, rows: Rows, seed: int) -> Fit:
        """The best tree of rows that are read."""
        criterion = self._criterion
        found = optimal_tree(
            rows,
            n_classes=len(self.classes_) if criterion == "error" else None,
            criterion=criterion,
            limits=Limits(
                self.max_depth,
                self.max_leaves,
                self.leaf_penalty,
                self.min_samples_leaf,
                self.time_limit,
            ),
            label_features=list(self.labels_),
            names=getattr(self, "feature_names_in_", ()),
            seed=seed,
            n_threads=self.n_threads,
            verbose=self.verbose,
            keep_best_on_interrupt=self.keep_best_on_interrupt,
        )
        return replace(found, machine=with_bit_sets(found.machine, self.labels_))

    def _fit(self: Any, X: Any, y: Any, sample_weight: Any) -> None:
        criterion = self._criterion
        rows = self._read(X, y, sample_weight)
        if criterion == "squared_error" and np.abs(rows.y).max() > LARGEST_SQUARED:
            raise InputError(
                f"fitting a {type(self).__name__}",
                f"y reaches {np.abs(rows.y).max():.2g}, and its squares would be infinite",
                "divide y by a power of ten, or use criterion='absolute_error'",
            )
        seed = self._seed
        chosen, interrupted = with_size(self, rows, seed)
        found = chosen._learned(rows, seed)
        if interrupted:
            found.report["interrupted"] = True
        machine = found.machine
        leaf = machine.apply(rows.X)[:, 0] if self.labels_ else found.report["leaf"]
        report = {name: value for name, value in found.report.items() if name != "leaf"}
        self.report_, self.history_ = report, found.history
        self.objective_, self.bound_ = found.report["objective"], found.report["bound"]
        self.is_optimal_ = found.report["is_optimal"]
        if criterion == "error":
            own = without_light_leaves(machine, replace(rows, w=rows.w / rows.w.mean()), leaf)
            if own is not machine:
                lost = mean_loss(criterion, rows.y, rows.w, own.margin(rows.X))
                self.objective_ = lost + self.leaf_penalty * own.n_leaves
                machine = own
        self.gap_ = self.objective_ - self.bound_
        self._keep(machine)
        self._learned_from = (rows, chosen.max_leaves)
        self.soft_ = None
        self.feature_importances_ = feature_importances(
            self.machine_, rows.X, rows.w, leaf[:, None]
        )

    def __getstate__(self: Any) -> Any:
        """The rows that were learned from are not part of a file."""
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_learned_from"}

    def near_optimal(self: Any, n: int = 5, *, tolerance: float = 0.05) -> list[NearOptimalTree]:
        """Different trees that are nearly as good as the best, for people who want to choose.

        For each feature the best tree is found whose first test reads that feature. What is
        guaranteed: each tree given is the best of those that test its first feature first, within
        depth, leaves and all other limits of the fit; every feature whose best tree is within the
        tolerance was considered, and so was the single leaf. Of trees that predict the same for
        every training row only the best is given. What is not: that these are all trees within the
        tolerance, or the `n` best of them, which mostly differ in a threshold. Losses are equal
        as in the fit, where they differ by less than a billionth of what one leaf loses.

        It can take many times as long as the fit: every feature is searched to its end. No
        time limit holds; Ctrl-C ends it with `KeyboardInterrupt`.

        Parameters
        ----------
        n
            How many trees, at most, the best of those found.
        tolerance
            How much more a tree may lose than the best one, in parts of what a single leaf loses:
            with 0.05 and half of the rows wrong in a single leaf, 0.025 more errors.

        Returns
        -------
        list of NearOptimalTree
            `machine`, `objective` and `feature` of each, the best first.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from decision_machines import OptimalTreeClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> tree = OptimalTreeClassifier(max_depth=2).fit(X, y)
        >>> for other in tree.near_optimal(3):
        ...     print(other)
        petal length (cm) first: objective 0.04, 4 leaves
        sepal length (cm) first: objective 0.06, 4 leaves
        """
        doing = f"searching for trees near an {type(self).__name__}"
        check_is_fitted(self, "machine_")
        for name, value, allowed in (("n", n, Whole(1)), ("tolerance", tolerance, Number(0.0))):
            if not allowed.allows(value):
                raise InputError(doing, f"{name} = {value!r}", f"give {name} as {allowed}")
        if not hasattr(self, "_learned_from"):
            raise InputError(doing, "the training rows are not there after loading", "fit again")
        if not self.report_["is_optimal"]:
            raise InputError(
                doing,
                f"the best tree is not proven: gap_ is {self.gap_:.3g}",
                "fit without a time limit, or with less depth",
            )
        rows, leaves = self._learned_from
        criterion = self._criterion
        n_classes = len(self.classes_) if criterion == "error" else None
        names = getattr(self, "feature_names_in_", ())
        limits = Limits(self.max_depth, leaves, self.leaf_penalty, self.min_samples_leaf)
        problem = Problem(
            rows, n_classes, criterion, limits, list(self.labels_), names, self.n_threads
        )
        found = near_optimal_trees(problem, self.report_["objective"], tolerance)[:n]
        return [NearOptimalTree.of(self, tree, n_classes) for tree in found]


@dataclass(frozen=True)
class NearOptimalTree:
    """A tree that is nearly as good as the best; see `OptimalTreeClassifier.near_optimal`."""

    machine: DecisionMachine
    objective: float
    """As `objective_`."""
    feature: Any
    """What the tree tests first: a name, or a number where features have none; None in a leaf."""

    @classmethod
    def of(cls, estimator: Any, found: SolvedTree, n_classes: int | None) -> NearOptimalTree:
        machine = tree_machine(found, estimator.n_features_in_, n_classes)
        machine = estimator._named(with_bit_sets(machine, estimator.labels_))
        feature = None
        if found.nodes.n_leaves > 1:
            first = int(found.nodes.feature[0])
            feature = getattr(estimator, "feature_names_in_", range(first + 1))[first]
        return cls(machine, float(found.report["objective"]), feature)

    def __repr__(self) -> str:
        first = "no test" if self.feature is None else f"{self.feature} first"
        n = self.machine.n_leaves
        return f"{first}: objective {self.objective:.4g}, {n} {'leaf' if n == 1 else 'leaves'}"


class OptimalTreeClassifier(_OptimalTree, MachineClassifier):
    """The tree of at most `max_depth` levels that misclassifies least, proven to.

    Branch and bound over every cut of every feature, without rounding features to bins first. With
    enough time the tree is the best there is on the training rows; stopped early, it comes with a
    bound that no tree is below. NaN is missing, and both sides are tried for it; columns of text in
    a table are categories of at most six labels, of which all sets are tried.

    Parameters
    ----------
    max_depth
        Tests between root and leaf, at most 5. Depth 3 takes seconds for ten thousand rows; depth 4
        on large or noisy data and depth 5 need a `time_limit`.
    max_leaves
        As many as the depth allows by default. "auto" is the smallest size of 1, 2, 3, 4, 6, 8, 12,
        16, 24 and 32 (and at most a tenth of the distinct rows) whose score in cross-validation is
        within one standard error of the best; see `path_`. What is proven holds for that size.
    leaf_penalty
        What a leaf costs, as a share of the rows: 0.01 asks every further leaf to put one row in a
        hundred right.
    min_samples_leaf
        Rows of a leaf, at least; equal rows count once.
    time_limit
        Seconds after which the best tree so far is given, with its bound. Half of them may go to
        the choice of a size.
    class_weight
        None; "balanced" for the mean error of the classes; or a dictionary class → weight.
    random_state
        Of the search for a start, in trees of four levels and more. The same seed gives the same
        tree, whatever the threads, unless the time limit ends the search.
    n_threads
        By default all processors.
    verbose
        Whether to show progress: the objective, the bound, and the gap between them.
    keep_best_on_interrupt
        Whether Ctrl-C ends the search and keeps the best tree so far, with its bound and
        ``"interrupted"`` in `report_`. By default `fit` raises `KeyboardInterrupt`.

    Attributes
    ----------
    machine_
        What was learned, a `DecisionMachine`.
    objective_
        Share of the weight of the training rows that is misclassified, plus `leaf_penalty` for each
        leaf.
    bound_, gap_
        What no tree is below, and ``objective_ - bound_``.
    is_optimal_
        Whether the search came to its end. Then `gap_` is 0, with one exception: a leaf with less
        weight than a hundredth of an average row answers nearly as all rows do, and `gap_` is what
        that costs.
    path_
        With ``max_leaves="auto"``: sizes, scores and standard errors, a `SizePath`; print it, or
        ``path_.plot()`` it.
    classes_, feature_importances_, n_features_in_, feature_names_in_
        As in scikit-learn.
    history_, report_
        Objective and bound over time; what was found.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from decision_machines import OptimalTreeClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> tree = OptimalTreeClassifier(max_depth=3).fit(X, y)
    >>> tree.is_optimal_, round(tree.objective_ * len(y))
    (True, 1)
    """

    _constraints = CONSTRAINTS | {"class_weight": CLASS_WEIGHT}

    def __init__(
        self,
        max_depth: int = 3,
        *,
        max_leaves: int | str | None = None,
        leaf_penalty: float = 0.0,
        min_samples_leaf: int = 1,
        time_limit: float | None = None,
        class_weight: Any = None,
        random_state: Any = 0,
        n_threads: int | None = None,
        verbose: Verbosity = False,
        keep_best_on_interrupt: bool = False,
    ) -> None:
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.leaf_penalty = leaf_penalty
        self.min_samples_leaf = min_samples_leaf
        self.time_limit = time_limit
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose
        self.keep_best_on_interrupt = keep_best_on_interrupt

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X and labels y.

        Parameters
        ----------
        X
            (m, n) numbers, or a pandas, polars or Arrow table, whose text columns are categories.
        y
            A label for each row.
        sample_weight
            A weight for each row; a weight of 2 is a row given twice.
        """
        self._fit(X, y, sample_weight)
        return self


class OptimalTreeRegressor(_OptimalTree, MachineRegressor):
    """The tree of at most `max_depth` levels with the least squared or absolute error, proven.

    How it is found, parameters and attributes are those of `OptimalTreeClassifier`; `objective_` is
    the mean error of the training rows, added up over targets, plus `leaf_penalty` for each leaf. y
    may have several columns. Losses that differ by less than a billionth of what one leaf loses
    count as equal.

    Parameters
    ----------
    criterion
        "squared_error", with means in the leaves, or "absolute_error", with medians. The latter has
        no vector kernel and is meant for some thousand rows.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from decision_machines import OptimalTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> tree = OptimalTreeRegressor(max_depth=2).fit(X, y)
    >>> tree.is_optimal_, bool(tree.score(X, y) > 0.4)
    (True, True)
    """

    _constraints = CONSTRAINTS | {"criterion": (OneOf(("squared_error", "absolute_error")),)}

    def __init__(
        self,
        max_depth: int = 3,
        *,
        criterion: str = "squared_error",
        max_leaves: int | str | None = None,
        leaf_penalty: float = 0.0,
        min_samples_leaf: int = 1,
        time_limit: float | None = None,
        random_state: Any = 0,
        n_threads: int | None = None,
        verbose: Verbosity = False,
        keep_best_on_interrupt: bool = False,
    ) -> None:
        self.max_depth = max_depth
        self.criterion = criterion
        self.max_leaves = max_leaves
        self.leaf_penalty = leaf_penalty
        self.min_samples_leaf = min_samples_leaf
        self.time_limit = time_limit
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose
        self.keep_best_on_interrupt = keep_best_on_interrupt

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X and targets y.

        Parameters
        ----------
        X
            (m, n) numbers, or a pandas, polars or Arrow table, whose text columns are categories.
        y
            (m,) a number for each row, or (m, q) for q targets.
        sample_weight
            A weight for each row; a weight of 2 is a row given twice.
        """
        self._fit(X, y, sample_weight)
        return self
