"""What imbalanced-learn adds to scikit-learn's attributes; any other of its own is refused."""

from __future__ import annotations

from typing import Any

from ..fields import Fields
from ..sklearn.fields import ATTRIBUTES, TRAINING, check_known
from ..sklearn.read_trees import source_of

SAMPLING = dict.fromkeys(
    (
        "replacement", "sampling_strategy", "sampler", "sampler_", "samplers_", "base_sampler_",
        "pipelines_", "_sampling_strategy", "_n_features",
    ),
    TRAINING,
)  # fmt: skip
OWN = {
    "BalancedRandomForestClassifier": "RandomForestClassifier",
    "BalancedBaggingClassifier": "BaggingClassifier",
    "EasyEnsembleClassifier": "BaggingClassifier",
    "RUSBoostClassifier": "AdaBoostClassifier",
}
"""Its classes, and scikit-learn's that each is."""
PIPELINE = Fields(
    {"steps": None}, dict.fromkeys(("memory", "verbose", "transform_input"), TRAINING)
)


def check_own_attributes(model: Any) -> None:
    """Refuse an attribute of a model of imbalanced-learn that we do not know."""
    cls = next(c for c in type(model).__mro__ if c.__module__.split(".")[0] == "imblearn")
    if cls.__name__ == "Pipeline":
        known = PIPELINE
    elif cls.__name__ in OWN:
        theirs = ATTRIBUTES[OWN[cls.__name__]]
        known = Fields(theirs.read, {**theirs.idle, **SAMPLING})
    else:
        return  # Not a model: the reader says so.
    check_known(model, cls, known, f"reading a {source_of(model)}")
