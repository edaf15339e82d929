"""Ray: files, or the blocks of a Ray Dataset, on the workers of a cluster."""

from __future__ import annotations

import contextlib
import logging
import pickle
from typing import TYPE_CHECKING, Any

from ..errors import DecisionMachinesError, InputError, MissingLibraryError
from ..machine.digest import digest
from .answers import arrow
from .functions import task_of
from .signs import LOOK_SECONDS, Signs
from .work import Done, Scorer, Task, on_worker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..machine import DecisionMachine
    from .parts import Part
    from .records import Records

_held: dict[str, DecisionMachine] = {}
"""On a worker: the machine of the last task, which most often is that of the next one."""


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
    """Score every file in some task, which writes the answers and the record.

    A worker that dies takes nothing with it: its unfinished file is not part of the output, and Ray
    gives its file to another. The run is given up after `timeout` seconds in which no file was
    finished and none grew.
    """
    if not todo:
        return
    signs = Signs(records, timeout, "Ray")
    ray = _ray()
    with _session(cluster):
        task, name = on_worker(scorer.task), digest(scorer.machine)
        sent = ray.put(scorer.machine)
        score = ray.remote(_score)
        place = {
            score.remote([sent], name, task, part, records, paths[part], kind): part
            for part in todo
        }
        waiting = list(place)
        try:
            while waiting:
                ready, waiting = ray.wait(waiting, timeout=LOOK_SECONDS)
                signs.look(bool(ready), [place[one].path for one in waiting])
                for done in ready:
                    yield place[done], _result(ray, done, place[done])
        finally:
            for one in waiting:
                # A task that hangs does not hear of it otherwise.
                ray.cancel(one, force=signs.are_missing)


def _score(
    sent: list[Any], name: str, task: Task, part: Part, records: Records, output: str, kind: str
) -> Any:
    """What a file's scoring came to; an error of ours is a value, which Ray does not wrap."""
    try:
        return records.complete(Scorer(_machine(sent, name), task), part, output, kind)
    except DecisionMachinesError as error:
        return error


def _result(ray: Any, done: Any, part: Part) -> Done:
    try:
        found: Any = ray.get(done)
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError) as error:
        raise InputError(
            f"scoring {part.path} on Ray",
            f"the workers that were given it died, one after the other ({error})",
            "look into their logs: most often memory ran out",
        ) from None
    if isinstance(found, DecisionMachinesError):
        raise found
    assert isinstance(found, Done)
    return found


def frame(scorer: Scorer, parts: list[Part], cluster: Any) -> Any:
    """The answers as a Ray Dataset; each file is read by one task, in its order.

    A cluster that is not running yet is started and left running: the dataset is read later.
    """
    ray = _ray()
    if not ray.is_initialized():
        _start(ray, cluster)
    scorer = Scorer(scorer.machine, on_worker(scorer.task))
    schema, task, name = scorer.part_schema(parts[0]), scorer.task, digest(scorer.machine)
    sent = ray.put(scorer.machine)

    def score(batch: Any) -> Iterator[Any]:
        mine = Scorer(_machine([sent], name), task)
        for packed in batch.column("part").to_pylist():
            for answers, _ in mine.part(pickle.loads(packed), schema):
                yield arrow().Table.from_batches([answers], schema)

    rows = arrow().table({"part": [pickle.dumps(part) for part in parts]})
    spread = ray.data.from_arrow([rows.slice(i, 1) for i in range(len(parts))])
    return spread.map_batches(score, batch_format="pyarrow", batch_size=1)


def ray_dataset(
    machine: DecisionMachine,
    dataset: Any,
    *,
    outputs: str | Sequence[str] = "predict",
    keep: str | Sequence[str] = (),
    columns: Sequence[str] | None = None,
    n_threads: int | None = None,
) -> Any:
    """A Ray Dataset of the answers to the rows of another, batch by batch; see `score`.

    The machine is put into Ray's store once, and each worker holds it from batch to batch.
    """
    ray = _ray()
    if not isinstance(dataset, ray.data.Dataset):
        raise InputError(
            "scoring with Ray",
            f"a {type(dataset).__name__}",
            "give a ray.data.Dataset, such as ray.data.read_parquet(...)",
        )
    scorer = Scorer(machine, on_worker(task_of(outputs, keep, columns, n_threads)))
    names = dataset.columns()
    if names is not None:
        scorer.features(names)  # refused now, not by a worker
    task, name, sent = scorer.task, digest(machine), ray.put(machine)

    def score(batch: Any) -> Any:
        mine = Scorer(_machine([sent], name), task)
        schema = mine.schema(batch.schema)
        found = [mine.score(part, schema) for part in batch.to_batches()]
        return arrow().Table.from_batches(found, schema)

    return dataset.map_batches(score, batch_format="pyarrow")


def _machine(sent: list[Any], name: str) -> DecisionMachine:
    """The machine behind a reference, made once in a worker for all of its batches."""
    if name not in _held:
        _held.clear()
        _held[name] = _ray().get(sent[0])
    return _held[name]


@contextlib.contextmanager
def _session(cluster: Any) -> Iterator[None]:
    """The cluster that this process is connected to; else one that ends with the work."""
    ray = _ray()
    if ray.is_initialized():
        yield
        return
    _start(ray, cluster)
    try:
        yield
    finally:
        ray.shutdown()


def _start(ray: Any, cluster: Any) -> None:
    if cluster is not None and not isinstance(cluster, str):
        raise InputError(
            "connecting to Ray", f"cluster={cluster!r:.60}", "give an address, ray://host:10001"
        )
    quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
    try:
        if cluster is None:
            ray.init(include_dashboard=False, **quiet)
        else:
            ray.init(address=cluster, **quiet)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InputError(
            f"connecting to Ray at {cluster or 'this machine'}", str(error), "check the address"
        ) from None


def _ray() -> Any:
    try:
        import ray
        import ray.data
    except ImportError:
        raise MissingLibraryError(
            "scoring with Ray", "ray is not installed", "pip install 'decision-machines[ray]'"
        ) from None
    return ray
