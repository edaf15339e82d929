"""A machine as a function of one row, for those who have rows as mappings or lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from ..errors import InputError
from ..machine.feature_names import listed
from ..machine.label_words import labels_of
from .decide import check_classes, decide, probabilities, respond
from .engines import walk
from .engines.native import refusal
from .inputs.given_rows import given_row, named_values
from .inputs.label_reader import LabelReader, NewLabel
from .inputs.tables import matched_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..machine import DecisionMachine

DOING = "reading one row"


def _first(found: np.ndarray | list[np.ndarray]) -> Any:
    return [part[0] for part in found] if isinstance(found, list) else found[0]


OUTPUTS: dict[str, Callable[[DecisionMachine, np.ndarray], Any]] = {
    "predict": lambda machine, margins: decide(machine, margins)[0],
    "predict_proba": lambda machine, margins: _first(probabilities(machine, margins)),
    "response": lambda machine, margins: respond(machine, margins)[0],
    "margin": lambda machine, margins: margins[0],
}
"""What is made of the margins of one row; exit leaves ("apply") need none."""


class RowFunction:
    """What a machine answers to one row; see `DecisionMachine.row_function`.

    Everything that does not change from row to row is looked up when it is made. It can be called
    from several threads, copied and pickled.
    """

    __slots__ = ("_answer", "_labels", "_margin", "_reader", "machine", "outputs")

    def __init__(self, machine: DecisionMachine, outputs: str) -> None:
        if outputs not in (*OUTPUTS, "apply"):
            raise InputError(
                "making a function of one row",
                f"outputs={outputs!r}",
                f"use one of {', '.join((*OUTPUTS, 'apply'))}",
            )
        if outputs == "predict_proba":
            check_classes(machine)
        columns = machine.columns
        self.machine, self.outputs = machine, outputs
        self._answer = OUTPUTS.get(outputs)
        self._margin = _margin_of(machine)
        self._labels: list[_native.LabelPositions | None] = [None] * columns.n_features
        for f in {*columns.categories, *columns.member_features}:
            labels = labels_of(columns, f)
            if labels is not None:
                name = columns.feature_name(f)
                self._labels[f] = LabelReader(columns, labels, name).positions
        self._reader = self._reader_of(columns.names)

    def __call__(self, row: Mapping[str, Any] | Sequence[Any]) -> Any:
        try:
            x = self._reader.read(row)
        except (NewLabel, TypeError):
            x = None  # said below, with the feature's name
        if x is None:
            x = self._read(row)
        if self._answer is None:
            return self._leaves(x)
        return self._answer(self.machine, self._margin(x))

    def __repr__(self) -> str:
        return f"RowFunction({self.machine.source or 'machine'}, outputs={self.outputs!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return RowFunction, (self.machine, self.outputs)

    def _reader_of(self, names: Sequence[Any] | None) -> _native.RowReader:
        columns = self.machine.columns
        is_single = bool(columns.dtype == np.float32)
        return _native.RowReader(names, self._labels, is_single, columns.encodes_arrays)

    def _read(self, row: Any) -> np.ndarray:
        """(1, n) a row of any other kind, or an error that says what is wrong with it."""
        columns = self.machine.columns
        named = named_values(row)
        if named is not None:
            names = list(named)
            found = matched_names(names, columns)
            if found.missing or found.extra:
                parts = [
                    f"{what} {listed(which)}"
                    for what, which in (("missing", found.missing), ("unknown", found.extra))
                    if which
                ]
                raise InputError(
                    DOING,
                    f"the row's names are not the model's: {'; '.join(parts)}",
                    "give a value for each feature, and None where there is none",
                )
            # Names as these rows spell them; the next row will be read at once.
            self._reader = self._reader_of([names[at] for at in found.order])
            try:
                x = self._reader.read(dict(named))
            except (NewLabel, TypeError):
                x = None
            if x is not None:
                return x
            row = named
        return given_row(row, columns, DOING)[None].astype(columns.dtype)

    def _leaves(self, x: np.ndarray) -> np.ndarray:
        machine = self.machine
        if refusal(machine) is not None:
            walked: np.ndarray = walk.apply(machine, x)[0]
            return walked
        leaves: np.ndarray = machine._prepared.compiled(machine).coded(x, leaves=True)[0]
        return leaves


def _margin_of(machine: DecisionMachine) -> Callable[[np.ndarray], Any]:
    """What gives the margins of one row of coded features."""
    if refusal(machine) is None:
        compiled = machine._prepared.compiled(machine)
        if machine.columns.look_ups is not None:
            return lambda x: compiled.coded(x, leaves=False)
        return compiled.plan.row
    return lambda x: walk.margin(machine, x)
