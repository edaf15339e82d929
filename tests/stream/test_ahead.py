"""Iterators that run ahead keep order, errors and bounds."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decision_machines.stream.ahead import ahead, check_wanted, mapped


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 30), st.integers(1, 5), st.randoms(use_true_random=False))
def test_results_come_in_the_order_of_the_items(n, workers, random):
    pauses = [random.random() / 500 for _ in range(n)]

    def work(i):
        time.sleep(pauses[i])
        return i * i

    assert list(mapped(work, ahead(range(n)), workers)) == [i * i for i in range(n)]


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_comes_after_the_results_before_it(workers):
    def work(i):
        if i == 5:
            raise ValueError("the fifth")
        return i

    results = mapped(work, range(20), workers)
    assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="the fifth"):
        next(results)


def test_no_more_items_are_taken_than_workers_and_one():
    taken = []

    def items():
        for i in range(100):
            taken.append(i)
            yield i

    results = mapped(lambda i: i, items(), 3)
    assert next(results) == 0
    assert len(taken) <= 4
    results.close()


@pytest.mark.parametrize("workers", [1, 3])
def test_long_work_hears_that_nobody_waits_for_it(workers):
    begun = threading.Event()

    def work(i):
        while i:
            begun.set()
            check_wanted()
            time.sleep(0.01)
        return i

    results = ahead(mapped(work, range(9), workers))
    assert next(results) == 0
    begun.wait()
    results.close()  # would wait for ever
    check_wanted()  # this thread's own work is wanted


def test_stopping_early_leaves_no_thread_behind():
    results = mapped(lambda i: i, ahead(range(1000)), 3)
    next(results)
    results.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("decision-machines mapped")]


LEFT_OPEN = """
import sys
import numpy as np
import decision_machines as dm
from decision_machines.stream.ahead import ahead

machine, X = dm.figure_one(), np.zeros((1_000_000, 4))

def answers():
    while True:
        yield machine.predict(X, n_threads=1)

sys.modules["keeper"] = opened = ahead(ahead(answers()))  # held to the very end
next(opened)
print("done")
"""


def test_an_iterator_that_nobody_closed_does_not_abort_the_process_at_its_end():
    done = subprocess.run([sys.executable, "-c", LEFT_OPEN], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
