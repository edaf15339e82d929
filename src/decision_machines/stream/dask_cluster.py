"""Dask: files, or partitions of a Dask DataFrame, on the workers of a cluster."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import InputError, MissingLibraryError
from ..machine.digest import digest
from .functions import task_of
from .records import Records
from .work import Done, Scorer, Task, score_part

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..machine import DecisionMachine
    from .parts import Part

CONNECT_SECONDS = 10


def work(
    scorer: Scorer,
    todo: list[Part],
    paths: dict[Part, str],
    records: Records,
    kind: str,
    tell: Any,
    cluster: Any,
) -> Iterable[tuple[Part, Done]]:
    """Score every file on some worker, which writes the answers and the record.

    A worker that dies takes nothing with it: its unfinished file is no part of the output, and
    Dask gives its files to another.
    """
    if not todo:
        return
    distributed = _distributed()
    with _client(cluster) as client, _everywhere(client, scorer.machine) as name:
        place = {
            client.submit(
                _score, name, scorer.task, part, records, paths[part], kind, pure=False
            ): part
            for part in todo
        }
        try:
            for future in distributed.as_completed(place, loop=client.loop):
                part = place[future]
                yield part, _result(future, part)
        finally:
            # Before the machine is taken from the workers, and the folder given free.
            client.cancel(list(place))
            _wait_for_the_running(client, {future.key for future in place})


def _result(future: Any, part: Part) -> Done:
    try:
        return future.result()
    except _distributed().KilledWorker as error:
        raise InputError(
            f"scoring {part.path} on Dask",
            f"the workers that were given it died, one after the other ({error})",
            "look into their logs: most often memory ran out",
        ) from None


def _wait_for_the_running(client: Any, keys: set[str]) -> None:
    """Wait until no worker is at one of these tasks: a cancelled one is not stopped by Dask."""
    with contextlib.suppress(Exception):
        while any(keys.intersection(held) for held in client.processing().values()):
            time.sleep(0.05)


def _score(name: str, task: Task, part: Part, records: Records, output: str, kind: str) -> Done:
    from distributed import get_worker

    plugin: Any = get_worker().plugins[name]
    path = os.path.join(records.folder, output)
    done = score_part(Scorer(plugin.machine, _on_worker(task)), part, path, kind)
    records.finish(part, output, done)
    return done


def _on_worker(task: Task) -> Task:
    """One thread for each task by default: the cluster counts its processors itself."""
    return task if task.n_threads is not None else replace(task, n_threads=1)


def frame(scorer: Scorer, parts: list[Part], cluster: Any) -> Any:
    """The answers as a Dask DataFrame, a partition for each file."""
    dask_dataframe = _dask_dataframe()
    scorer = Scorer(scorer.machine, _on_worker(scorer.task))
    meta = scorer.part_schema(parts[0]).empty_table().to_pandas()
    numbers = dask_dataframe.from_map(_number, range(len(parts)), meta=_number(0).iloc[:0])
    return numbers.map_partitions(
        _score_frame, tuple(parts), _shipped(scorer.machine), scorer.task, meta=meta
    )


def _number(part: int) -> Any:
    import pandas

    return pandas.DataFrame({"part": [part]})


def _score_frame(
    numbers: Any, parts: tuple[Part, ...], machine: DecisionMachine, task: Task
) -> Any:
    import pyarrow

    (number,) = numbers["part"]
    scorer, part = Scorer(machine, task), parts[number]
    batches = [answers for answers, _ in scorer.part(part)]
    return pyarrow.Table.from_batches(batches, scorer.part_schema(part)).to_pandas()


def dask_frame(
    machine: DecisionMachine,
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
    task = _on_worker(task_of(outputs, keep, columns, n_threads))
    meta = _score_pandas(frame._meta, machine, task)
    return frame.map_partitions(_score_pandas, _shipped(machine), task, meta=meta)


def _score_pandas(frame: Any, machine: DecisionMachine, task: Task) -> Any:
    from .functions import _PandasFunction

    return _PandasFunction(Scorer(machine, task))(frame)


def _shipped(machine: DecisionMachine) -> Any:
    """The machine as one node of a graph."""
    import dask

    return dask.delayed(machine, name=f"machine-{digest(machine)}", pure=True, traverse=False)


@contextlib.contextmanager
def _everywhere(client: Any, machine: DecisionMachine) -> Iterator[str]:
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
            "in a script, call score under `if __name__ == '__main__':`, for workers import it",
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
