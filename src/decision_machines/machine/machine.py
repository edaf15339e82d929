"""`DecisionMachine`: a tree, or a forest, as matrices."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..errors import InputError, InvariantError
from .arrays import Part, frozen
from .columns import Columns
from .cover import Cover, check_cover
from .equality import same
from .linear import LinearLeaves
from .output import Output
from .structure import Structure, check_structure
from .templates import templates
from .trees import ALL_OUTPUTS, Trees, ranges
from .verbs import ExplainVerbs, RelaxVerbs, RunVerbs, ShapleyVerbs, ShowVerbs, WriteVerbs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jaxtyping import Float, Int


@dataclass(frozen=True, eq=False, repr=False)
class DecisionMachine(
    RunVerbs, RelaxVerbs, ExplainVerbs, ShapleyVerbs, WriteVerbs, ShowVerbs, Part
):
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
        (J,) thresholds, in the columns' dtype: a test gives -1 (left) where
        (S z) ≤ t, else +1 (right).
    missing
        (J,) what a test gives, -1 or +1, where the selected column is NaN.
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
    cover
        The training weight that reached each test and leaf, where the source stored it.

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
    cover: Cover | None = None
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
                    "replace the weight by a number",
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
            raise InvariantError(
                "thresholds are numbers", f"t[{j}] is NaN", "replace the threshold by a number"
            )
        if not np.all(np.abs(self.missing) == 1):
            j = int(np.argmax(np.abs(self.missing) != 1))
            raise InvariantError(
                "missing answers are -1 or +1",
                f"missing[{j}] = {self.missing[j]}",
                "say where NaN goes: -1 for left, +1 for right",
            )
        check_cover(self.cover, self.trees)
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
        return bool(sp.issparse(self.selection))

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
        """(L, J) ternary templates of all trees, block-diagonal, sparse int8; made again each time.

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
        held += [] if self.cover is None else [self.cover.tests, self.cover.leaves]
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

        Its margin is what the tree adds to the sum. A negative i counts from the last tree.
        """
        if not isinstance(i, (int, np.integer)) or not -self.n_trees <= i < self.n_trees:
            raise self._no_tree(f"tree {i!r}")
        return replace(self._keep(np.array([i % self.n_trees])), output=_alone(self.output))

    def mask(self, trees: Iterable[int]) -> DecisionMachine:
        """The machine without these trees, projected away as a masked head is.

        Paper: the masking by W^B after Eq. `forest`; `mask_projection` is that matrix.
        """
        if trees is None:
            raise self._no_tree("trees None")
        masked = self.trees.choose(trees)
        return self._keep(np.setdiff1d(np.arange(self.n_trees), masked))

    def mask_projection(self, trees: Iterable[int]) -> sp.dia_array:
        """(J, J) W^B: the projection onto the tests of all other trees.

        Paper: the masking by W^B after Eq. `forest`. NOTE[PAPER]: printed there with the wrong
        shape; it is square over the tests.
        """
        keep = ~np.isin(self.trees.of_test, self.trees.choose(trees))
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
        self, tests: np.ndarray, leaves: np.ndarray, trees: Trees, **changes: Any
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
            cover=None if self.cover is None else self.cover.keep(tests, leaves),
            **changes,
        )

    def _no_tree(self, found: str) -> InputError:
        return InputError(
            "choosing trees",
            f"{found} of {self.n_trees}",
            f"use numbers from 0 to {self.n_trees - 1}",
        )

    def equals(self, other: DecisionMachine) -> bool:
        """Whether both hold the same arrays, bit for bit (`source` is left aside)."""
        return isinstance(other, DecisionMachine) and same(self, other)


def _frozen_weights(weights: Any, dtype: np.dtype[Any]) -> sp.csr_array:
    S = sp.csr_array(weights).copy()
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
