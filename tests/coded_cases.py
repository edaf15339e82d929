"""Models of every library with rows of numbers and the engine's answers, for engines elsewhere."""

from __future__ import annotations

import numpy as np
from library_models import data, models

import decision_machines as dm

REFUSED = {"AdaBoostRegressor": "median", "CatBoostClassifier, labels": "look_ups"}
"""Models that the engine behind a C interface does not run, and what it says of them."""


def coded_cases(library):
    """(label, machine, rows): rows of float64, of which there are none where labels are read."""
    for label, model in models(library).items():
        machine = dm.convert(model)
        X = np.zeros((0, machine.n_features))
        if machine.columns.names is None or not machine.columns.categories:
            X = data("two" if machine.n_features == 6 else "three")[0][:, : machine.n_features]
            X = np.ascontiguousarray(X, np.float64)
            if label.startswith(("GradientBoosting", "AdaBoost", "Isolation")):
                X = np.nan_to_num(X)
        yield label, machine, X


def coded_answers(machine, X):
    """Margins and exit leaves of rows of codes."""
    plain, rows = machine._prepared.compiled(machine), X.astype(machine.columns.dtype)
    return plain.coded(rows, False), plain.coded(rows, True)
