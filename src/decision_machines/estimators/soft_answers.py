"""The soft machine of an estimator without torch: what it predicts with, and what is saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..machine import Assembly
from ..machine.soft import soft_sum, with_columns_and_output

if TYPE_CHECKING:
    from ..machine import DecisionMachine


def frozen_soft(soft: Any, machine: DecisionMachine) -> Assembly | None:
    """Soft trees with the machine's names and labels; None where only torch can compute them.

    Parameters
    ----------
    soft
        A module; several, whose mean counts; or soft trees already.
    """
    if isinstance(soft, Assembly):
        return with_columns_and_output(soft, machine)
    from ..relax.frozen import cannot_freeze

    modules = soft if isinstance(soft, list) else [soft]
    if any(module is None or cannot_freeze(module) for module in modules):
        return None
    parts = [module.frozen() for module in modules]
    total = soft_sum(parts, [1 / len(parts)] * len(parts)) if len(parts) > 1 else parts[0]
    return with_columns_and_output(total, machine)
