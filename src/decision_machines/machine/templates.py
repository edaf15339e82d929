"""Trees as template matrices B, and the tree recovered from B alone.

Paper: the template definition and Fig. 1; the remark after Theorem `rank` that B determines
the hierarchy.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import scipy.sparse as sp

from .. import _native
from ..errors import NotATreeError

if TYPE_CHECKING:
    from jaxtyping import Int

    from .structure import Structure
    from .trees import Trees


def templates(
    children: Int[np.ndarray, "J 2"],
    trees: Trees,
    structure: Structure,
    first: int = 0,
    last: int | None = None,
) -> sp.csr_array:
    """The ternary template matrix B of trees first..last, block-diagonal, as sparse int8.

    Row i holds what leaf i asks of each test: -1 where it stands to the left, +1 to the right,
    0 where the test is not on its path.
    """
    last = len(trees) if last is None else last
    leaves = slice(*trees.leaf_start[[first, last]])
    n_rows = leaves.stop - leaves.start
    n_tests = int(trees.test_start[last] - trees.test_start[first])
    indptr = np.zeros(n_rows + 1, np.int64)
    np.cumsum(structure.leaf_depth[leaves], out=indptr[1:])
    indices = np.empty(indptr[-1], np.int32)
    data = np.empty(indptr[-1], np.int8)
    _native.templates(children, trees.test_start, first, last, indptr, indices, data)
    if indptr[-1] < 2**31:
        indptr = indptr.astype(np.int32)
    B = sp.csr_array((data, indices, indptr), shape=(n_rows, n_tests))
    B.has_sorted_indices = True
    B.has_canonical_format = True
    return B


def template_product(
    children: Int[np.ndarray, "J 2"], h: Int[np.ndarray, "m J"]
) -> Int[np.ndarray, "m J+1"]:
    """B h of one tree without forming B: a sum along each path, in 32-bit integers.

    Parameters
    ----------
    children
        Of one tree, numbered from 0.
    h
        Test results, -1 or +1.
    """
    h = np.ascontiguousarray(h, np.int8)
    p = np.empty((h.shape[0], h.shape[1] + 1), np.int32)
    _native.template_product(np.ascontiguousarray(children, np.int32), h, p)
    return p


def tree_of_templates(
    B: Int[Any, "L J"],
) -> tuple[Int[np.ndarray, "J 2"], Int[np.ndarray, "J"]]:
    """The one tree whose templates are the rows of B.

    Parameters
    ----------
    B
        (L, L - 1) ternary matrix, dense or sparse, rows in the order of the leaves.

    Returns
    -------
    children
        (J, 2), tests numbered parents first.
    order
        The column of B that is each test: B[:, order] are the templates of `children`.
        Already 0, 1, 2, ... where B's columns stand parents first.

    Raises
    ------
    NotATreeError
        With the reason, where no tree has these templates.

    Examples
    --------
    >>> children, order = tree_of_templates([[-1, -1], [-1, 1], [1, 0]])
    >>> children.tolist()
    [[1, -3], [-1, -2]]
    """
    rows, columns, signs, (n_leaves, n_tests) = _ternary(B)
    if n_leaves != n_tests + 1:
        _refuse(
            f"{n_leaves} rows for {n_tests} columns",
            "a tree has one leaf (row) more than it has tests (columns)",
        )
    if n_tests == 0:
        return np.empty((0, 2), np.int32), np.empty(0, np.int64)
    _check_distinct(rows, columns, signs, n_leaves, n_tests)
    low, middle, high = _spans(rows, columns, signs, n_tests)
    order = _parents_first(low, high)
    low, middle, high = low[order], middle[order], high[order]
    test_of: dict[tuple[int, int], int] = {}
    for j, span in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        if span in test_of:
            _refuse(
                f"columns {order[test_of[span]]} and {order[j]} cover the same leaves "
                f"{span[0]}..{span[1] - 1}",
                "two tests of a tree never have the same leaves below them",
            )
        test_of[span] = j
    if (0, n_leaves) not in test_of:
        _refuse("no root: no column is without a 0", "the root's test is asked by every leaf")

    def child(span: tuple[int, int], column: int) -> int:
        if span[1] - span[0] == 1:
            return ~span[0]
        if span not in test_of:
            _refuse(
                f"no column splits the leaves {span[0]}..{span[1] - 1} below column {column}",
                "every group of two or more leaves needs a test of its own",
            )
        return test_of[span]

    children = np.array(
        [
            (child((a, b), int(c)), child((b, d), int(c)))
            for a, b, d, c in zip(low.tolist(), middle.tolist(), high.tolist(), order, strict=True)
        ],
        dtype=np.int32,
    )
    return children, order


def _refuse(found: str, remedy: str) -> NoReturn:
    raise NotATreeError("recovering a tree from its template matrix", found, remedy)


def _ternary(B: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, int]]:
    """Row, column and sign of every entry of B, by column."""
    if not sp.issparse(B):
        try:
            B = np.asarray(B)
            numeric = B.dtype.kind in "biuf"
        except ValueError:
            numeric = False
        if not numeric or B.ndim != 2:
            _refuse("not a matrix of numbers", "pass a two-dimensional matrix of -1, 0 and +1")
    B = sp.coo_array(B)
    B.sum_duplicates()
    keep = B.data != 0
    rows, columns, signs = B.row[keep], B.col[keep], B.data[keep]
    if not np.all(np.abs(signs.astype(np.float64)) == 1):
        bad = signs[np.abs(signs.astype(np.float64)) != 1][0]
        _refuse(f"the entry {bad}", "templates hold -1, 0 and +1 only")
    by_column = np.lexsort((rows, columns))
    return rows[by_column], columns[by_column], signs[by_column].astype(np.int8), B.shape


def _spans(
    rows: np.ndarray, columns: np.ndarray, signs: np.ndarray, n_tests: int
) -> tuple[Int[np.ndarray, "J"], Int[np.ndarray, "J"], Int[np.ndarray, "J"]]:
    """The leaves [low, middle) left and [middle, high) right of every column's test."""
    counts = np.bincount(columns, minlength=n_tests)
    n_left = np.bincount(columns[signs < 0], minlength=n_tests)
    one_sided = (n_left == 0) | (n_left == counts)
    if np.any(one_sided):
        j = int(np.argmax(one_sided))
        _refuse(
            f"column {j} does not have both signs",
            "every test has a leaf to its left (-1) and one to its right (+1)",
        )
    end = np.cumsum(counts)
    start = end - counts
    low, high = rows[start], rows[end - 1] + 1
    middle = low + n_left
    left_first = signs == np.where(np.arange(len(rows)) < (start + n_left)[columns], -1, 1)
    broken = (high - low != counts) | (np.bincount(columns[~left_first], minlength=n_tests) > 0)
    if np.any(broken):
        _refuse(
            f"leaves out of order: column {np.argmax(broken)} is not a run of -1 and then of +1",
            "order the rows as the leaves stand from left to right; if no order helps, "
            "it is not a tree",
        )
    return low, middle, high


def _check_distinct(
    rows: np.ndarray, columns: np.ndarray, signs: np.ndarray, n_leaves: int, n_tests: int
) -> None:
    B = sp.csr_array((signs, (rows, columns)), shape=(n_leaves, n_tests))
    B.sort_indices()
    seen: dict[bytes, int] = {}
    for i, (a, b) in enumerate(itertools.pairwise(B.indptr)):
        other = seen.setdefault(B.indices[a:b].tobytes() + B.data[a:b].tobytes(), i)
        if other != i:
            _refuse(f"rows {other} and {i} are duplicates", "every leaf has a template of its own")


def _parents_first(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """An order of the tests with parents first: the given one if it is so, else preorder."""
    n = len(low)
    preorder = np.lexsort((-high, low))
    # In preorder, a test's parent is the last one before it that still covers it.
    parent = np.full(n, -1)
    stack: list[int] = []
    for j in preorder.tolist():
        while stack and high[stack[-1]] < high[j]:
            stack.pop()
        if stack:
            parent[j] = stack[-1]
        stack.append(j)
    return np.arange(n) if np.all(parent < np.arange(n)) else preorder
