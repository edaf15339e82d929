"""A machine as a plain function of batches or frames, for pipelines of the user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import InputError, MissingLibraryError
from .answers import arrow
from .work import Scorer, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..machine import DecisionMachine


def task_of(
    outputs: str | Sequence[str],
    keep: str | Sequence[str],
    columns: Sequence[str] | None,
    n_threads: int | None,
) -> Task:
    """A task from the words that users give."""
    return Task(
        (outputs,) if isinstance(outputs, str) else tuple(outputs),
        (keep,) if isinstance(keep, str) else tuple(keep),
        None if columns is None else tuple(columns),
        n_threads,
    )


def arrow_function(
    machine: DecisionMachine,
    *,
    outputs: str | Sequence[str] = "predict",
    keep: str | Sequence[str] = (),
    columns: Sequence[str] | None = None,
    n_threads: int | None = None,
) -> Callable[[Any], Any]:
    """A function from an Arrow record batch or table to one of the answers; see `score`.

    Examples
    --------
    >>> import decision_machines as dm, pyarrow as pa
    >>> rows = {"id": [7], "a": [2.0], "b": [1.0], "c": [2.0], "d": [2.0]}
    >>> batch = pa.RecordBatch.from_pydict(rows)
    >>> score = dm.stream.arrow_function(dm.figure_one(), keep="id", columns=list("abcd"))
    >>> score(batch).to_pylist()
    [{'id': 7, 'prediction': 5.0}]
    """
    scorer = Scorer(machine, task_of(outputs, keep, columns, n_threads))

    def answer(batch: Any) -> Any:
        pyarrow = arrow()
        if isinstance(batch, pyarrow.Table):
            schema = scorer.schema(batch.schema)
            found = [scorer.score(part, schema) for part in batch.to_batches()]
            return pyarrow.Table.from_batches(found, schema)
        return scorer.score(batch)

    return answer


def pandas_function(
    machine: DecisionMachine,
    *,
    outputs: str | Sequence[str] = "predict",
    keep: str | Sequence[str] = (),
    columns: Sequence[str] | None = None,
    n_threads: int | None = None,
) -> Callable[[Any], Any]:
    """A function from a pandas DataFrame to one of the answers, with the same index; see `score`.

    Examples
    --------
    >>> import decision_machines as dm, pandas as pd
    >>> frame = pd.DataFrame([[2.0, 1.0, 2.0, 2.0]], columns=list("abcd"), index=["row"])
    >>> dm.stream.pandas_function(dm.figure_one(), columns=list("abcd"))(frame)
         prediction
    row         5.0
    """
    return _PandasFunction(Scorer(machine, task_of(outputs, keep, columns, n_threads)))


class _PandasFunction:
    """Features are read from the frame itself: a trip through Arrow would change its types."""

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer

    def __call__(self, frame: Any) -> Any:
        import pandas

        scorer = self.scorer
        found = scorer.features([str(name) for name in frame.columns])
        by_name = {str(name): name for name in frame.columns}
        table = frame[[by_name[name] for name in found]]
        names = scorer.columns.names
        if names is not None:
            table = table.set_axis(list(names), axis=1)
        answers = scorer.answers.columns(table, scorer.task.n_threads)
        columns = {name: frame[by_name[name]] for name in scorer.task.keep}
        for name, array in zip(scorer.answers.schema.names, answers, strict=True):
            columns[name] = pandas.Series(array.to_pandas().to_numpy(), frame.index)
        return pandas.DataFrame(columns, index=frame.index)

    def __reduce__(self) -> tuple[Any, ...]:
        return _pandas_function, (self.scorer.machine, self.scorer.task)


def _pandas_function(machine: DecisionMachine, task: Task) -> _PandasFunction:
    return _PandasFunction(Scorer(machine, task))


def expr(
    machine: DecisionMachine,
    *,
    output: str = "predict",
    columns: Sequence[str] | None = None,
    n_threads: int | None = None,
) -> Any:
    """A polars expression: the machine's answers to each row.

    Parameters
    ----------
    output
        "predict", "proba", "margin", "leaves" or "shap".
    columns
        The columns that are the features, in their order; by default those of the model's names,
        or all columns, where it has none.

    Returns
    -------
    polars.Expr
        Named `prediction`, `margin`, ...; a struct of that name where several columns answer.

    Examples
    --------
    >>> import decision_machines as dm, polars as pl
    >>> frame = pl.DataFrame({"a": [2.0], "b": [1.0], "c": [2.0], "d": [2.0]})
    >>> frame.select(dm.expr(dm.figure_one(), columns=list("abcd"))).to_dicts()
    [{'prediction': 5.0}]
    """
    try:
        import polars
    except ImportError:
        raise MissingLibraryError(
            "making an expression", "polars is not installed", "pip install polars"
        ) from None
    if not isinstance(output, str):
        raise InputError("making an expression", f"output={output!r}", "ask for one at a time")
    scorer = Scorer(machine, task_of(output, (), columns, n_threads))
    schema = scorer.answers.schema
    empty: Any = polars.from_arrow(schema.empty_table())
    is_one = len(schema) == 1
    name = schema.names[0] if is_one else {"predict": "prediction"}.get(output, output)

    def answer(rows: Any) -> Any:
        frame = rows.struct.unnest()
        found = frame.select(scorer.features(frame.columns))
        found.columns = list(machine.columns.names or found.columns)
        arrays = scorer.answers.columns(found, n_threads)
        table: Any = polars.from_arrow(arrow().Table.from_arrays(arrays, schema=schema))
        return table.to_series().alias(name) if is_one else table.to_struct(name)

    wanted = columns or machine.columns.names
    rows = polars.struct(polars.col(list(wanted)) if wanted else polars.all())
    kind = empty.to_series().dtype if is_one else empty.to_struct(name).dtype
    return rows.map_batches(answer, return_dtype=kind, is_elementwise=True).alias(name)
