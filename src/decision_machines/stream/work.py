"""What is done with every file, wherever it is done: read, scored, written, batch by batch."""

from __future__ import annotations

import os
import time
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..errors import DecisionMachinesError, InputError
from ..files.features import feature_columns, feature_table, ignored_columns
from ..machine import Assembly, DecisionMachine
from ..run.engines.processor import cpu_count
from .ahead import ahead, check_wanted, mapped
from .answers import Answers, arrow
from .assembly_answers import AssemblyAnswers
from .batches import open_part
from .sinks import sink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..files.batches import Batch
    from .parts import Part

ROWS_AT_ONCE = 65536
BYTES_AT_ONCE = 1 << 24
MOST_WORKERS = 4
"""Batches scored at once: threads that share a batch wait for each other at its end."""


STEPS_AT_ONCE = 200_000_000
"""Tests asked, or leaves times depth for Shapley values, between two looks whether to go on."""


@dataclass(frozen=True)
class Task:
    """What to answer, and from which columns; with a machine, all that a worker must know."""

    outputs: tuple[str, ...] = ("predict",)
    keep: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    n_threads: int | None = None
    rows_at_once: int | None = None


@dataclass(frozen=True)
class Done:
    """One file scored and written."""

    name: str
    output: str
    rows: int
    bytes: int
    seconds: float = field(compare=False)


