"""One oblique tree, trained all at once by the convex-concave bound, as scikit-learn estimators."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

from ..train.fit import Fit
from ..train.hold_out import hold_out
from ..train.rows import Rows
from .auto_size import with_size
from .base import MachineClassifier, MachineRegressor, without_light_leaves
from .importance import feature_importances
from .parameters import (
    AUTO,
    CLASS_WEIGHT,
    NOTHING,
    SEED,
    THREADS,
    VERBOSE,
    Flag,
    Number,
    Several,
    Whole,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..progress import Verbosity

CONSTRAINTS: dict[str, tuple[Any, ...]] = {
    "max_leaves": (Whole(1), AUTO),
    "max_depth": (NOTHING, Whole(0)),
    "axis_aligned": (Flag(),),
    "n_restarts": (Whole(1),),
    "radii": (Several(Number(0.0, beyond=True)),),
    "n_epochs": (Whole(0),),
    "batch_size": (NOTHING, Whole(1)),
    "learning_rate": (Number(0.0, beyond=True),),
    "validation_fraction": (Number(0.0, 1.0),),
    "random_state": SEED,
    "n_threads": THREADS,
    "verbose": VERBOSE,
    "keep_best_on_interrupt": (Flag(),),
}


@dataclass(eq=False, repr=False)
class _NonGreedyTree:
    """What classifier and regressor share: their parameters, which are the fields, and the fit."""

    max_leaves: int | str = 16
    _: KW_ONLY
    max_depth: int | None = None
    axis_aligned: bool = False
    n_restarts: int = 2
    radii: Sequence[float] = (1.0, 4.0, 16.0)
    n_epochs: int = 40
    batch_size: int | None = None
    learning_rate: float = 0.5
    validation_fraction: float = 0.2
    random_state: Any = 0
    n_threads: int | None = None
    verbose: Verbosity = False
    keep_best_on_interrupt: bool = False

    def _learned(self: Any, rows: Rows, seed: int) -> Fit:
        """One tree of rows that are read; some of them are held out to choose by."""
        from ..train.non_greedy import non_greedy_tree

        is_classes = isinstance(self, MachineClassifier)
        own, held = hold_out(rows, self.validation_fraction, seed, is_classes=is_classes)
        return non_greedy_tree(
            own.X,
            own.y,
            n_classes=len(self.classes_) if is_classes else None,
            max_leaves=self.max_leaves,
            max_depth=self.max_depth,
            axis_aligned=self.axis_aligned,
            sample_weight=own.w,
            validation=None if held is None else (held.X, held.y, held.w),
            refit=None if held is None else (rows.X, rows.y, rows.w),
            n_restarts=self.n_restarts,
            radii=self.radii,
            n_epochs=self.n_epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            seed=seed,
            n_threads=self.n_threads,
            verbose=self.verbose,
            keep_best_on_interrupt=self.keep_best_on_interrupt,
        )

    def _fit(self: Any, X: Any, y: Any, sample_weight: Any) -> None:
        rows = self._read(X, y, sample_weight)
        seed = self._seed
        chosen, interrupted = with_size(self, rows, seed)
        found = chosen._learned(rows, seed)
        is_classes = isinstance(self, MachineClassifier)
        machine = without_light_leaves(found.machine, rows) if is_classes else found.machine
        self._keep(machine)
        self.history_, self.report_ = found.history, found.report
        if interrupted:
            self.report_["interrupted"] = True
        self.feature_importances_ = feature_importances(self.machine_, rows.X, rows.w)


@dataclass(eq=False, repr=False, kw_only=True)
class NonGreedyTreeClassifier(_NonGreedyTree, MachineClassifier):
    """One oblique tree whose tests are learned together, by a bound on the whole tree's loss.

    Paper: the template matching interpretation; the method is that of Norouzi et al. (2015). A
    CART tree, and CART trees over turned features, are the starts; SGD lowers the convex-concave
    upper bound of the log-loss; held-out rows choose the tree, a start where nothing was better.

    Parameters
    ----------
    max_leaves, max_depth
        Size of the tree. ``max_leaves="auto"`` chooses a size by cross-validation, as in
        `DecisionMachineClassifier`.
    axis_aligned
        Whether each test keeps reading the one feature of its start.
    n_restarts
        How many starts.
    radii
        Largest norms of a test's weights that are tried, for features of unit scale.
    n_epochs, batch_size, learning_rate
        Of the descent; a batch is a 32nd of the rows, from 32 to 512, by default.
    validation_fraction
        Share of the distinct rows that are held out to choose by; 0 chooses by the training rows.
    class_weight
        None, "balanced", or a dictionary class → weight.
    random_state
        A seed reproduces the fit. The order of the rows never matters.
    n_threads
        For torch; by default as many as it uses.
    verbose
        Whether to show progress: a bar on a terminal and in a notebook, in a pipe a line now and
        then. None shows it, too, but not for quick work in a pipe.
    keep_best_on_interrupt
        Whether Ctrl-C ends the fit early and keeps the best so far, with ``"interrupted"`` in
        `report_`. By default `fit` raises `KeyboardInterrupt`, which also ends a grid search, a
        cross validation or a pipeline around it.

    Attributes
    ----------
    machine_
        The tree, an oblique `DecisionMachine`.
    path_
        With ``max_leaves="auto"``: sizes, scores and standard errors, a `SizePath`; print it, or
        ``path_.plot()`` it.
    classes_, feature_importances_
        As in scikit-learn.
    history_, report_
        The learning curve; which start and radius were chosen.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from decision_machines import NonGreedyTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = NonGreedyTreeClassifier(max_leaves=4, n_epochs=10).fit(X, y)
    >>> tree.score(X, y) > 0.93, tree.machine_.is_oblique
    (True, True)
    """

    class_weight: Any = None

    _constraints = CONSTRAINTS | {"class_weight": CLASS_WEIGHT}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the tree from rows X and labels y.

        Parameters
        ----------
        X
            (m, n) numbers.
        y
            A label for each row.
        sample_weight
            A weight for each row; a weight of 2 is a row given twice.
        """
        self._fit(X, y, sample_weight)
        return self


class NonGreedyTreeRegressor(_NonGreedyTree, MachineRegressor):
    """One oblique tree with constant leaves, learned by the same bound on its squared error.

    Paper: the template matching interpretation. Parameters and attributes are those of
    `NonGreedyTreeClassifier`; y may have several columns.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from decision_machines import NonGreedyTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> NonGreedyTreeRegressor(max_leaves=6, n_epochs=10).fit(X, y).score(X, y) > 0.4
    True
    """

    _constraints = CONSTRAINTS

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the tree from rows X and targets y.

        Parameters
        ----------
        X
            (m, n) numbers.
        y
            (m,) a number for each row, or (m, q) for q targets.
        sample_weight
            A weight for each row; a weight of 2 is a row given twice.
        """
        self._fit(X, y, sample_weight)
        return self
