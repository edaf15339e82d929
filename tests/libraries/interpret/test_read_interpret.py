"""InterpretML's EBMs: margins, labels and numbers to the bit, terms one by one."""

from __future__ import annotations

import functools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import decision_machines as dm

glassbox = pytest.importorskip(
    "interpret.glassbox", reason="interpret-core does not install on this Python"
)


@functools.cache
def training():
    rng = np.random.default_rng(0)
    n = 300
    table = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": rng.integers(0, 9, n).astype(float),
            "c": rng.choice(["x", "y", "z", "long label"], n),
            "i": rng.integers(0, 3, n),
            "t": rng.random(n) < 0.5,
        }
    )
    table.loc[::11, "a"] = np.nan
    table.loc[::13, "c"] = None
    return table


def rows(n=400):
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "a": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n) * 3),
            "b": np.where(rng.random(n) < 0.1, np.nan, rng.integers(-3, 12, n) / 1.0),
            "c": rng.choice(["x", "y", "z", "long label", "new", ""], n).astype(object),
            "i": rng.integers(-1, 5, n),
            "t": rng.random(n) < 0.5,
        }
    )
    table.loc[::17, "c"] = None
    table.loc[::19, "a"], table.loc[1::19, "a"] = np.inf, -np.inf
    return table


TYPES = ["continuous", "continuous", "nominal", "nominal", "nominal"]
QUICK = {"max_rounds": 15, "outer_bags": 1, "inner_bags": 0, "n_jobs": 1, "interactions": 3}


def fitted(kind, y, **settings):
    made = getattr(glassbox, f"ExplainableBoosting{kind}")
    return made(feature_types=TYPES, **QUICK | settings).fit(training(), y)


def target():
    table = training()
    return table.a.fillna(0) + (table.c == "x") + 0.3 * table.t


MODELS = {
    "binary": lambda: fitted("Classifier", np.where(target() > 0.3, "yes", "no")),
    "classes": lambda: fitted("Classifier", pd.qcut(target(), 3, labels=False), interactions=0),
    "numbers": lambda: fitted("Regressor", target()),
    "poisson": lambda: fitted(
        "Regressor", np.floor(np.exp(target() / 2)), objective="poisson_deviance"
    ),
    "three features at once": lambda: fitted(
        "Regressor", target(), interactions=[(0, 1), (1, 2), (2, 3, 4)], max_interaction_bins=6
    ),
    "ordered labels": lambda: glassbox.ExplainableBoostingRegressor(
        feature_types=[
            "continuous",
            "continuous",
            ["z", "y", "x", "long label"],
            "nominal",
            "nominal",
        ],
        **QUICK,
    ).fit(training(), target()),
}


@functools.cache
def model(name):
    return MODELS[name]()


@functools.cache
def ours(name):
    return dm.convert(model(name))


def scores(name, table):
    asked = getattr(model(name), "decision_function", None) or model(name)._predict_score
    return asked(table)


@pytest.mark.parametrize("name", MODELS)
def test_margins_and_predictions_are_equal_to_the_bit(name, tmp_path):
    table, machine = rows(), ours(name)
    margin = machine.margin(table)
    assert np.array_equal(margin, np.reshape(scores(name, table), margin.shape))
    predicted = model(name).predict(table)
    if name != "poisson":
        assert np.array_equal(machine.predict(table), predicted)
        one = machine.row_function()
        for i in range(10):
            assert one(table.iloc[i].to_dict()) == predicted[i]
            assert machine.predict(table[i : i + 1])[0] == predicted[i]
    assert np.array_equal(machine.margin(pl.from_pandas(table)), margin)
    assert np.array_equal(machine.margin(table.assign(further=1)), margin)
    assert np.array_equal(machine.margin(table.to_numpy(dtype=object)), margin)
    machine.save(tmp_path / "m.dm")
    assert dm.load(tmp_path / "m.dm").equals(machine)
    certificate = dm.certify(machine, model(name), table[:50])
    assert certificate, certificate


@pytest.mark.parametrize("name", ["binary", "classes", "poisson"])
def test_responses_differ_by_a_few_units_in_the_last_place_at_most(name):
    """InterpretML's exponential is its own."""
    table = rows()
    if name == "poisson":
        found, wanted = ours(name).predict(table), model(name).predict(table)
    else:
        found, wanted = ours(name).predict_proba(table), model(name).predict_proba(table)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=2e-15, atol=0)


def test_a_pickle_is_read_where_it_is_trusted(tmp_path):
    path = tmp_path / "ebm.pkl"
    path.write_bytes(pickle.dumps(model("binary")))
    with pytest.raises(dm.InputError):
        dm.load(path)
    assert dm.load(path, trust=True).equals(ours("binary"))


VALUES = st.one_of(st.floats(), st.just(float("nan")))
LABELS = st.sampled_from(["x", "y", "", "other", "long label", None])


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(VALUES, VALUES, LABELS, st.integers(-2, 5), st.booleans()), min_size=1, max_size=6
    )
)
def test_rows_that_hypothesis_finds(given_rows):
    table = pd.DataFrame(given_rows, columns=list("abcit"))
    table["c"] = table.c.astype(object)
    for name in ("binary", "classes"):
        margin = ours(name).margin(table)
        assert np.array_equal(margin, np.reshape(scores(name, table), margin.shape))


def test_what_is_unknown_is_refused_by_name():
    import copy

    for name in ("gate_", "_gate"):
        changed = copy.copy(model("binary"))
        setattr(changed, name, 1)
        with pytest.raises(dm.UnsupportedModelError, match=f"{name} is a field"):
            dm.convert(changed)
    changed = copy.copy(model("binary"))
    changed.link_ = "vlogit"
    with pytest.raises(dm.UnsupportedModelError, match="vlogit"):
        dm.convert(changed)
    with pytest.raises(dm.InputError, match="not fitted"):
        dm.convert(glassbox.ExplainableBoostingClassifier())
    with pytest.raises(dm.UnsupportedModelError, match="LogisticRegression"):
        dm.convert(glassbox.LogisticRegression())
    one = glassbox.ExplainableBoostingClassifier(**QUICK).fit(training()[["b"]], np.zeros(300))
    with pytest.raises(dm.UnsupportedModelError, match="link_"):
        dm.convert(one)
    changed = copy.copy(model("binary"))
    changed.term_scores_ = [scores[:2] for scores in changed.term_scores_]
    with pytest.raises(dm.ModelFormatError, match="do not fit"):
        dm.convert(changed)


def test_a_release_that_answers_otherwise_is_refused(monkeypatch):
    import interpret

    model = fitted("Regressor", np.arange(300.0))
    dm.convert(model)
    monkeypatch.setattr(interpret, "__version__", "0.7.6")
    with pytest.raises(dm.UnsupportedModelError, match=r"InterpretML 0\.7\.6 .* before 0\.7\.7"):
        dm.convert(model)
