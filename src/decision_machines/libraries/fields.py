"""Which fields of a model document a reader knows: every other one is refused by its name.

A new release of a library adds a field where it predicts in a new way. A reader that passes over
what it does not know would then be wrong without a word, so each reader lists, for every level of
its documents, the fields that it reads and those that change no prediction, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import UnsupportedModelError


@dataclass(frozen=True)
class Fields:
    """The fields of one object of a document, or of every object in a list.

    Parameters
    ----------
    read
        The fields that the reader reads; for those that hold objects, their own fields.
    idle
        The fields that change no prediction, each with the reason.
    any_key
        Whether every key is legal, because keys are names that users choose.
    """

    read: Mapping[str, Fields | None] = field(default_factory=dict)
    idle: Mapping[str, str] = field(default_factory=dict)
    any_key: bool = False

    def check(self, value: Any, doing: str, path: str = "") -> None:
        """Refuse the first field that is neither read nor idle.

        Values of the wrong type are left to the reader, which says what it needs.
        """
        if isinstance(value, list):
            for i, item in enumerate(value):
                if isinstance(item, dict):
                    self.check(item, doing, f"{path}[{i}]")
        elif isinstance(value, dict):
            self.check_keys(value, doing, path)
            for key, below in self.read.items():
                if below is not None and key in value:
                    below.check(value[key], doing, f"{path}.{key}" if path else key)

    def check_keys(self, keys: Iterable[str], doing: str, path: str = "") -> None:
        """Refuse the first key of one object that is neither read nor idle."""
        for key in keys:
            if key not in self.read and key not in self.idle and not self.any_key:
                raise unknown_field(doing, f"{path}.{key[:60]}" if path else key[:60])


def fields(*read: str, idle: Mapping[str, str] | None = None, **below: Fields) -> Fields:
    """Fields by name, those with fields of their own by keyword.

    Examples
    --------
    >>> known = fields("name", idle={"seed": "used in training alone"}, tree=fields("leaf"))
    >>> known.check({"name": "a", "tree": [{"leaf": 1.0}], "seed": 3}, "reading a model")
    >>> known.check({"tree": [{"leaf": 1.0}, {"gate": 2}]}, "reading a model")
    Traceback (most recent call last):
    decision_machines.errors.UnsupportedModelError: While reading a model: tree[1].gate is a field
    that this version of decision-machines does not know; it may change predictions.
    What to do: ...
    """
    return Fields({**dict.fromkeys(read), **below}, dict(idle or {}))


def unknown_field(doing: str, name: str) -> UnsupportedModelError:
    """The error for a field that no reader knows."""
    return UnsupportedModelError(
        doing,
        f"{name} is a field that this version of decision-machines does not know; it may change "
        "predictions",
        "update decision-machines; if that does not help, save the model with a release that "
        "docs/compatibility.md lists",
    )
