"""Sets of categories, and which way the members of each go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvariantError
from .arrays import Part, frozen, namespace

if TYPE_CHECKING:
    from jaxtyping import Int, Num


@dataclass(frozen=True, eq=False)
class CategorySets(Part):
    """The sets of the `Rule.MEMBER` columns, in the order of those columns.

    A category found in the set gives `answer` (-1: z = 0, the left of a test at 0.5;
    +1: z = 1, the right; 0: z = NaN, the test's missing answer). Any other category,
    and any x that is not a category, gives `outside`. NaN stays NaN.
    """

    start: Int[np.ndarray, "c+1"]
    members: Int[np.ndarray, "m"]
    """Categories, ascending within each set."""
    answer: Int[np.ndarray, "m"]
    outside: Int[np.ndarray, "c"]
    negative_fractions: bool = False
    """Whether -0.5 is category 0 (LightGBM truncates first) or not a category (XGBoost)."""
    whole: bool = False
    """Whether only whole numbers are categories (ONNX); else a fraction is cut off."""

    def __post_init__(self) -> None:
        for name, dtype in (
            ("start", np.int64),
            ("members", np.int64),
            ("answer", np.int8),
            ("outside", np.int8),
        ):
            object.__setattr__(self, name, frozen(getattr(self, name), dtype, f"sets.{name}"))
        n = len(self.start) - 1
        ascending = np.diff(self.members) > 0
        if n >= 0:
            firsts = self.start[1:-1]
            firsts = firsts[(firsts > 0) & (firsts < len(self.members))]
            ascending[firsts - 1] = True
        if (
            n < 0
            or self.start[0] != 0
            or self.start[-1] != len(self.members)
            or np.any(np.diff(self.start) < 0)
            or len(self.answer) != len(self.members)
            or len(self.outside) != n
            or not np.all(ascending)
            or np.any(np.abs(self.answer) > 1)
            or np.any(np.abs(self.outside) > 1)
            or np.any(self.members < 0)
        ):
            raise InvariantError(
                "category sets",
                "starts, members, answers and outside do not fit together",
                "give ascending non-negative members per set, one answer in {-1, 0, 1} for "
                "each member and one `outside` for each set",
            )

    def __len__(self) -> int:
        return len(self.outside)

    def category(self, x: float) -> int | None:
        """The category that a number of the columns' dtype stands for; None where it is none."""
        lowest = -1.0 if self.negative_fractions else 0.0
        is_category = (x > lowest or x == 0.0) and x < 2.0**31 and not (self.whole and x % 1)
        return int(x) if is_category else None

    def look_up(self, which: int, x: Num[Any, "m"]) -> Num[Any, "m"]:
        """z of one member column: 0, 1 or NaN for each x, over any array namespace."""
        xp = namespace(x)
        lowest = -1.0 if self.negative_fractions else 0.0
        # Beyond 2**31 no library keeps a category; there, and below `lowest`, nothing is found.
        is_category = ((x > lowest) | (x == 0.0)) & (x < 2.0**31)
        if self.whole:
            is_category = is_category & (x == xp.trunc(x))
        k = xp.astype(xp.trunc(xp.where(is_category, x, xp.zeros_like(x))), xp.int64)
        span = slice(int(self.start[which]), int(self.start[which + 1]))
        answer = xp.full(x.shape, int(self.outside[which]), dtype=xp.int8)
        if span.stop > span.start:
            members = xp.asarray(self.members[span].copy())
            at = xp.clip(xp.searchsorted(members, k), max=members.shape[0] - 1)
            found = is_category & (xp.take(members, at) == k)
            answer = xp.where(found, xp.take(xp.asarray(self.answer[span].copy()), at), answer)
        z = xp.where(answer > 0, xp.ones_like(x), xp.zeros_like(x))
        nan = xp.asarray(float("nan"), dtype=x.dtype)
        return xp.where((answer == 0) | xp.isnan(x), nan, z)
