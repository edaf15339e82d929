"""Iterators that run ahead, in one thread or in several."""

from __future__ import annotations

import atexit
import queue
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

LAST_WAIT = 30.0
"""Seconds at the end of the process for threads to finish the item that they are at."""
_running: dict[threading.Thread, threading.Event] = {}
"""Threads that run ahead, and what tells each to stop."""
_own = threading.local()
"""`stop`: what tells the work of this thread to stop."""


class Stopped(Exception):
    """Nobody waits for this work any more."""


def check_wanted() -> None:
    """Called by long work now and then: Ctrl-C reaches the main thread alone, not this one.

    Raises
    ------
    Stopped
        Where whoever asked for the work has gone.
    """
    stop = getattr(_own, "stop", None)
    if stop is not None and stop.is_set():
        raise Stopped


@atexit.register
def _stop_all() -> None:
    """Let no thread outlive the interpreter.

    An iterator that nobody closed (a traceback holds it, or a global) leaves its thread running.
    Python ends such threads where they ask for its lock; within native code that aborts the
    process.
    """
    left = list(_running.items())
    for _, stop in left:
        stop.set()
    for thread, _ in left:
        thread.join(LAST_WAIT)


def ahead(items: Iterable[Any], depth: int = 2) -> Iterator[Any]:
    """The items, of which up to `depth` are made before they are asked for.

    An error in making them is raised here. When the caller stops early, so does the thread.
    """
    made: queue.Queue[tuple[bool, Any]] = queue.Queue(depth)
    stop = threading.Event()
    end = object()

    def put(kind: bool, item: Any) -> None:
        while not stop.is_set():
            try:
                return made.put((kind, item), timeout=0.1)
            except queue.Full:
                continue

    def make() -> None:
        _own.stop = stop
        iterator = iter(items)
        try:
            for item in iterator:
                if stop.is_set():
                    break
                put(True, item)
            put(True, end)
        except BaseException as error:
            put(False, error)
        finally:
            getattr(iterator, "close", lambda: None)()
            _running.pop(threading.current_thread(), None)

    thread = threading.Thread(target=make, name="decision-machines ahead", daemon=True)
    _running[thread] = stop
    thread.start()
    try:
        while True:
            try:
                is_item, item = made.get(timeout=0.1)
            except queue.Empty:
                if stop.is_set():  # at the end of the process
                    return
                continue
            if item is end:
                return
            if not is_item:
                raise item
            yield item
    finally:
        stop.set()
        thread.join()


def mapped(work: Callable[[Any], Any], items: Iterable[Any], workers: int) -> Iterator[Any]:
    """work(item) for each item, in their order, several at once.

    At most `workers` + 1 items are in work or waiting to be taken. An error in one of them is
    raised when its turn comes, after the results before it.
    """
    if workers == 1:
        yield from map(work, items)
        return
    stop = getattr(_own, "stop", None)

    def watched(item: Any) -> Any:
        _own.stop = stop
        return work(item)

    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(workers, "decision-machines mapped") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(watched, item))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
