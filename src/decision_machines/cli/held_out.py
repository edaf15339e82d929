"""Rows kept apart from learning, and what a trained model does on them beside a constant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..files.learning_table import LearningTable


def hold_out(
    rows: LearningTable, share: float, seed: int, *, is_classes: bool
) -> tuple[LearningTable, LearningTable | None]:
    """The rows to learn from, and those kept apart, of each class alike; None if too few."""
    y = rows.y
    order = np.random.default_rng(seed).permutation(len(y))
    if is_classes:
        codes = np.unique(y, return_inverse=True)[1]
        order = order[np.argsort(codes[order], kind="stable")]
    n = int(share * len(order))
    if n < 1 or n >= len(order):
        return rows, None
    # Evenly spread over the order: each class gives its share.
    out = order[(np.arange(n) * len(order)) // n]
    own = np.setdiff1d(order, out)
    if is_classes:
        # A label that is nowhere learned could not be answered.
        learned = np.isin(y[out], y[own])
        own, out = np.concatenate([own, out[~learned]]), out[learned]
    return rows.take(np.sort(own)), rows.take(np.sort(out)) if len(out) else None


def scores(model: Any, rows: LearningTable, *, is_classes: bool) -> dict[str, float]:
    """What a model does on these rows, and what a constant would; all by the rows' weights."""
    predicted = model.predict(rows.features)
    if not is_classes:
        found = _of_numbers(model, rows.y, rows.w, predicted)
    else:
        several = len(model.classes_) > 1
        shares = model.predict_proba(rows.features) if several else None
        found = _of_classes(model, rows.y, rows.w, predicted, shares)
    if model.soft_ is not None:
        hard = model.machine_.predict(rows.features)
        name, value = _main_score(rows.y, rows.w, hard, is_classes=is_classes)
        found[f"{name} of the hard machine"] = value
    if is_classes:
        weights = np.bincount(np.unique(rows.y, return_inverse=True)[1], rows.w)
        found["accuracy of the commonest class"] = weights.max() / weights.sum()
    else:
        constant = np.full(len(rows.y), np.average(rows.y, weights=rows.w))
        found["RMSE of the mean"] = _main_score(rows.y, rows.w, constant, is_classes=False)[1]
    return {name: float(value) for name, value in found.items()}


def _main_score(y: Any, w: Any, predicted: Any, *, is_classes: bool) -> tuple[str, float]:
    from sklearn.metrics import accuracy_score, root_mean_squared_error

    if is_classes:
        return "accuracy", float(accuracy_score(y, predicted, sample_weight=w))
    return "RMSE", float(root_mean_squared_error(y, predicted, sample_weight=w))


def _of_classes(model: Any, y: Any, w: Any, predicted: Any, shares: Any) -> dict[str, float]:
    from sklearn.metrics import f1_score, log_loss, recall_score, roc_auc_score

    found = {
        "accuracy": _main_score(y, w, predicted, is_classes=True)[1],
        "macro F1": f1_score(y, predicted, average="macro", sample_weight=w, zero_division=0.0),
        "log-loss": 0.0,
    }
    if getattr(model, "criterion", None) == "balanced":
        found["balanced accuracy"] = recall_score(
            y, predicted, average="macro", sample_weight=w, zero_division=0.0
        )
    if shares is not None:
        clipped = shares.clip(1e-6)
        clipped = clipped / clipped.sum(axis=1, keepdims=True)
        found["log-loss"] = log_loss(y, clipped, labels=model.classes_, sample_weight=w)
        each = [
            roc_auc_score(y == label, shares[:, i], sample_weight=w)
            for i, label in enumerate(model.classes_)
            if 0 < np.sum(y == label) < len(y)
        ]
        if each:
            found["AUC"] = np.mean(each)
    return found


def _of_numbers(model: Any, y: Any, w: Any, predicted: Any) -> dict[str, float]:
    from sklearn.metrics import (
        mean_absolute_error,
        mean_pinball_loss,
        mean_poisson_deviance,
        r2_score,
    )

    found = {
        "R²": r2_score(y, predicted, sample_weight=w) if len(y) > 1 else 0.0,
        "RMSE": _main_score(y, w, predicted, is_classes=False)[1],
        "mean absolute error": mean_absolute_error(y, predicted, sample_weight=w),
    }
    criterion = getattr(model, "criterion", None)
    if criterion == "quantile":
        found["pinball loss"] = mean_pinball_loss(
            y, predicted, sample_weight=w, alpha=model.quantile
        )
    if criterion == "poisson" and y.min() >= 0:
        above = np.maximum(predicted, 1e-9 * max(float(np.mean(y)), 1e-300))
        found["Poisson deviance"] = mean_poisson_deviance(y, above, sample_weight=w)
    return found


NORMAL = 1.959963984540054
"""Deviations of a normal distribution that 95 of 100 draws lie within."""


def intervals(
    model: Any, rows: LearningTable, *, is_classes: bool
) -> dict[str, tuple[float, float]]:
    """Where the main score of new rows lies, 95 times in 100, by these rows.

    Wilson's interval of an accuracy; of the RMSE the root of the mean squared error's normal one.
    Weights count as shares of the rows.
    """
    predicted = model.predict(rows.features)
    w = np.ones(len(rows.y)) if rows.w is None else rows.w
    w = w / w.sum()
    n = 1.0 / float(w @ w)  # rows of equal weight that would say as much
    if is_classes:
        p = float(w @ (predicted == rows.y))
        centre = (p + NORMAL**2 / (2 * n)) / (1 + NORMAL**2 / n)
        half = NORMAL / (1 + NORMAL**2 / n) * np.sqrt(p * (1 - p) / n + NORMAL**2 / (4 * n**2))
        return {"accuracy": (float(centre - half), float(centre + half))}
    squared = (predicted - rows.y) ** 2
    mean = float(w @ squared)
    half = NORMAL * np.sqrt(float(w @ (squared - mean) ** 2) / n)
    return {"RMSE": (float(np.sqrt(max(0.0, mean - half))), float(np.sqrt(mean + half)))}


def cart_scores(
    model: Any, own: LearningTable, held: LearningTable, *, is_classes: bool
) -> dict[str, float]:
    """What CART of the same depth and number of leaves, learned from the same rows, would do."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    machine = model.machine_
    kind = DecisionTreeClassifier if is_classes else DecisionTreeRegressor
    size = {"max_depth": max(machine.depth, 1), "max_leaf_nodes": max(machine.n_leaves, 2)}
    weight = {"class_weight": model.class_weight} if is_classes else {}
    cart = kind(**size, **weight, random_state=0)
    cart.fit(model.encoded(own.features), own.y, own.w)
    rows = model.encoded(held.features)
    predicted = cart.predict(rows)
    if is_classes:
        shares = cart.predict_proba(rows) if len(model.classes_) > 1 else None
        found = _of_classes(model, held.y, held.w, predicted, shares)
    else:
        found = _of_numbers(model, held.y, held.w, predicted)
    return {name: float(value) for name, value in found.items()}
