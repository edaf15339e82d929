"""Torch, where it is there, with as many threads as asked for."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError, MissingLibraryError

if TYPE_CHECKING:
    from collections.abc import Iterator


def require_torch(doing: str) -> None:
    """Say clearly what is missing, before any work is done."""
    try:
        import torch  # noqa: F401
    except ImportError:
        raise MissingLibraryError(
            doing, "torch is not installed", "pip install 'decision-machines[torch]'"
        ) from None


@contextlib.contextmanager
def threads(n_threads: int | None, doing: str) -> Iterator[None]:
    """Train with so many threads of torch; None leaves them as they are."""
    import torch

    before = torch.get_num_threads()
    if n_threads is not None:
        if not isinstance(n_threads, (int, np.integer)) or n_threads < 1:
            raise InputError(doing, f"n_threads={n_threads!r}", "use a whole number from 1")
        torch.set_num_threads(int(n_threads))
    try:
        yield
    finally:
        torch.set_num_threads(before)
