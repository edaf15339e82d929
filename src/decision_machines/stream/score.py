"""`score`: data of any size through a machine, here or on a cluster."""

from __future__ import annotations

import functools
import importlib
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..files.kinds import ENDINGS, WRITTEN, ending, separator
from ..machine.digest import digest
from ..progress import Progress, Verbosity
from .ahead import ahead
from .answers import arrow
from .parts import Part, find_parts, split_parts
from .records import Records
from .sinks import sink
from .work import Done, Scorer, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..machine import Assembly, DecisionMachine

    Tell = Callable[[int, float], None]

CLUSTERS = {"dask": "dask_cluster", "ray": "ray_cluster", "spark": "spark_cluster"}
"""Engines other than "local" → the file of this room that runs them."""


TIMEOUT = 600.0
"""Seconds of silence after which a cluster's workers are given up."""


@dataclass(frozen=True)
class Report:
    """What a run did."""

    output: str
    rows: int
    """Of the whole output."""
    parts: int
    """Files of data."""
    found_finished: int
    """How many of them an earlier run had finished."""
    rows_scored: int
    """By this run."""
    seconds: float
    ignored: tuple[str, ...] = ()
    """Columns of the data (of its first file) that the model does not read and nobody kept."""


def score(
    machine: DecisionMachine | Assembly,
    data: Any,
    output: str | os.PathLike[str] | None = None,
    *,
    outputs: str | Sequence[str] = "predict",
    keep: str | Sequence[str] = (),
    columns: Sequence[str] | None = None,
    engine: str = "local",
    cluster: Any = None,
    format: str | None = None,
    n_threads: int | None = None,
    rows_at_once: int | None = None,
    split_rows: int | None = None,
    fresh: bool = False,
    progress: Tell | None = None,
    verbose: Verbosity = False,
    timeout: float | None = TIMEOUT,
) -> Any:
    """Score files of any size, batch by batch, in memory that does not grow with them.

    Parameters
    ----------
    data
        A Parquet, Arrow or CSV file, a folder or a glob of them, a list of these, or a
        `pyarrow.dataset.Dataset` of local files.
    output
        A file that ends in .parquet, .arrow, .csv or .tsv: all answers in it, in the order of the
        data. Otherwise a folder: a file of answers for each file of data. Every file appears when
        it is complete. Run again, a folder is gone on with where it was left: files that are
        finished and whose data has not changed are not done again. None returns the answers
        instead.
    outputs
        One or several of "predict", "proba", "margin", "leaves" and "shap", Shapley values.
    keep
        Columns to carry along, before the answers.
    columns
        The data's columns that are the features, in their order. By default they are matched by
        name, or, where the model has no names, are all but the kept ones.
    engine
        "local"; "dask", "ray" or "spark": the files are shared out among a cluster's workers, which
        must see the same paths.
    cluster
        For Dask a client or a scheduler's address, for Ray an address, for Spark a session or
        a master's address; None starts one on this machine.
    format
        Of the files in a folder: "parquet", "arrow" or "csv".
    n_threads
        For the engine; by default all processors (one in each worker of a cluster).
    rows_at_once
        Rows in a batch. By default as many as keep features and answers within 16 MB.
    split_rows
        Cut Parquet files between row groups into pieces of about this many rows, each with a file
        of answers (or a partition) of its own. So several workers share one large file, and a run
        that was stopped within it goes on there.
    fresh
        Whether to remove what an earlier run wrote into the folder and start again.
    progress
        Called with (rows scored, share of the data done) as the work goes on.
    verbose
        Whether to show progress: a bar on a terminal and in a notebook, in a pipe a line now and
        then. None shows it, too, but not for quick work in a pipe. Answers that are returned are
        read later, and show none.
    timeout
        Seconds after which a run on a cluster is given up where no worker has shown any progress
        (Dask's report it; of Ray and Spark, no file was finished and none grew): a
        `TimedOutError` names the files that were waited for. Files that are finished stay, the
        others are not there, and the same call goes on with them; whatever a hung worker still does
        later replaces nothing of a newer run. None waits for ever.

    Returns
    -------
    Report
        Or, without `output`, the answers themselves, read when asked for: a
        `pyarrow.RecordBatchReader`, a Dask DataFrame, a Ray Dataset or a Spark
        DataFrame.
    """
    keep = (keep,) if isinstance(keep, str) else tuple(keep)
    chosen = None if columns is None else tuple(columns)
    kinds = (outputs,) if isinstance(outputs, str) else tuple(outputs)
    task = Task(kinds, keep, chosen, n_threads, rows_at_once)
    if engine != "local" and engine not in CLUSTERS:
        raise InputError(
            "scoring", f"engine={engine!r}", f"use one of local, {', '.join(CLUSTERS)}"
        )
    scorer, parts = Scorer(machine, task), find_parts(data)
    if split_rows is not None:
        parts = split_parts(parts, split_rows)
    elsewhere = None
    if engine != "local":
        elsewhere = importlib.import_module(f".{CLUSTERS[engine]}", __package__)
    if output is None:
        if elsewhere is not None:
            return elsewhere.frame(scorer, parts, cluster)
        return _reader(scorer, parts)
    output = os.fspath(output)
    _check_apart(data, parts, output)
    _check_ending(output)
    if ending(output) in ENDINGS and not os.path.isdir(output):
        if elsewhere is not None:
            raise InputError(
                f"writing {output}",
                f"one file, from the many workers of {engine}",
                "give a folder, or use engine='local'",
            )
        with Progress("scoring", 1.0, verbose) as shown:
            return _into_file(scorer, parts, output, _Tell(parts, progress, shown))
    if (format or "parquet") not in WRITTEN:
        raise InputError("scoring", f"format={format!r}", f"use one of {', '.join(WRITTEN)}")
    work = _local if elsewhere is None else elsewhere.work
    with Progress("scoring", 1.0, verbose) as shown:
        tell = _Tell(parts, progress, shown)
        work = functools.partial(work, cluster=cluster, timeout=timeout)
        return _into_folder(scorer, parts, output, format or "parquet", fresh, tell, work)


