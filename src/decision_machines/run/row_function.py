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
from .inputs.accepted import is_guarded
from .inputs.given_rows import given_row, named_values
from .inputs.label_reader import LabelReader, NewLabel
from .inputs.tables import matched_names
from .links import EXPITS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..machine import DecisionMachine

DOING = "reading one row"
MOST_FEATURES = 2**24
"""More than anybody lists; a file of a few bytes may declare more than memory holds."""


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

    __slots__ = ("_answer", "_labels", "machine", "outputs")

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
        if columns.n_features > MOST_FEATURES:
            raise InputError(
                "making a function of one row",
                f"a machine of {columns.n_features} features",
                f"use {outputs} with sparse rows; a row is listed up to {MOST_FEATURES} features",
            )
        self.machine, self.outputs = machine, outputs
        self._labels: list[_native.LabelPositions | None] = [None] * columns.n_features
        for f in {*columns.categories, *columns.member_features}:
            labels = labels_of(columns, f)
            if labels is not None:
                name = columns.feature_name(f)
                self._labels[f] = LabelReader(columns, labels, name).positions
        self._answer = self._answer_by(columns.names)

    def __call__(self, row: Mapping[str, Any] | Sequence[Any]) -> Any:
        try:
            found = self._answer(row)
        except (NewLabel, TypeError):
            found = None  # said below, with the feature's name
        return self._of_any(row) if found is None else found

    def __repr__(self) -> str:
        return f"RowFunction({self.machine.source or 'machine'}, outputs={self.outputs!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return RowFunction, (self.machine, self.outputs)

    def _answer_by(self, names: Sequence[Any] | None) -> Callable[[Any], Any]:
        """What answers lists, and dictionaries of these names; None where that is not enough."""
        columns = self.machine.columns
        if is_guarded(columns):
            return lambda row: None
        is_single = bool(columns.dtype == np.float32)
        reader = _native.RowReader(names, self._labels, is_single, columns.encodes_arrays)
        return answer_of(self.machine, self.outputs, reader)

    def _of_any(self, row: Any) -> Any:
        """The answer to a row of any other kind, or an error that says what is wrong with it."""
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
            self._answer = self._answer_by([names[at] for at in found.order])
            try:
                answer = self._answer(dict(named))
            except (NewLabel, TypeError):
                answer = None
            if answer is not None:
                return answer
            row = named
        x = given_row(row, columns, DOING)[None].astype(columns.dtype)
        return of_features(self.machine, self.outputs, x)


def of_features(machine: DecisionMachine, outputs: str, x: np.ndarray) -> Any:
    """The answer to (1, n) features, labels as codes."""
    is_walked, leaves = refusal(machine) is not None, outputs == "apply"
    if is_walked:
        found = walk.apply(machine, x) if leaves else walk.margin(machine, x)
    else:
        found = machine._prepared.compiled(machine).coded(x, leaves=leaves)
    return found[0] if leaves else OUTPUTS[outputs](machine, found)


def answer_of(
    machine: DecisionMachine, outputs: str, reader: _native.RowReader
) -> Callable[[Any], Any]:
    """What answers rows that the reader reads, by as few calls as there can be; else None."""
    if outputs == "apply" or machine.columns.look_ups is not None or refusal(machine) is not None:

        def by_features(row: Any) -> Any:
            x = reader.read(row)
            return None if x is None else of_features(machine, outputs, x)

        return by_features
    one = _native.OneRow(reader, machine._prepared.compiled(machine).plan)
    made = OUTPUTS[outputs]

    def by_margins(row: Any) -> Any:
        margins = one.margins(row)
        return None if margins is None else made(machine, margins)

    output = machine.output
    is_pair = output.classes is not None and [len(of) for of in output.classes] == [2]
    if not (is_pair and machine.n_outputs == 1 and output.link in EXPITS):
        return by_margins
    from scipy.special import expit

    pair = one.pair
    slope, least = EXPITS[output.link](*output.link_params)
    if outputs == "predict_proba":
        return lambda row: pair(row, expit, slope, least)
    if outputs == "predict" and output.decision == "above":
        assert output.classes is not None
        labels = output.classes[0]
        threshold = output.decision_params[0] if output.decision_params else 0.5

        def above(row: Any) -> Any:
            found = pair(row, expit, slope, least)
            return None if found is None else labels[1 if found[1] > threshold else 0]

        return above
    return by_margins
