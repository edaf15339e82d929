"""Dask: files, or partitions of a Dask DataFrame, on the workers of a cluster."""

from __future__ import annotations

import contextlib
import logging
import queue
import time
from typing import TYPE_CHECKING, Any

from ..errors import InputError, MissingLibraryError
from ..machine.digest import digest
from .functions import task_of
from .records import Records
from .signs import timed_out
from .work import Done, Scorer, Task, on_worker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..machine import Assembly, DecisionMachine
    from .parts import Part

CONNECT_SECONDS = 10
BEAT_SECONDS = 1.0
"""Between two messages of a worker that it is at work."""

logger = logging.getLogger(__name__)


def work(
    scorer: Scorer,
    todo: list[Part],
    paths: dict[Part, str],
    records: Records,
    kind: str,
    tell: Any,
    *,
    cluster: Any,
    timeout: float | None,
) -> Iterable[tuple[Part, Done]]:
    """Score every file on some worker, which writes the answers and the record.

    A worker that dies takes nothing with it: its unfinished file is not part of the output, and
    Dask gives its files to another. Workers that hang are given up after `timeout` seconds in which
    none of them told of any progress.
    """
    if not todo:
        return
    if timeout is not None and not timeout > 0:
        raise InputError(
            "scoring with Dask", f"timeout={timeout!r}", "use seconds above 0, or None"
        )
    with _client(cluster) as client, _everywhere(client, scorer.machine) as name:
        heard = _Heard(client, f"decision-machines-{records.run}")
        place = {
            client.submit(
                _score, name, scorer.task, part, records, paths[part], kind, heard.topic, pure=False
            ): part
            for part in todo
        }
        for future in place:
            future.add_done_callback(heard.done.put)
        waiting = set(place)
        try:
            while waiting:
                future = heard.next(timeout)
                if future is None:
                    raise timed_out("Dask", [place[future].path for future in waiting], timeout)
                waiting.discard(future)
                part = place[future]
                yield part, _result(future, part)
        finally:
            heard.close()
            # Before the machine is taken from the workers, and the folder given free.
            client.cancel(list(place))
            is_silent = heard.is_silent(timeout)
            _wait_for_the_running(
                client, {future.key for future in place}, 0.0 if is_silent else timeout
            )


class _Heard:
    """What workers tell: files that are done, and when any of them was last heard of."""

    def __init__(self, client: Any, topic: str) -> None:
        self.client, self.topic = client, topic
        self.done: queue.Queue[Any] = queue.Queue()
        self.last = time.monotonic()
        client.subscribe_topic(topic, self._beat)

    def _beat(self, event: Any) -> None:
        self.last = time.monotonic()

    def is_silent(self, timeout: float | None) -> bool:
        return timeout is not None and time.monotonic() - self.last > timeout

    def next(self, timeout: float | None) -> Any:
        """The next file that is done; None where nothing was heard for so long."""
        while True:
            try:
                future = self.done.get(timeout=0.2)
            except queue.Empty:
                if self.is_silent(timeout):
                    return None
                continue
            self.last = time.monotonic()
            return future

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self.client.unsubscribe_topic(self.topic)


def _result(future: Any, part: Part) -> Done:
    try:
        done: Done = future.result()
        return done
    except _distributed().KilledWorker as error:
        raise InputError(
            f"scoring {part.path} on Dask",
            f"the workers that were given it died, one after the other ({error})",
            "look into their logs: most often memory ran out",
        ) from None


def _wait_for_the_running(client: Any, keys: set[str], seconds: float | None) -> None:
    """Wait until no worker is at one of these tasks: a cancelled one is not stopped by Dask.

    One that is still at it after so many seconds is left: its file is none of a newer run's.
    """
    end = None if seconds is None else time.monotonic() + seconds
    with contextlib.suppress(Exception):
        while any(keys.intersection(held) for held in client.processing().values()):
            if end is not None and time.monotonic() >= end:
                logger.warning("workers of Dask are still at files that nobody waits for")
                return
            time.sleep(0.05)


def _score(
    name: str, task: Task, part: Part, records: Records, output: str, kind: str, topic: str
) -> Done:
    from distributed import get_worker

    worker: Any = get_worker()
    last = 0.0

    def beat(rows: int, share: float) -> None:
        nonlocal last
        if time.monotonic() - last >= BEAT_SECONDS:
            last = time.monotonic()
            worker.log_event(topic, part.name)

    worker.log_event(topic, part.name)
    scorer = Scorer(worker.plugins[name].machine, on_worker(task))
    return records.complete(scorer, part, output, kind, beat)


