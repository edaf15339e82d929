"""What is asked of a machine for each row, as named Arrow columns."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..files.kinds import arrow as find_arrow
from ..run.decide import check_classes, decide, probabilities

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..machine import DecisionMachine

OUTPUTS = ("predict", "proba", "margin", "leaves", "shap")


def arrow() -> Any:
    """The pyarrow package."""
    return find_arrow("streaming data")


class Answers:
    """The columns that a machine answers with, named and typed before any row is read.

    `prediction`, `proba_<label>`, `margin` and `leaf_<tree>`; with several of a kind, `margin_1`
    or `margin_<label>`, `prediction_1`, `proba_1_<label>` (the number is the target's). Shapley
    values are `shap_base` and `shap_<feature>`; with several outputs `shap_<feature>_<label>`.

    Parameters
    ----------
    outputs
        Of "predict", "proba", "margin", "leaves", "shap".

    Examples
    --------
    >>> import decision_machines as dm
    >>> Answers(dm.figure_one(), ("predict", "leaves")).schema.names
    ['prediction', 'leaf_0']
    """

    def __init__(self, machine: DecisionMachine, outputs: Sequence[str] = ("predict",)) -> None:
        self.machine = machine
        self.outputs = check_outputs(outputs)
        if "proba" in self.outputs:
            check_classes(machine)
        if "shap" in self.outputs:
            self._shap_base  # noqa: B018  a machine without covers is refused before any row

    @cached_property
    def schema(self) -> Any:
        """The Arrow schema of the answers."""
        pyarrow = arrow()
        # A margin of zeros is enough to know the kinds of all answers; no row is needed.
        with np.errstate(all="ignore"):
            sample = self._of_margins(np.zeros((1, self.machine.n_outputs), self._dtype))
        fields = [(name, arrow_type(values, self._labels)) for name, values in sample]
        if "leaves" in self.outputs:
            fields += [(f"leaf_{i}", pyarrow.int32()) for i in range(self.machine.n_trees)]
        if "shap" in self.outputs:
            fields += [(name, pyarrow.float64()) for name in self._shap_names]
        return pyarrow.schema(fields)

    def columns(self, table: Any, n_threads: int | None = None) -> list[Any]:
        """The answers for the rows of a table of the features, as Arrow arrays."""
        found: list[tuple[str, np.ndarray]] = []
        if set(self.outputs) - {"leaves", "shap"}:
            found = self._of_margins(self.machine.margin(table, n_threads=n_threads))
        if "leaves" in self.outputs:
            leaves = self.machine.apply(table, n_threads=n_threads)
            found += [(f"leaf_{i}", leaves[:, i]) for i in range(leaves.shape[1])]
        if "shap" in self.outputs:
            found += self._of_shap(table, n_threads)
        return [
            arrow_array(values, field.type)
            for (_, values), field in zip(found, self.schema, strict=True)
        ]

    @cached_property
    def _shap_names(self) -> list[str]:
        """Names of the bases, one for each output, and of every feature's values."""
        machine = self.machine
        labels = self._labels[0].tolist() if len(self._labels) == 1 else []
        k = machine.n_outputs
        ends = [f"_{labels[o] if len(labels) == k else o}" for o in range(k)] if k > 1 else [""]
        features = [machine.columns.feature_name(f) for f in range(machine.n_features)]
        return [f"shap_{name}{end}" for name in ("base", *features) for end in ends]

    def _of_shap(self, table: Any, n_threads: int | None) -> list[tuple[str, np.ndarray]]:
        values = self.machine.shap_values(table, n_threads=n_threads)
        base = np.broadcast_to(self._shap_base, (len(values), self.machine.n_outputs))
        flat = [*base.T, *values.reshape(len(values), -1).T]
        return list(zip(self._shap_names, flat, strict=True))

    @cached_property
    def _shap_base(self) -> np.ndarray:
        return np.atleast_1d(np.asarray(self.machine.shap_base()))

    @property
    def _dtype(self) -> np.dtype[Any]:
        found: np.dtype[Any] = np.dtype(self.machine.output.dtype)
        return found

    @cached_property
    def _labels(self) -> list[np.ndarray]:
        return [np.asarray(labels) for labels in self.machine.output.classes or ()]

    def _of_margins(self, margins: np.ndarray) -> list[tuple[str, np.ndarray]]:
        found = []
        if "predict" in self.outputs:
            found += named("prediction", np.asarray(decide(self.machine, margins)))
        if "proba" in self.outputs:
            answer = probabilities(self.machine, margins)
            if isinstance(answer, list):
                for target, (labels, values) in enumerate(zip(self._labels, answer, strict=True)):
                    found += named(f"proba_{target}", values, labels)
            else:
                found += named("proba", answer, self._labels[0])
        if "margin" in self.outputs:
            found += named("margin", margins, self._labels[0] if len(self._labels) == 1 else None)
        return found


def check_outputs(outputs: str | Sequence[str]) -> tuple[str, ...]:
    """What is asked for, each once; unknown names are refused."""
    found = tuple(dict.fromkeys([outputs] if isinstance(outputs, str) else outputs))
    unknown = [name for name in found if name not in OUTPUTS]
    if unknown or not found:
        raise InputError(
            "choosing what to answer",
            f"outputs {', '.join(map(repr, unknown)) or 'of no kind'}",
            f"use some of {', '.join(OUTPUTS)}",
        )
    return found


def arrow_type(values: np.ndarray, labels: Sequence[np.ndarray]) -> Any:
    """The Arrow type of answers; of labels, that of all labels there are."""
    pyarrow = arrow()
    if values.dtype.kind not in "OUS":
        return pyarrow.from_numpy_dtype(values.dtype)
    try:
        known = [label for group in labels for label in group.tolist()]
        return pyarrow.array(known).type
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
        return pyarrow.string()


def arrow_array(values: np.ndarray, type_: Any) -> Any:
    """Answers as an Arrow array of a type that `arrow_type` gave."""
    pyarrow = arrow()
    values = np.ascontiguousarray(values)
    if values.dtype.kind in "OUS":
        labels = values.tolist()
        is_text = pyarrow.types.is_string(type_)
        return pyarrow.array([str(label) for label in labels] if is_text else labels, type_)
    return pyarrow.array(values, type_)


def named(
    name: str, values: np.ndarray, labels: np.ndarray | None = None
) -> list[tuple[str, np.ndarray]]:
    """The columns of (m,) or (m, k) values with their names."""
    values = values[:, None] if values.ndim == 1 else values
    width = values.shape[1]
    if labels is not None and len(labels) == width:
        return [(f"{name}_{label}", values[:, i]) for i, label in enumerate(labels.tolist())]
    if width == 1:
        return [(name, values[:, 0])]
    return [(f"{name}_{i}", values[:, i]) for i in range(width)]
