"""An iterator that runs ahead in a thread of its own."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


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

    thread = threading.Thread(target=make, name="decision-machines ahead", daemon=True)
    thread.start()
    try:
        while True:
            is_item, item = made.get()
            if item is end:
                return
            if not is_item:
                raise item
            yield item
    finally:
        stop.set()
        thread.join()