def frame(scorer: Scorer, parts: list[Part], cluster: Any) -> Any:
    """The answers as a Dask DataFrame, a partition for each file."""
    dask_dataframe = _dask_dataframe()
    scorer = Scorer(scorer.machine, on_worker(scorer.task))
    meta = scorer.part_schema(parts[0]).empty_table().to_pandas()
    numbers = dask_dataframe.from_map(_number, range(len(parts)), meta=_number(0).iloc[:0])
    return numbers.map_partitions(
        _score_frame, tuple(parts), _shipped(scorer.machine), scorer.task, meta=meta
    )


def _number(part: int) -> Any:
    import pandas

    return pandas.DataFrame({"part": [part]})


def _score_frame(
    numbers: Any, parts: tuple[Part, ...], machine: DecisionMachine | Assembly, task: Task
) -> Any:
    import pyarrow

    (number,) = numbers["part"]
    scorer, part = Scorer(machine, task), parts[number]
    batches = [answers for answers, _ in scorer.part(part)]
    return pyarrow.Table.from_batches(batches, scorer.part_schema(part)).to_pandas()


def dask_frame(
    machine: DecisionMachine | Assembly,
    frame: Any,
    *,
    outputs: str | Sequence[str] = "predict",
    keep: str | Sequence[str] = (),
    columns: Sequence[str] | None = None,
    n_threads: int | None = None,
) -> Any:
    """A Dask DataFrame of the answers to the rows of another, partition by partition; see `score`.

    The machine is one item of the graph, so that each worker is sent it once.
    """
    task = on_worker(task_of(outputs, keep, columns, n_threads))
    meta = _score_pandas(frame._meta, machine, task)
    return frame.map_partitions(_score_pandas, _shipped(machine), task, meta=meta)


def _score_pandas(frame: Any, machine: DecisionMachine | Assembly, task: Task) -> Any:
    from .functions import _PandasFunction

    return _PandasFunction(Scorer(machine, task))(frame)


def _shipped(machine: DecisionMachine | Assembly) -> Any:
    """The machine as one node of a graph."""
    from dask.delayed import delayed

    return delayed(machine, name=f"machine-{digest(machine)}", pure=True, traverse=False)


@contextlib.contextmanager
def _everywhere(client: Any, machine: DecisionMachine | Assembly) -> Iterator[str]:
    """Have the machine on every worker, also on those that start later."""
    from distributed import WorkerPlugin

    class Machine(WorkerPlugin):
        """Held by each worker while the run lasts."""

        def __init__(self) -> None:
            self.machine = machine

    name = f"machine-{digest(machine)}"
    client.register_plugin(Machine(), name=name)
    try:
        yield name
    finally:
        with contextlib.suppress(Exception):
            client.unregister_worker_plugin(name)


@contextlib.contextmanager
def _client(cluster: Any) -> Iterator[Any]:
    """The client that was given, one for an address, or one for a cluster on this machine."""
    distributed = _distributed()
    if isinstance(cluster, distributed.Client):
        yield cluster
        return
    if isinstance(cluster, str):
        try:
            client = distributed.Client(cluster, set_as_default=False, timeout=CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            raise InputError(
                f"connecting to Dask at {cluster}", str(error), "check the scheduler's address"
            ) from None
        with client:
            yield client
        return
    with _local_cluster() as local, distributed.Client(local, set_as_default=False) as client:
        yield client


def _local_cluster() -> Any:
    from ..run.engines.processor import cpu_count

    try:
        return _distributed().LocalCluster(
            n_workers=cpu_count(), threads_per_worker=1, dashboard_address=None
        )
    except RuntimeError as error:
        raise InputError(
            "starting Dask on this machine",
            f"its workers do not start ({error})",
            "in a script, call score under `if __name__ == '__main__':`, because workers import it",
        ) from None


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise _missing() from None
    return distributed


def _dask_dataframe() -> Any:
    try:
        import dask.dataframe
    except ImportError:
        raise _missing() from None
    return dask.dataframe


def _missing() -> MissingLibraryError:
    return MissingLibraryError(
        "scoring with Dask", "Dask is not installed", "pip install 'decision-machines[dask]'"
    )
