"""quantile-forest's forests, against the library itself, bit for bit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip(
    "quantile_forest",
    reason="quantile-forest is not installed: pip install 'decision-machines[quantile-forest]'",
)

from quantile_forest import (
    ExtraTreesQuantileRegressor,
    RandomForestQuantileRegressor,
)

import decision_machines as dm

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4))
y = np.round(X[:, 0] + rng.normal(size=120), 1)
Y = np.column_stack([y, rng.normal(size=120)])
ROWS = np.concatenate([X[:10], rng.normal(size=(20, 4))])

MODELS = {
    "one target in a leaf": (lambda: RandomForestQuantileRegressor(6, random_state=0), y),
    "all targets": (
        lambda: RandomForestQuantileRegressor(
            6, max_samples_leaf=None, min_samples_leaf=5, random_state=0
        ),
        y,
    ),
    "own quantiles": (
        lambda: ExtraTreesQuantileRegressor(
            6, max_samples_leaf=3, min_samples_leaf=5, default_quantiles=[0.1, 0.9],
            random_state=0,
        ),
        y,
    ),
    "two targets": (
        lambda: RandomForestQuantileRegressor(
            4, max_samples_leaf=0.1, min_samples_leaf=4, bootstrap=False, random_state=0
        ),
        Y,
    ),
    "monotone": (
        lambda: RandomForestQuantileRegressor(4, monotonic_cst=[1, 0, 0, 0], random_state=0),
        y,
    ),
    "one tree": (
        lambda: RandomForestQuantileRegressor(
            1, max_samples_leaf=None, max_depth=2, random_state=0
        ),
        y,
    ),
}  # fmt: skip
QUANTILES = (None, "mean", 0.5, [0.01, 0.25, 0.5, 0.99], [0, 1], [0.9, 0.1, 0.3])
OPTIONS = [
    dict(
        zip(
            ("interpolation", "weighted_quantile", "weighted_leaves", "aggregate_leaves_first"),
            chosen,
            strict=True,
        )
    )
    for chosen in itertools.product(
        ("linear", "lower", "higher", "midpoint", "nearest"), (True, False), (True, False),
        (True, False),
    )
]  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_equal(name, tmp_path):
    make, targets = MODELS[name]
    model = make().fit(X, targets)
    assembly = dm.convert(model)
    for given_rows in (ROWS, ROWS[:1]):
        np.testing.assert_array_equal(assembly.predict(given_rows), model.predict(given_rows))
    for quantiles, options in zip(
        itertools.cycle(QUANTILES), [*OPTIONS, *OPTIONS[1:]], strict=False
    ):
        np.testing.assert_array_equal(
            assembly.predict_quantiles(ROWS, quantiles, **options),
            model.predict(ROWS, quantiles=quantiles, **options),
            err_msg=f"{quantiles} {options}",
        )
    assembly.save(tmp_path / "m.dm")
    loaded = dm.load(tmp_path / "m.dm")
    np.testing.assert_array_equal(loaded.predict_quantiles(ROWS, 0.3), model.predict(ROWS, 0.3))
    assert dm.certify(assembly, model, X).verdict == "proven"


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.sampled_from([-2.0, -0.5, 0.0, 1.0, 1.0, 3.25]), min_size=8, max_size=30),
    st.integers(1, 5),
    st.integers(1, 4),
    st.lists(st.floats(0, 1), min_size=1, max_size=4),
    st.sampled_from(OPTIONS),
)
def test_any_targets(targets, n_trees, least, quantiles, options):
    """Few targets that repeat, so that weights, ties and ends are met."""
    rows = np.random.default_rng(len(targets)).normal(size=(len(targets), 2))
    model = RandomForestQuantileRegressor(
        n_trees, max_samples_leaf=None, min_samples_leaf=least, random_state=0
    ).fit(rows, targets)
    np.testing.assert_array_equal(
        dm.convert(model).predict_quantiles(rows, quantiles, **options),
        model.predict(rows, quantiles=quantiles, **options),
    )


def test_refused():
    model = RandomForestQuantileRegressor(2, random_state=0).fit(X, y)
    assembly = dm.convert(model)
    for wrong in (1.5, [0.1, -1], "median", [], [None]):
        with pytest.raises(dm.InputError, match="quantiles"):
            assembly.predict_quantiles(X, wrong)
    with pytest.raises(dm.InputError, match="interpolation"):
        assembly.predict_quantiles(X, 0.5, interpolation="cubic")
    with pytest.raises(dm.InputError, match="predict_survival_function"):
        assembly.predict_survival_function(X)
    for place, part in (("", model), (r"estimators_\[1\]\.", model.estimators_[1])):
        part.gate_ = 1
        with pytest.raises(dm.UnsupportedModelError, match=f"{place}gate_ is a field"):
            dm.convert(model)
        del part.gate_
    with pytest.raises(dm.InputError, match="not fitted"):
        dm.convert(RandomForestQuantileRegressor())