def _check_ending(output: str) -> None:
    """Refuse the name of a file of a kind that we do not write: it would become a folder."""
    end = ending(output)
    is_folder = output.endswith(("/", os.sep)) or os.path.isdir(output)
    if end[1:2].isalpha() and end not in ENDINGS and not is_folder:
        raise InputError(
            f"writing {output}",
            f"its name ends in {end!r}, which is not a kind of table that we write",
            f"use {', '.join(WRITTEN.values())} or .tsv for one file; for a folder of this name, "
            "make it first or end it with /",
        )


def _reader(scorer: Scorer, parts: list[Part]) -> Any:
    schema = scorer.part_schema(parts[0])
    batches = (answers for part in parts for answers, _ in scorer.part(part, schema))
    return arrow().RecordBatchReader.from_batches(schema, batches)


def _into_file(scorer: Scorer, parts: list[Part], output: str, tell: _Tell) -> Report:
    kind = ENDINGS[ending(output)]
    if ending(output).endswith("gz"):
        raise InputError(f"writing {output}", "a packed CSV", "write .csv, and pack it afterwards")
    start = time.perf_counter()
    schema = scorer.part_schema(parts[0])
    with sink(output, schema, kind, separator(output)) as write:
        for part in parts:
            for answers, share in ahead(scorer.part(part, schema)):
                write(answers)
                tell.batch(part, len(answers), share)
            tell.part(part)
    seconds = time.perf_counter() - start
    return Report(output, tell.rows, len(parts), 0, tell.rows, seconds, scorer.ignored(parts[0]))


