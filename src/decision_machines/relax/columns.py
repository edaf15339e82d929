"""How a module reads features: the machine's columns z, on any device, inside any graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from ..errors import UnsupportedModelError
from ..machine import Rule
from ..machine.columns import ZERO

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from ..machine import Columns

LARGEST_TABLE = 1 << 28


class ColumnReader(nn.Module):
    """`Columns.read` over torch tensors: casts, missing rules, and categories by table.

    Categories are looked up in one table of answers, a stretch of it for each set, because a
    search in sorted members has no counterpart in ONNX. A category's column is 0, 1 or NaN and
    has no gradient.
    """

    feature: Tensor
    is_nan_as_zero: Tensor
    is_zero_as_nan: Tensor
    is_member: Tensor
    member_columns: Tensor
    member_rank: Tensor
    table: Tensor
    table_start: Tensor
    last: Tensor

    def __init__(self, columns: Columns) -> None:
        super().__init__()
        self.dtype = torch.float32 if columns.dtype == np.float32 else torch.float64
        self.n_features, self.missing_value = columns.n_features, float(columns.missing_value)
        self.is_plain = bool(
            len(columns) == columns.n_features
            and np.array_equal(columns.feature, np.arange(columns.n_features))
        )
        self._buffer("feature", columns.feature.astype(np.int64))
        self.rules = {int(rule) for rule in np.unique(columns.rule)}
        for rule in (Rule.NAN_AS_ZERO, Rule.ZERO_AS_NAN):
            if rule in self.rules:
                self._buffer(f"is_{rule.name.lower()}", columns.rule == rule)
        if Rule.MEMBER in self.rules:
            self._tabulate(columns)

    def _buffer(self, name: str, array: np.ndarray) -> None:
        self.register_buffer(name, torch.from_numpy(np.array(array)), persistent=False)

    def _tabulate(self, columns: Columns) -> None:
        sets = columns.sets
        assert sets is not None
        self.lowest = -1.0 if sets.negative_fractions else 0.0
        self.whole = sets.whole
        spans = [slice(int(a), int(b)) for a, b in zip(sets.start, sets.start[1:], strict=False)]
        # The last entry of a stretch answers for every category that is not in the set.
        sizes = [int(sets.members[s].max(initial=-1)) + 2 for s in spans]
        if sum(sizes) > LARGEST_TABLE:
            raise UnsupportedModelError(
                "softening a machine",
                f"category sets that reach up to {int(sets.members.max())}: their table would hold "
                f"{sum(sizes)} answers",
                "number the categories from 0 without large gaps, and train again",
            )
        answers = [np.full(n, out, np.int8) for n, out in zip(sizes, sets.outside, strict=True)]
        for answer, span in zip(answers, spans, strict=True):
            answer[sets.members[span]] = sets.answer[span]
        z_of = np.array([np.nan, 1.0, 0.0], columns.dtype)  # answer 0, +1, -1
        self._buffer("table", z_of[np.concatenate(answers)])
        self._buffer("table_start", np.concatenate([[0], np.cumsum(sizes)])[:-1])
        self._buffer("last", np.array(sizes, np.int64) - 1)
        self._buffer("is_member", columns.rule == Rule.MEMBER)
        self._buffer("member_columns", np.flatnonzero(columns.rule == Rule.MEMBER))
        rank = np.cumsum(columns.rule == Rule.MEMBER) - 1
        self._buffer("member_rank", np.maximum(rank, 0))

    def forward(self, x: Float[Tensor, "m n_features"]) -> Float[Tensor, "m n"]:
        x = x.to(self.dtype)
        nan = torch.full((), float("nan"), dtype=x.dtype, device=x.device)
        if self.missing_value == self.missing_value:
            x = torch.where(x == self.missing_value, nan, x)
        z = x if self.is_plain else x.index_select(1, self.feature)
        if Rule.NAN_AS_ZERO in self.rules:
            z = torch.where(self.is_nan_as_zero & z.isnan(), torch.zeros_like(z), z)
        if Rule.ZERO_AS_NAN in self.rules:
            z = torch.where(self.is_zero_as_nan & (z.abs() <= ZERO), nan, z)
        if Rule.MEMBER in self.rules:
            answers = self._look_up(z.index_select(1, self.member_columns))
            z = torch.where(self.is_member, answers.index_select(1, self.member_rank), z)
        return z

    def _look_up(self, x: Float[Tensor, "m c"]) -> Float[Tensor, "m c"]:
        is_category = ((x > self.lowest) | (x == 0.0)) & (x < 2.0**31)
        if self.whole:
            is_category = is_category & (x == x.floor())
        # The cast cuts a fraction off, towards 0.
        category = torch.where(is_category, x, torch.zeros_like(x)).to(torch.int64)
        category = torch.where(is_category, torch.minimum(category, self.last), self.last)
        z = self.table.index_select(0, (self.table_start + category).reshape(-1)).reshape(x.shape)
        return torch.where(x.isnan(), x.detach(), z)
