"""Every attribute of the scikit-survival objects that we read: read, or idle and why."""

from __future__ import annotations

from typing import Any

from ..fields import Fields
from ..sklearn.fields import ATTRIBUTES, TRAINING, check_known
from ..sklearn.read_trees import source_of

_SURVIVAL = ("unique_times_", "is_event_time_", "low_memory")


def _with(theirs: str, read: tuple[str, ...], training: tuple[str, ...] = ()) -> Fields:
    known = ATTRIBUTES[theirs]
    return Fields(
        {**known.read, **dict.fromkeys(read)}, {**known.idle, **dict.fromkeys(training, TRAINING)}
    )


TREE = _with("DecisionTreeClassifier", _SURVIVAL)
FOREST = _with("RandomForestClassifier", _SURVIVAL)
BOOSTING = _with(
    "GradientBoostingRegressor", ("_scale", "_baseline_model"), ("dropout_rate", "oob_score_")
)
OWN = {
    "SurvivalTree": TREE,
    "ExtraSurvivalTree": TREE,
    "RandomSurvivalForest": FOREST,
    "ExtraSurvivalTrees": FOREST,
    "GradientBoostingSurvivalAnalysis": BOOSTING,
}


LOSS = ATTRIBUTES["BaseLoss"]
BASELINE = Fields(dict.fromkeys(("cum_baseline_hazard_", "baseline_survival_", "unique_times_")))
STEPS = Fields(
    {"y": None},
    dict.fromkeys(("x", "a", "b", "_domain", "domain"), "not asked: the baseline goes by its y"),
)


def check_baseline(model: Any) -> None:
    """Refuse an attribute of the baseline of boosted survival trees that we do not know."""
    doing, place = f"reading a {source_of(model)}", "_baseline_model"
    BASELINE.check_keys(vars(model._baseline_model), doing, place)
    for name in ("cum_baseline_hazard_", "baseline_survival_"):
        STEPS.check_keys(vars(getattr(model._baseline_model, name)), doing, f"{place}.{name}")


def check_own_attributes(model: Any, path: str = "") -> None:
    """Refuse an attribute of a survival model that we do not know."""
    cls = next(c for c in type(model).__mro__ if c.__name__ in OWN)
    check_known(model, cls, OWN[cls.__name__], f"reading a {source_of(model)}", path)
