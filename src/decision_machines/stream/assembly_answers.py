"""What is asked of an assembly for each row, as named Arrow columns."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from .answers import arrow, arrow_array, arrow_type, check_outputs, named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..machine import Assembly

OUTPUTS = ("predict", "proba")


class AssemblyAnswers:
    """The columns that an assembly answers with, named as `Answers` names a machine's.

    Examples
    --------
    >>> import decision_machines as dm
    >>> machine = dm.figure_one()
    >>> AssemblyAnswers(dm.Assembly("mean of values", (machine, machine))).schema.names
    ['prediction']
    """

    def __init__(self, assembly: Assembly, outputs: Sequence[str] = ("predict",)) -> None:
        self.assembly = assembly
        self.outputs = check_outputs(outputs)
        wrong = [name for name in self.outputs if name not in OUTPUTS]
        if wrong:
            raise InputError(
                "choosing what to answer",
                f"{', '.join(map(repr, wrong))} of an assembly, {assembly}, which is made of "
                "several machines",
                f"use {' or '.join(OUTPUTS)}; a machine in it, assembly.machines[0], gives all",
            )
        self.schema  # noqa: B018  what has no probabilities is refused before any row

    @cached_property
    def schema(self) -> Any:
        """The Arrow schema of the answers: of those to a table without rows."""
        pyarrow = arrow()
        reads = self.assembly.reads
        names = reads.names or tuple(map(str, range(reads.n_features)))
        empty = pyarrow.table(
            {
                name: pyarrow.array(
                    [], pyarrow.string() if f in reads.categories else pyarrow.float64()
                )
                for f, name in enumerate(names)
            }
        )
        found = self._answers(empty, None)
        return pyarrow.schema([(name, arrow_type(values, self._labels)) for name, values in found])

    def columns(self, table: Any, n_threads: int | None = None) -> list[Any]:
        """The answers for the rows of a table of the features, as Arrow arrays."""
        return [
            arrow_array(values, field.type)
            for (_, values), field in zip(self._answers(table, n_threads), self.schema, strict=True)
        ]

    @property
    def _labels(self) -> list[np.ndarray]:
        classes = self.assembly.classes
        return [] if classes is None else [np.asarray(classes)]

    def _answers(self, table: Any, n_threads: int | None) -> list[tuple[str, np.ndarray]]:
        found = []
        labels = self._labels[0] if self._labels else None
        if "predict" in self.outputs:
            answer = np.asarray(self.assembly.predict(table, n_threads=n_threads))
            found += named("prediction", answer)
        if "proba" in self.outputs:
            shares = self.assembly.predict_proba(table, n_threads=n_threads)
            if isinstance(shares, list):
                for target, values in enumerate(shares):
                    found += named(f"proba_{target}", np.asarray(values))
            else:
                found += named("proba", np.asarray(shares), labels)
        return found
