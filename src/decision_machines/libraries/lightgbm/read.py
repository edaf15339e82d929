"""LightGBM's models: Boosters, scikit-learn wrappers and model texts, all read from the text.

x is float64 (integers of a NumPy array pass through float32), x ≤ t goes left, and the sum starts
at 0 and takes the trees in order in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InputError, InvariantError, UnsupportedModelError
from ...machine import DecisionMachine
from .objectives import objective_of, output_of
from .read_text import broken, parse
from .read_trees import Forest
from .releases import RELEASES


def looks_like_lightgbm(data: bytes) -> bool:
    """Whether the bytes begin as a LightGBM model text does."""
    return data[:200].replace(b"\r\n", b"\n").startswith((b"tree\nversion=", b"tree\nnum_class="))


def read_lightgbm_text(data: bytes | str, source: str = "a LightGBM model text") -> DecisionMachine:
    """The machine of a model text, as `Booster.save_model` and `model_to_string` write it.

    Parameters
    ----------
    source
        What to call the text where something is wrong with it, for example its path.
    """
    return _read(data, f"reading {source}", "LightGBM model text")


def read_lightgbm(model: Any) -> DecisionMachine:
    """The machine of a fitted Booster, LGBMClassifier, LGBMRegressor, LGBMRanker or LGBMModel.

    Iterations are those that `predict` uses: up to `best_iteration` where there is one.
    """
    name = type(model).__name__
    doing, source = f"reading a LightGBM {name}", f"LightGBM {name}"
    RELEASES.note(_installed_release(), doing)
    names = {cls.__name__ for cls in type(model).__mro__ if cls.__module__.startswith("lightgbm")}
    if "Booster" in names:
        return _read(_text_of(model, doing), doing, source)
    if "LGBMModel" not in names:
        raise UnsupportedModelError(
            doing,
            "it is neither a Booster nor a scikit-learn wrapper of one",
            "convert a Booster (of a CVBooster, one of its `boosters`) or an LGBMModel",
        )
    if not model.__sklearn_is_fitted__():
        raise InputError(doing, "it is not fitted", "call fit first")
    if model.get_params().get("pred_early_stop"):
        raise UnsupportedModelError(
            doing,
            "pred_early_stop is on: predictions leave out trees once they seem certain",
            "convert model.booster_, whose predictions use all trees",
        )
    labels = None
    if "LGBMClassifier" in names and not callable(model.objective_):
        # Of one class, LightGBM still answers with two columns of probabilities.
        labels = model.classes_ if len(model.classes_) > 1 else np.repeat(model.classes_, 2)
    return _read(_text_of(model.booster_, doing), doing, source, labels)


def _installed_release() -> str:
    """A text tells the version of its format alone, so objects go by the library itself."""
    import lightgbm

    return lightgbm.__version__


def _text_of(booster: Any, doing: str) -> str:
    try:
        found: str = booster.model_to_string()
        return found
    except TypeError as error:
        raise UnsupportedModelError(
            doing,
            f"LightGBM cannot write it as text ({error})",
            "train on text or numbers as pandas categories",
        ) from None


def _read(
    data: bytes | str, doing: str, source: str, labels: np.ndarray | None = None
) -> DecisionMachine:
    text = parse(data, doing)
    n_outputs = text.number("num_class", 1, 2**20)
    if "num_tree_per_iteration" in text.header:
        per_iteration = text.number("num_tree_per_iteration", 1)
        if per_iteration != n_outputs:
            broken(doing, f"num_tree_per_iteration={per_iteration} where num_class={n_outputs}")
    if len(text.trees) % n_outputs:
        broken(doing, f"{len(text.trees)} trees do not make whole iterations of {n_outputs}")
    objective = objective_of(text, n_outputs)
    if labels is not None and len(labels) != max(n_outputs, 2):
        raise UnsupportedModelError(
            doing,
            f"{len(labels)} class labels for {n_outputs} outputs",
            "convert model.booster_, which knows no labels",
        )
    is_averaged = "average_output" in text.header
    if is_averaged and not text.trees:
        broken(doing, "an average over no trees")
    n_iterations = len(text.trees) // n_outputs if is_averaged else None
    output = output_of(objective, n_outputs, n_iterations, labels)
    forest = Forest(text, text.number("max_feature_idx", 0) + 1)
    try:
        return forest.machine(output, source)
    except InvariantError as error:
        broken(doing, error.found)
