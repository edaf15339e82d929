"""What the other libraries answer themselves, asked one tree at a time where they allow it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..machine.coded import coded
from .registry import library_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Bool, Float, Int

    from ..machine import DecisionMachine, Output


class Oracle:
    """A model to be asked: its leaves and margins for rows of raw features, float64.

    Rows hold codes where the machine knows a feature by its labels; an oracle turns them into
    labels for its library, and `machine` here takes the codes as they are.
    """

    takes_infinity: ClassVar[bool] = True
    takes_nan: bool = True
    takes_no_label: ClassVar[bool] = True
    """Whether a feature known by labels may have none."""
    keeps_labels: ClassVar[bool] = True
    """Whether the model keeps the labels themselves, and not only their hashes."""
    one_tree_at_a_time: ClassVar[bool] = True
    """Where not, every probe goes through the whole model."""
    compared: ClassVar[str] = "leaves and margins"

    def __init__(self, model: Any, machine: DecisionMachine) -> None:
        self.model = model
        self.labels: dict[int, dict[int, Any]] = {
            feature: dict(enumerate(labels)) if self.keeps_labels else {}
            for feature, labels in machine.columns.categories.items()
        }
        self.machine = coded(machine)

    def learn_labels(self, X: Any, codes: Float[np.ndarray, "m n"]) -> None:
        """Take the labels of X, whose codes are known, where the model does not keep them.

        Without them such a model cannot be asked about these rows.
        """
        if self.keeps_labels or not self.labels:
            return
        table = X.to_pandas() if hasattr(X, "to_pandas") else X
        names = self.machine.columns.names
        if hasattr(table, "columns") and names is not None:
            table = table[list(names)]
        rows = np.asarray(table, object)
        for feature, known in self.labels.items():
            for code, label in zip(codes[:, feature].tolist(), rows[:, feature], strict=True):
                if code >= 0:
                    known.setdefault(int(code), label)

    @property
    def codes(self) -> dict[int, list[float]]:
        """For each feature known by labels, the codes that the model can be asked about."""
        none = [float("nan")] if self.takes_no_label and self.takes_nan else []
        return {f: [-1.0, *map(float, known), *none] for f, known in self.labels.items()}

    @property
    def resting(self) -> dict[int, float]:
        """Numbers of features that the model refuses 0 for: one that it takes."""
        return {}

    def askable(self, X: Float[np.ndarray, "m n"]) -> Bool[np.ndarray, "m"]:
        """Rows that the model does not refuse."""
        return np.ones(len(X), bool)

    def as_given(self, X: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "m n"]:
        """Rows whose numbers can be given to the model, next to those asked for."""
        return X

    def more_rows(self) -> Float[np.ndarray, "m n"]:
        """Rows to compare the whole model on, besides those at the tests."""
        return np.empty((0, self.machine.n_features))

    @property
    def n_trees(self) -> int | None:
        """How many trees the model has, where it says."""
        return None

    def leaves(self, X: Float[np.ndarray, "m n"], tree: int) -> Int[np.ndarray, "m"] | None:
        """The model's own number of the exit leaf of one tree, or None where it does not tell."""
        return None

    def tree_margin(
        self, X: Float[np.ndarray, "m n"], tree: int
    ) -> Float[np.ndarray, "m k"] | None:
        """The margin of a model of this tree alone, or None where the model cannot be cut."""
        return None

    def output_of_tree(self, output: Output) -> Output:
        """What `tree_margin` makes of the tree's value: by default the value alone."""
        return replace(output, base=np.zeros_like(output.base), divisor=1.0, scale=1.0)

    def compare_tree(
        self, X: Float[np.ndarray, "m n"], tree: int
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Our machine's and the model's `tree_margin`, or None where the model has none."""
        theirs = self.tree_margin(X, tree)
        if theirs is None:
            return None
        output = self.output_of_tree(self.machine.output)
        ours = replace(self.machine.tree(tree), output=output).margin(X)
        return ours, theirs.reshape(ours.shape)

    def margin(self, X: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "m k"]:
        """The whole model's raw score."""
        raise NotImplementedError

    def whole(self, X: Float[np.ndarray, "m n"]) -> tuple[str, np.ndarray, np.ndarray]:
        """What is compared of the whole model, our machine's answer and the model's."""
        ours = self.machine.margin(X)
        return "margin", ours, np.asarray(self.margin(X)).reshape(ours.shape)


def rows_that_differ(ours: np.ndarray, theirs: np.ndarray) -> Int[np.ndarray, "d"]:
    """Rows of two answers that are not equal; NaN equals NaN."""
    same = (ours == theirs) | ((ours != ours) & (theirs != theirs))
    return np.flatnonzero(~np.all(same.reshape(len(same), -1), axis=1))


UNSEEN = "a label that no training row had"


def labels_of(codes: Float[np.ndarray, "m"], labels: dict[int, Any]) -> list[Any]:
    """The labels that codes stand for; None for NaN."""
    return [None if code != code else labels[int(code)] if code >= 0 else UNSEEN for code in codes]


def oracle_of(model: Any, machine: DecisionMachine) -> Oracle:
    """The oracle that asks this model."""
    return library_of(model, "asking a model for its own answers").oracle(model, machine)


def answers_of(model: Any) -> dict[str, Callable[[Any], Any]]:
    """What the verbs of the model's assembly should answer, by the verb."""
    return library_of(model, "asking a model for its own answers").answers(model)


def members_of(model: Any) -> list[Any]:
    """The models that the members of an assembly were read from, in order."""
    return library_of(model, "asking a model for its members").members(model)
