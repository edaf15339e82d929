"""Machines that feed a rule: votes, calibrations, stacks and other models made of models.

A tree model answers with a link of one sum. A model that averages probabilities of several, bends
them, or gives them to another model, does not: it is an `Assembly`, a rule by its name, the
machines that it asks, and the numbers that it needs. `run.assemblies` computes the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from ..errors import InvariantError, UnsupportedModelError
from . import soft
from .arrays import Part
from .columns import Columns
from .machine import DecisionMachine
from .verbs.assembly import AssemblyVerbs

RULES: dict[str, tuple[str, ...]] = {
    "mean of probabilities": (),
    "majority": (),
    "mean of values": (),
    "sum of probabilities": ("classes of members",),
    "sum of values": (),
    "calibrated": ("methods",),
    "stacked": ("methods",),
    "linear": ("kind",),
    "threshold": ("methods",),
    "inverse of the target": ("function",),
    "one against the rest": ("methods",),
    "one against one": ("methods",),
    "several targets": (),
    "chain": ("methods", "kind"),
    "boosted from a model": ("link",),
    "quantiles of leaves": (),
    "survival forest": (),
    "proportional hazards": (),
    "distribution": ("distribution",),
    soft.RULE: ("kind",),
}
"""Every rule, and the words that it needs."""


@dataclass(frozen=True, eq=False)
class Assembly(AssemblyVerbs, Part):
    """A model made of models: what the members answer, combined by a rule.

    Parameters
    ----------
    rule
        A name from `RULES`.
    members
        The machines, and assemblies, that are asked; of a stack the last is given what the others
        answer.
    numbers
        Arrays by name: weights, slopes, coefficients.
    words
        Texts by name: which of its answers each member is asked for, which function.
    classes
        The labels; None where numbers are predicted.
    source
        What it was read from, for people.

    Examples
    --------
    >>> import decision_machines as dm
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import VotingRegressor
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> trees = [(str(d), DecisionTreeRegressor(max_depth=d, random_state=0)) for d in (2, 3)]
    >>> model = VotingRegressor(trees).fit(X, y)
    >>> assembly = dm.convert(model)
    >>> assembly
    Assembly(mean of values, 2 members; scikit-learn VotingRegressor)
    >>> bool((assembly.predict(X) == model.predict(X)).all())
    True
    """

    rule: str
    members: tuple[DecisionMachine | Assembly, ...] = ()
    numbers: Mapping[str, np.ndarray] = field(default_factory=dict)
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    classes: np.ndarray | None = None
    source: str = ""

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "members", tuple(self.members))
        held = {name: np.array(array) for name, array in self.numbers.items()}
        for array in held.values():
            array.flags.writeable = False
        set_(self, "numbers", MappingProxyType(held))
        words = {name: tuple(map(str, texts)) for name, texts in self.words.items()}
        set_(self, "words", MappingProxyType(words))
        if self.classes is not None:
            set_(self, "classes", np.array(self.classes))
        known = self.rule in RULES and set(RULES[self.rule]) <= words.keys()
        if not known or not all(isinstance(m, (DecisionMachine, Assembly)) for m in self.members):
            raise InvariantError(
                "a rule that is known, of machines",
                f"rule = {self.rule!r:.60} of {len(self.members)} members",
                f"use one of {', '.join(RULES)}, with the words that it needs",
            )
        if self.rule == soft.RULE:
            soft.check_soft(self.members, self.numbers)

    def __reduce__(self) -> tuple[Any, ...]:
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        given |= {"numbers": dict(self.numbers), "words": dict(self.words)}
        return type(self), (*given.values(),)

    def __repr__(self) -> str:
        n = len(self.members)
        count = f", {n} member{'' if n == 1 else 's'}" if n else ""
        return f"Assembly({self.rule}{count}{'; ' + self.source if self.source else ''})"

    def __getattr__(self, name: str) -> NoReturn:
        known = name in {f.name for f in fields(DecisionMachine)} or hasattr(DecisionMachine, name)
        if name.startswith("_") or not known:
            raise AttributeError(f"'Assembly' object has no attribute {name!r}")
        self._refuse(name)

    def _refuse(self, name: str) -> NoReturn:
        """Say that a verb or a field is one machine's, which a rule of several does not have."""
        raise UnsupportedModelError(
            f"asking an assembly for its {name}",
            f"it is a {self.rule} of {len(self.members)} machines, not one machine",
            f"ask a member: assembly.members[0].{name}",
        )

    @property
    def n_features(self) -> int:
        """How many features the rows have."""
        return self.machines[0].n_features if self.machines else 0

    @property
    def reads(self) -> Columns:
        """The features of the rows: their names, and the labels of those given as labels.

        Machines inside a stack that are given what others answer are left out.
        """
        first = self.machines[0].columns
        known: dict[int, dict[Any, None]] = {}
        for machine in self.machines:
            own = machine.columns
            if (own.n_features, own.names) == (first.n_features, first.names):
                for feature, labels in own.categories.items():
                    known.setdefault(feature, {}).update(dict.fromkeys(labels))
        return Columns(
            first.n_features,
            names=first.names,
            categories={feature: tuple(labels) for feature, labels in known.items()},
            label_hash=first.label_hash,
            table_categories=first.table_categories,
        )

    @property
    def machines(self) -> tuple[DecisionMachine, ...]:
        """Every machine in it, those of assemblies inside it too."""
        return tuple(
            one
            for member in self.members
            for one in (member.machines if isinstance(member, Assembly) else (member,))
        )


def single(read: DecisionMachine | Assembly, doing: str) -> DecisionMachine:
    """The machine itself; what is made of several machines is refused."""
    if isinstance(read, DecisionMachine):
        return read
    raise UnsupportedModelError(
        doing,
        f"an assembly, {read}",
        "take one of its machines, assembly.machines[0], and save it as a model of its own",
    )
