"""Every error a user can meet: what we were doing, what we found, what to do."""

from __future__ import annotations

from typing import Any


class DecisionMachinesError(Exception):
    """Base of all errors raised on purpose by this library.

    Examples
    --------
    >>> print(InputError("predicting", "X has 3 columns; the machine reads 4", "pass 4 columns"))
    While predicting: X has 3 columns; the machine reads 4.
    What to do: pass 4 columns.
    """

    def __init__(self, doing: str, found: str, remedy: str) -> None:
        super().__init__(doing, found, remedy)
        self.doing, self.found, self.remedy = doing, found, remedy

    def __str__(self) -> str:
        return f"While {self.doing}: {self.found}.\nWhat to do: {self.remedy}."


class InvariantError(DecisionMachinesError, ValueError):
    """The parts given do not make a decision machine; `invariant` names the rule they break."""

    def __init__(self, invariant: str, found: str, remedy: str) -> None:
        super().__init__(f"checking the machine's invariant '{invariant}'", found, remedy)
        self.invariant = invariant

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.invariant, self.found, self.remedy)


class NotATreeError(DecisionMachinesError, ValueError):
    """A ternary matrix is not the template matrix of any tree."""


class InputError(DecisionMachinesError, ValueError):
    """The data handed in cannot be read by this machine."""


class ModelFormatError(DecisionMachinesError, ValueError):
    """A model file is truncated, edited or not what it claims to be."""


class UnsupportedModelError(DecisionMachinesError, TypeError):
    """The model has something that would change its predictions and that we do not read."""


class MissingLibraryError(DecisionMachinesError, ImportError):
    """An optional library is not installed; the message names the extra that brings it."""


class TimedOutError(DecisionMachinesError, TimeoutError):
    """Others that we wait for, such as the workers of a cluster, do not answer any more."""


class InexactWarning(UserWarning):
    """A written model may differ from its machine in the last digits; the message says why."""


class UntestedReleaseWarning(UserWarning):
    """A model comes from a newer release of its library than any that the tests run against."""
