"""What the soft tree does not train: where each test leads, and what it reads."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from ..errors import InputError
from .paths import Paths

if TYPE_CHECKING:
    from jaxtyping import Int

    from ..machine import DecisionMachine


@dataclass(frozen=True, eq=False)
class SoftStructure:
    """The part of a machine that the soft tree does not train, ready for the native kernel.

    Parameters
    ----------
    children
        (J, 2) left and right of each test, over all trees: a test ≥ 0, or ~leaf.
    test_start
        (T + 1,) where each tree's tests start.
    selection
        (J,) the column of z that each test reads.
    missing
        (J,) the answer, -1 or +1, where that column is NaN.
    feeds
        (T,) the output that each tree feeds where V is (L, 1); -1 in all where V is (L, k).
    n_columns, n_outputs
        Widths of z and of the output.

    Examples
    --------
    >>> import decision_machines as dm
    >>> structure = SoftStructure.of(dm.figure_one())
    >>> structure.n_columns, structure.n_outputs
    (4, 1)
    """

    children: Int[np.ndarray, "J 2"]
    test_start: Int[np.ndarray, "T+1"]
    selection: Int[np.ndarray, "J"]
    missing: Int[np.ndarray, "J"]
    feeds: Int[np.ndarray, "T"]
    n_columns: int
    n_outputs: int

    @classmethod
    def of(cls, machine: DecisionMachine) -> SoftStructure:
        """The machine's own structure; an oblique machine's tests read a column each."""
        n_tests = machine.n_tests
        return cls(
            machine.children,
            machine.trees.test_start,
            np.arange(n_tests, dtype=np.int32) if machine.is_oblique else machine.selection,
            machine.missing,
            machine.trees.feeds,
            n_tests if machine.is_oblique else len(machine.columns),
            machine.n_outputs,
        )

    @functools.cached_property
    def plan(self) -> Any:
        """The kernel's plan, checked: slots of every tree, the columns in use."""
        try:
            return _native.SoftPlan(
                np.ascontiguousarray(self.children, np.int32).reshape(-1, 2),
                np.ascontiguousarray(self.test_start, np.int64),
                np.ascontiguousarray(self.selection, np.int32),
                np.ascontiguousarray(self.missing, np.int8),
                np.ascontiguousarray(self.feeds, np.int32),
                int(self.n_columns),
                int(self.n_outputs),
            )
        except ValueError as error:
            raise InputError(
                "preparing a soft tree", str(error), "use SoftStructure.of(machine)"
            ) from None

    @functools.cached_property
    def paths(self) -> Paths:
        """The same trees level by level, for the plain torch form."""
        return Paths(
            np.asarray(self.children, np.int64).reshape(-1, 2),
            np.asarray(self.test_start, np.int64),
        )

    def __getstate__(self) -> dict[str, Any]:
        made = ("plan", "paths")  # on their first use, and again after unpickling
        return {name: value for name, value in vars(self).items() if name not in made}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
