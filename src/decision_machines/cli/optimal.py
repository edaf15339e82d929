"""What `dm train --optimal` takes, and how it says what was proven."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..machine.digits import rounded

if TYPE_CHECKING:
    from .target_kind import TargetKind

DEPTH = 3
"""Of a tree, where none is given."""


def refuse_with_optimal(optimal: bool, given: dict[str, bool]) -> None:
    """Say in the command's own words which options do not go together."""
    doing = "choosing how to train"
    wrong = [name for name, is_given in given.items() if is_given]
    if optimal and wrong:
        raise InputError(doing, f"--optimal with {wrong[0]}", f"leave {wrong[0]} out")


CRITERIA = ("accuracy", "balanced", "squared_error", "absolute_error")
"""What the best tree can be proven for."""


def optimal_model(
    options: dict[str, Any],
    time_limit: float | None,
    taken: TargetKind,
    *,
    balanced: bool,
    criterion: str | None,
) -> Any:
    """The estimator, with what it shares with the others."""
    from ..estimators import OptimalTreeClassifier, OptimalTreeRegressor

    shared = {
        name: options[name]
        for name in ("max_leaves", "random_state", "n_threads", "verbose", "keep_best_on_interrupt")
    }
    if criterion not in (None, *CRITERIA):
        raise InputError(
            "choosing how to train",
            f"--optimal with --criterion {criterion}",
            f"use {', '.join(CRITERIA[:-1])} or {CRITERIA[-1]}, or leave --optimal out",
        )
    depth = DEPTH if options["max_depth"] is None else options["max_depth"]
    if taken.is_classes:
        weight = "balanced" if balanced or criterion == "balanced" else None
        return OptimalTreeClassifier(depth, time_limit=time_limit, class_weight=weight, **shared)
    aim = criterion or "squared_error"
    return OptimalTreeRegressor(depth, criterion=aim, time_limit=time_limit, **shared)


def proof(model: Any) -> dict[str, Any]:
    """Objective, bound and gap, and what they mean in words."""
    leaves = model.path_.chosen if model.max_leaves == "auto" else model.max_leaves
    what = getattr(model, "criterion", "errors").replace("_", " ")
    reached = f"{rounded(model.objective_)} of {what} on the training rows"
    if model.is_optimal_:
        words = f"proven: no tree of depth {model.max_depth} and {leaves} leaves has "
        words += f"less than this one's {reached}"
    else:
        words = f"not proven: this tree has {reached}, "
        words += f"and no tree of depth {model.max_depth} has less than {rounded(model.bound_)}"
    return {
        "objective": model.objective_,
        "bound": model.bound_,
        "gap": model.gap_,
        "is optimal": model.is_optimal_,
        "words": words,
    }
