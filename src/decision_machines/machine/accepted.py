"""Which inputs a source takes: what it refuses, a machine refuses too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvariantError
from .arrays import Part, frozen

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

DTYPES = ("float32", "float64")


@dataclass(frozen=True, eq=False)
class Accepted(Part):
    """The inputs that a source takes, feature by feature.

    Parameters
    ----------
    low, high
        (n_features,) the smallest and the largest number that each feature may have. Features
        that are read as codes have their own refusals, `refused`.
    missing
        (n_features,) whether a feature may be missing.
    needed
        (n_features,) whether a table must have the feature's column.
    refused
        feature → codes that are an error; -1 is a label that is not among the categories.
    ignores_further
        Whether a table may have further columns, which are not read.
    blocks
        Features that the source reads as one array, and the dtype of its arithmetic that the
        machine reproduces: columns whose common dtype would have it compute in another are
        refused.
    plain
        Whether a block also refuses integers of 8 and 16 bits and truth values, which NumPy's
        functions compute in fewer digits.
    """

    low: Float[np.ndarray, "n"]
    high: Float[np.ndarray, "n"]
    missing: Bool[np.ndarray, "n"]
    needed: Bool[np.ndarray, "n"]
    refused: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    ignores_further: bool = False
    blocks: tuple[tuple[tuple[int, ...], str], ...] = ()
    plain: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        for name, dtype in (
            ("low", np.float64),
            ("high", np.float64),
            ("missing", np.bool_),
            ("needed", np.bool_),
        ):
            set_(self, name, frozen(getattr(self, name), dtype, f"columns.accepted.{name}"))
        codes = {int(f): tuple(sorted(map(int, found))) for f, found in self.refused.items()}
        set_(self, "refused", MappingProxyType(codes))
        blocks = tuple((tuple(map(int, which)), str(dtype)) for which, dtype in self.blocks)
        set_(self, "blocks", blocks)
        set_(self, "plain", tuple(map(int, self.plain)))
        n = len(self.low)
        named = {*codes, *self.plain, *(f for which, _ in blocks for f in which)}
        fits = (
            all(getattr(self, name).shape == (n,) for name in ("low", "high", "missing", "needed"))
            and all(0 <= f < n for f in named)
            and all(dtype in DTYPES for _, dtype in blocks)
            and not np.any(np.isnan(self.low) | np.isnan(self.high))
        )
        if not fits:
            raise InvariantError(
                "what is accepted fits the features",
                f"bounds of {n} features, and blocks or codes of others",
                "give each feature its bounds, and name no other features",
            )

    def __reduce__(self) -> tuple[Any, ...]:
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        return type(self), (*(given | {"refused": dict(self.refused)}).values(),)

    def __len__(self) -> int:
        return len(self.low)
