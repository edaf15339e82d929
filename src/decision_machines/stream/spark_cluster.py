"""Spark: files, or the rows of a Spark DataFrame, through `mapInArrow`."""

from __future__ import annotations

import contextlib
import pickle
from typing import TYPE_CHECKING, Any

from ..errors import DecisionMachinesError, MissingLibraryError
from .answers import arrow
from .functions import task_of
from .signs import LOOK_SECONDS, Signs
from .work import Done, Scorer, on_worker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..machine import DecisionMachine
    from .parts import Part
    from .records import Records

ROUNDS = 8
"""Files for each processor in one job; between jobs the progress is told."""


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

    A job is given up after `timeout` seconds in which no file was finished and none grew.
    """
    if not todo:
        return
    signs = Signs(records, timeout, "Spark")
    with _session(cluster) as session:
        scorer = Scorer(scorer.machine, on_worker(scorer.task))
        machine = session.sparkContext.broadcast(scorer.machine)
        task = scorer.task

        def score(batches: Iterable[Any]) -> Iterator[Any]:
            pyarrow = arrow()
            mine = Scorer(machine.value, task)
            for batch in batches:
                for packed in batch.column(0).to_pylist():
                    part, output = pickle.loads(packed)
                    try:
                        found: Any = records.complete(mine, part, output, kind)
                    except DecisionMachinesError as error:
                        # Handed over as a value: Spark would wrap it in pages of its own.
                        found = error
                    own = {"found": [pickle.dumps((part, found))]}
                    yield pyarrow.RecordBatch.from_pydict(own)

        at_once = session.sparkContext.defaultParallelism * ROUNDS
        for start in range(0, len(todo), at_once):
            some = todo[start : start + at_once]
            rows = [(pickle.dumps((part, paths[part])),) for part in some]
            spread = session.sparkContext.parallelize(rows, len(rows))
            frame = session.createDataFrame(spread, "part binary")
            results = _collected(session, frame.mapInArrow(score, "found binary"), signs, some)
            answers = [pickle.loads(bytes(row.found)) for row in results]
            for part, found in answers:
                if isinstance(found, Done):
                    yield part, found
            for _, found in answers:
                if not isinstance(found, Done):
                    raise found


def _collected(session: Any, frame: Any, signs: Signs, parts: list[Part]) -> list[Any]:
    """The rows of a frame, collected by a thread that this one can give up."""
    from pyspark import InheritableThread

    found: list[Any] = []
    group = f"decision-machines-{id(frame)}"

    def collect() -> None:
        session.sparkContext.setJobGroup(group, "scoring", interruptOnCancel=True)
        try:
            found.append(frame.collect())
        except BaseException as error:
            found.append(error)

    thread = InheritableThread(target=collect, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(LOOK_SECONDS)
            if thread.is_alive():
                signs.look(False, [part.path for part in parts])
    except BaseException:
        session.sparkContext.cancelJobGroup(group)
        raise
    signs.look(True, [])
    if isinstance(found[0], BaseException):
        raise found[0]
    rows: list[Any] = found[0]
    return rows


def frame(scorer: Scorer, parts: list[Part], cluster: Any) -> Any:
    """The answers as a Spark DataFrame; each file is read by one task, in its order.

    Works with a session that is given or already runs: one of our own would end with this call.
    """
    session = _found(cluster) or _started(cluster)
    scorer = Scorer(scorer.machine, on_worker(scorer.task))
    schema, task = scorer.part_schema(parts[0]), scorer.task
    machine = session.sparkContext.broadcast(scorer.machine)

    def score(batches: Iterable[Any]) -> Iterator[Any]:
        mine = Scorer(machine.value, task)
        for batch in batches:
            for packed in batch.column(0).to_pylist():
                for answers, _ in mine.part(pickle.loads(packed), schema):
                    yield answers

    rows = [(pickle.dumps(part),) for part in parts]
    spread = session.sparkContext.parallelize(rows, len(rows))
    return session.createDataFrame(spread, "part binary").mapInArrow(score, _spark_schema(schema))


def spark_frame(
    machine: DecisionMachine,
    frame: Any,
    *,
    outputs: str | Sequence[str] = "predict",
    keep: str | Sequence[str] = (),
    columns: Sequence[str] | None = None,
    n_threads: int | None = None,
) -> Any:
    """A Spark DataFrame of the answers to the rows of another, by `mapInArrow`; see `score`.

    The machine is broadcast: each executor is sent it once.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    scorer = Scorer(machine, on_worker(task_of(outputs, keep, columns, n_threads)))
    schema, task = scorer.schema(to_arrow_schema(frame.schema)), scorer.task
    shared = frame.sparkSession.sparkContext.broadcast(machine)

    def score(batches: Iterable[Any]) -> Iterator[Any]:
        mine = Scorer(shared.value, task)
        for batch in batches:
            yield mine.score(batch, schema)

    return frame.mapInArrow(score, _spark_schema(schema))


def _spark_schema(schema: Any) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


@contextlib.contextmanager
def _session(cluster: Any) -> Iterator[Any]:
    """The session that was given or runs already; else one that ends with the work."""
    found = _found(cluster)
    if found is not None:
        yield found
        return
    session = _started(cluster)
    try:
        yield session
    finally:
        session.stop()


def _found(cluster: Any) -> Any:
    if cluster is not None and not isinstance(cluster, str):
        return cluster
    return _pyspark().SparkSession.getActiveSession() if cluster is None else None


def _started(cluster: Any) -> Any:
    builder = _pyspark().SparkSession.builder.master(cluster or "local[*]")
    return builder.appName("decision-machines").getOrCreate()


def _pyspark() -> Any:
    try:
        import pyspark.sql
    except ImportError:
        raise MissingLibraryError(
            "scoring with Spark",
            "pyspark is not installed",
            "pip install 'decision-machines[spark]', and have Java 17 or newer",
        ) from None
    return pyspark.sql
