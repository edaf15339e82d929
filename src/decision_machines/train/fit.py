"""What training gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..machine import DecisionMachine


@dataclass(frozen=True)
class Fit:
    """What training gives."""

    machine: DecisionMachine
    """The hard machine: an ordinary one, which the engine predicts and the writers export."""
    soft: Any = None
    """The `SoftMachine` it was hardened from, where training went by gradients."""
    report: dict[str, Any] = field(default_factory=dict)
    """What was tried, chosen and changed, in plain numbers and words."""
    history: list[dict[str, float]] = field(default_factory=list)
    """The learning curve: one row for each call of `Watch.step`."""

    @property
    def is_interrupted(self) -> bool:
        """Whether training was interrupted, and this is the best that it had found."""
        return bool(self.report.get("interrupted", False))
