"""What becomes of the leaves' values: their sum, its dtype and order, the link, the labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvariantError
from .arrays import Part, frozen

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class Output(Part):
    """How k sums of leaf values become margins, probabilities and answers.

    The steps, all in `dtype` and in this order:

    1. the sum starts at `base` (if `base_first`) or at 0 and takes the trees one after the other,
       or `aggregate` says another way to combine them;
    2. it is divided by `divisor`, multiplied by `scale` (each skipped at 1), and `base` is added
       (unless `base_first`): this is the **margin**;
    3. `link`, with `link_params`, makes **probabilities** (or the response) of it;
    4. `decision` makes the **prediction**.

    Parameters
    ----------
    base
        (k,) base scores.
    aggregate
        "sum", "min", "max" or "median" over the trees' values; a weighted median takes
        `weights`.
    link, decision
        Names from the tables in `decision_machines.run.links` and `.decisions`.
    classes
        The labels, one array for each group of outputs; None where nothing is classified.
    groups
        Where each group of outputs starts, and k; (0, k) unless the model has several targets
        with classes of their own.
    squeeze
        Whether one output comes back as (m,) rather than (m, 1).
    """

    base: Float[np.ndarray, "k"]
    dtype: Any = np.float64
    base_first: bool = True
    divisor: float = 1.0
    scale: float = 1.0
    aggregate: str = "sum"
    weights: Float[np.ndarray, "T"] | None = None
    link: str = "identity"
    link_params: tuple[float, ...] = ()
    decision: str = "response"
    decision_params: tuple[float, ...] = ()
    classes: tuple[np.ndarray, ...] | None = None
    groups: tuple[int, ...] | Any = None
    squeeze: bool = True

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "dtype", np.dtype(self.dtype))
        set_(self, "base", frozen(self.base, self.dtype, "output.base"))
        if self.weights is not None:
            set_(self, "weights", frozen(self.weights, np.float64, "output.weights"))
        if self.base.ndim != 1:
            raise InvariantError(
                "a base score for each output",
                f"base of {self.base.ndim} dimensions",
                "give base as a vector: one base score for each output",
            )
        if self.groups is None:
            set_(self, "groups", (0, len(self)))
        set_(self, "groups", tuple(int(g) for g in self.groups))
        if self.classes is not None:
            set_(self, "classes", tuple(_labels(labels) for labels in self.classes))
        self._check()

    def _check(self) -> None:
        if self.dtype not in (np.float32, np.float64):
            raise InvariantError(
                "outputs are summed in one dtype",
                f"dtype {self.dtype}",
                "sum in float32 or float64",
            )
        if self.aggregate not in ("sum", "min", "max", "median"):
            raise InvariantError(
                "known aggregate",
                f"aggregate = {self.aggregate!r}",
                "use 'sum', 'min', 'max' or 'median'",
            )
        if not np.isfinite(self.divisor) or self.divisor == 0:
            raise InvariantError(
                "divisor is a number but 0", f"divisor = {self.divisor}", "use 1 for no division"
            )
        groups = self.groups
        if groups[0] != 0 or groups[-1] != len(self) or any(np.diff(groups) < 0):
            raise InvariantError(
                "groups cover the outputs",
                f"groups = {groups} for {len(self)} outputs",
                "start at 0 and end at the number of outputs",
            )
        if self.classes is not None and len(self.classes) != len(groups) - 1:
            raise InvariantError(
                "labels for each group",
                f"{len(self.classes)} lists of labels for {len(groups) - 1} groups",
                "give one list of labels for each group of outputs",
            )

    def __len__(self) -> int:
        return len(self.base)


def _labels(labels: Any) -> np.ndarray:
    labels = np.array(labels)
    labels.flags.writeable = False
    return labels
