"""DuckDB: a machine as a function of SQL, called with Arrow batches."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, MissingLibraryError
from ..files.features import feature_table
from .answers import arrow
from .functions import task_of
from .work import Scorer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..machine import DecisionMachine

DOING = "making a function for DuckDB"
TYPES = {
    "double": "DOUBLE",
    "float": "FLOAT",
    "bool": "BOOLEAN",
    "string": "VARCHAR",
    "large_string": "VARCHAR",
    **{f"int{bits}": name for bits, name in ((8, "TINYINT"), (16, "SMALLINT"))},
    **{f"int{bits}": name for bits, name in ((32, "INTEGER"), (64, "BIGINT"))},
    **{f"uint{bits}": name for bits, name in ((8, "UTINYINT"), (16, "USMALLINT"))},
    **{f"uint{bits}": name for bits, name in ((32, "UINTEGER"), (64, "UBIGINT"))},
}
"""What DuckDB calls Arrow's types."""


def duckdb_function(
    connection: Any,
    machine: DecisionMachine,
    name: str = "decision_machine",
    *,
    output: str = "predict",
    replace: bool = False,
    n_threads: int = 1,
) -> str:
    """A function of SQL that answers with the native engine, exactly as `machine.predict` does.

    It takes the features as columns, in their order: `decision_machine(a, b, c)`; or a whole row,
    whose columns are found by the features' names: `decision_machine(people) FROM people`. NULL is
    missing; labels are texts.

    Parameters
    ----------
    connection
        Of `duckdb.connect`.
    name
        What the function is called in SQL.
    output
        "predict", "proba", "margin", "leaves" or "shap". Where several columns answer, the
        function gives a struct of them: `decision_machine(a, b)."proba_yes"`, or `unnest` for all.
    replace
        Whether a function of this name that Python made before is removed first.
    n_threads
        For each call, which has at most 2048 rows: DuckDB itself works with several threads.

    Returns
    -------
    str
        The type of the answer, in DuckDB's words.

    Examples
    --------
    >>> import decision_machines as dm, duckdb
    >>> connection = duckdb.connect()
    >>> dm.stream.duckdb_function(connection, dm.figure_one())
    'DOUBLE'
    >>> connection.execute("SELECT decision_machine(2.0, 1, 2, 2)").fetchall()
    [(5.0,)]
    """
    duckdb = _duckdb()
    if not isinstance(output, str):
        raise InputError(DOING, f"output={output!r}", "make a function for each output")
    scorer = Scorer(machine, task_of(output, (), None, n_threads))
    kind = _type(scorer.answers.schema)
    call = _Call(scorer)
    if replace:
        with contextlib.suppress(duckdb.InvalidInputException):  # there was none
            connection.remove_function(name)
    try:
        connection.create_function(
            name, call.__call__, None, kind, type="arrow", null_handling="special"
        )
    except (duckdb.NotImplementedException, duckdb.CatalogException) as error:
        raise InputError(
            DOING, f"{name!r}: {error}", "use another name, or replace=True for one of your own"
        ) from None
    return kind


class _Call:
    """What DuckDB calls with the columns of some rows."""

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer
        columns = scorer.machine.columns
        self.is_of_numbers = not (
            columns.member_features
            or columns.categories
            or columns.edges
            or columns.encodes_arrays
            or columns.accepted is not None
        )
        """Whether an array of numbers is read as a table of them is."""
        self.double = arrow().float64().id

    def __call__(self, *given: Any) -> Any:
        rows = self._rows(given)
        scorer = self.scorer
        answers = scorer.answers.columns(rows, scorer.task.n_threads)
        schema = scorer.answers.schema
        if len(schema) == 1:
            return answers[0]
        return arrow().StructArray.from_arrays(answers, schema.names)

    def _rows(self, given: Sequence[Any]) -> Any:
        """The features of the rows, as an array or a table."""
        pyarrow, scorer = arrow(), self.scorer
        columns = scorer.machine.columns
        if (
            self.is_of_numbers
            and 0 < len(given) == columns.n_features
            and all(one.type.id == self.double for one in given)
        ):
            # Of 2048 rows a table takes longer to make and to take apart than numbers to copy.
            X = np.empty((len(given), len(given[0])))
            for row, one in zip(X, given, strict=True):
                row[:] = one.to_numpy(zero_copy_only=False)
            return X.T
        arrays = [_array(one) for one in given]
        if len(arrays) == 1 and pyarrow.types.is_struct(arrays[0].type):
            rows = pyarrow.RecordBatch.from_struct_array(_whole(arrays[0]))
            found = scorer.features(rows.schema.names)
            rows = pyarrow.table({name: _array(rows.column(name)) for name in set(found)})
        else:
            if len(arrays) != columns.n_features:
                raise InputError(
                    "predicting in DuckDB",
                    f"{len(arrays)} arguments; the machine reads {columns.n_features} features",
                    "give one for each feature, in the order of the training data; or a row",
                )
            found = [f"{i}" for i in range(len(arrays))]
            rows = pyarrow.Table.from_arrays(arrays, names=found)
        return feature_table(rows, found, columns)


def _array(given: Any) -> Any:
    """A column as the machine reads it: what SQL calls DECIMAL is a number like others."""
    pyarrow = arrow()
    is_decimal = pyarrow.types.is_decimal(given.type)
    return given.cast(pyarrow.float64()) if is_decimal else given


def _whole(given: Any) -> Any:
    """The one array of a chunked one."""
    return given.combine_chunks() if hasattr(given, "combine_chunks") else given


def _type(schema: Any) -> str:
    kinds = [TYPES[str(field.type)] for field in schema]
    if len(kinds) == 1:
        return kinds[0]
    quoted = ['"' + field.name.replace('"', '""') + '"' for field in schema]
    return f"STRUCT({', '.join(f'{n} {k}' for n, k in zip(quoted, kinds, strict=True))})"


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise MissingLibraryError(
            DOING, "duckdb is not installed", 'pip install "duckdb>=2" pyarrow'
        ) from None
    return duckdb
