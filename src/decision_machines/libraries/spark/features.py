"""What a model reads: numbers by their places, or, after the stages of a pipeline, raw columns.

A VectorAssembler puts columns side by side; a StringIndexer turns the labels of one into their
places. Both vanish: tests of places become tests of labels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...machine import Accepted
from .fields import STRING_INDEXER, VECTOR_ASSEMBLER
from .folder import Stage

INVALID = {"error": "refuses", "keep": "keeps"}
"""What `handleInvalid` may be; rows that `skip` would leave out have no answer."""


@dataclass(frozen=True)
class Feature:
    """A column that a model reads."""

    name: str
    labels: tuple[Any, ...] = ()
    """The labels, and at the end those that are digits once more, as integers."""
    twins: dict[int, int] = field(default_factory=dict)
    """Place of a label → where it stands again, as an integer."""
    n_labels: int = 0
    takes_invalid: bool = True
    """Whether a missing number, or an unknown label, has an answer."""


@dataclass(frozen=True)
class Features:
    """The columns, and which of them each place of the vector is."""

    columns: list[Feature]
    places: list[int]
    named: bool

    def accepted(self) -> Accepted | None:
        """What the stages take; None where there are none."""
        if not self.named:
            return None
        n = len(self.columns)
        return Accepted(
            np.full(n, -np.inf),
            np.full(n, np.inf),
            np.array([column.takes_invalid for column in self.columns], bool),
            np.ones(n, bool),
            refused={
                i: (-1,)
                for i, column in enumerate(self.columns)
                if column.labels and not column.takes_invalid
            },
            ignores_further=True,  # as the label, which a table of training rows has
        )


def plain(n: int) -> Features:
    """The features of a model by itself: a vector of numbers."""
    return Features([Feature("") for _ in range(n)], list(range(n)), named=False)


@dataclass
class Stages:
    """The columns that stages before a model have made so far."""

    indexed: dict[str, Feature] = field(default_factory=dict)
    """By the name of the column that a StringIndexer adds."""
    assembled: dict[str, list[Feature]] = field(default_factory=dict)
    """By the name of the column that a VectorAssembler adds."""

    def add(self, stage: Stage) -> None:
        """Take in a stage, or refuse it by its name."""
        if stage.kind == "StringIndexerModel":
            self._index(stage)
        elif stage.kind == "VectorAssembler":
            self._assemble(stage)
        else:
            raise stage.refuse(
                f"the stage {stage.kind} ({stage.metadata.get('uid')!r:.60}) before the trees",
                "give the model alone, dm.load(folder/stages/…), and run the stages before it in "
                "Spark; StringIndexer and VectorAssembler are read",
            )

    def _index(self, stage: Stage) -> None:
        stage.check(STRING_INDEXER)
        several = stage.param("inputCols") is not None
        given = stage.texts("inputCols") if several else [stage.text("inputCol")]
        made = stage.texts("outputCols") if several else [stage.text("outputCol")]
        labels = _labels(stage)
        if not len(given) == len(made) == len(labels):
            raise stage.fault(f"labels of {len(labels)} columns, where {len(given)} are indexed")
        for name, output, found in zip(given, made, labels, strict=True):
            if name in self.indexed or name in self.assembled:
                raise stage.refuse(
                    f"a StringIndexer of {name!r:.60}, which another stage makes",
                    "index raw columns alone",
                )
            held = _invalid(stage)
            twins = {}
            known: list[Any] = list(found)
            for place, label in enumerate(found):
                if _is_digits(label):
                    twins[place] = len(known)
                    known.append(int(label))
            self.indexed[output] = Feature(name, tuple(known), twins, len(found), held)

    def _assemble(self, stage: Stage) -> None:
        stage.check(VECTOR_ASSEMBLER)
        takes = _invalid(stage)
        found: list[Feature] = []
        for name in stage.texts("inputCols"):
            if name in self.assembled:
                found += self.assembled[name]
            elif name in self.indexed:
                found.append(self.indexed[name])
            else:
                found.append(Feature(name, takes_invalid=takes))
        self.assembled[stage.text("outputCol")] = found

    def of(self, model: Stage) -> Features:
        """The features of a model after these stages."""
        held = model.text("featuresCol")
        if held not in self.assembled:
            raise model.refuse(
                f"it reads the column {held!r:.60}, which no VectorAssembler before it makes",
                "give the model alone, dm.load(folder/stages/…), and vectors of numbers",
            )
        found = self.assembled[held]
        if len(found) != model.count("numFeatures"):
            raise model.refuse(
                f"the VectorAssembler puts {len(found)} columns side by side, and the model reads "
                f"{model.count('numFeatures')} numbers: some columns are vectors",
                "give the model alone, dm.load(folder/stages/…), and vectors of numbers",
            )
        columns: dict[str, Feature] = {}
        for feature in found:
            before = columns.setdefault(feature.name, feature)
            if before != feature:
                raise model.refuse(
                    f"the column {feature.name!r:.60} is read in two ways",
                    "give the second way a column of its own, in training too",
                )
        place = {name: i for i, name in enumerate(columns)}
        return Features(
            list(columns.values()), [place[feature.name] for feature in found], named=True
        )


def _invalid(stage: Stage) -> bool:
    """Whether a stage keeps what is missing or unknown; else it refuses it."""
    found = stage.text("handleInvalid")
    if found not in INVALID:
        raise stage.refuse(
            f"{stage.kind}.handleInvalid is {found!r:.40}: rows that it leaves out have no answer",
            "set it to 'error' or 'keep'",
        )
    return found == "keep"


def _labels(stage: Stage) -> list[list[str]]:
    table = stage.table("data")
    if table.column_names != ["labelsArray"] or len(table) != 1:
        raise stage.fault(f"a table with the columns {table.column_names}, not labelsArray")
    found = table["labelsArray"].to_pylist()[0]
    lists: list[Any] = found if isinstance(found, list) else [None]
    for labels in lists:
        if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
            raise stage.fault("labelsArray holds something other than lists of text")
        if len(set(labels)) != len(labels):
            raise stage.fault("labelsArray has a label twice")
    return lists


def _is_digits(label: str) -> bool:
    """Whether Spark makes this text of an integer."""
    digits = label.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 18:
        return False
    return str(int(label)) == label
