"""Training in several processes: each takes its share of every batch.

Under `torchrun`, or wherever `torch.distributed` is initialised, every process calls the same
training with the same data. A batch is the same rows as in one process, cut into shares; gradients
are added by `DistributedDataParallel`, so every process takes the same steps. The result is that of
one process up to the order in which sums are added.
"""

from __future__ import annotations

import atexit
import os
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from torch import Tensor, nn


def join() -> None:
    """Join the processes that `torchrun` started, over gloo, unless that has been done.

    Once for the whole process: a second group at the same address could meet what the first one
    left there.
    """
    if not dist.is_available() or dist.is_initialized() or "TORCHELASTIC_RUN_ID" not in os.environ:
        return
    dist.init_process_group("gloo")
    atexit.register(_leave)


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


def n_processes() -> int:
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    return dist.get_rank() if n_processes() > 1 else 0


def wrap(module: nn.Module) -> nn.Module:
    """The module with its gradients averaged over processes."""
    if n_processes() == 1:
        return module
    return torch.nn.parallel.DistributedDataParallel(module, broadcast_buffers=False)


def share(index: Tensor, groups: Tensor | None) -> Tensor:
    """This process's part of a batch; groups stay whole."""
    n = n_processes()
    if n == 1:
        return index
    if groups is None:
        return index[rank() :: n]
    number = torch.unique(groups, return_inverse=True)[1]
    return index[number % n == rank()]


def own_rows(x: Tensor) -> Tensor:
    """This process's part of rows that all of them need an answer for."""
    n = n_processes()
    return x if n == 1 else x[rank() :: n]


def all_rows(found: Tensor, n_rows: int) -> Tensor:
    """The answers of all processes, in the order of the rows."""
    n = n_processes()
    if n == 1:
        return found
    whole = found.new_zeros((n_rows, *found.shape[1:]))
    whole[rank() :: n] = found
    dist.all_reduce(whole)
    return whole


def added(number: float) -> float:
    """The sum of a number over all processes."""
    if n_processes() == 1:
        return number
    total = torch.tensor(number, dtype=torch.float64)
    dist.all_reduce(total)
    return float(total)
