"""What a fitted model was trained for, where its link alone does not tell.

A machine keeps what its source answers, not what it was trained for: squared error, absolute error
and a quantile have the same link. The model itself knows.
"""

from __future__ import annotations

import json
from typing import Any

from ...machine import DecisionMachine

ABSOLUTE, HUBER, QUANTILE = "absolute", "huber", "quantile"
NAMES = {
    **dict.fromkeys(
        ("regression_l1", "l1", "mae", "reg:absoluteerror", "MAE", "absolute_error"), ABSOLUTE
    ),
    **dict.fromkeys(("huber", "Huber"), HUBER),
    **dict.fromkeys(("quantile", "reg:quantileerror", "Quantile"), QUANTILE),
    **dict.fromkeys(("gamma", "reg:gamma"), "gamma"),
    **dict.fromkeys(("tweedie", "reg:tweedie", "Tweedie"), "tweedie"),
    **dict.fromkeys(("poisson", "count:poisson", "Poisson"), "poisson"),
    **dict.fromkeys(
        ("lambdarank", "rank_xendcg", "rank:ndcg", "rank:pairwise", "rank:map", "YetiRank"),
        "lambdarank",
    ),
}
"""A library's name of an objective → ours; what is not here follows from the link."""


def trained_for(model: Any) -> str | None:
    """The objective of a fitted model by our name for it, or None where its link says it.

    Examples
    --------
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> trained_for(GradientBoostingRegressor(loss="quantile", alpha=0.9))
    'quantile:0.9'
    """
    if isinstance(model, DecisionMachine):
        return None
    library = type(model).__module__.split(".")[0]
    name, options = FINDERS.get(library, lambda model: ("", {}))(model)
    ours = NAMES.get(name)
    number = {
        HUBER: options.get("delta"),
        QUANTILE: options.get("alpha"),
        "tweedie": options.get("power"),
    }.get(ours or "")
    return ours if number is None else f"{ours}:{float(number):g}"


def _of_lightgbm(model: Any) -> tuple[str, dict[str, Any]]:
    found = model.get_params() if hasattr(model, "get_params") else dict(model.params)
    name = getattr(model, "objective_", None) or found.get("objective") or ""
    alpha, power = found.get("alpha"), found.get("tweedie_variance_power")
    if name == "quantile" and alpha is None:
        alpha = 0.9  # LightGBM's default
    return str(name), {"alpha": alpha, "delta": alpha, "power": power}


def _of_xgboost(model: Any) -> tuple[str, dict[str, Any]]:
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    found = json.loads(booster.save_config())["learner"]["objective"]
    alpha = str(found.get("quantile_loss_param", {}).get("quantile_alpha", "")).strip("[]")
    power = found.get("tweedie_regression_param", {}).get("tweedie_variance_power")
    return found["name"], {"alpha": alpha or None, "power": power}


def _of_catboost(model: Any) -> tuple[str, dict[str, Any]]:
    name, _, text = str(model.get_all_params().get("loss_function", "")).partition(":")
    options = dict(part.partition("=")[::2] for part in text.split(";") if part)
    return name, {
        "alpha": options.get("alpha", 0.5),
        "delta": options.get("delta"),
        "power": options.get("variance_power"),
    }


def _of_sklearn(model: Any) -> tuple[str, dict[str, Any]]:
    name = getattr(model, "loss", None) or getattr(model, "criterion", None) or ""
    alpha = getattr(model, "quantile", None) or getattr(model, "alpha", None)
    return str(name), {"alpha": alpha}


FINDERS = {
    "lightgbm": _of_lightgbm,
    "xgboost": _of_xgboost,
    "catboost": _of_catboost,
    "sklearn": _of_sklearn,
}
