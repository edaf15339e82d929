"""Torch, where it is there, with as many threads as asked for."""

from __future__ import annotations

import contextlib
import threading
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


class _Borrowed:
    """Torch's number of threads while fits that changed it are under way.

    The number is the process's, and a thread that begins takes over what it is then. So a fit that
    starts while another one runs must not take the other's number for the user's: the user's is
    what the first of them found, and every one puts that back.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.n_fits = 0
        self.of_the_user = 0

    def take(self, n_threads: int) -> None:
        import torch

        with self.lock:
            if not self.n_fits:
                self.of_the_user = torch.get_num_threads()
            self.n_fits += 1
            torch.set_num_threads(n_threads)

    def give_back(self) -> None:
        import torch

        with self.lock:
            self.n_fits -= 1
            torch.set_num_threads(self.of_the_user)


_borrowed = _Borrowed()


@contextlib.contextmanager
def threads(n_threads: int | None, doing: str) -> Iterator[None]:
    """Train with this many threads of torch; None leaves them as they are.

    Fits may run side by side in several threads: after the last of them torch has as many threads
    as before the first.
    """
    if n_threads is None:
        yield
        return
    is_whole = isinstance(n_threads, (int, np.integer)) and not isinstance(n_threads, bool)
    if not is_whole or n_threads < 1:
        raise InputError(doing, f"n_threads={n_threads!r}", "use a whole number of at least 1")
    _borrowed.take(int(n_threads))
    try:
        yield
    finally:
        _borrowed.give_back()