def _into_folder(
    scorer: Scorer,
    parts: list[Part],
    output: str,
    kind: str,
    fresh: bool,
    tell: _Tell,
    work: Callable[..., Iterable[tuple[Part, Done]]],
) -> Report:
    start, records = time.perf_counter(), Records(output)
    paths = _output_names(parts, kind)
    task = scorer.task
    run = {
        "model": digest(scorer.machine),
        "outputs": list(task.outputs),
        "kept columns": list(task.keep),
        "columns": None if task.columns is None else list(task.columns),
        "format": kind,
    }
    with records.alone():
        records.begin(run, fresh)
        records.check_other_answers(set(paths.values()))
        finished = {part: records.finished(part, paths[part]) for part in parts}
        rows = sum(done.rows for done in finished.values() if done is not None)
        todo = [part for part in parts if finished[part] is None]
        for part in parts:
            if finished[part] is not None:
                tell.part(part)
        for part, done in work(scorer, todo, paths, records, kind, tell):
            tell.part(part, done.rows)
            rows += done.rows
    seconds = time.perf_counter() - start
    found = len(parts) - len(todo)
    ignored = scorer.ignored(parts[0])
    return Report(output, rows, len(parts), found, tell.rows, seconds, ignored)


def _local(
    scorer: Scorer,
    todo: list[Part],
    paths: dict[Part, str],
    records: Records,
    kind: str,
    tell: _Tell,
    *,
    cluster: Any,
    timeout: float | None,
) -> Iterable[tuple[Part, Done]]:
    for part in todo:
        told = functools.partial(tell.batch, part)
        yield part, records.complete(scorer, part, paths[part], kind, told)


def _output_names(parts: list[Part], kind: str) -> dict[Part, str]:
    """The file of answers for each file of data: its own name, with the format's ending."""
    names: dict[str, Part] = {}
    for part in parts:
        end = ending(part.name)
        stem = part.name[: -len(end)] if end in ENDINGS else part.name
        name = stem + WRITTEN[kind]
        if name in names:
            raise InputError(
                "naming the files of answers",
                f"{names[name].path} and {part.path} would both be answered in {name}",
                "score them apart, or rename one",
            )
        names[name] = part
    return {part: name for name, part in names.items()}


def _check_apart(data: Any, parts: list[Part], output: str) -> None:
    """Refuse an output that is, holds, or lies among the data."""
    place = os.path.realpath(output)
    given = [data] if isinstance(data, (str, os.PathLike)) else []
    folders = [os.path.realpath(folder) for folder in given if os.path.isdir(folder)]
    within = [folder for folder in folders if f"{place}{os.sep}".startswith(f"{folder}{os.sep}")]
    paths = [os.path.realpath(part.path) for part in parts]
    within += [path for path in paths if f"{path}{os.sep}".startswith(f"{place}{os.sep}")]
    if not output:
        raise InputError("writing the answers", "no name for them", "name a file or a folder")
    if within:
        raise InputError(
            f"writing {output}",
            "it is the data"
            if place in paths
            else f"it would be in the data's folder, {within[0]}",
            "give an output outside the data's folder",
        )


class _Tell:
    """Counts rows and the share of the data that is done, and tells whoever asked."""

    def __init__(self, parts: list[Part], progress: Tell | None, shown: Progress) -> None:
        self.total = sum(part.weight for part in parts) or 1
        self.done = 0.0
        self.rows = 0
        self.told: dict[Part, int] = {}
        self.progress, self.shown = progress, shown
        self.start = time.perf_counter()

    def batch(self, part: Part, rows: int, share: float) -> None:
        """Some rows of a part that is being read."""
        self.rows += rows
        self.told[part] = self.told.get(part, 0) + rows
        self._tell((self.done + share * part.weight) / self.total)

    def part(self, part: Part, rows: int = 0) -> None:
        """A whole part of so many rows, some of which were told of before."""
        self.done += part.weight
        self.rows += rows - self.told.pop(part, 0) if rows else 0
        self._tell(self.done / self.total)

    def _tell(self, share: float) -> None:
        if self.progress is not None:
            self.progress(self.rows, share)
        speed = self.rows / max(time.perf_counter() - self.start, 1e-9)
        self.shown.update(share, rows=self.rows, **{"rows/s": speed})
