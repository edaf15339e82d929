"""NGBoost's models: one machine whose outputs are the sums that a distribution is made of.

A stage has a tree for each sum, and takes rate · value · scaling, rounded twice, from the sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InputError, ModelFormatError, UnsupportedModelError
from ...machine import Assembly, Columns, Output
from ...run.distributions import CATEGORICAL, DISTRIBUTIONS
from ..fields import Fields, unknown_field
from ..sklearn.fields import REPEATED, RUNNING, STATISTIC, TRAINING
from ..sklearn.read_trees import MOST_FEATURES, assemble, member_trees, source_of, values_of
from .releases import RELEASES

CLASSES = ("NGBRegressor", "NGBClassifier", "NGBSurvival")
ANSWERS = ("predict", "predict_proba", "pred_dist", "pred_param")
ATTRIBUTES = Fields(
    dict.fromkeys(
        (
            "Dist", "base_models", "scalings", "col_idxs", "init_params", "learning_rate",
            "n_features",
        )
    ),
    {
        **dict.fromkeys(
            (
                "Score", "Base", "natural_gradient", "n_estimators", "minibatch_frac",
                "col_sample", "tol", "random_state", "validation_fraction",
                "early_stopping_rounds",
            ),
            TRAINING,
        ),
        **dict.fromkeys(("best_val_loss_itr", "evals_result"), STATISTIC),
        **dict.fromkeys(("verbose", "verbose_eval"), RUNNING),
        **dict.fromkeys(
            ("Manifold", "multi_output", "_estimator_type", "Dist_name", "K", "_basedist",
             "uncensor"),
            REPEATED,
        ),
    },
)  # fmt: skip


def read_ngboost(model: Any) -> Assembly:
    """The assembly of a fitted NGBoost model whose base learners are trees."""
    doing = f"reading a {source_of(model)}"
    _check_class(model, doing)
    if not model.base_models:
        raise InputError(doing, "it is not fitted: it has no base_models", "call fit first")
    from importlib.metadata import version

    RELEASES.note(version("ngboost"), doing)
    name, n_sums = _distribution(model, doing)
    stages = model.base_models
    features = [np.asarray(columns) for columns in model.col_idxs]
    if not len(stages) == len(model.scalings) == len(features) or any(
        len(stage) != n_sums for stage in stages
    ):
        raise ModelFormatError(
            doing,
            f"{len(stages)} stages, {len(model.scalings)} scalings and {len(features)} choices of "
            f"features, of {n_sums} sums",
            "check that the model is whole and unedited",
        )
    trees = member_trees(model, [tree for stage in stages for tree in stage], "regressor")
    rate = model.learning_rate

    def values(i: int, nodes: np.ndarray) -> np.ndarray:
        stage = i // n_sums
        found: np.ndarray = -(rate * values_of(trees[i], nodes, None) * model.scalings[stage])
        return found

    n = int(model.n_features)
    if not 0 < n <= MOST_FEATURES:
        raise ModelFormatError(doing, f"n_features = {n}", "check the model")
    base = (np.ones((1, n_sums)) * model.init_params).reshape(-1)
    machine = assemble(
        trees,
        values,
        Columns(n, np.float32),
        Output(base),
        source_of(model),
        feeds=np.tile(np.arange(n_sums, dtype=np.int32), len(stages)),
        features=[columns for columns in features for _ in range(n_sums)],
    )
    return Assembly(
        "distribution",
        (machine,),
        {},
        {"distribution": (name,)},
        np.arange(n_sums + 1) if name == CATEGORICAL else None,
        source_of(model),
    )


def _check_class(model: Any, doing: str) -> None:
    cls = next((c for c in type(model).__mro__ if c.__name__ in CLASSES), None)
    if cls is None:
        raise UnsupportedModelError(
            doing, "it is not one of the models we read", f"convert one of {', '.join(CLASSES)}"
        )
    for name in ANSWERS:
        owner = next((c for c in type(model).__mro__ if name in vars(c)), None)
        if owner is not None and owner.__module__.split(".")[0] != "ngboost":
            raise UnsupportedModelError(
                doing, f"it has a {name} of its own", f"convert a plain {cls.__name__}"
            )
    for name in vars(model):
        if name not in ATTRIBUTES.read and name not in ATTRIBUTES.idle and type(model) is cls:
            raise unknown_field(doing, name)


def _distribution(model: Any, doing: str) -> tuple[str, int]:
    """The distribution's name, and how many sums it is made of."""
    for cls in model.Dist.__mro__:
        if not cls.__module__.startswith("ngboost."):
            break
        if cls.__name__ == CATEGORICAL:
            return CATEGORICAL, int(cls.K_) - 1
        if cls.__name__ in DISTRIBUTIONS:
            return cls.__name__, DISTRIBUTIONS[cls.__name__].n_sums
        if "__init__" in vars(cls) or "fixed_df" in vars(cls):
            break  # It makes something else of the sums than the class that it inherits from.
    raise UnsupportedModelError(
        doing,
        f"Dist = {model.Dist.__name__}, a distribution that we do not know",
        f"fit it with one of {', '.join(DISTRIBUTIONS)} or k_categorical",
    )
