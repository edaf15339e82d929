"""Ranking: rows compared within their groups, as LambdaRank does.

A pair of a group in which one row is more relevant costs log(1 + exp(-difference of margins)),
times how much the group's NDCG would change if the two changed places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import functional as F

from ...errors import InputError

if TYPE_CHECKING:
    from torch import Tensor


def group_ids(group: Any, n_rows: int) -> np.ndarray:
    """(m,) the group of each row, numbered from 0.

    `group` is one id for each row, or the sizes of groups that stand one after the other.
    """
    found = np.asarray(group)
    if found.ndim == 1 and len(found) == n_rows:
        return np.unique(found, return_inverse=True)[1].astype(np.int64)
    if (
        found.ndim == 1
        and found.dtype.kind in "iu"
        and np.all(found >= 0)
        and found.sum() == n_rows
    ):
        return np.repeat(np.arange(len(found)), found)
    raise InputError(
        "reading groups to rank within",
        f"group of shape {found.shape} for {n_rows} rows",
        "pass one id for each row, or the sizes of groups that follow one another",
    )


def lambda_loss(margin: Tensor, y: Tensor, group: Tensor) -> Tensor:
    """(m,) for each row, the cost of the pairs in which it is the more relevant one."""
    at, is_real = _padded(group)
    s = margin[:, 0][at]
    gain = torch.where(is_real, torch.exp2(y[:, 0][at]) - 1, 0.0)
    rank = _ranks(s.detach(), is_real)
    discount = 1 / torch.log2(rank + 2.0)
    best = _best_dcg(gain).clamp(min=1e-12)[:, None, None]
    change = (gain[:, :, None] - gain[:, None, :]).abs() / best
    change = change * (discount[:, :, None] - discount[:, None, :]).abs()
    is_pair = (gain[:, :, None] > gain[:, None, :]) & is_real[:, :, None] & is_real[:, None, :]
    cost = F.softplus(s[:, None, :] - s[:, :, None]) * change
    by_row = torch.where(is_pair, cost, 0.0).sum(-1)
    found = torch.zeros_like(margin[:, 0])
    return found.index_add(0, at[is_real], by_row[is_real])


def one_minus_ndcg(margin: Tensor, y: Tensor, group: Tensor) -> Tensor:
    """(m,) 1 - NDCG of each row's group over all of its places; 0 where nothing is relevant."""
    at, is_real = _padded(group)
    gain = torch.where(is_real, torch.exp2(y[:, 0][at]) - 1, 0.0)
    rank = _ranks(margin[:, 0][at], is_real)
    best = _best_dcg(gain)
    dcg = (gain / torch.log2(rank + 2.0)).sum(-1)
    lost = torch.where(best > 0, 1 - dcg / best.clamp(min=1e-12), 0.0)
    found = torch.zeros_like(margin[:, 0])
    return found.index_put((at[is_real],), lost[:, None].expand_as(gain)[is_real])


def _padded(group: Tensor) -> tuple[Tensor, Tensor]:
    """(groups, longest) places of each group's rows, and which of them are there."""
    order = torch.argsort(group, stable=True)
    counts = torch.unique_consecutive(group[order], return_counts=True)[1]
    longest = int(counts.max()) if len(counts) else 0
    start = counts.cumsum(0) - counts
    place = torch.arange(longest)
    is_real = place < counts[:, None]
    at = torch.where(is_real, start[:, None] + place, 0)
    return order[at] if len(order) else at, is_real


def _ranks(s: Tensor, is_real: Tensor) -> Tensor:
    """From 0, the largest margin first; of equal ones the later row counts as the better."""
    s = torch.where(is_real, s, -torch.inf)
    order = torch.argsort(s.flip(-1), dim=-1, descending=True, stable=True)
    order = s.shape[-1] - 1 - order
    return torch.empty_like(s).scatter(
        -1, order, torch.arange(s.shape[-1], dtype=s.dtype).expand_as(s).contiguous()
    )


def _best_dcg(gain: Tensor) -> Tensor:
    ideal = gain.sort(-1, descending=True).values
    return (ideal / torch.log2(torch.arange(gain.shape[-1], dtype=gain.dtype) + 2.0)).sum(-1)
