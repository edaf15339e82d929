"""What each parameter of an estimator may be, as data, and the one check that reads it.

`__init__` only stores what it is given; `fit` calls `check_parameters` first.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError


@dataclass(frozen=True)
class Whole:
    """A whole number of at least `low`, and at most `high`."""

    low: int
    high: int | None = None

    def allows(self, value: Any) -> bool:
        is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        return is_whole and value >= self.low and (self.high is None or value <= self.high)

    def __str__(self) -> str:
        if self.high is not None:
            return f"a whole number from {self.low} to {self.high}"
        return f"a whole number of at least {self.low}"


@dataclass(frozen=True)
class Number:
    """A number from `low` to `high`; `beyond` leaves `low` itself out, `below` `high`."""

    low: float
    high: float = float("inf")
    beyond: bool = False
    below: bool = True

    def allows(self, value: Any) -> bool:
        if not isinstance(value, numbers.Real) or isinstance(value, bool) or value != value:
            return False
        value = float(value)
        is_low = value > self.low if self.beyond else value >= self.low
        found: bool = is_low and (value < self.high if self.below else value <= self.high)
        return found

    def __str__(self) -> str:
        low = f"{'above' if self.beyond else 'of at least'} {self.low:g}"
        if self.high == float("inf"):
            return f"a number {low}"
        return f"a number {low} and {'below' if self.below else 'at most'} {self.high:g}"


@dataclass(frozen=True)
class OneOf:
    """One of these values."""

    values: tuple[Any, ...]

    def allows(self, value: Any) -> bool:
        return any(
            value is known or (type(value) is str and value == known) for known in self.values
        )

    def __str__(self) -> str:
        return " or ".join(repr(value) for value in self.values)


@dataclass(frozen=True)
class Flag:
    """True or False."""

    def allows(self, value: Any) -> bool:
        return isinstance(value, (bool, np.bool_))

    def __str__(self) -> str:
        return "True or False"


@dataclass(frozen=True)
class Kind:
    """An object of these types, called `words`."""

    types: tuple[type, ...]
    words: str

    def allows(self, value: Any) -> bool:
        return isinstance(value, self.types)

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class Several:
    """A sequence with at least one entry, each of which `each` allows."""

    each: Any

    def allows(self, value: Any) -> bool:
        is_sequence = isinstance(value, (list, tuple, np.ndarray)) and len(value) > 0
        return is_sequence and all(self.each.allows(entry) for entry in value)

    def __str__(self) -> str:
        return f"a list of which each is {self.each}"


NOTHING = OneOf((None,))
AUTO = OneOf(("auto",))
SEED = (NOTHING, Whole(0), Kind((np.random.RandomState,), "a numpy RandomState"))
CLASS_WEIGHT = (OneOf((None, "balanced")), Kind((Mapping,), "a dictionary class → weight"))
THREADS = (NOTHING, Whole(1))
VERBOSE = (NOTHING, Flag(), Whole(0))


def check_parameters(estimator: Any, constraints: Mapping[str, tuple[Any, ...]]) -> None:
    """Refuse the first parameter that none of its constraints allows.

    Raises
    ------
    InputError
        With the parameter, its value, and what it may be.
    """
    for name, allowed in constraints.items():
        value = getattr(estimator, name)
        if not any(constraint.allows(value) for constraint in allowed):
            raise InputError(
                f"fitting a {type(estimator).__name__}",
                f"{name} = {value!r}",
                f"give {name} as " + ", or as ".join(map(str, allowed)),
            )


def seed_of(random_state: Any) -> int:
    """The number that a `random_state` stands for; None draws a new one each time."""
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    return int(random_state.randint(2**31 - 1))