class Scorer:
    """A machine, or an assembly, put to a task: Arrow batches in, Arrow batches out."""

    def __init__(self, machine: DecisionMachine | Assembly, task: Task) -> None:
        self.machine, self.task = machine, task
        self.answers: Answers | AssemblyAnswers
        if isinstance(machine, Assembly):
            self.columns, self.answers = machine.reads, AssemblyAnswers(machine, task.outputs)
        else:
            self.columns, self.answers = machine.columns, Answers(machine, task.outputs)
        if task.rows_at_once is not None and task.rows_at_once < 1:
            raise InputError(
                "choosing the rows at once", f"{task.rows_at_once} rows", "use at least 1"
            )

    @property
    def rows_at_once(self) -> int:
        """Rows of a batch: few enough that its features and answers fit in 16 MB."""
        width = self.machine.n_features + len(self.answers.schema) + len(self.task.keep)
        fitting = max(256, BYTES_AT_ONCE // (8 * max(width, 1)))
        return self.task.rows_at_once or min(ROWS_AT_ONCE, fitting)

    def schema(self, found: Any) -> Any:
        """The schema of the answers to data of a schema: the kept columns, then the answers."""
        pyarrow = arrow()
        self.features(found.names)
        kept = [found.field(name) for name in self.task.keep]
        names = [*self.task.keep, *self.answers.schema.names]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(
                "naming the columns of the output", f"two are {twice!r}", "rename the kept column"
            )
        fields = [pyarrow.field(f.name, f.type) for f in kept]
        return pyarrow.schema([*fields, *self.answers.schema])

    def features(self, names: Sequence[str]) -> list[str]:
        """The data's column for each feature."""
        task = self.task
        return feature_columns(self.columns, names, keep=task.keep, chosen=task.columns)

    def score(self, batch: Any, schema: Any = None, n_threads: int | None = None) -> Any:
        """The answers to a record batch."""
        pyarrow = arrow()
        found = self.features(batch.schema.names)
        table = feature_table(batch, found, self.columns)
        answers = self.answers.columns(table, n_threads or self.task.n_threads)
        kept = [batch.column(batch.schema.get_field_index(name)) for name in self.task.keep]
        schema = self.schema(batch.schema) if schema is None else schema
        return pyarrow.RecordBatch.from_arrays(
            [
                array if array.type == field.type else array.cast(field.type)
                for array, field in zip([*kept, *answers], schema, strict=True)
            ],
            schema=schema,
        )

    def part_schema(self, part: Part) -> Any:
        """The schema of the answers to one file."""
        with _naming(f"opening {part.path}"):
            return self.schema(self._open(part).schema)

    def ignored(self, part: Part) -> tuple[str, ...]:
        """The columns of one file that are neither features nor kept."""
        names = self._open(part).schema.names
        return ignored_columns(names, self.features(names), self.task.keep)

    def part(self, part: Part, schema: Any = None) -> Iterator[tuple[Any, float]]:
        """(answers, share of the file done) for one batch of a file after the other."""
        with _naming(f"opening {part.path}"):
            opened = self._open(part)
            schema = self.schema(opened.schema) if schema is None else schema
            names = list(dict.fromkeys([*self.features(opened.schema.names), *self.task.keep]))
        threads = self.task.n_threads or cpu_count()
        workers = min(threads, MOST_WORKERS)

        def answer(batch: Batch) -> tuple[Any, float]:
            with _naming(f"scoring {batch.where}"):
                return self._in_steps(batch.table, schema, threads // workers), batch.share

        yield from mapped(answer, ahead(opened.read(names, self.rows_at_once)), workers)

    def _in_steps(self, batch: Any, schema: Any, n_threads: int) -> Any:
        """The answers to a batch; a wish to stop is heard within a second or so."""
        n, step = len(batch), self._rows_in_a_step
        if n <= step:
            check_wanted()
            return self.score(batch, schema, n_threads)
        found = []
        for first in range(0, n, step):
            check_wanted()
            found.append(self.score(batch.slice(first, step), schema, n_threads))
        return arrow().Table.from_batches(found).combine_chunks().to_batches()[0]

    @cached_property
    def _rows_in_a_step(self) -> int:
        """Rows that even a large machine answers soon."""
        machines = getattr(self.machine, "machines", None) or (self.machine,)
        n_paths = sum(m.n_leaves if "shap" in self.task.outputs else m.n_trees for m in machines)
        depth = max((m.depth for m in machines), default=0)
        return max(256, STEPS_AT_ONCE // max(n_paths * depth, 1))

    def _open(self, part: Part) -> Any:
        task = self.task
        return open_part(part, self.columns, keep=task.keep, chosen=task.columns)


def on_worker(task: Task) -> Task:
    """One thread for each task by default: a cluster counts its processors itself."""
    return task if task.n_threads is not None else replace(task, n_threads=1)


def score_part(
    scorer: Scorer,
    part: Part,
    path: str,
    kind: str,
    *,
    progress: Callable[[int, float], None] | None = None,
    replacing: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Done:
    """Score one file into another, which appears at `path` when it is complete.

    Parameters
    ----------
    replacing
        Entered while the file takes its place; what it raises leaves what stood there.
    """
    start, rows = time.perf_counter(), 0
    schema = scorer.part_schema(part)
    with ExitStack() as held, sink(path, schema, kind) as write:
        for answers, share in ahead(scorer.part(part, schema)):
            write(answers)
            rows += len(answers)
            if progress is not None:
                progress(len(answers), share)
        _check_unchanged(part)
        held.enter_context(replacing())  # left after the file has its name
    seconds = time.perf_counter() - start
    return Done(part.name, os.path.basename(path), rows, os.path.getsize(path), seconds)


def _check_unchanged(part: Part) -> None:
    """Refuse answers to a file that was written to while it was read."""
    now = os.stat(part.path)
    if (now.st_size, now.st_mtime_ns) != (part.size, part.mtime_ns):
        raise InputError(
            f"scoring {part.path}", "it changed while it was read", "run again when it is complete"
        )


class _naming:
    """Say of our own errors in which file, and where in it, they arose."""

    def __init__(self, doing: str) -> None:
        self.doing = doing

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if isinstance(error, DecisionMachinesError) and self.doing.split(" ", 1)[1] not in str(
            error
        ):
            raise InputError(self.doing, error.found, error.remedy) from None
        if isinstance(error, arrow().ArrowException):
            raise InputError(
                self.doing,
                f"its columns do not fit those of the files before ({error})",
                "give all files the same columns, or write a folder of files",
            ) from None
