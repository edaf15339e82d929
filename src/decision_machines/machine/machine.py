"""`DecisionMachine`: a tree, or a forest, as matrices."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..errors import InputError, InvariantError
from .arrays import Part, frozen
from .columns import Columns
from .linear import LinearLeaves
from .output import Output
from .structure import Structure, check_structure
from .templates import templates
from .trees import ALL_OUTPUTS, Trees, ranges

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jaxtyping import Float, Int


@dataclass(frozen=True, eq=False, repr=False)
class DecisionMachine(Part):
    """A decision tree or forest as matrices: h = sgn(S z - t), and the leaf whose template is h.

    Paper: Eq. `result`, Eq. `tree`, Eq. `forest`. Frozen: the arrays are read-only and every
    invariant is checked on construction.

    Parameters
    ----------
    columns
        How raw features become the columns z.
    selection
        (J,) the column that each test reads, or a sparse (J, n) matrix of weights: then the
        machine is oblique. `S` shows either as a matrix.
    t
        (J,) thresholds, in the columns' dtype: a test answers -1 (left) where (S z) ≤ t.
    missing
        (J,) the answer, -1 or +1, where the selected column is NaN.
    children
        (J, 2) left and right of each test: a test ≥ 0, or ~leaf.
    V
        (L, k) leaf values, or (L, 1) where each tree feeds one output.
    trees
        Where each tree's tests and leaves start, and the output it feeds.
    output
        What becomes of the values.
    linear
        Linear functions in the leaves, where the model has them.
    source
        What the machine was read from, for people.

    Examples
    --------
    >>> import decision_machines as dm
    >>> machine = dm.figure_one()
    >>> machine
    DecisionMachine(1 tree, 6 leaves, depth 4, 4 features; the paper's Fig. 1)
    >>> machine.apply([[2, 1, 2, 2]])
    array([[4]], dtype=int32)
    """

    columns: Columns
    selection: Any
    t: Float[np.ndarray, "J"]
    missing: Int[np.ndarray, "J"]
    children: Int[np.ndarray, "J 2"]
    V: Float[np.ndarray, "L k"]
    trees: Trees
    output: Output
    linear: LinearLeaves | None = None
    source: str = ""
    structure: Structure = field(init=False)

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "children", frozen(self.children, np.int32, "children"))
        set_(self, "missing", frozen(self.missing, np.int8, "missing"))
        set_(self, "t", frozen(self.t, self.columns.dtype, "t"))
        set_(self, "V", frozen(self.V, np.asarray(self.V).dtype, "V"))
        if sp.issparse(self.selection):
            set_(self, "selection", _frozen_weights(self.selection, self.columns.dtype))
        else:
            set_(self, "selection", frozen(self.selection, np.int32, "selection"))
        self._check_shapes()
        set_(self, "structure", check_structure(self.children, self.trees))

    def _check_shapes(self) -> None:
        n_tests, n_columns = self.trees.n_tests, len(self.columns)
        if self.is_oblique:
            if self.selection.shape != (n_tests, n_columns):
                raise InvariantError(
                    "S has a row per test and a column per column",
                    f"S of shape {self.selection.shape}, {n_tests} tests, {n_columns} columns",
                    "give weights of every test for the columns that it reads",
                )
            if not np.all(np.isfinite(self.selection.data)):
                raise InvariantError(
                    "weights are finite",
                    "S has a weight that is NaN or infinite",
                    "mend the weight",
                )
        elif self.selection.shape != (n_tests,) or (
            n_tests and not (self.selection.min() >= 0 and self.selection.max() < n_columns)
        ):
            raise InvariantError(
                "every test reads one column",
                f"selection of shape {self.selection.shape} for {n_tests} tests "
                f"over {n_columns} columns",
                f"give a column from 0 to {n_columns - 1} for each test",
            )
        for name, shape in (("t", (n_tests,)), ("missing", (n_tests,)), ("children", (n_tests, 2))):
            if getattr(self, name).shape != shape:
                raise InvariantError(
                    f"{name} has an entry per test",
                    f"{name} of shape {getattr(self, name).shape} for {n_tests} tests",
                    f"give {name} the shape {shape}",
                )
        if np.any(np.isnan(self.t)):
            j = int(np.argmax(np.isnan(self.t)))
            raise InvariantError("thresholds are numbers", f"t[{j}] is NaN", "mend the threshold")
        if not np.all(np.abs(self.missing) == 1):
            j = int(np.argmax(np.abs(self.missing) != 1))
            raise InvariantError(
                "missing answers are -1 or +1",
                f"missing[{j}] = {self.missing[j]}",
                "say where NaN goes: -1 for left, +1 for right",
            )
        self._check_values()

    def _check_values(self) -> None:
        n_leaves, k = self.trees.n_leaves, len(self.output)
        if self.V.dtype not in (np.float32, np.float64):
            raise InvariantError(
                "values are floats", f"V of dtype {self.V.dtype}", "use float32 or float64"
            )
        feeds = self.trees.feeds
        is_narrow = bool(len(feeds)) and bool(np.all(feeds != ALL_OUTPUTS))
        if self.V.shape != (n_leaves, 1 if is_narrow else k):
            raise InvariantError(
                "values for every leaf",
                f"V of shape {self.V.shape} for {n_leaves} leaves and {k} outputs",
                f"give V the shape {(n_leaves, 1 if is_narrow else k)}",
            )
        if np.any(feeds < ALL_OUTPUTS) or np.any(feeds >= k):
            raise InvariantError(
                "trees feed existing outputs",
                f"trees.feeds reaches from {feeds.min()} to {feeds.max()} of {k} outputs",
                f"use 0..{k - 1}, or {ALL_OUTPUTS} for all outputs in every tree",
            )
        if not is_narrow and np.any(feeds != ALL_OUTPUTS):
            raise InvariantError(
                "trees are all narrow or all wide",
                "some trees feed one output and others all",
                "widen V to all outputs, or give each tree one output",
            )
        weights = self.output.weights
        if weights is not None and weights.shape != (self.n_trees,):
            raise InvariantError(
                "a weight for each tree",
                f"output.weights of shape {weights.shape} for {self.n_trees} trees",
                "give one weight for each tree, or none",
            )
        if self.linear is not None and (
            self.linear.intercept.shape != self.V.shape
            or (len(self.linear.feature) and self.linear.feature.max() >= self.columns.n_features)
        ):
            raise InvariantError(
                "linear leaves fit the values",
                f"intercepts of shape {self.linear.intercept.shape} beside V of {self.V.shape}",
                "give an intercept for each value and read features that exist",
            )

    # ------------------------------------------------------------------ the matrices

    @property
    def is_oblique(self) -> bool:
        """Whether tests weigh several columns."""
        return sp.issparse(self.selection)

    @property
    def S(self) -> sp.csr_array:
        """(J, n) selection matrix: one-hot rows, or the weights of an oblique machine."""
        if self.is_oblique:
            return self.selection
        n_tests = self.n_tests
        return sp.csr_array(
            (np.ones(n_tests, self.columns.dtype), self.selection, np.arange(n_tests + 1)),
            shape=(n_tests, len(self.columns)),
        )

    @property
    def B(self) -> sp.csr_array:
        """(L, J) ternary templates of all trees, block-diagonal, sparse int8; made anew each time.

        Paper: the template definition; Eq. `forest`.
        """
        return templates(self.children, self.trees, self.structure)

    def templates(self, first: int, last: int | None = None) -> sp.csr_array:
        """B of trees first..last alone (of one tree, if `last` is left out)."""
        last = first + 1 if last is None else last
        if not 0 <= first <= last <= self.n_trees:
            raise self._no_tree(f"trees {first}..{last}")
        return templates(self.children, self.trees, self.structure, first, last)

    @property
    def is_narrow(self) -> bool:
        """Whether V holds one value per leaf, for the output that its tree feeds."""
        return bool(self.n_trees) and bool(self.trees.feeds[0] != ALL_OUTPUTS)

    # ------------------------------------------------------------------ sizes

    @property
    def n_trees(self) -> int:
        return len(self.trees)

    @property
    def n_tests(self) -> int:
        return self.trees.n_tests

    @property
    def n_leaves(self) -> int:
        return self.trees.n_leaves

    @property
    def n_features(self) -> int:
        return self.columns.n_features

    @property
    def n_outputs(self) -> int:
        return len(self.output)

    @property
    def depth(self) -> int:
        """Most tests on any path."""
        return int(self.structure.leaf_depth.max(initial=0))

    @property
    def nbytes(self) -> int:
        """Bytes held by the machine's arrays."""
        selection = self.selection
        held = [self.t, self.missing, self.children, self.V, self.trees.test_start]
        held += (
            [selection.data, selection.indices, selection.indptr]
            if self.is_oblique
            else [selection]
        )
        held += [ids for ids in (self.trees.test_ids, self.trees.leaf_ids) if ids is not None]
        held += list(vars(self.structure).values())
        return sum(array.nbytes for array in held)

    def __repr__(self) -> str:
        def count(n: int, word: str) -> str:
            return f"{n:_} {word}".replace("_", " ") + ("" if n == 1 else "s")

        leaves = f"{self.n_leaves:_} {'leaf' if self.n_leaves == 1 else 'leaves'}".replace("_", " ")
        parts = [count(self.n_trees, "tree"), leaves, f"depth {self.depth}"]
        parts.append(count(self.n_features, "feature"))
        if self.n_outputs != 1:
            parts.append(count(self.n_outputs, "output"))
        if self.is_oblique:
            parts.append("oblique")
        return f"DecisionMachine({', '.join(parts)}{'; ' + self.source if self.source else ''})"

    # ------------------------------------------------------------------ parts of a machine

    def tree(self, i: int) -> DecisionMachine:
        """Tree i as a machine of its own: base scores 0, no average, no scale.

        Its margin is what the tree adds to the sum.
        """
        if not isinstance(i, (int, np.integer)) or not -self.n_trees <= i < self.n_trees:
            raise self._no_tree(f"tree {i!r}")
        return replace(self._keep(np.array([i % self.n_trees])), output=_alone(self.output))

    def mask(self, trees: Iterable[int]) -> DecisionMachine:
        """The machine without these trees, projected away as a masked head is.

        Paper: the masking by W^B after Eq. `forest`; `mask_projection` is that matrix.
        """
        masked = self._tree_numbers(trees)
        return self._keep(np.setdiff1d(np.arange(self.n_trees), masked))

    def mask_projection(self, trees: Iterable[int]) -> sp.dia_array:
        """(J, J) W^B: the projection onto the tests of all other trees.

        Paper: the masking by W^B after Eq. `forest`. NOTE[PAPER]: printed there with the wrong
        shape; it is square over the tests.
        """
        keep = ~np.isin(self.trees.of_test, self._tree_numbers(trees))
        return sp.dia_array((keep[None].astype(np.int8), [0]), shape=(self.n_tests, self.n_tests))

    def subtree(self, node: int) -> DecisionMachine:
        """The sub-machine that hangs from a node: a test ≥ 0, or ~leaf, counted over all trees.

        Paper: "the subtree is associated with the sub-matrix of the template matrix".
        """
        is_number = isinstance(node, (int, np.integer))
        if not is_number or not -self.n_leaves <= node < self.n_tests:
            raise InputError(
                f"taking the subtree at node {node!r}",
                f"tests are 0..{self.n_tests - 1} and leaves ~0..~{self.n_leaves - 1}",
                "name one of these",
            )
        found = self.structure
        if node < 0:
            tests, leaves = np.empty(0, np.int64), np.array([~node])
            tree = int(self.trees.of_leaf[~node])
        else:
            tree = int(np.searchsorted(self.trees.test_start, node, side="right")) - 1
            low = found.first_leaf[node]
            high = low + found.n_leaves[node]
            own = np.arange(self.n_tests)[self.trees.tests(tree)]
            is_below = (found.first_leaf[own] >= low) & (
                found.first_leaf[own] + found.n_leaves[own] <= high
            )
            tests, leaves = own[is_below], np.arange(low, high)
        trees = Trees(
            np.array([0, len(tests)]),
            self.trees.feeds[[tree]],
            None if self.trees.test_ids is None else self.trees.test_ids[tests],
            None if self.trees.leaf_ids is None else self.trees.leaf_ids[leaves],
        )
        return self._take(tests, leaves, trees, output=_alone(self.output))

    def _keep(self, trees: np.ndarray) -> DecisionMachine:
        return self._take(
            ranges(self.trees.test_start, trees),
            ranges(self.trees.leaf_start, trees),
            self.trees.keep(trees),
            output=self.output
            if self.output.weights is None
            else replace(self.output, weights=self.output.weights[trees]),
        )

    def _take(
        self, tests: np.ndarray, leaves: np.ndarray, trees: Trees, **changes
    ) -> DecisionMachine:
        """The machine of these tests and leaves, given in ascending order."""
        children = self.children[tests]
        is_test = children >= 0
        children = np.where(
            is_test, np.searchsorted(tests, children), ~np.searchsorted(leaves, ~children)
        )
        V = self.V[leaves]
        if not len(trees) and self.is_narrow:
            V = np.empty((0, self.n_outputs), self.V.dtype)
        return replace(
            self,
            selection=self.selection[tests],
            t=self.t[tests],
            missing=self.missing[tests],
            children=children,
            V=V,
            trees=trees,
            linear=None if self.linear is None or not len(trees) else self.linear.keep(leaves),
            **changes,
        )

    def _tree_numbers(self, trees: Iterable[int]) -> np.ndarray:
        numbers = np.asarray(trees if isinstance(trees, np.ndarray) else list(trees))
        if numbers.size and (
            numbers.dtype.kind not in "iu"
            or np.any((numbers < -self.n_trees) | (numbers >= self.n_trees))
        ):
            raise self._no_tree(f"trees {numbers.tolist()}")
        return numbers.astype(np.int64) % max(self.n_trees, 1)

    def _no_tree(self, found: str) -> InputError:
        return InputError(
            "choosing trees",
            f"{found} of {self.n_trees}",
            f"use numbers from 0 to {self.n_trees - 1}",
        )

    def equals(self, other: DecisionMachine) -> bool:
        """Whether both hold the same arrays, bit for bit (`source` is left aside)."""
        return isinstance(other, DecisionMachine) and _same(self, other)

    # ------------------------------------------------------------------ verbs done by other rooms

    def predict(self, X, *, n_threads: int | None = None, engine: str = "auto"):
        """What the source's `predict` answers for the rows of X: labels, or values.

        Parameters
        ----------
        X
            (m, n_features) NumPy array, SciPy sparse matrix, or a pandas, polars or Arrow table,
            whose columns are matched by name where the model has names.
        n_threads
            Threads to use; by default all that the process may run on.
        engine
            "auto" (the native engine wherever it can), "walk" (level by level down the tree), or
            "reference" (the paper's Eq. `tree` as dense matrix products; slow, obvious).
        """
        return _room("run").predict(self, X, n_threads=n_threads, engine=engine)

    def predict_proba(self, X, *, n_threads: int | None = None, engine: str = "auto"):
        """What the source's `predict_proba` answers: (m, classes), a list of them per target."""
        return _room("run").predict_proba(self, X, n_threads=n_threads, engine=engine)

    def margin(self, X, *, n_threads: int | None = None, engine: str = "auto"):
        """(m, k) sums of leaf values before the link, in the source's own dtype and order."""
        return _room("run").margin(self, X, n_threads=n_threads, engine=engine)

    def response(self, X, *, n_threads: int | None = None, engine: str = "auto"):
        """(m, r) margins through the link: probabilities, rates, scores, before any decision."""
        return _room("run").response(self, X, n_threads=n_threads, engine=engine)

    def features(self, X, *, dtype=None):
        """(m, n_features) X as the machine reads it: numbers, labels as codes, nothing as NaN.

        Parameters
        ----------
        dtype
            Of the result; the columns' own by default, to which every x is cast.
        """
        return _room("run").features(self, X, dtype=dtype)

    def apply(self, X, *, n_threads: int | None = None, engine: str = "auto"):
        """(m, n_trees) exit leaf of every tree, counted from 0 within the tree, left to right."""
        return _room("run").apply(self, X, n_threads=n_threads, engine=engine)

    def source_leaves(self, X, *, n_threads: int | None = None, engine: str = "auto"):
        """(m, n_trees) exit leaf of every tree, under the number that the source gives it."""
        leaf_ids = self.trees.leaf_ids
        if leaf_ids is None:
            raise InputError(
                "naming leaves as the source does",
                f"the machine ({self.source or 'of unknown source'}) has no names for its leaves",
                "use apply, which counts them from left to right",
            )
        found = self.apply(X, n_threads=n_threads, engine=engine)
        return leaf_ids[found + self.trees.leaf_start[:-1]]

    def save(self, path) -> None:
        """Write the machine to a file, which `dm.load` reads back equal in every bit.

        The file is a safetensors container with a numbered schema (`machine.schema`) in its
        header: reading it runs no code. It appears whole or not at all.

        Parameters
        ----------
        path
            By custom ends in `.dm`.
        """
        _room("write").save(self, path)

    def to_onnx(self, *, operator: str = "v3", margins: bool = False):
        """The machine as an `onnx.ModelProto` (extra `onnx`), with one input X.

        Labels and probabilities come out where the machine decides on labels, else its response.
        With one thread ONNX Runtime answers as the machine does, to the bit, where no link is
        applied and the operator has the machine's types; where not, an `InexactWarning` names
        the cause. (With several threads ONNX Runtime adds partial sums, in other bits.)

        Parameters
        ----------
        operator
            "v3": TreeEnsembleRegressor or TreeEnsembleClassifier, of ai.onnx.ml 3 and ai.onnx
            17, which answer in float32. "v5": TreeEnsemble of ai.onnx.ml 5 and ai.onnx 21,
            which answers in float64 where the machine does.
        margins
            Whether to leave link and labels out and answer with `margin`.

        Raises
        ------
        UnsupportedModelError
            Where ONNX cannot say what the machine does; it names the field, the tree, the node.
        """
        return _room("write").to_onnx(self, operator=operator, margins=margins)

    def to_xgboost(self, *, margins: bool = False):
        """The machine as an `xgboost.Booster` (extra `xgboost`), or refused; never approximated.

        A machine that decides on the labels 0, 1 … becomes an `xgboost.XGBClassifier`. Only
        machines that cast x to float32 and sum in float32 can be XGBoost's. An entry absent from
        a sparse row is missing to XGBoost, whatever `columns.absent` says.

        Parameters
        ----------
        margins
            Whether to leave link and labels out and answer with `margin`.
        """
        return _room("write").to_xgboost(self, margins=margins)

    def to_lightgbm(self, *, margins: bool = False):
        """The machine as a `lightgbm.Booster` (extra `lightgbm`), or refused; never approximated.

        It predicts `response`; a Booster knows no labels. Sums must be of float64. An entry absent
        from a sparse row is 0 to LightGBM, and integers of an array pass through float32,
        whatever `columns` says.

        Parameters
        ----------
        margins
            Whether to leave the link out and answer with `margin`.
        """
        return _room("write").to_lightgbm(self, margins=margins)

    def to_sklearn(self, *, margins: bool = False):
        """The machine as a fitted scikit-learn model (extra `sklearn`), or refused.

        One tree is a DecisionTree, an average a RandomForest, a sum a GradientBoosting (which
        takes no NaN) or a HistGradientBoosting. Never approximated.

        Parameters
        ----------
        margins
            Whether to leave link and labels out and answer with `margin`.
        """
        return _room("write").to_sklearn(self, margins=margins)

    def to_treelite(self, *, margins: bool = False):
        """The machine as a `treelite.Model` (extra `treelite`); its margins are equal to the bit.

        Give it data of `output.dtype`. A link is Treelite's own, and an `InexactWarning` says so.

        Parameters
        ----------
        margins
            Whether to leave the link out and answer with `margin`.
        """
        return _room("write").to_treelite(self, margins=margins)

    def to_shap(self, X=None) -> dict:
        """What `shap.TreeExplainer` takes: a dictionary of the trees, whose output is `margin`.

        With background rows, ``TreeExplainer(machine.to_shap(), rows)``, the values are those of
        the source model. Without, SHAP asks how many rows reached each node in training.

        Parameters
        ----------
        X
            The rows to count at each node, best those of training; needed only where SHAP is
            given no background rows.
        """
        return _room("write").to_shap(self, X)

    def soften(
        self,
        form: str | None = "soft_tree",
        *,
        query: str | None = None,
        keys: str | None = None,
        weights: str | None = None,
        tau: float = 1.0,
        alpha: float | None = None,
        slope=1.0,
        learn=("t", "slope", "V"),
        selection: str | None = None,
        gap: float | None = None,
        output: str = "response",
        dtype=None,
        mask=(),
        feature_map: str = "elu",
        n_random: int = 64,
        seed: int = 0,
    ):
        """The machine as a `torch.nn.Module` (extra `torch`); its `harden()` is a machine again.

        Every form is weights(keys(B) · query(slope (S z - t) / τ)) · V, normalised within each
        tree. What each form has in common with the tree is written in
        `decision_machines.relax.forms`: *Exact: yes*, *in the limit* (as τ → 0) or *no*.

        Parameters
        ----------
        form
            "soft_tree", "straight_through", "logical", "delta", "relu", "softmax", "sparsemax",
            "entmax15", "entmax", "positive_part", "linear" or "multi_head"; or None, where the
            three axes are given.
        query, keys, weights
            Another choice on an axis of the form. Queries: "affine", "sign", "tanh", "relu",
            "log_sigmoid". Keys: "templates" (B), "normalised" (B over each leaf's depth). Weights:
            "argmax", "delta", "softmax", "sparsemax", "entmax15", "entmax", "positive_part",
            "exp", "kernel", "straight_through".
        tau
            Temperature above 0: the smaller, the sharper. `net.tau` sets it anew.
        alpha
            Of "entmax" (1 < α ≤ 2) and "positive_part" (0 < α ≤ 1).
        slope
            How steep each test is: a positive number, or one for each test.
        learn
            The parts to train, of "S", "t", "slope", "keys", "V", "tau" (and "W_Q", "W_K",
            "W_V", "W_O" in "multi_head"). The others are there, frozen.
        selection
            How S is kept: "fixed"; "sparse" (1.5-entmax over columns); "hard" (one column,
            gradients as if sparse); "oblique" (any weights).
        gap
            How far a column's logit starts above the others ("sparse" and "hard").
        output
            "response", through the machine's own link, or "margin".
        dtype
            Of the parameters. By default the one in which the machine is reproduced exactly.
        mask
            Trees (heads) to leave out.
        feature_map, n_random, seed
            Of "linear": "elu", "relu", "exp", or "random" with so many features and this seed.

        Examples
        --------
        >>> import decision_machines as dm, torch
        >>> net = dm.figure_one().soften("soft_tree", tau=0.1)
        >>> x = torch.tensor([[2.0, 1.0, 2.0, 2.0]])
        >>> round(net(x).item(), 3)
        5.0
        >>> net.harden().predict(x.numpy())
        array([5.])
        """
        return _room("relax").soften(
            self,
            form,
            query=query,
            keys=keys,
            weights=weights,
            tau=tau,
            alpha=alpha,
            slope=slope,
            learn=learn,
            selection=selection,
            gap=gap,
            output=output,
            dtype=dtype,
            mask=mask,
            feature_map=feature_map,
            n_random=n_random,
            seed=seed,
        )

    # ------------------------------------------------------------------ pictures

    def decide(self, margins):
        """What `predict` answers where the margins are these, (m, k): link, then decision.

        Examples
        --------
        >>> import decision_machines as dm
        >>> dm.figure_one().decide([[5.0]])
        array([5.])
        """
        return _room("run").decide(self, self._margins(margins))

    def _margins(self, margins) -> np.ndarray:
        margins = np.asarray(margins, self.output.dtype)
        if margins.ndim != 2 or margins.shape[1] != self.n_outputs:
            raise InputError(
                "reading margins",
                f"margins of shape {margins.shape}; the machine has {self.n_outputs} outputs",
                f"give rows of {self.n_outputs} margins",
            )
        return margins

    def respond(self, margins):
        """What `response` answers where the margins are these, (m, k): the link alone."""
        return _room("run").respond(self, self._margins(margins))

    def rules(self, X=None, *, trees=None):
        """Decision paths as rules that people read: tests merged to intervals and sets.

        Parameters
        ----------
        X
            Rows: then the path of each row through the trees. By default every leaf's path.
        trees
            A tree's number, or several; all by default.

        Returns
        -------
        DecisionRules
            A sequence of rules, each with its `conditions`, `value` and `text`, made as they are
            looked at. Printed by `print` and by rich.

        Examples
        --------
        >>> import decision_machines as dm
        >>> print(dm.figure_one().rules([[2, 1, 2, 2]]))
        row 0, tree 0:
          if (x[1] > 1 or missing) and x[3] ≤ 3 then 5
        """
        return _room("explain").rules(self, X, trees=trees)

    def boxes(self, trees=None):
        """The box of every leaf: for each column that its path tests, lower < z ≤ upper, or NaN.

        Exact: a row lies in the boxes of its exit leaves and in no others. Sparse, so that big
        forests fit; leaves whose tests contradict each other are marked not `reachable`.

        Parameters
        ----------
        trees
            A tree's number, or several; all by default.

        Examples
        --------
        >>> import decision_machines as dm
        >>> found = dm.figure_one().boxes()
        >>> found[1]  # leaf v2: column → (lower, upper, whether NaN passes)
        {0: (-inf, 1.0, False), 1: (2.0, 4.0, False), 3: (-inf, 5.0, False)}
        >>> found.contains([[2, 1, 2, 2]]).tolist()
        [[False, False, False, False, True, False]]
        """
        return _room("explain").boxes(self, trees)

    def counterfactual(
        self,
        x,
        target=None,
        *,
        metric: str = "linf",
        fixed=(),
        ranges=None,
        integers=(),
        scale=None,
        missing_distance: float = np.inf,
        budget: int = 4000,
    ):
        """The nearest input with another answer, confirmed by `predict`.

        One tree: exact, over all inputs that the columns' dtype can hold. Forests: an input
        found, and a certified lower bound on the distance of any; `exact` says whether they meet.

        Parameters
        ----------
        x
            One input: a vector, or one row of what `predict` takes.
        target
            None for any other answer, a label, or (low, high) for a machine that predicts values.
        metric
            "linf": the largest change of a feature. "count": the fewest features changed, and
            among those the smallest largest change.
        fixed
            Features, by name or number, that must keep their values.
        ranges
            Feature → (low, high) for values that it may change to.
        integers
            Features that may change to whole numbers only.
        scale
            What counts as 1 in each feature: one number, one each, or feature → number. A change
            of a categorical feature counts 1 over its scale, whatever the categories.
        missing_distance
            What it counts when a number becomes missing or the reverse; by default never done.
        budget
            How many boxes of inputs the search in a forest may look at, about.

        Examples
        --------
        >>> import decision_machines as dm
        >>> print(dm.figure_one().counterfactual([2, 1, 2, 2]))
        5.0 → 1.0 if
          x[1]: 2 → 1
        distance 1, 1 feature changed, proven nearest
        """
        return _room("explain").counterfactual(
            self,
            x,
            target,
            metric=metric,
            fixed=fixed,
            ranges=ranges,
            integers=integers,
            scale=scale,
            missing_distance=missing_distance,
            budget=budget,
        )

    def code_margin(self, x, target=None):
        """How many tests must answer otherwise to change the answer: the code's protection.

        A leaf's template is a code word and h the word received. `flips` counts in code space;
        for one tree `reachable` and `whole` count among codes that some input has.

        Parameters
        ----------
        x
            One input: a vector, or one row of what `predict` takes.
        target
            None for any other answer, a label, or (low, high) for values.

        Examples
        --------
        >>> import decision_machines as dm
        >>> print(dm.figure_one().code_margin([0, 1, 2, 2], (2.5, 4.5)))
        1.0: 1 test must flip; 1 on the way of an input, 2 in all its code
        """
        return _room("explain").code_margin(self, x, target)

    def bounds(self, lower=None, upper=None, *, missing=(), budget: int = 2000):
        """Certified least and greatest margins over all inputs with lower ≤ x ≤ upper.

        Exact for one tree; for forests tightened by parting the box, and `exact` says whether
        inputs were found that attain them. In the machine's own arithmetic, to the bit.

        Parameters
        ----------
        lower, upper
            A number for each feature, or feature → number; features left out are free. NaN in
            both: the feature is missing.
        missing
            Features that may be missing besides, or True for all.
        budget
            How many parts of the box may be looked at.

        Examples
        --------
        >>> import decision_machines as dm
        >>> dm.figure_one().bounds({"x[1]": 0}, {"x[1]": 1, "x[2]": 3})
        OutputBounds([1, 3], exact)
        """
        return _room("explain").bounds(self, lower, upper, missing=missing, budget=budget)

    def is_monotone(
        self,
        feature,
        direction: str = "increasing",
        *,
        output: int | None = None,
        budget: int = 200_000,
    ):
        """Whether a margin never falls ("decreasing": never rises) as one feature grows.

        Truthy where proven; else `verdict` is "refuted", with a pair of inputs `X` that the
        machine itself answers so, or "unknown" where the budget was spent.

        Parameters
        ----------
        feature
            Its name or number.
        output
            Which margin, where there are several.
        budget
            How many pairs of leaves may be looked at.

        Examples
        --------
        >>> import decision_machines as dm
        >>> dm.figure_one().is_monotone("x[3]")
        Monotonicity(proven: increasing in feature 2)
        >>> dm.figure_one().is_monotone("x[3]", "decreasing")
        Monotonicity(refuted: decreasing in feature 2; 3 → 6 takes the margin from 5 to 6)
        """
        return _room("explain").is_monotone(self, feature, direction, output=output, budget=budget)

    def simplify(self) -> DecisionMachine:
        """The machine with less in it; every prediction stays the same, bit for bit.

        Tests answered by the path above them go, and with them leaves that no input reaches; a
        test with equal subtrees on both sides goes; columns that nothing reads go.

        Examples
        --------
        >>> import decision_machines as dm
        >>> from dataclasses import replace
        >>> machine = dm.figure_one()
        >>> replace(machine, V=machine.V.clip(4)).simplify()
        DecisionMachine(1 tree, 3 leaves, depth 2, 4 features; the paper's Fig. 1)
        """
        return _room("explain").simplify(self)

    def fingerprint(self) -> str:
        """A hash of all that decides answers, the same in every process and on every machine.

        Equal for machines that differ only in how tests and columns are numbered, in columns
        that no test reads, in feature names, in `source` and in the source's own numbers of
        nodes. SHA-256 over the columns read, thresholds, missing answers, children, values and
        output, tests in preorder; "dm1:" names this order.

        Examples
        --------
        >>> import decision_machines as dm
        >>> dm.figure_one().fingerprint()[:12]
        'dm1:7751007b'
        """
        return _room("explain").fingerprint(self)

    def partial_dependence(
        self,
        X,
        features,
        *,
        grid=None,
        n_grid: int = 100,
        percentiles: tuple[float, float] = (0.05, 0.95),
        output: str = "response",
        individual: bool = False,
        sample_weight=None,
        n_threads: int | None = None,
    ):
        """The mean answer over the rows of X with one or two features set to values of a grid.

        As scikit-learn's `partial_dependence(method="brute")`, up to the order of sums, by delta
        scoring: only trees that test the features are redone, once for each code that the grid
        has in them.

        Parameters
        ----------
        X
            Rows, as `predict` takes them.
        features
            One feature or two, by name or number.
        grid
            Values of the feature (of each of two). By default the distinct values, or `n_grid`
            equal steps between two `percentiles`.
        output
            "response" or "margin".
        individual
            Whether to keep every row's own curve too.
        sample_weight
            (m,) weights of the rows in the mean.

        Returns
        -------
        PartialDependence
            `grid`, `average` of shape (answers, grid, ...) and `individual`.

        Examples
        --------
        >>> import decision_machines as dm
        >>> found = dm.figure_one().partial_dependence([[2, 1, 2, 2], [0, 1, 2, 2]], 2, grid=[1, 9])
        >>> found.average.tolist()
        [[3.0, 3.5]]
        """
        return _room("explain").partial_dependence(
            self,
            X,
            features,
            grid=grid,
            n_grid=n_grid,
            percentiles=percentiles,
            output=output,
            individual=individual,
            sample_weight=sample_weight,
            n_threads=n_threads,
        )

    def ice(
        self,
        X,
        feature,
        *,
        grid=None,
        n_grid: int = 100,
        percentiles: tuple[float, float] = (0.05, 0.95),
        output: str = "response",
        n_threads: int | None = None,
    ):
        """Each row's own curve as one feature moves (individual conditional expectation).

        As `partial_dependence` with `individual=True`: curves are (answers, m, grid).

        Examples
        --------
        >>> import decision_machines as dm
        >>> dm.figure_one().ice([[2, 1, 2, 2], [0, 1, 2, 2]], "x[3]", grid=[1, 9]).individual
        array([[[5., 6.],
                [1., 1.]]])
        """
        return _room("explain").ice(
            self,
            X,
            feature,
            grid=grid,
            n_grid=n_grid,
            percentiles=percentiles,
            output=output,
            n_threads=n_threads,
        )

    def importance(
        self,
        X=None,
        y=None,
        *,
        n_repeats: int = 5,
        seed: int = 0,
        metric=None,
        n_threads: int | None = None,
    ):
        """How often each feature is tested and, with X and y, what shuffling it costs.

        Parameters
        ----------
        X, y
            Rows and their true answers.
        n_repeats, seed
            Of the shuffles, which are those of scikit-learn's `permutation_importance`.
        metric
            metric(y, predictions), the larger the better; by default accuracy for labels and R²
            for values.

        Examples
        --------
        >>> import decision_machines as dm
        >>> dm.figure_one().importance().splits.tolist()
        [1, 2, 1, 1]
        """
        return _room("explain").importance(
            self, X, y, n_repeats=n_repeats, seed=seed, metric=metric, n_threads=n_threads
        )

    def proximity(self, X, Y=None, *, by: str = "leaf", n_threads: int | None = None):
        """(m, n) how alike rows are to the machine, as a sparse matrix; 1 for a row and itself.

        Paper: the kernel estimate of a leaf's value. A product of one-hot matrices of leaves.

        Parameters
        ----------
        Y
            Rows to compare with; X itself by default.
        by
            "leaf": the share of trees in which both rows reach one leaf. "code": in which *all*
            tests answer both alike, as the paper's δ(‖h, hᵢ‖_B) asks. "value": as "leaf", leaves
            weighed by the size of their values (for boosted trees, whose first trees say most).

        Examples
        --------
        >>> import decision_machines as dm
        >>> rows = [[2, 1, 2, 2], [2, 9, 2, 2], [0, 1, 2, 2]]
        >>> dm.figure_one().proximity(rows).toarray()[0]
        array([1., 1., 0.])
        >>> dm.figure_one().proximity(rows, by="code").toarray()[0]
        array([1., 0., 0.])
        """
        return _room("explain").proximity(self, X, Y, by=by, n_threads=n_threads)

    def nearest(
        self,
        X,
        X_train,
        y_train=None,
        *,
        counts=None,
        by: str = "auto",
        n_threads: int | None = None,
    ):
        """The training rows behind each prediction, with weights.

        A forest that averages leaves, whose values are means of the training rows in them, is a
        weighted mean of training answers: these are the weights. With `y_train`, `residual` says
        what they leave unexplained and `reproduces` whether that is rounding alone.

        Parameters
        ----------
        X, X_train, y_train
            Rows to explain; rows and answers of training.
        counts
            (training rows, trees) how often each tree was given each row, where it was trained on
            a bootstrap sample. By default once.
        by
            "mean": the rows of a leaf share it equally. "value": leaves weigh by the size of their
            values; a similarity, for boosted trees, which are no mean of training answers.
            "auto": by what the machine is.

        Examples
        --------
        >>> import decision_machines as dm
        >>> rows, answers = [[2, 1, 2, 2], [2, 9, 2, 2], [0, 1, 2, 2]], [5, 5, 1]
        >>> found = dm.figure_one().nearest([[3, 3, 3, 3]], rows, answers)
        >>> found
        Neighbours(1 row, 3 training rows, weights by mean, reproduces the margins)
        >>> found.top(0)
        (array([0, 1]...), array([0.5, 0.5]))
        """
        return _room("explain").nearest(
            self, X, X_train, y_train, counts=counts, by=by, n_threads=n_threads
        )

    def polynomial(self, *, max_products: int = 1_000_000):
        """The machine as a sum of products of step functions, equal products merged.

        Paper: the remarks on MARS and MonoForest. Exact: its `margin` is the machine's, within
        the rounding of a sum in another order.

        Parameters
        ----------
        max_products
            Refuse machines with more products before merging: a leaf has up to
            2^(features left of a test) of them.

        Examples
        --------
        >>> import decision_machines as dm
        >>> print(dm.figure_one().subtree(2).polynomial())
        Polynomial(2 monomials of 1 steps, degree 1; from 2 leaves of 1 tree)
          5
          1 · [x[3] > 3 or missing]
        """
        return _room("explain").polynomial(self, max_products=max_products)

    def plot_tree(self, ax=None, *, tree: int | None = None, x=None, X=None):
        """Draw a tree (extra `plot`): the path of a row `x` lit, branches as thick as rows `X` go.

        Returns a display, as do all pictures: `ax_` and `figure_` are matplotlib's.
        """
        return _room("show").plot_tree(self, ax, tree=tree, x=x, X=X)

    def explore(
        self,
        path,
        X=None,
        y=None,
        *,
        open: bool = False,
        title: str | None = None,
        max_rows: int = 1000,
    ):
        """Write one HTML page in which the machine can be explored; returns its path.

        The page needs no server and no network. It draws each tree beside its S, t, B and V,
        computes in the machine's own arithmetic while x is moved, and shows what would change the
        answer.

        Parameters
        ----------
        path
            The file to write.
        X, y
            Rows to choose from, and what is known of them; of more than `max_rows`, as many are
            kept, evenly spread, and the page says so.
        open
            Whether to show the page in the browser.
        title
            The heading; by default what the machine was read from.
        """
        return _room("show").explore(self, path, X, y, open=open, title=title, max_rows=max_rows)

    def plot_templates(self, ax=None, *, trees=None):
        """Draw the template matrix B (extra `plot`)."""
        return _room("show").plot_templates(self, ax, trees=trees)

    def plot_attention(
        self, X, ax=None, *, tau: float | None = None, form="soft_tree", tree: int | None = None
    ):
        """Draw the weights of rows X over the leaves: the tree's own, or soft ones at τ."""
        return _room("show").plot_attention(self, X, ax, tau=tau, form=form, tree=tree)

    def plot_boundary(self, X, ax=None, *, features=(0, 1), y=None, at=None, resolution: int = 200):
        """Draw the answers over two features, the others held at the row `at` or at medians."""
        return _room("show").plot_boundary(
            self, X, ax, features=features, y=y, at=at, resolution=resolution
        )

    def _repr_html_(self) -> str:
        return _room("show").repr_html(self)


@functools.cache
def _room(name: str):
    """The room that does a verb, looked up when the verb is used: this room imports no other."""
    return importlib.import_module(f"decision_machines.{name}")


def _frozen_weights(S, dtype) -> sp.csr_array:
    S = sp.csr_array(S).copy()
    S.sum_duplicates()
    S.data = frozen(S.data, dtype, "S")
    for array in (S.indices, S.indptr):
        array.flags.writeable = False
    return S


def _alone(output: Output) -> Output:
    """The output of one tree of a machine: nothing added to it, averaged or scaled."""
    return replace(
        output,
        base=np.zeros_like(output.base),
        divisor=1.0,
        scale=1.0,
        aggregate="sum",
        weights=None,
    )


def _same(a: Any, b: Any) -> bool:
    """Equality of two values of a machine, arrays compared by dtype, shape and bits."""
    if a is None or b is None:
        return a is b
    if isinstance(a, np.ndarray):
        same = isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape
        return same and (a.tobytes() == b.tobytes() if a.dtype != object else list(a) == list(b))
    if sp.issparse(a):
        return sp.issparse(b) and all(
            _same(getattr(a, name), getattr(b, name)) for name in ("data", "indices", "indptr")
        )
    if is_dataclass(a):
        return type(a) is type(b) and all(
            _same(getattr(a, f.name), getattr(b, f.name))
            for f in fields(a)
            if f.name not in ("source", "structure")
        )
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, Mapping):
        return isinstance(b, Mapping) and a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b)
    return bool(a == b)
