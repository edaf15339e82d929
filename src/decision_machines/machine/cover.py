"""How much training weight reached each test and each leaf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvariantError
from .arrays import Part, frozen
from .structure import check_structure

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from .trees import Trees


@dataclass(frozen=True, eq=False)
class Cover(Part):
    """The training weight of every test and leaf, as the source stored it.

    It decides no prediction. Shapley values by paths, and importances, need it. A source may round
    what it stores, so the cover of a test is only nearly the sum of its children's.

    Parameters
    ----------
    tests
        (J,) by test.
    leaves
        (L,) by leaf.

    Examples
    --------
    >>> Cover([10.0], [4.0, 6.0]).leaves.tolist()
    [4.0, 6.0]
    """

    tests: Float[np.ndarray, "J"] | Any
    leaves: Float[np.ndarray, "L"] | Any

    def __post_init__(self) -> None:
        for name in ("tests", "leaves"):
            given = np.asarray(getattr(self, name))
            array = frozen(given, np.float64, f"cover.{name}")
            object.__setattr__(self, name, array)
            is_weight = np.isfinite(array) & (array >= 0)
            if array.ndim != 1 or not np.all(is_weight):
                found = (
                    f"cover.{name}[{np.argmin(is_weight)}] = {array[np.argmin(is_weight)]}"
                    if array.ndim == 1
                    else f"cover.{name} of {array.ndim} dimensions"
                )
                raise InvariantError(
                    "covers are weights", found, "give a vector of finite numbers of at least 0"
                )

    def keep(self, tests: Int[np.ndarray, "j"], leaves: Int[np.ndarray, "l"]) -> Cover:
        """The covers of these tests and leaves alone."""
        return Cover(self.tests[tests], self.leaves[leaves])


def stored_cover(tests: Any, leaves: Any, test_start: Int[np.ndarray, "T+1"]) -> Cover | None:
    """The covers that a source stored, or None where what it stored are not covers.

    Some writers leave the fields at zero: a tree whose root nothing reached has no covers.

    Examples
    --------
    >>> stored_cover([0.0], [0.0, 0.0], np.array([0, 1])) is None
    True
    """
    tests, leaves = np.asarray(tests, np.float64), np.asarray(leaves, np.float64)
    held = np.concatenate([tests, leaves])
    roots = tests[test_start[:-1][np.diff(test_start) > 0]]
    if not np.all(np.isfinite(held) & (held >= 0)) or not np.all(roots > 0):
        return None
    return Cover(tests, leaves)


def cover_above(
    leaves: Float[np.ndarray, "L"], children: Int[np.ndarray, "J 2"], trees: Trees
) -> tuple[Float[np.ndarray, "J"], Float[np.ndarray, "L"]]:
    """The covers of all tests, each the sum of its children's, and those given, of the leaves."""
    tests = np.zeros(trees.n_tests)
    depth = check_structure(children, trees).depth
    for level in range(int(depth.max(initial=-1)), -1, -1):
        at = np.flatnonzero(depth == level)
        below = children[at]
        held = np.where(below >= 0, tests[np.maximum(below, 0)], leaves[np.maximum(~below, 0)])
        tests[at] = held[:, 0] + held[:, 1]
    return tests, leaves


def check_cover(cover: Cover | None, trees: Trees) -> None:
    """Refuse covers of other tests and leaves than the machine's."""
    if cover is not None and (
        cover.tests.shape != (trees.n_tests,) or cover.leaves.shape != (trees.n_leaves,)
    ):
        raise InvariantError(
            "a cover for each test and leaf",
            f"covers of {len(cover.tests)} tests and {len(cover.leaves)} leaves for "
            f"{trees.n_tests} tests and {trees.n_leaves} leaves",
            "give a cover for each, or none at all",
        )
