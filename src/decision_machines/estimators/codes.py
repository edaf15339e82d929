"""Many classes from learners of two: ternary codes, of trees over the classes or of other kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)

from ..errors import InputError
from ..machine import DecisionMachine
from .class_trees import (
    class_affinity,
    clustered_tree,
    code_of,
    paired_tree,
    random_tree,
    tree_of_machine,
)
from .decoding import DECODINGS, even_loss
from .flat_codes import FLAT
from .parameters import NOTHING, SEED, Kind, OneOf, Whole, check_parameters, seed_of
from .refusals import refuse_no_rows, refused

if TYPE_CHECKING:
    from jaxtyping import Float

DOING = "fitting a TemplateCodeClassifier"


class TemplateCodeClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Many classes from any learner of two, coded by the templates of trees over the classes.

    Paper: Algorithm `ECOC`, with the tree of templates as the coding strategy; cites
    `dietterich1994solving`, `Kong95error-correctingoutput`, `allwein2001reducing`,
    `escalerasergio2010on`. Each column of the
    code asks whether a row is of the classes at -1 or of those at +1, and a clone of `estimator`
    learns to answer from the rows of those classes alone. A question that several trees ask is
    learned once.

    Parameters
    ----------
    estimator
        Any classifier of two classes, preferably with `predict_proba` or `decision_function`; by
        default logistic regression on features of unit scale.
    coding
        "confusion": trees over classes that split last what a quick learner confuses most, the
        first by clustering, the others around pairs drawn at random. "tree": the order in which
        fitted CART trees tell the classes apart. "random": random halves; best for learners that
        are strong and unsteady (trees), as "confusion" is for simple ones (linear). A
        `DecisionMachine` over the same features: the order in which its trees do. These are forests
        of class trees. Not of trees: "one_vs_all", a question for each class; "one_vs_one", one for
        each pair; "dense", random questions to all classes; "sparse", random questions to half of
        them. Or a matrix of -1, 0 and +1, with a row for each class in the order of `classes_`.
    decoding
        "loss": the least logistic loss of the learners' margins over a class's questions (for one
        tree, the most probable path); in codes that are not trees, a question that is not put to a
        class counts as a margin of 0. "logical": the paper's similarity of answers and template.
        "hamming": the least Hamming distance.
    n_trees
        Trees side by side ("confusion", "tree" and "random").
    n_columns
        Questions of "dense" (by default ⌈10 log₂ K⌉ for K classes) and "sparse" (⌈15 log₂ K⌉), at
        most as many as there are different ones.
    random_state
        For the trees over classes, and for learners that have a `random_state` of their own.
    n_jobs
        Learners fitted at once, as in scikit-learn.

    Attributes
    ----------
    code_
        (classes, columns) M.
    estimators_
        The learner of each different column, and `column_` the (learner, sign) of every column.
    classes_, n_features_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from decision_machines import TemplateCodeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TemplateCodeClassifier(n_trees=2, random_state=0).fit(X, y)
    >>> model.code_.shape, model.score(X, y) > 0.9
    ((3, 4), True)
    """

    _constraints = {
        "coding": (
            OneOf(("confusion", "tree", "random", *FLAT)),
            Kind((DecisionMachine,), "a DecisionMachine"),
            Kind((np.ndarray, list, sp.sparray, sp.spmatrix), "a ternary matrix"),
        ),
        "decoding": (OneOf(tuple(DECODINGS)),),
        "n_trees": (Whole(1),),
        "n_columns": (NOTHING, Whole(1)),
        "random_state": SEED,
        "n_jobs": (NOTHING, Kind((int, np.integer), "a whole number")),
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        coding: Any = "confusion",
        decoding: str = "loss",
        n_trees: int = 10,
        n_columns: int | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.coding = coding
        self.decoding = decoding
        self.n_trees = n_trees
        self.n_columns = n_columns
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the code and learn its columns.

        Parameters
        ----------
        X
            Whatever `estimator` takes; for the codings that look at the rows, numbers.
        y
            A label for each row.
        sample_weight
            Weights of the rows, where `estimator` takes them.
        """
        check_parameters(self, self._constraints)
        learner = self._learner()
        refuse_no_rows(X, DOING)
        X = self._readable(X, reset=True)
        y = self._labels(X, y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        w = self._weights(learner, X, len(codes), sample_weight)
        if w is not None and not np.all(w > 0):
            kept = np.flatnonzero(w > 0)
            X, codes, w = _rows(X, kept), codes[kept], w[kept]
            present, codes = np.unique(codes, return_inverse=True)
            self.classes_ = self.classes_[present]
        seed = seed_of(self.random_state)
        self.code_, self.tree_start_ = self._code(X, codes, w, np.random.default_rng(seed))
        if not self.code_.shape[1]:
            # One class: the learner still sees the data, because it says whether they can be read.
            self._numbers(X)
        self._fit_columns(learner, X, codes, w, seed)
        return self

    def _learner(self) -> Any:
        if self.estimator is None:
            from sklearn.linear_model import LogisticRegression
            from sklearn.pipeline import make_pipeline
            from sklearn.preprocessing import StandardScaler

            return make_pipeline(
                StandardScaler(), LogisticRegression(solver="newton-cholesky", tol=1e-8)
            )
        if not hasattr(self.estimator, "fit") or not is_classifier(self.estimator):
            raise InputError(
                DOING,
                f"estimator = {self.estimator!r}, which is not a classifier",
                "give a scikit-learn classifier, for example LogisticRegression()",
            )
        return self.estimator

    def _labels(self, X: Any, y: Any) -> np.ndarray:
        if y is None:
            raise InputError(DOING, "requires y to be passed, but the target y is None", "pass y")
        try:
            labels: np.ndarray = column_or_1d(y, warn=True)
            check_classification_targets(labels)
        except ValueError as error:
            found = " ".join(str(error).split()).rstrip(".")
            raise InputError(DOING, found, "give one label for each row") from error
        n_rows = _num_samples(X)
        if n_rows != len(labels):
            raise InputError(
                DOING,
                f"X has {n_rows} rows and y has {len(labels)}: inconsistent numbers of samples",
                "pass one label for each row",
            )
        return labels

    def _weights(self, learner: Any, X: Any, n: int, sample_weight: Any) -> np.ndarray | None:
        if sample_weight is None:
            return None
        last = learner.steps[-1][1] if hasattr(learner, "steps") else learner
        if not has_fit_parameter(last, "sample_weight"):
            raise InputError(
                DOING,
                f"sample_weight was given and {type(last).__name__} takes none",
                "leave the weights out, or choose a learner that takes them",
            )
        try:
            w: np.ndarray = _check_sample_weight(
                sample_weight, np.empty((n, 1)), ensure_non_negative=True
            )
        except ValueError as error:
            raise refused(DOING, error) from error
        if not np.any(w > 0):
            raise InputError(
                DOING, "all sample weights are zero", "give at least one row a weight above 0"
            )
        return w

    # ------------------------------------------------------------------ the code

    def _code(
        self, X: Any, codes: np.ndarray, w: np.ndarray | None, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """M, and where the columns of each of its trees start (None where it is not of trees)."""
        K = len(self.classes_)
        if not isinstance(self.coding, (str, DecisionMachine)):
            return _given_code(self.coding, K), None
        if K > 2 and isinstance(self.coding, str) and self.coding in FLAT:
            return FLAT[self.coding](K, self.n_columns, rng), None
        if K <= 2:
            trees = [random_tree(K, rng)]
        else:
            weight = np.ones(len(codes)) if w is None else w
            trees = self._class_trees(X, codes, weight, rng)
        # The same tree twice would only count it twice.
        blocks = list({code_of(tree, K).tobytes(): code_of(tree, K) for tree in trees}.values())
        start = np.cumsum([0, *(block.shape[1] for block in blocks)])
        return np.concatenate(blocks, axis=1), start

    def _class_trees(
        self, X: Any, codes: np.ndarray, w: np.ndarray, rng: np.random.Generator
    ) -> list[Any]:
        K = len(self.classes_)
        if isinstance(self.coding, DecisionMachine):
            machine = self.coding
            return [tree_of_machine(machine, X, codes, w, i) for i in range(machine.n_trees)]
        if self.coding == "random":
            return [random_tree(K, rng) for _ in range(self.n_trees)]
        numbers = self._numbers(X)
        if self.coding == "confusion":
            affinity = class_affinity(numbers, codes, w)
            paired = [paired_tree(affinity, rng) for _ in range(self.n_trees - 1)]
            return [clustered_tree(affinity), *paired]
        return [
            tree_of_machine(_cart(numbers, codes, w, i, rng), numbers, codes, w, 0)
            for i in range(self.n_trees)
        ]

    def _readable(self, X: Any, *, reset: bool) -> Any:
        """X as the learner gets it: left alone, but for lists and for sparse matrices, by rows."""
        doing = DOING if reset else "predicting"
        if sp.issparse(X):
            if not get_tags(self).input_tags.sparse:
                raise InputError(
                    doing,
                    "X is a sparse matrix, which the learner does not take",
                    "use X.toarray()",
                )
            X = X.tocsr()
        elif not hasattr(X, "iloc") and not hasattr(X, "columns") and not hasattr(X, "shape"):
            X = np.asarray(X)
        if isinstance(X, np.ndarray) and X.ndim != 2:
            raise InputError(
                doing,
                f"X has {X.ndim} dimension(s) where rows × features are needed. Reshape your data",
                "use X.reshape(1, -1) for one row, or X.reshape(-1, 1) for one feature",
            )
        try:
            validate_data(self, X, skip_check_array=True, reset=reset)
        except ValueError as error:
            raise refused(doing, error) from error
        return X

    def _numbers(self, X: Any) -> np.ndarray:
        """X as a dense matrix of numbers for the quick learner, gaps filled with means."""
        if sp.issparse(X):
            from sklearn.decomposition import TruncatedSVD

            size = min(50, X.shape[1] - 1)
            directions: np.ndarray = (
                TruncatedSVD(size, random_state=0).fit_transform(X) if size else X.toarray()
            )
            return directions
        try:
            numbers = validate_data(
                self,
                X,
                reset=False,
                dtype=np.float64,
                ensure_all_finite="allow-nan"
                if get_tags(self._learner()).input_tags.allow_nan
                else True,
            )
        except ValueError as error:
            raise refused(DOING, error) from error
        if np.isnan(numbers).any():
            present = ~np.isnan(numbers)
            mean = np.where(present, numbers, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
            numbers = np.where(present, numbers, mean)
        # Features of any size to unit scale: naive Bayes squares them.
        largest = np.abs(numbers).max(axis=0)
        found: np.ndarray = numbers / np.where(largest > 0, largest, 1.0)
        return found

    # ------------------------------------------------------------------ its columns

    def _fit_columns(
        self, learner: Any, X: Any, codes: np.ndarray, w: np.ndarray | None, seed: int
    ) -> None:
        """Fit a learner for each different column; one that is another turned round is the same."""
        place: dict[bytes, int] = {}
        columns: list[np.ndarray] = []
        self.column_ = []
        for column in self.code_.T:
            sign = 1 if column[np.flatnonzero(column)[0]] < 0 else -1
            known = place.setdefault((column * sign).tobytes(), len(columns))
            if known == len(columns):
                columns.append(column * sign)
            self.column_.append((known, sign))
        self.estimators_ = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_column)(learner, X, column[codes], w, seed + i)
            for i, column in enumerate(columns)
        )

    def _margins(self, X: Any) -> np.ndarray:
        """(m, columns) f: log-odds or margins of every column's learner."""
        check_is_fitted(self, "code_")
        X = self._readable(X, reset=False)
        if not self.estimators_:
            self._numbers(X)
        own = [_margin(learner, X) for learner in self.estimators_]
        found = [sign * own[which] for which, sign in self.column_]
        return np.stack(found, axis=1) if found else np.zeros((_num_samples(X), 0))

    def _scores(self, X: Any) -> np.ndarray:
        f = self._margins(X)
        if self.decoding != "loss":
            return DECODINGS[self.decoding](f, self.code_)
        if self.tree_start_ is not None:
            return DECODINGS["loss"](f, self.code_) / max(len(self.tree_start_) - 1, 1)
        # As many questions as a tree asks tell the classes apart; more of them say the same again.
        n_classes, n_columns = self.code_.shape
        scores: np.ndarray = even_loss(f, self.code_) * min(1.0, (n_classes - 1) / n_columns)
        return scores

    def decision_function(self, X: Any) -> Float[np.ndarray, "m c"]:
        """(m, classes) scores of the decoding; (m,), of the second less the first, for two."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of the best score, the first where several are best."""
        best = np.argmax(self._scores(X), axis=1)
        found: np.ndarray = self.classes_[best]
        return found

    def _has_probabilities(self) -> bool:
        return self.decoding == "loss"

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Float[np.ndarray, "m c"]:
        """(m, classes) the geometric mean of the trees' probabilities, made to sum to 1.

        In codes that are not trees, the product over the questions to the power of (classes - 1)
        over questions, where there are more. Only with ``decoding="loss"``.
        """
        scores = self._scores(X)
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        found: np.ndarray = e / e.sum(axis=1, keepdims=True)
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            inner = get_tags(self.estimator).input_tags
            tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        return tags


def _given_code(M: Any, n_classes: int) -> np.ndarray:
    M = np.asarray(M.toarray() if sp.issparse(M) else M)
    is_ternary = np.isin(M, (-1, 0, 1))
    if M.ndim != 2 or len(M) != n_classes or not np.all(is_ternary):
        raise InputError(
            DOING,
            f"coding holds {M[~is_ternary].tolist()[0]!r}"
            if M.ndim == 2 and len(M) == n_classes
            else f"coding is a matrix of shape {M.shape} for {n_classes} classes",
            f"give {n_classes} rows of -1, 0 and +1",
        )
    code: np.ndarray = M.astype(np.int8)
    one_sided = (code.max(axis=0) < 1) | (code.min(axis=0) > -1)
    if one_sided.any():
        raise InputError(
            DOING,
            f"column {int(np.argmax(one_sided))} of coding does not have both signs",
            "put classes on both sides of every question",
        )
    if len(np.unique(code, axis=0)) < n_classes:
        raise InputError(
            DOING, "two classes have the same code", "give every class a row of its own"
        )
    return code


def _cart(
    X: np.ndarray, codes: np.ndarray, w: np.ndarray, i: int, rng: np.random.Generator
) -> DecisionMachine:
    """A CART tree over the rows; those after the first look at fewer features at each test."""
    from sklearn.tree import DecisionTreeClassifier

    from ..libraries import convert
    from ..machine import single

    tree = DecisionTreeClassifier(
        max_leaf_nodes=4 * (int(codes.max()) + 1),
        max_features=None if i == 0 else "sqrt",
        random_state=int(rng.integers(2**31)),
    )
    return single(convert(tree.fit(X, codes, w)), "reading a tree")


def _rows(X: Any, which: np.ndarray) -> Any:
    from sklearn.utils import _safe_indexing

    return _safe_indexing(X, which)


def _fit_column(learner: Any, X: Any, asked: np.ndarray, w: np.ndarray | None, seed: int) -> Any:
    """A clone of the learner, fitted to the rows of the classes that the column asks for."""
    which = np.flatnonzero(asked)
    found = clone(learner)
    seeds = {name: seed for name in found.get_params() if name.split("__")[-1] == "random_state"}
    found.set_params(**seeds)
    given = {}
    if w is not None and hasattr(found, "steps"):
        for name, step in found.steps:
            if has_fit_parameter(step, "sample_weight"):
                given[f"{name}__sample_weight"] = w[which]
    elif w is not None:
        given["sample_weight"] = w[which]
    return found.fit(_rows(X, which), (asked[which] > 0).astype(int), **given)


SURE = 1e-3
"""Probabilities closer to 0 or 1 count as this close: a learner that is always sure is sometimes
wrong, and then one such answer must not outweigh all others."""


def _margin(learner: Any, X: Any) -> np.ndarray:
    """The learner's log-odds of class 1, its margin, or ±1."""
    if hasattr(learner, "predict_proba"):
        p = np.clip(learner.predict_proba(X)[:, 1], SURE, 1 - SURE)
        odds: np.ndarray = np.log(p) - np.log1p(-p)
        return odds
    if hasattr(learner, "decision_function"):
        found: np.ndarray = learner.decision_function(X)
        return found
    return np.where(learner.predict(X) > 0, 1.0, -1.0)
