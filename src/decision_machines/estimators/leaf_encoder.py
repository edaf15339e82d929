"""Rows as the leaves that they reach: features for a linear model or a nearest-neighbour search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..errors import DecisionMachinesError, InputError
from ..libraries import convert
from ..machine import DecisionMachine, single
from ..run.inputs.features import is_table
from .parameters import Flag, OneOf, check_parameters
from .refusals import refuse_no_rows, refused

if TYPE_CHECKING:
    from jaxtyping import Int

RANDOM_TREES, RANDOM_DEPTH = 10, 5


class LeafEncoder(TransformerMixin, BaseEstimator):
    """A transformer from rows to the leaves that they reach in every tree.

    Parameters
    ----------
    model
        A `DecisionMachine` (of a fitted model: `dm.convert(model)`), used as it is; or an estimator
        of scikit-learn's kind, a copy of which is fitted on the same rows; or None: 10 trees of
        random tests of depth 5, which need no target.
    output
        "onehot": a column for each leaf, 1 where the row reaches it. "index": a column for each
        tree, the leaf's number, counted from 0, left to right.
    sparse_output
        Whether "onehot" gives a sparse matrix (CSR), of which only one column a tree is stored.
    n_threads
        Threads to use; by default all that the process may run on.
    random_state
        Of the random trees.

    Attributes
    ----------
    machine_ : DecisionMachine
    model_ : the fitted copy of `model`, where it is an estimator

    Examples
    --------
    >>> import decision_machines as dm
    >>> encoder = dm.LeafEncoder(dm.figure_one(), sparse_output=False).fit([[2, 1, 2, 2]])
    >>> encoder.transform([[2, 1, 2, 2]])
    array([[0., 0., 0., 0., 1., 0.]])
    >>> encoder.get_feature_names_out()[4]
    'tree0_leaf4'
    """

    machine_: DecisionMachine
    _constraints: dict[str, tuple[Any, ...]] = {
        "output": (OneOf(("onehot", "index")),),
        "sparse_output": (Flag(),),
    }

    def __init__(
        self,
        model: Any = None,
        *,
        output: str = "onehot",
        sparse_output: bool = True,
        n_threads: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.output = output
        self.sparse_output = sparse_output
        self.n_threads = n_threads
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> LeafEncoder:
        """Find the trees.

        Parameters
        ----------
        y
            For an estimator that learns from a target.
        fit_params
            Passed to the estimator, such as `sample_weight`.
        """
        check_parameters(self, self._constraints)
        doing = "fitting a LeafEncoder"
        X = self._checked(X, doing, reset=True)
        if isinstance(self.model, DecisionMachine):
            self.machine_ = self.model
            if self.machine_.n_features != self.n_features_in_:
                raise InputError(
                    doing,
                    f"X has {self.n_features_in_} features; the machine reads "
                    f"{self.machine_.n_features}",
                    "pass rows as the model's own",
                )
            return self
        if self.model is None:
            random = check_random_state(self.random_state)
            model = ExtraTreesRegressor(
                RANDOM_TREES, max_depth=RANDOM_DEPTH, max_features=1, random_state=random
            )
            y = random.uniform(size=X.shape[0])
        elif hasattr(self.model, "fit") and hasattr(self.model, "get_params"):
            model = clone(self.model)
        else:
            raise InputError(
                doing,
                f"model is a {type(self.model).__name__}",
                "give a DecisionMachine, dm.convert(model) for a fitted model, or an estimator",
            )
        self.model_ = model.fit(X, y, **fit_params)
        self.machine_ = single(convert(self.model_), doing)
        return self

    def transform(self, X: Any) -> Any:
        """(m, n_leaves) or (m, n_trees) the leaves that rows reach."""
        check_is_fitted(self, "machine_")
        X = self._checked(X, "encoding leaves", reset=False)
        leaves = self.machine_.apply(X, n_threads=self.n_threads)
        if self.output == "index":
            return leaves
        return self._one_hot(leaves)

    def _one_hot(self, leaves: Int[np.ndarray, "m T"]) -> Any:
        machine = self.machine_
        m, n_trees = leaves.shape
        starts = np.array([machine.trees.leaves(tree).start for tree in range(n_trees)])
        places = (leaves + starts).ravel() if n_trees else np.zeros(0, np.int64)
        ends = np.arange(m + 1) * n_trees
        shape = (m, len(machine.V))
        found = sp.csr_array((np.ones(len(places)), places, ends), shape=shape)
        # What other transformers give, and newer scikit-learn calls for: a matrix, not an array.
        return sp.csr_matrix(found) if self.sparse_output else found.toarray()

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """`tree0_leaf3` for each leaf, or `tree0` for each tree.

        Parameters
        ----------
        input_features
            Not used: a leaf is a matter of several features.
        """
        check_is_fitted(self, "machine_")
        trees = self.machine_.trees
        if self.output == "index":
            names = [f"tree{tree}" for tree in range(len(trees))]
        else:
            names = [
                f"tree{tree}_leaf{leaf}"
                for tree in range(len(trees))
                for leaf in range(trees.leaves(tree).stop - trees.leaves(tree).start)
            ]
        return np.asarray(names, dtype=object)

    def _checked(self, X: Any, doing: str, *, reset: bool) -> Any:
        """X with its names and width compared; a table stays one, for the machine to read."""
        refuse_no_rows(X, doing)
        try:
            if is_table(X):
                validate_data(self, X, reset=reset, skip_check_array=True)
                return X
            return validate_data(
                self,
                X,
                reset=reset,
                dtype=np.float64,
                accept_sparse="csr",
                ensure_all_finite="allow-nan",
            )
        except DecisionMachinesError:
            raise
        except (TypeError, ValueError) as error:
            raise refused(doing, error) from error

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []  # what comes out is leaves, not values of X
        return tags
