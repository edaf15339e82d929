"""A table of people as practitioners meet it: gaps, labels, a rare label, whole numbers."""

from inspect import signature

import numpy as np
import pandas as pd
from sklearn.preprocessing import KBinsDiscretizer


def people(n=400, seed=0):
    """(X, y): numbers with gaps, labels with gaps, and a target of two classes."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.integers(17, 90, n).astype(float),
            "income": rng.lognormal(10, 1, n),
            "balance": rng.normal(0, 1e4, n),
            "children": rng.integers(0, 5, n),
            "job": rng.choice(["clerk", "nurse", "smith", "king"], n, p=[0.5, 0.3, 0.19, 0.01]),
            "city": rng.choice(["a", "b", "c"], n),
        }
    )
    X.loc[::7, "age"] = np.nan
    X.loc[::11, "city"] = np.nan
    score = X["age"].fillna(50) / 20 + np.log(X["income"]) + (X["job"] == "nurse") * 2
    y = (score + rng.normal(0, 1, n) > 13).to_numpy().astype(int)
    return X, y


def bins(n, encode="onehot"):
    """A discretiser; releases from 1.7 on want to be told of the quantiles older ones have."""
    told = {"quantile_method": "linear"}
    known = signature(KBinsDiscretizer).parameters
    return KBinsDiscretizer(n, encode=encode, **{k: v for k, v in told.items() if k in known})


NUMBERS = ["age", "income", "balance", "children"]
LABELS = ["job", "city"]


def odd_rows(X):
    """Rows with unseen labels, gaps everywhere, zeros, and large and small numbers."""
    rows = X.iloc[:60].copy()
    rows.loc[rows.index[::5], "job"] = "pilot"
    rows.loc[rows.index[1::5], "city"] = np.nan
    rows.loc[rows.index[2::5], "job"] = np.nan
    rows["city"] = rows["city"].astype(object)
    rows.iloc[3, 5] = None
    for k, name in enumerate(("age", "income", "balance")):
        rows.loc[rows.index[k::7], name] = np.nan
        values = [0.0, -0.0, 1e-300, -5.0, 1e30, -1e30, 3.4e38]
        rows.loc[rows.index[10 + k :: 9][: len(values)], name] = values[
            : len(rows.index[10 + k :: 9])
        ]
    return rows


def answer_or_none(model, answer, row):
    """What a model answers; None where it refuses the row."""
    try:
        return getattr(model, answer)(row)
    except ValueError:
        return None


def agree_or_both_refuse(machine, model, rows, answers=("predict", "predict_proba")):
    """Row by row: equal to the bit where the model answers, an error where it refuses."""
    n_answers = 0
    for i in range(len(rows)):
        row = rows.iloc[[i]] if hasattr(rows, "iloc") else rows[i : i + 1]
        for answer in answers:
            expected = answer_or_none(model, answer, row)
            found = answer_or_none(machine, answer, row)
            assert (expected is None) == (found is None), (answer, row, expected, found)
            if expected is None:
                continue
            assert np.array_equal(found, expected), (answer, row, found, expected)
            n_answers += 1
    return n_answers
