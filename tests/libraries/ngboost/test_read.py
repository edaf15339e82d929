"""NGBoost's models, against the library itself, bit for bit.

NGBoost needs lifelines, which asks for pandas before 3: it is no part of the `test` extra.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip(
    "ngboost",
    reason="ngboost is not installed: its dependency lifelines wants pandas < 3; "
    "pip install 'decision-machines[ngboost]' in an environment of its own",
)

import ngboost
import ngboost.distns as distributions
from ngboost import NGBClassifier, NGBRegressor, NGBSurvival
from ngboost.learners import default_linear_learner
from sklearn.tree import DecisionTreeRegressor

import decision_machines as dm
from decision_machines.libraries.releases import numbers_of

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4))
y = X[:, 0] + rng.normal(size=120)
COUNTS = np.abs(y).round() + 1
QUIET = {"verbose": False, "random_state": 0, "n_estimators": 6}
NAMES = (
    "Normal", "NormalFixedVar", "NormalFixedMean", "LogNormal", "Exponential", "Laplace",
    "Poisson", "T", "TFixedDf", "HalfNormal", "Gamma", "Weibull",
)  # fmt: skip


def same(model, rows):
    assembly = dm.convert(model)
    theirs, ours = model.pred_dist(rows).params, assembly.predict_parameters(rows)
    assert theirs.keys() <= ours.keys()
    for name, values in theirs.items():
        np.testing.assert_array_equal(ours[name], values)
    np.testing.assert_array_equal(assembly.predict(rows), model.predict(rows))
    return assembly


@pytest.mark.parametrize("name", NAMES)
def test_distributions(name):
    model = NGBRegressor(Dist=getattr(distributions, name), **QUIET).fit(X, COUNTS)
    for rows in (X, X[:1]):
        same(model, rows)


def test_settings(tmp_path):
    base = [DecisionTreeRegressor(max_depth=4), DecisionTreeRegressor(max_depth=2)]
    if numbers_of(ngboost.__version__) < (0, 5, 11):  # one learner for all parameters
        base = base[0]
    model = NGBRegressor(
        Base=base, col_sample=0.5, minibatch_frac=0.7, learning_rate=0.07, **QUIET
    ).fit(X, y)
    gaps = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    assembly = same(model, gaps)
    assembly.save(tmp_path / "m.dm")
    np.testing.assert_array_equal(dm.load(tmp_path / "m.dm").predict(X), model.predict(X))
    assert dm.certify(assembly, model, X).verdict == "proven"


@pytest.mark.parametrize("k", [2, 3])
def test_classes(k):
    labels = np.digitize(y, [0.0, 1.0][: k - 1])
    model = NGBClassifier(Dist=distributions.k_categorical(k), **QUIET).fit(X, labels)
    assembly = same(model, X)
    np.testing.assert_array_equal(assembly.predict_proba(X), model.predict_proba(X))
    assert dm.certify(assembly, model, X)


def test_survival():
    model = NGBSurvival(**QUIET).fit(X, np.exp(y), rng.random(120) < 0.7)
    same(model, X)


def test_refused():
    cauchy = NGBRegressor(Dist=distributions.Cauchy, **QUIET).fit(X, y)
    with pytest.raises(dm.UnsupportedModelError, match="Cauchy"):
        dm.convert(cauchy)
    linear = NGBRegressor(Base=default_linear_learner, **QUIET).fit(X, y)
    with pytest.raises(dm.UnsupportedModelError, match="Ridge"):
        dm.convert(linear)
    with pytest.raises(dm.InputError, match="not fitted"):
        dm.convert(NGBRegressor())
    model = NGBRegressor(**QUIET).fit(X, y)
    for name, part in (("gate", model), (r"estimators_\[0\]\.gate_", model.base_models[0][0])):
        setattr(part, name[-5:].lstrip("."), 1)
        with pytest.raises(dm.UnsupportedModelError, match=f"{name} is a field"):
            dm.convert(model)
        delattr(part, name[-5:].lstrip("."))
