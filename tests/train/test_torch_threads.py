"""Torch's number of threads is the user's again, whatever fits ran side by side."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

import decision_machines as dm
from decision_machines.errors import InputError
from decision_machines.train.torch_setup import threads


def seen_by_a_new_thread() -> int:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    return found[0]


def side_by_side(first: int | None, second: int | None) -> None:
    """Two fits, each begun before the other ends; the first one ends first."""
    began, both, ended = threading.Event(), threading.Event(), threading.Event()

    def one() -> None:
        with threads(first, "training"):
            began.set()
            both.wait()
        ended.set()

    def other() -> None:
        began.wait()
        with threads(second, "training"):
            both.set()
            ended.wait()

    workers = [threading.Thread(target=one), threading.Thread(target=other)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


@pytest.mark.parametrize(("first", "second"), [(1, 2), (5, 7), (3, None), (None, 3)])
def test_two_fits_in_two_threads_leave_the_users_number(first, second):
    before = torch.get_num_threads()
    new = seen_by_a_new_thread()
    side_by_side(first, second)
    assert torch.get_num_threads() == before
    assert seen_by_a_new_thread() == new


def test_fits_of_estimators_in_threads_leave_the_users_number():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > X[:, 1]).astype(int)
    before, new = torch.get_num_threads(), seen_by_a_new_thread()

    def fit(n_threads: int) -> None:
        dm.NonGreedyTreeClassifier(max_leaves=4, n_epochs=3, n_threads=n_threads).fit(X, y)

    workers = [threading.Thread(target=fit, args=(1 + i % 3,)) for i in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert (torch.get_num_threads(), seen_by_a_new_thread()) == (before, new)


def test_an_error_within_gives_the_number_back():
    before = torch.get_num_threads()
    found: list[int] = []

    def work() -> None:
        with threads(before + 1, "training"):
            found.append(torch.get_num_threads())
            raise RuntimeError("within")

    with pytest.raises(RuntimeError, match="within"):
        work()
    assert found == [before + 1]
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("n_threads", [0, -1, 1.5, True, "2"])
def test_what_is_no_number_of_threads_is_refused(n_threads):
    with pytest.raises(InputError, match="n_threads"), threads(n_threads, "training"):
        pass
