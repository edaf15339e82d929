"""Rows to train on and rows to judge by, of what a user passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ...errors import InputError
from ..hold_out import spread_share, whole_groups
from ..rows import read_weights
from .ranking import group_ids

if TYPE_CHECKING:
    from torch import Tensor

    from ...machine import DecisionMachine
    from .objectives import Objective

DOING = "reading rows to tune on"
HELD_OUT = 0.2


@dataclass(frozen=True)
class TensorRows:
    """Rows to train or judge on, as tensors."""

    x: Tensor
    """(m, n_features) as the machine reads them."""
    y: Tensor
    """(m, c) targets as the objective takes them."""
    w: Tensor
    """(m,) weights."""
    group: Tensor | None = None
    """(m,) groups to rank within."""

    def __len__(self) -> int:
        return len(self.x)

    def parts(self) -> dict[str, Tensor | None]:
        """All that the rows hold, by the names that users give it."""
        return {"X": self.x, "y": self.y, "weights": self.w, "group": self.group}

    def take(self, index: Tensor) -> TensorRows:
        group = None if self.group is None else self.group[index]
        return TensorRows(self.x[index], self.y[index], self.w[index], group)

    def joined(self, other: TensorRows) -> TensorRows:
        """Both, these first; groups stay apart."""
        group = None
        if self.group is not None and other.group is not None:
            first_free = int(self.group.max()) + 1 if len(self.group) else 0
            group = torch.cat([self.group, other.group + first_free])
        return TensorRows(
            torch.cat([self.x, other.x]),
            torch.cat([self.y, other.y]),
            torch.cat([self.w, other.w]),
            group,
        )

    def batches(self, size: int, generator: torch.Generator) -> list[Tensor]:
        """Rows in a random order, `size` at a time; groups are kept whole."""
        if self.group is None:
            return list(torch.randperm(len(self), generator=generator).split(size))
        n = int(self.group.max()) + 1
        place = torch.randperm(n, generator=generator)[self.group]
        order = torch.argsort(place, stable=True)
        counts = torch.bincount(place, minlength=n)
        ends, found, start = counts.cumsum(0).tolist(), [], 0
        for i, end in enumerate(ends):
            if end - start >= size or i == n - 1:
                found.append(order[start:end])
                start = end
        return [batch for batch in found if len(batch)]


def read_parts(
    machine: DecisionMachine,
    objective: Objective,
    X: Any,
    y: Any,
    sample_weight: Any,
    group: Any,
    validation: Any,
    seed: int,
) -> tuple[TensorRows, TensorRows, np.ndarray | None]:
    """Training rows, validation rows, and which rows were held out, where they were."""
    rows = _rows(machine, objective, X, y, sample_weight, group)
    if isinstance(validation, (tuple, list)):
        if not 2 <= len(validation) <= 4:
            raise InputError(
                DOING, f"validation of {len(validation)} parts", "pass (X, y[, weights[, group]])"
            )
        other = _rows(machine, objective, *validation, *[None] * (4 - len(validation)))
        _check_some(rows, "to train on")
        _check_some(other, "to judge by")
        return rows, other, None
    share = HELD_OUT if validation is None else validation
    if not isinstance(share, (int, float, np.number)) or not 0 < share < 1:
        raise InputError(
            DOING, f"validation={_short(validation)}", "pass (X, y), or a share between 0 and 1"
        )
    held_out = _held_out(rows, objective, float(share), seed)
    is_held = torch.zeros(len(rows), dtype=torch.bool)
    is_held[torch.from_numpy(held_out)] = True
    train = rows.take(torch.nonzero(~is_held)[:, 0])
    other = rows.take(torch.nonzero(is_held)[:, 0])
    _check_some(train, "to train on")
    _check_some(other, "to judge by")
    return train, other, held_out


def _rows(
    machine: DecisionMachine, objective: Objective, X: Any, y: Any, weight: Any, group: Any
) -> TensorRows:
    x = np.array(machine.features(X))
    m = len(x)
    target = objective.encode(y)
    if len(target) != m:
        raise InputError(DOING, f"{m} rows of X and {len(target)} of y", "pass a target for each")
    w = read_weights(weight, m, DOING)
    if objective.is_ranking and group is None:
        raise InputError(
            DOING,
            f"objective={objective.name!r} without groups",
            "pass group= for X and validation",
        )
    ids = None
    if group is not None and objective.is_ranking:
        ids = torch.from_numpy(group_ids(group, m))
    # A common factor of the weights changes nothing but would make steps too small to count.
    w = w / (w.mean() if m and w.mean() > 0 else 1.0)
    return TensorRows(torch.from_numpy(x), torch.from_numpy(target), torch.from_numpy(w), ids)


def _short(given: Any) -> str:
    """What was given, on one line."""
    said = repr(given)
    return said if len(said) <= 60 and "\n" not in said else f"a {type(given).__name__}"


def _check_some(rows: TensorRows, what: str) -> None:
    if not len(rows):
        raise InputError(
            DOING, f"0 rows {what}", "pass at least two rows, or rows and validation=(X, y)"
        )
    if not float(rows.w.sum()) > 0:
        raise InputError(
            DOING,
            f"all {len(rows)} rows {what} have weights of 0",
            "give some of them a weight above 0; or give validation=(X, y)",
        )


def _held_out(rows: TensorRows, objective: Objective, share: float, seed: int) -> np.ndarray:
    """Rows to judge by: of every class its share, or whole groups."""
    if rows.group is not None:
        return whole_groups(rows.group.numpy(), share, [seed, 1])
    is_classes = objective.name in ("logistic", "softmax", "log_loss", "brier", "hinge")
    return spread_share(len(rows), share, [seed, 1], rows.y.numpy()[:, 0] if is_classes else None)
