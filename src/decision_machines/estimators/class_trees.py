"""Trees over classes, and the ternary codes that they are.

Paper: Algorithm `ECOC`, "another coding strategy". A tree with one leaf for each class is a code:
its templates B have a row for each class and a column for each test, -1 and +1 for the classes on
the test's two sides, 0 for those that never come there. Several trees side by side are a longer
code, whose rows stand further apart.

A tree over classes is written as nested pairs, ``((0, 2), 1)``, leaves being class codes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from ..machine import DecisionMachine

ClassTree = Any
"""A class code, or a pair of class trees."""


def code_of(tree: ClassTree, n_classes: int) -> Int[np.ndarray, "K ell"]:
    """The templates of a tree over classes, with rows in the order of the classes.

    Paper: Algorithm `ECOC`; the template definition.

    Examples
    --------
    >>> code_of(((0, 2), 1), 3).tolist()
    [[-1, -1], [1, 0], [-1, 1]]
    """
    columns: list[np.ndarray] = []

    def descend(node: ClassTree) -> list[int]:
        if not isinstance(node, tuple):
            return [int(node)]
        column = np.zeros(n_classes, np.int8)
        columns.append(column)
        left, right = descend(node[0]), descend(node[1])
        column[left], column[right] = -1, 1
        return left + right

    descend(tree)
    return np.stack(columns, axis=1) if columns else np.zeros((n_classes, 0), np.int8)


def class_affinity(X: Any, y: Int[np.ndarray, "m"], w: Float[np.ndarray, "m"]) -> np.ndarray:
    """(K, K) how easily a quick learner takes one class for another, symmetric, each row scaled.

    The quick learner is naive Bayes; what it confuses is the mean probability that it gives to
    class s at the rows of class r.
    """
    from sklearn.naive_bayes import GaussianNB

    K = int(y.max()) + 1
    learner = GaussianNB().fit(X, y, w)
    one_hot = np.eye(K)[y] * w[:, None]
    confusion = (one_hot.T @ learner.predict_proba(X)) / one_hot.sum(axis=0)[:, None]
    both = confusion + confusion.T
    own = np.maximum(np.diag(both), 1e-12)
    found: np.ndarray = both / np.sqrt(own[:, None] * own[None])
    return found


def clustered_tree(affinity: Float[np.ndarray, "K K"]) -> ClassTree:
    """Classes joined from the bottom up, those confused most first (average linkage)."""
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    K = len(affinity)
    nodes: list[ClassTree] = list(range(K))
    if K == 1:
        return 0
    distance = -np.log(np.clip(affinity, 1e-12, 1.0))
    np.fill_diagonal(distance, 0.0)
    for a, b, _, _ in linkage(squareform(distance, checks=False), "average"):
        nodes.append((nodes[int(a)], nodes[int(b)]))
    return nodes[-1]


def paired_tree(
    affinity: Float[np.ndarray, "K K"], rng: np.random.Generator, classes: list[int] | None = None
) -> ClassTree:
    """At each test two classes drawn at random, and every other beside the one it is more like."""
    classes = list(range(len(affinity))) if classes is None else classes
    if len(classes) == 1:
        return classes[0]
    left, right = rng.choice(classes, 2, replace=False).tolist()
    sides: tuple[list[int], list[int]] = ([], [])
    for c in classes:
        closer = affinity[c, right] > affinity[c, left] if c not in (left, right) else c == right
        sides[int(closer)].append(c)
    return tuple(paired_tree(affinity, rng, side) for side in sides)


def random_tree(n_classes: int, rng: np.random.Generator) -> ClassTree:
    """Classes halved at random until each stands alone."""

    def halve(classes: np.ndarray) -> ClassTree:
        if len(classes) == 1:
            return int(classes[0])
        middle = len(classes) // 2
        return halve(classes[:middle]), halve(classes[middle:])

    return halve(rng.permutation(n_classes))


def tree_of_machine(
    machine: DecisionMachine, X: Any, y: Int[np.ndarray, "m"], w: Float[np.ndarray, "m"], tree: int
) -> ClassTree:
    """The classes in the order in which a fitted tree tells them apart.

    A class goes to the side of a test where most of its rows go; tests that separate no classes are
    passed over; classes that share a leaf in the end are halved.
    """
    one = machine.tree(tree)
    n_classes = int(y.max()) + 1
    leaf = one.apply(X)[:, 0]
    mass = np.zeros((one.n_leaves, n_classes))
    np.add.at(mass, (leaf, y), w)
    first, count = one.structure.first_leaf, one.structure.n_leaves

    def below(node: int) -> np.ndarray:
        if node < 0:
            own: np.ndarray = mass[~node]
            return own
        found: np.ndarray = mass[first[node] : first[node] + count[node]].sum(axis=0)
        return found

    def halve(classes: list[int]) -> ClassTree:
        if len(classes) == 1:
            return classes[0]
        middle = len(classes) // 2
        return halve(classes[:middle]), halve(classes[middle:])

    def descend(node: int, classes: list[int]) -> ClassTree:
        if len(classes) == 1:
            return classes[0]
        if node < 0:
            return halve(classes)
        left, right = one.children[node].tolist()
        goes_right = below(right) > below(left)
        sides = ([c for c in classes if not goes_right[c]], [c for c in classes if goes_right[c]])
        if not sides[0] or not sides[1]:
            return descend(right if sides[1] else left, classes)
        return descend(left, sides[0]), descend(right, sides[1])

    return descend(0 if one.n_tests else -1, list(range(n_classes)))
