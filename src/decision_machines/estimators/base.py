"""What all estimators of this room have in common: checked input, and answers by their machine."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ..errors import DecisionMachinesError, InputError
from ..run.inputs.features import is_table
from ..run.inputs.tables import with_dense_columns
from ..train.rows import Rows
from .distinct_rows import distinct_rows
from .labels import check_table, encoded, label_columns, ordered_labels
from .parameters import Number, check_parameters, seed_of
from .refusals import refuse_no_rows, refused, refused_labels, refused_weights, shortened

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from ..explain import DecisionRules
    from ..machine import DecisionMachine
    from ..show import LearningCurveDisplay


class MachineEstimator(BaseEstimator):
    """An estimator whose fitted answer is `machine_`, a `DecisionMachine`."""

    machine_: DecisionMachine
    history_: list[Any]
    feature_names_in_: np.ndarray
    _constraints: dict[str, tuple[Any, ...]] = {}
    _takes_missing = False

    _takes_labels = False
    labels_: dict[int, tuple[Any, ...]]

    def _check_X(
        self, X: Any, *, reset: bool, doing: str | None = None
    ) -> Float[np.ndarray, "m n"]:
        """X as float64, its names and width remembered (`reset`) or compared with those."""
        doing = doing or (f"fitting a {type(self).__name__}" if reset else "predicting")
        labels = getattr(self, "labels_", {})
        if issparse(X):
            raise InputError(
                doing, "X is sparse, and dense rows are needed", "pass X.toarray(), or its columns"
            )
        refuse_no_rows(X, doing)
        try:
            if is_table(X):
                X = with_dense_columns(X)
                check_table(X, doing, takes_text=self._takes_labels)
            if is_table(X) and (labels or not type(X).__module__.startswith("pandas")):
                validate_data(self, X, reset=reset, skip_check_array=True)
                return self._check_finite(encoded(X, self.feature_names_in_, labels), doing)
            if labels:
                raise InputError(
                    doing,
                    f"X is a {type(X).__name__}; the training data were a table with text columns",
                    "pass a table with the same columns",
                )
            with np.errstate(invalid="ignore"):  # sums of the largest numbers
                x = validate_data(
                    self,
                    X,
                    reset=reset,
                    dtype=np.float64,
                    ensure_all_finite="allow-nan" if self._takes_missing else True,
                )
            return _check_size(x, doing) if reset else x
        except DecisionMachinesError:
            raise
        except (TypeError, ValueError) as error:
            raise refused(doing, error) from error

    def _check_finite(self, x: np.ndarray, doing: str) -> np.ndarray:
        """Refuse infinities, and NaN where it is not taken, by name."""
        wrong = np.isinf(x) if self._takes_missing else ~np.isfinite(x)
        if wrong.any():
            row, feature = np.argwhere(wrong)[0]
            found = "infinity" if np.isinf(x[row, feature]) else "NaN"
            name = str(self.feature_names_in_[feature])
            raise refused(doing, ValueError(f"column {name!r} contains {found} in row {row}"))
        return _check_size(x, doing)

    def _check_y(self, y: Any) -> np.ndarray:
        raise NotImplementedError

    def _read_labels(self, X: Any, codes: np.ndarray, w: Any, doing: str) -> None:
        """Find the text columns of a table, and the order of their labels."""
        self.labels_ = {}
        columns = label_columns(X) if self._takes_labels else {}
        if not columns:
            return
        try:
            validate_data(self, X, reset=True, skip_check_array=True)
        except ValueError as error:
            raise refused(doing, error) from error
        if len(codes) != len(next(iter(columns.values()))):
            return  # said by the caller
        is_classes = hasattr(self, "classes_")
        Y = np.eye(len(self.classes_))[codes] if is_classes else codes.reshape(len(codes), -1)
        weight = np.ones(len(codes)) if w is None else np.asarray(w, np.float64).ravel()
        self.labels_ = ordered_labels(columns, self.feature_names_in_, Y, weight)

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        """The distinct rows to learn from; parameters, names and shapes are checked first."""
        check_parameters(self, self._constraints)
        doing = f"fitting a {type(self).__name__}"
        if y is None:
            raise InputError(doing, "requires y to be passed, but the target y is None", "pass y")
        refuse_no_rows(X, doing)
        if is_table(X):
            X = with_dense_columns(X)
            check_table(X, doing, takes_text=self._takes_labels)
            codes = self._check_y(y)
            self._read_labels(X, codes, sample_weight, doing)
            x = self._check_X(X, reset=True)
        else:
            self.labels_ = {}
            x = self._check_X(X, reset=True)
            codes = self._check_y(y)
        if len(codes) != len(x):
            raise InputError(
                doing,
                f"X has {len(x)} rows and y has {len(codes)}: inconsistent numbers of samples",
                "pass one target for each row",
            )
        w = self._check_weights(sample_weight, x, doing) * self._class_weights(y)
        if not np.any(w > 0):
            raise InputError(
                doing, "all sample weights are zero", "give at least one row a weight above 0"
            )
        return self._merge(x, codes, w)

    def _merge(self, x: np.ndarray, codes: np.ndarray, w: np.ndarray) -> Rows:
        """Equal rows as one."""
        return distinct_rows(x, codes, w)

    def _check_weights(self, weight: Any, x: np.ndarray, doing: str) -> np.ndarray:
        """A finite weight of at least 0 for each row."""
        if weight is None:
            return np.ones(len(x))
        try:
            found: np.ndarray = _check_sample_weight(
                weight, x, dtype=np.float64, ensure_non_negative=True
            )
            return found
        except (TypeError, ValueError) as error:
            raise refused_weights(doing, error) from error

    def _class_weights(self, y: Any) -> Any:
        return 1.0

    @property
    def _seed(self) -> int:
        return seed_of(self.random_state)

    def _keep(self, machine: DecisionMachine) -> None:
        """Store the machine."""
        self.machine_ = self._named(machine)

    def _named(self, machine: DecisionMachine, **changes: Any) -> DecisionMachine:
        """The machine with the names of the training data, and other changes."""
        names = getattr(self, "feature_names_in_", None)
        columns = machine.columns
        if names is not None:
            columns = replace(columns, names=tuple(names))
        return replace(machine, columns=columns, source=type(self).__name__, **changes)

    def _rows(self, X: Any) -> Float[np.ndarray, "m n"]:
        check_is_fitted(self, "machine_")
        return self._check_X(X, reset=False)

    def encoded(self, X: Any) -> Float[np.ndarray, "m n"]:
        """(m, n) the rows as numbers: labels as their codes, NaN where something is missing."""
        return self._rows(X)

    def apply(self, X: Any) -> Int[np.ndarray, "m T"]:
        """(m, n_trees) exit leaf of every tree, counted from 0 within the tree, left to right."""
        rows = self._rows(X)
        return self.machine_.apply(rows)

    def explain(self, X: Any) -> DecisionRules:
        """The path of each row through each tree, as rules that people read.

        Parameters
        ----------
        X
            Rows, as `predict` takes them.

        Returns
        -------
        DecisionRules
            A sequence; `print` it, or look at the `conditions` and `value` of each.
        """
        rows = self._rows(X)
        return self.machine_.rules(rows)

    def plot_history(
        self, ax: Any = None, *, names: Any = None, against: str = "step"
    ) -> LearningCurveDisplay:
        """Draw the learning curve (extra `plot`); see `LearningCurveDisplay`.

        Parameters
        ----------
        ax
            Matplotlib's axes to draw on; new ones by default.
        names
            Which numbers of `history_` to draw; all by default.
        against
            "step" or "seconds".
        """
        from ..show import LearningCurveDisplay

        check_is_fitted(self, "machine_")
        return LearningCurveDisplay(self.history_, names=names, against=against).plot(ax)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_missing
        return tags


LARGEST = 1e303
"""Of features, and of the sum of targets: beyond it means and distances would not be finite."""
LIGHT = 0.01
"""Leaves whose rows count less than this share of an average row know too little to decide."""


def without_light_leaves(
    machine: DecisionMachine, rows: Rows, leaf: Int[np.ndarray, "m"] | None = None
) -> DecisionMachine:
    """A tree of class shares whose leaves of next to no weight answer nearly as all rows do."""
    leaf = machine.apply(rows.X)[:, 0] if leaf is None else leaf
    weight = np.bincount(leaf, rows.w, machine.n_leaves)
    if np.all(weight >= LIGHT):
        return machine
    prior = np.bincount(rows.y, rows.w, machine.n_outputs) / rows.w.sum()
    drawn = (weight[:, None] * machine.V + LIGHT * prior) / (weight[:, None] + LIGHT)
    return replace(machine, V=np.where(weight[:, None] < LIGHT, drawn, machine.V))


def _check_size(x: np.ndarray, doing: str) -> np.ndarray:
    """Refuse features whose differences would not be finite."""
    if x.size and max(np.nanmax(x, initial=0.0), -np.nanmin(x, initial=0.0)) > LARGEST:
        raise InputError(
            doing,
            f"X reaches {np.nanmax(np.abs(x)):.2g}, and differences would be infinite",
            "divide such columns by a power of ten; other scales need no change",
        )
    return x


def _check_none_missing(y: np.ndarray, doing: str) -> None:
    """Refuse the first row without a label."""
    if y.dtype.kind == "f":
        missing = np.isnan(y)
    elif y.dtype.kind == "O":
        missing = np.array([label is None or label != label for label in y], bool)
    else:
        return
    if missing.any():
        raise InputError(
            doing,
            f"y[{int(np.argmax(missing))}] is NaN or None, which is not a label",
            "drop the rows without a label",
        )


class MachineClassifier(ClassifierMixin, MachineEstimator):
    """Labels and probabilities as the machine gives them."""

    classes_: np.ndarray

    def _check_y(self, y: Any) -> np.ndarray:
        """Codes of the labels, which are remembered as `classes_`."""
        from sklearn.utils import column_or_1d

        doing = f"fitting a {type(self).__name__}"
        if isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "biu":
            classes, codes = np.unique(y, return_inverse=True)
            if 2 * len(classes) <= len(y):  # else scikit-learn warns below
                self.classes_ = classes
                return codes
        try:
            y = column_or_1d(y, warn=True)
        except (TypeError, ValueError) as error:
            raise refused_labels(doing, error) from error
        _check_none_missing(y, doing)
        try:
            check_classification_targets(y)
        except (TypeError, ValueError) as error:
            raise refused_labels(doing, error) from error
        self.classes_, codes = np.unique(y, return_inverse=True)
        return codes

    def _class_weights(self, y: Any) -> Any:
        weight = getattr(self, "class_weight", None)
        if weight is None:
            return 1.0
        number = Number(0.0)
        given = {} if isinstance(weight, str) else dict(weight)
        for label, of_label in given.items():
            if not number.allows(of_label):
                raise InputError(
                    f"fitting a {type(self).__name__}",
                    f"class_weight = {weight!r}, where {label!r} has {of_label!r}",
                    f"give each label {number}",
                )
        try:
            return compute_sample_weight(weight, np.ravel(y))
        except ValueError as error:
            raise InputError(
                f"fitting a {type(self).__name__}",
                f"class_weight = {weight!r} ({error})",
                "give a weight for labels that occur in y, or 'balanced'",
            ) from error

    def _named(self, machine: DecisionMachine, **changes: Any) -> DecisionMachine:
        """The machine with names, its codes of classes replaced by the labels."""
        output = replace(machine.output, classes=(self.classes_,))
        return super()._named(machine, output=output, **changes)

    def predict(self, X: Any) -> np.ndarray:
        """The label of each row."""
        chosen = np.argmax(self.predict_proba(X), axis=1)
        found: np.ndarray = self.classes_[chosen]
        return found

    def predict_proba(self, X: Any) -> Float[np.ndarray, "m c"]:
        """(m, classes) the share of each class."""
        rows = self._rows(X)
        found = self.machine_.predict_proba(rows)
        assert isinstance(found, np.ndarray), "one target"
        return found


class MachineRegressor(RegressorMixin, MachineEstimator):
    """Values as the machine gives them; several targets at once where y has several columns."""

    def _check_y(self, y: Any) -> np.ndarray:
        from sklearn.utils import check_array

        doing = f"fitting a {type(self).__name__}"
        try:
            with np.errstate(invalid="ignore"):  # sums of the largest numbers
                found: np.ndarray = check_array(
                    y, ensure_2d=False, dtype=np.float64, input_name="y"
                )
        except (TypeError, ValueError) as error:
            raise InputError(
                doing, shortened(error), "give one finite number for each row"
            ) from error
        if np.abs(found).max(initial=0.0) > LARGEST / len(found):
            raise InputError(
                doing,
                f"y reaches {np.abs(found).max():.2g}, and sums of it would be infinite",
                "divide y by a power of ten, and multiply predictions by it",
            )
        if found.ndim == 2 and found.shape[1] == 1:
            import warnings

            warnings.warn(
                "A column-vector y was passed when a 1d array was expected; pass y.ravel().",
                DataConversionWarning,
                stacklevel=4,
            )
            found = found[:, 0]
        return found

    def predict(self, X: Any) -> np.ndarray:
        """The value of each row."""
        rows = self._rows(X)
        return self.machine_.predict(rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
