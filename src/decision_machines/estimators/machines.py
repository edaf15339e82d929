"""`DecisionMachineClassifier` and `DecisionMachineRegressor`: one good tree, or many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..errors import InputError
from ..train.axis.criteria import OF_CLASSES
from ..train.defaults import MAX_LEAVES
from ..train.fit import Fit
from ..train.hold_out import hold_out
from ..train.rows import Rows
from .auto_size import scores_of, with_size
from .base import MachineClassifier, MachineRegressor, without_light_leaves
from .distinct_rows import distinct_rows
from .importance import feature_importances
from .learners import learn
from .parameters import (
    AUTO,
    CLASS_WEIGHT,
    NOTHING,
    SEED,
    THREADS,
    VERBOSE,
    Flag,
    Kind,
    Number,
    OneOf,
    Whole,
    check_parameters,
)
from .soft_answers import frozen_soft
from .sums import fit_sum, interval_of, refuse_interval

if TYPE_CHECKING:
    from jaxtyping import Float

    from ..progress import Verbosity

BY_FEATURE = Kind(
    (Mapping, list, tuple, np.ndarray),
    "a number for each feature, or a dictionary feature → number",
)
CONSTRAINTS: dict[str, tuple[Any, ...]] = {
    "n_trees": (Whole(1), AUTO),
    "max_leaves": (Whole(1), AUTO),
    "max_depth": (NOTHING, Whole(0)),
    "oblique": (Flag(),),
    "leaves": (OneOf(("constant", "linear")),),
    "soft": (Flag(),),
    "min_samples_leaf": (NOTHING, Whole(1)),
    "leaf_cost": (Number(0.0),),
    "feature_costs": (NOTHING, BY_FEATURE),
    "monotone": (NOTHING, BY_FEATURE),
    "time_limit": (NOTHING, Number(0.0, beyond=True)),
    "learning_rate": (
        NOTHING,
        Number(0.0, 1.0, beyond=True, below=False),
    ),
    "n_iterations": (NOTHING, Whole(0)),
    "early_stopping": (Flag(),),
    "patience": (Whole(1),),
    "validation_fraction": (NOTHING, Number(0.0, 1.0, beyond=True)),
    "warm_start": (Flag(),),
    "random_state": SEED,
    "n_threads": THREADS,
    "verbose": VERBOSE,
    "keep_best_on_interrupt": (Flag(),),
}


@dataclass(eq=False, repr=False)
class _DecisionMachine:
    """What classifier and regressor share: their parameters, the fit, and soft answers.

    The fields are the parameters: scikit-learn reads them from the signature that is made of them.
    """

    n_trees: int | str = 1
    _: KW_ONLY
    max_leaves: int | str = MAX_LEAVES
    max_depth: int | None = None
    criterion: str = "squared_error"
    oblique: bool = False
    leaves: str = "constant"
    soft: bool = False
    min_samples_leaf: int | None = None
    leaf_cost: float = 0.0
    feature_costs: Any = None
    monotone: Any = None
    learning_rate: float | None = 0.1
    n_iterations: int | None = None
    time_limit: float | None = None
    early_stopping: bool = True
    patience: int = 20
    validation_fraction: float | None = None
    warm_start: bool = False
    random_state: Any = 0
    n_threads: int | None = None
    verbose: Verbosity = False
    keep_best_on_interrupt: bool = False

    _takes_missing = True
    _takes_labels = True

    def _fit(self: Any, X: Any, y: Any, sample_weight: Any, validation: Any) -> None:
        check_parameters(self, self._constraints)
        if self.n_trees == "auto":
            fit_sum(self, X, y, sample_weight, validation)
            return
        refuse_interval(self)
        is_classes = isinstance(self, MachineClassifier)
        before = (getattr(self, "machine_", None), getattr(self, "classes_", None))
        rows = self._read(X, y, sample_weight)
        n_classes = len(self.classes_) if is_classes else None
        seed = self._seed
        held = None
        own = rows
        if validation is not None:
            held = self._read_validation(validation)
        elif self.validation_fraction is not None:
            own, held = hold_out(rows, self.validation_fraction, seed, is_classes=is_classes)
        if is_classes and before[1] is not None and not np.array_equal(before[1], self.classes_):
            self.__dict__.pop("learned_", None)
        if self.max_leaves == "auto":
            self._refuse_many()
        self._refuse_elsewhere()
        chosen, interrupted = with_size(self, own, seed, complete=self.oblique)
        found = learn(chosen, own, held, n_classes, seed)
        if self.warm_start and self.n_trees == 1 and before[0] is not None:
            found = self._better(found, rows if held is None else held)
        machine = found.machine
        is_shares = is_classes and machine.n_trees == 1 and machine.output.link == "identity"
        if is_shares and self.monotone is None:
            machine = without_light_leaves(machine, rows)
        self._keep(machine)
        self.learned_ = found if self.warm_start else None
        self.soft_ = found.soft if self.soft else None
        self.soft_machine_ = None if self.soft_ is None else frozen_soft(self.soft_, self.machine_)
        self.history_ = found.history
        self.report_ = {name: value for name, value in found.report.items() if name != "fits"}
        if interrupted:
            self.report_["interrupted"] = True
        self.feature_importances_ = feature_importances(self.machine_, rows.X, rows.w)

    def _learned(self: Any, rows: Rows, seed: int) -> Fit:
        """One tree of rows that are read; some of them are held out to choose by."""
        n_classes = len(self.classes_) if isinstance(self, MachineClassifier) else None
        return learn(self, rows, None, n_classes, seed)

    def _refuse_many(self: Any) -> None:
        """A size is chosen for a tree that people read: one, and hard."""
        for name, is_wrong in (("n_trees", self.n_trees > 1), ("soft", self.soft)):
            if is_wrong:
                raise InputError(
                    f"fitting a {type(self).__name__}",
                    f"max_leaves='auto' with {name}={getattr(self, name)}",
                    f"give max_leaves as a number, or leave {name} out",
                )

    def _refuse_elsewhere(self: Any) -> None:
        """Refuse what only the search for one straight tree knows."""
        default = "accuracy" if isinstance(self, MachineClassifier) else "squared_error"
        asked = {
            "criterion": self.criterion != default,
            "leaf_cost": self.leaf_cost > 0,
            "feature_costs": self.feature_costs is not None,
            "monotone": self.monotone is not None,
            "time_limit": self.time_limit is not None,
        }
        for name in (name for name, is_asked in asked.items() if is_asked):
            for other, is_wrong in (
                ("n_trees", self.n_trees > 1),
                ("oblique", self.oblique),
                ("soft", self.soft),
            ):
                if is_wrong:
                    raise InputError(
                        f"fitting a {type(self).__name__}",
                        f"{name}={getattr(self, name)!r} with {other}={getattr(self, other)}",
                        f"leave {name} out, or ask for one hard tree of straight tests",
                    )

    def _better(self: Any, found: Any, rows: Rows) -> Any:
        """Of the present tree and the one before it, the one that is better on the rows."""
        before = getattr(self, "learned_", None)
        if before is None or before.machine.n_features != found.machine.n_features:
            return found
        if before.machine.n_outputs != found.machine.n_outputs:
            return found
        score = scores_of(self, rows)[1]
        new, old = (
            np.average(score(machine, rows), weights=rows.w)
            for machine in (found.machine, before.machine)
        )
        return found if new >= old else before

    def _read_validation(self: Any, validation: Any) -> Rows:
        """(X, y) or (X, y, weights) as the training rows were read."""
        doing = f"fitting a {type(self).__name__}"
        if not isinstance(validation, (tuple, list)) or len(validation) not in (2, 3):
            raise InputError(
                doing,
                f"validation is a {type(validation).__name__}, not (X, y) or (X, y, weights)",
                "pass validation=(X, y)",
            )
        x = self._check_X(validation[0], reset=False, doing="reading validation rows")
        y = np.asarray(validation[1])
        if isinstance(self, MachineClassifier):
            code = np.searchsorted(self.classes_, y)
            code = np.minimum(code, len(self.classes_) - 1)
            unknown = self.classes_[code] != y
            if np.any(unknown):
                label = y.tolist()[int(np.argmax(unknown))]
                raise InputError(
                    doing,
                    f"validation has the label {label!r}, which y does not have",
                    "leave rows of unknown classes out",
                )
            y = code
        else:
            y = self._check_y(y)
        if len(y) != len(x):
            raise InputError(
                doing, f"validation has {len(x)} rows and {len(y)} targets", "pass one for each"
            )
        weight = None if len(validation) == 2 else validation[2]
        return distinct_rows(x, y, self._check_weights(weight, x, "reading validation rows"))

    def _margins(self: Any, X: Any) -> np.ndarray:
        """Margins of the soft machine where it was asked for and is there, else of the hard."""
        rows = self._rows(X)
        softs, frozen = getattr(self, "soft_", None), getattr(self, "soft_machine_", None)
        if frozen is not None or softs is None:
            answers = self.machine_ if frozen is None else frozen
            found: np.ndarray = answers.margin(rows, n_threads=self.n_threads)
            return found
        import torch

        softs = softs if isinstance(softs, list) else [softs]
        with torch.no_grad():
            x = torch.from_numpy(self.machine_.features(rows))
            blocks = [
                sum(soft.margin(block).double() for soft in softs) / len(softs)
                for block in x.split(8192)
            ]
        return torch.cat(blocks).numpy().astype(self.machine_.output.dtype)


@dataclass(eq=False, repr=False, kw_only=True)
class DecisionMachineClassifier(_DecisionMachine, MachineClassifier):
    """One small and accurate tree, or many, of tests on one feature or on all.

    One tree is searched for rather than grown: greedy trees are improved by local moves, and rows
    held out choose (`axis_tree`); with ``oblique=True`` soft trees are trained, hardened and
    finished node by node (`oblique_tree`). Many trees are boosted, each of them searched for
    (`boosted_trees`); many oblique ones are bagged (`bagged_trees`). NaN is missing, and every test
    learns where it goes. Columns of text in a table are categories: tests ask for sets of them.

    Parameters
    ----------
    n_trees
        How many trees, at most. Boosting with three or more classes fits this many for each class.
        "auto" is a weighted sum of several learners: our boosting, LightGBM, XGBoost and CatBoost
        where they are installed, stopped early and tuned end to end, and a forest of soft oblique
        trees. How much of each is taken is chosen on rows that none of them has seen: by folds, or
        held out where there are more than 20 000 rows. `report_` says what was tried and what it
        gave. Needs torch. Best with ``soft=True``.
    max_leaves, max_depth, min_samples_leaf
        Size of a tree. Oblique trees have the depth of a complete tree of at most `max_leaves`.
        ``max_leaves="auto"``, for one hard tree, is the smallest size of 1, 2, 3, 4, 6, 8, 12, 16,
        24 and 32 (and at most a tenth of the distinct rows) whose score in cross-validation is
        within one standard error of the best; see `path_`. It takes fifty short fits more.
        Equal rows count once in `min_samples_leaf`; by default it is 1 for a tree alone, and 20
        (or a twentieth of the rows) for boosted ones.
    criterion
        What a tree alone is searched for, chosen and pruned by: "accuracy"; "log_loss"; "auc", of
        several classes the mean of each against the others; "balanced", the mean of the classes'
        accuracies; or "f1", the mean of the classes' F1. With the last two the probabilities are
        those of classes made more equal in number.
    leaf_cost
        What a leaf of a tree alone must gain, in parts of the loss of a tree of one leaf.
    feature_costs
        What a row pays for being asked a feature, once on its path, in the same unit: a number
        for each feature, or a dictionary of names (or numbers) of features.
    monotone
        1 for a feature along which the probability of the second of two classes must not fall, -1
        where it must not rise, else 0; or a dictionary. It holds for all inputs, and
        ``machine_.is_monotone`` proves it.
    oblique
        Whether a test weighs all features.
    leaves
        "constant"; "linear" with ``oblique=True``, in the regressor alone.
    soft
        Whether to predict with the soft machine, `soft_` (extra `torch`): oblique trees as they
        were trained, others fine-tuned end to end by `tune`, which makes `machine_` better too.
    learning_rate, early_stopping, patience
        Of boosting: the part of each tree that counts; whether rows held out decide how many trees
        there are; after how many trees without gain it ends.
    n_iterations
        Moves of each search, or steps of an oblique tree's training: more take longer and find
        more. 0 leaves trees greedy. By default what the data ask for.
    time_limit
        Seconds. Of a tree alone the best so far is taken then; of ``n_trees="auto"`` what is not
        finished is left out. The result then depends on how fast the computer is.
    validation_fraction
        Share of the distinct rows that choose among trees and are not learned from. By default the
        learner's own rule: a fifth or a quarter that is learned from in the end, where it can be.
    warm_start
        Whether a second `fit` goes on: with the trees that are there, where `n_trees` has grown;
        with the better of the old and the new one, where it is 1.
    class_weight
        None, "balanced", or a dictionary class → weight.
    random_state
        A seed reproduces the fit. The order of the rows never matters.
    n_threads
        By default all processors.
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
        What was learned, a `DecisionMachine`: predict, explain, draw, write it.
    soft_
        The torch module behind soft answers, a list of them for bagged trees, or None.
    soft_machine_
        What soft answers are computed with: the same without torch, an `Assembly` that is saved,
        served and streamed as machines are; None for linear leaves.
    path_
        With ``max_leaves="auto"``: sizes, scores and standard errors, a `SizePath`; print it, or
        ``path_.plot()`` it.
    classes_, feature_importances_, n_features_in_, feature_names_in_
        As in scikit-learn.
    history_, report_
        The learning curve; what was tried and chosen.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from decision_machines import DecisionMachineClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> tree = DecisionMachineClassifier(max_leaves=3, n_iterations=50).fit(X, y)
    >>> tree.score(X, y) > 0.9
    True
    >>> tree.machine_.n_leaves
    3
    """

    criterion: str = "accuracy"
    class_weight: Any = None

    _constraints = CONSTRAINTS | {
        "class_weight": CLASS_WEIGHT,
        "criterion": (OneOf(OF_CLASSES),),
        "leaves": (OneOf(("constant",)),),
    }

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        validation: tuple[Any, ...] | None = None,
    ) -> Self:
        """Learn from rows X and labels y.

        Parameters
        ----------
        X
            (m, n) numbers, or a pandas, polars or Arrow table, whose text columns are categories.
        y
            A label for each row.
        sample_weight
            A weight for each row; a weight of 2 is a row given twice.
        validation
            (X, y) or (X, y, weights) to choose by, instead of rows held out.
        """
        self._fit(X, y, sample_weight, validation)
        return self

    def predict_proba(self, X: Any) -> Float[np.ndarray, "m c"]:
        """(m, classes) the probability of each class."""
        from ..run.decide import probabilities

        margins = self._margins(X)
        found = probabilities(self.machine_, margins)
        assert isinstance(found, np.ndarray), "one target"
        return np.ones((len(margins), 1)) if len(self.classes_) == 1 else found


@dataclass(eq=False, repr=False, kw_only=True)
class DecisionMachineRegressor(_DecisionMachine, MachineRegressor):
    """One small and accurate tree, or many, for numbers.

    How trees are found, parameters and attributes are those of `DecisionMachineClassifier`, but for
    `criterion`: "squared_error"; "absolute_error"; "quantile", with `quantile` the share of rows
    that should lie below the prediction; or "poisson", the deviance of counts and rates;
    ``n_trees="auto"`` knows "huber:1", "gamma" and "tweedie:1.5", too. With
    ``oblique=True`` and ``leaves="linear"`` leaves are linear functions of the features. y may have
    several columns, except with ``n_trees="auto"``.

    Parameters
    ----------
    interval
        With ``n_trees="auto"``, the share of rows that `predict_interval` should cover, such as
        0.9.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from decision_machines import DecisionMachineRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> tree = DecisionMachineRegressor(max_leaves=6, n_iterations=50).fit(X, y)
    >>> tree.score(X, y) > 0.4
    True
    """

    quantile: float = 0.5
    interval: float | None = None

    _constraints = CONSTRAINTS | {
        "criterion": (Kind((str,), "the name of a criterion"),),
        "quantile": (Number(0.0, 1.0, beyond=True),),
        "interval": (NOTHING, Number(0.0, 1.0, beyond=True)),
    }

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        validation: tuple[Any, ...] | None = None,
    ) -> Self:
        """Learn from rows X and targets y.

        Parameters
        ----------
        X
            (m, n) numbers, or a pandas, polars or Arrow table, whose text columns are categories.
        y
            (m,) a number for each row, or (m, q) for q targets.
        sample_weight
            A weight for each row; a weight of 2 is a row given twice.
        validation
            (X, y) or (X, y, weights) to choose by, instead of rows held out.
        """
        self._fit(X, y, sample_weight, validation)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The value of each row, (m,) or (m, q)."""
        check_is_fitted(self, "machine_")
        margins = self._margins(X)
        return self.machine_.decide(margins)

    def predict_interval(self, X: Any) -> Float[np.ndarray, "m 2"]:
        """(m, 2) bounds that hold the share ``interval`` of new rows, where those are alike.

        By conformal calibration: the errors on rows that were not learned from say how far below
        and above its prediction a row may lie. Half of the share that is not covered lies on each
        side; with too few rows judged a bound is infinite.
        """
        check_is_fitted(self, "machine_")
        return interval_of(self, self.predict(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self.n_trees != "auto"
        return tags
