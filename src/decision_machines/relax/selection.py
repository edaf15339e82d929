"""S as a trainable part: the column that each test reads, kept, learned or weighed.

| `selection` | S z | at the start |
|---|---|---|
| "fixed" | the machine's own column | the machine's |
| "sparse" | weights by 1.5-entmax over the columns: few, positive, summing to 1 | near it |
| "hard" | the column of the largest logit; gradients as if by 1.5-entmax | the machine's |
| "oblique" | any weights | the machine's |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from .sparse import entmax15

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

    from ..machine import DecisionMachine

SELECTIONS = ("fixed", "sparse", "hard", "oblique")


class Selection(nn.Module):
    """S z and where it is missing.

    Missing is, as in a machine, a test that reads a NaN: its one column, or any column of nonzero
    weight. A "sparse" test leaves NaN columns out while they hold less than half of its weight.

    Parameters
    ----------
    gap
        How far a column's logit starts above the others ("sparse" and "hard"). 1.5-entmax is
        exactly one-hot from 2 on, where it has no gradient any more.
    """

    column: Tensor
    S_start: Tensor

    def __init__(
        self, machine: DecisionMachine, kind: str, gap: float, dtype: torch.dtype, learn: bool
    ) -> None:
        super().__init__()
        self.kind, self.n_columns = kind, len(machine.columns)
        if kind == "fixed":
            column = torch.from_numpy(machine.selection.astype(np.int64))
            self.register_buffer("column", column, persistent=False)
            return
        S = torch.from_numpy(machine.S.toarray().astype(np.float64))
        start = S if kind == "oblique" else S * gap
        self.S = nn.Parameter(start.to(dtype), requires_grad=learn)
        self.register_buffer("S_start", start.to(dtype), persistent=False)

    def is_start(self) -> Bool[Tensor, "J"]:
        """Which tests of a selection that is not fixed read what they read at the start."""
        return (self.S_start == self.S).all(-1)

    def weights(self) -> Float[Tensor, "J n"]:
        """S as it acts now."""
        if self.kind == "fixed":
            return torch.nn.functional.one_hot(self.column, self.n_columns).double()
        if self.kind == "oblique":
            return self.S
        soft = entmax15(self.S) if self.S.numel() else self.S
        if self.kind == "sparse":
            return soft
        hard = torch.nn.functional.one_hot(self.S.argmax(-1), self.n_columns).to(soft.dtype)
        return hard + (soft - soft.detach())

    def forward(
        self, z: Float[Tensor, "m n"], order: Tensor | None
    ) -> tuple[Float[Tensor, "J m"], Bool[Tensor, "J m"]]:
        """S z and whether it is missing, tests first, in the given order of tests."""
        if self.kind == "fixed":
            column = self.column if order is None else self.column.index_select(0, order)
            selected = z.t().contiguous().index_select(0, column)
            return selected, selected.isnan()
        S = self.weights()
        S = S if order is None else S.index_select(0, order)
        is_nan = z.isnan().t()
        # Finite stand-ins: 0 · NaN and 0 · inf would poison the gradient of S.
        bound = torch.finfo(z.dtype).max * 2.0**-20
        known = torch.where(is_nan, torch.zeros_like(z.t()), z.t().clamp(-bound, bound))
        selected = S @ known
        if self.kind == "oblique":
            is_missing = (S != 0).to(z.dtype) @ is_nan.to(z.dtype) > 0
        else:
            lost = S @ is_nan.to(z.dtype)
            is_missing = lost >= 0.5
            selected = selected / torch.where(is_missing, torch.ones_like(lost), 1 - lost)
        # Overflow of both signs has no sum: missing, as NaN is.
        return selected, is_missing | selected.isnan()
