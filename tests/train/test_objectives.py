"""Objectives follow the machine, their losses are what they say, and targets are checked."""

import math

import numpy as np
import pytest
import torch
from library_models import data
from sklearn.metrics import (
    brier_score_loss,
    log_loss,
    mean_absolute_error,
    mean_gamma_deviance,
    mean_pinball_loss,
    mean_poisson_deviance,
    mean_squared_error,
    mean_tweedie_deviance,
    ndcg_score,
)

import decision_machines as dm
from decision_machines.errors import InputError, UnsupportedModelError
from decision_machines.machine import links
from decision_machines.train.tune.descent import judge, row_losses
from decision_machines.train.tune.objectives import (
    CLASSES,
    MEANT_FOR_CLASSES,
    MEANT_FOR_NUMBERS,
    NAMES,
    NUMBERS,
    objective_for,
)
from decision_machines.train.tune.ranking import group_ids, lambda_loss, one_minus_ndcg
from decision_machines.train.tune.source_objectives import trained_for
from decision_machines.train.tune.tensor_rows import TensorRows as Rows

RNG = np.random.default_rng(0)
RATE = RNG.gamma(2.0, 1.0, 40)
TARGET = RNG.gamma(2.0, 1.0, 40)


def columns(array):
    return torch.from_numpy(np.asarray(array, np.float64)).reshape(len(array), -1)


def mean_loss(machine, name, margin, y):
    found = objective_for(machine, name)
    return float(found.loss(columns(margin), torch.from_numpy(found.encode(y))).mean())


@pytest.mark.parametrize(
    ("name", "measure"),
    [
        ("squared", mean_squared_error),
        ("absolute", mean_absolute_error),
        ("quantile:0.9", lambda y, p: mean_pinball_loss(y, p, alpha=0.9)),
    ],
)
def test_losses_of_numbers_are_the_metrics_of_their_name(name, measure):
    assert mean_loss(dm.figure_one(), name, RATE, TARGET) == pytest.approx(measure(TARGET, RATE))


@pytest.mark.parametrize(
    ("name", "measure"),
    [
        ("poisson", mean_poisson_deviance),
        ("gamma", mean_gamma_deviance),
        ("tweedie:1.3", lambda y, p: mean_tweedie_deviance(y, p, power=1.3)),
    ],
)
def test_losses_of_rates_are_half_the_deviance(name, measure):
    from dataclasses import replace

    one = dm.figure_one()
    machine = replace(one, output=replace(one.output, link="exp"))
    found = mean_loss(machine, name, np.log(RATE), TARGET)
    assert 2 * found == pytest.approx(measure(TARGET, RATE))


def library(model, kind):
    X, y = data(kind)
    return dm.convert(model.fit(np.nan_to_num(X), y)), np.nan_to_num(X), y


def test_boosted_classes_are_trained_for_log_loss():
    import lightgbm
    import xgboost

    small = {"n_estimators": 3, "max_depth": 2, "n_jobs": 1}
    for kind, expected in (("two", "logistic"), ("three", "softmax")):
        for model in (lightgbm.LGBMClassifier(verbose=-1, **small), xgboost.XGBClassifier(**small)):
            machine, X, y = library(model, kind)
            objective = objective_for(machine)
            assert objective.name == expected
            rows = Rows(
                torch.from_numpy(machine.features(X)),
                torch.from_numpy(objective.encode(y)),
                torch.ones(len(X)).double(),
            )
            found = judge(objective, torch.from_numpy(machine.margin(X)), rows).mean
            assert found == pytest.approx(log_loss(y, model.predict_proba(X)), rel=1e-5)


def test_leaves_of_probabilities_are_trained_for_the_brier_score():
    from sklearn.tree import DecisionTreeClassifier

    machine, X, y = library(DecisionTreeClassifier(max_depth=3, random_state=0), "two")
    objective = objective_for(machine)
    assert objective.name == "brier"
    assert objective.on_simplex
    p = machine.predict_proba(X)
    found = float(objective.loss(columns(p), torch.from_numpy(objective.encode(y))).mean())
    assert found == pytest.approx(2 * brier_score_loss(y, p[:, 1]))
    named = objective_for(machine, "log_loss")
    smooth = 0.9 * p + 0.05
    found = float(named.loss(columns(smooth), torch.from_numpy(named.encode(y))).mean())
    assert found == pytest.approx(log_loss(y, smooth))


def test_every_family_of_links_is_trained_for_something_or_refused():
    depths = {links.ISOLATION, links.ANOMALY}  # refused: a depth is not a prediction
    assert depths.isdisjoint(MEANT_FOR_NUMBERS)
    assert {*MEANT_FOR_NUMBERS, *depths} == set(links.FAMILIES)
    assert set(MEANT_FOR_CLASSES) == set(links.FAMILIES)
    assert set(MEANT_FOR_NUMBERS.values()) <= set(NUMBERS)
    assert {name for names in MEANT_FOR_CLASSES.values() for name in names} <= set(CLASSES)


def test_links_without_classes_say_what_is_trained_for():
    import lightgbm
    import xgboost

    X, y = np.nan_to_num(data("number")[0]), data("number")[1]
    small = {"n_estimators": 2, "max_depth": 2, "n_jobs": 1}
    cases = [
        (lightgbm.LGBMRegressor(objective="poisson", verbose=-1, **small), "poisson"),
        (xgboost.XGBRegressor(objective="reg:tweedie", **small), "poisson"),
        (xgboost.XGBRegressor(**small), "squared"),
        (lightgbm.LGBMRegressor(reg_sqrt=True, verbose=-1, **small), "squared"),
    ]
    for model, expected in cases:
        machine = dm.convert(model.fit(X, y))
        objective = objective_for(machine)
        assert objective.name == expected
        if expected == "squared":  # in the answer's own unit, whatever the link
            margin = torch.from_numpy(machine.margin(X)).double()
            found = float(objective.loss(margin, torch.from_numpy(objective.encode(y))).mean())
            assert found == pytest.approx(mean_squared_error(y, model.predict(X)), rel=1e-5)


def test_rates_without_a_link_are_the_margin_itself():
    found = mean_loss(dm.figure_one(), "poisson", RATE, TARGET)
    assert 2 * found == pytest.approx(mean_poisson_deviance(TARGET, RATE))


def test_a_model_says_what_it_was_trained_for():
    import catboost
    import lightgbm
    import xgboost
    from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor

    X, y = np.nan_to_num(data("number")[0]), data("number")[1]
    small = {"n_estimators": 2, "n_jobs": 1}
    lgb, xgb = lightgbm.LGBMRegressor, xgboost.XGBRegressor
    cat = {"iterations": 2, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
    cases = [
        (lgb(objective="quantile", alpha=0.8, verbose=-1, **small), "quantile:0.8"),
        (lgb(objective="mae", verbose=-1, **small), "absolute"),
        (lgb(verbose=-1, **small), None),
        (xgb(objective="reg:quantileerror", quantile_alpha=0.7, **small), "quantile:0.7"),
        (xgb(objective="reg:tweedie", tweedie_variance_power=1.3, **small), "tweedie:1.3"),
        (xgb(**small), None),
        (catboost.CatBoostRegressor(loss_function="Quantile:alpha=0.2", **cat), "quantile:0.2"),
        (catboost.CatBoostRegressor(**cat), None),
        (HistGradientBoostingRegressor(loss="gamma", max_iter=2), "gamma"),
        (GradientBoostingRegressor(loss="absolute_error", n_estimators=2), "absolute"),
        (GradientBoostingRegressor(n_estimators=2), None),
    ]
    for model, expected in cases:
        assert trained_for(model.fit(X, y)) == expected, model
    booster = cases[3][0].get_booster()
    assert trained_for(booster) == "quantile:0.7"
    assert trained_for(dm.figure_one()) is None


def test_a_function_of_the_user_gets_flat_tensors_and_gives_rows_or_a_mean():
    seen = []

    def each(margin, y):
        seen.append((margin.shape, y.shape))
        return (margin - y).abs()

    one = dm.figure_one()
    assert mean_loss(one, each, RATE, TARGET) == pytest.approx(mean_absolute_error(RATE, TARGET))
    assert seen == [((40,), (40,))]
    mean = mean_loss(one, torch.nn.functional.l1_loss, RATE, TARGET)
    assert mean == pytest.approx(mean_absolute_error(RATE, TARGET))
    with pytest.raises(InputError, match="one loss for each row"):
        mean_loss(one, lambda margin, y: 3.0, RATE, TARGET)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "lambdarank"])
def test_no_loss_has_a_gradient_that_is_not_finite_at_sensible_margins(name):
    from dataclasses import replace

    from sklearn.tree import DecisionTreeClassifier

    machine = dm.figure_one()
    y = np.array([0.0, 1.0, 1.0, 1.0]) if name != "gamma" else np.ones(4)
    k = 1
    if name in ("softmax", "log_loss", "brier"):
        machine, _, _ = library(DecisionTreeClassifier(max_depth=2), "two")
        if name == "softmax":
            machine = replace(machine, output=replace(machine.output, link="softmax"))
        y, k = y.astype(int), 2
    if name == "gaussian":
        machine = replace(
            machine,
            V=np.zeros((6, 2)),
            output=replace(machine.output, base=np.zeros(2), groups=None),
        )
        k = 2
    objective = objective_for(machine, name)
    for size in (0.0, 1.0, -1.0, 30.0):
        margin = torch.full((4, k), size, dtype=torch.float64, requires_grad=True)
        objective.loss(margin, torch.from_numpy(objective.encode(y))).sum().backward()
        assert torch.isfinite(margin.grad).all()


# -- ranking --------------------------------------------------------------------------------------


def test_ranking_is_judged_by_ndcg_as_scikit_learn_counts_it():
    rng = np.random.default_rng(1)
    sizes = [3, 7, 5]
    group = torch.from_numpy(group_ids(sizes, 15))
    y, s = rng.integers(0, 4, 15), rng.permutation(15) / 7
    found = one_minus_ndcg(columns(s), columns(y), group)
    start = 0
    for size in sizes:
        part = slice(start, start + size)
        expected = 1 - ndcg_score([2.0 ** y[part] - 1], [s[part]])
        assert found[part].numpy() == pytest.approx(expected)
        start += size


def test_ranking_pulls_the_relevant_up_and_only_within_its_group():
    y = columns([1.0, 0, 0, 0])
    group = torch.tensor([0, 0, 1, 1])
    margin = torch.zeros((4, 1), dtype=torch.float64, requires_grad=True)
    lambda_loss(margin, y, group).sum().backward()
    assert margin.grad[0] < 0 < margin.grad[1]
    assert not margin.grad[2:].any()


def test_groups_are_ids_or_sizes():
    assert group_ids(["b", "a", "b"], 3).tolist() == [1, 0, 1]
    assert group_ids([2, 0, 2], 4).tolist() == [0, 0, 2, 2]
    with pytest.raises(InputError, match="sizes of groups"):
        group_ids([2, 2], 3)


def test_ranking_losses_are_judged_by_group():
    rows = Rows(
        torch.zeros((3, 4)), columns([1.0, 0, 1]), torch.ones(3).double(), torch.tensor([0, 0, 1])
    )
    objective = objective_for(dm.figure_one(), "lambdarank")
    assert len(judge(objective, columns([0.0, 1, 0]), rows).losses) == 2
    assert row_losses(objective, columns([0.0, 1, 0]), rows, judging=False)[2] == 0


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cubic", "use one of"),
        ("quantile:2", "between 0 and 1"),
        ("squared:2", "no colon"),
        ("softmax", "without classes"),
        (3, "use a function"),
    ],
)
def test_objectives_that_do_not_fit_are_refused(name, words):
    with pytest.raises(InputError, match=words):
        objective_for(dm.figure_one(), name)


def test_an_isolation_forest_has_nothing_to_train_for():
    from sklearn.ensemble import IsolationForest

    forest = IsolationForest(n_estimators=3, max_samples=8, random_state=0).fit(RATE[:, None])
    with pytest.raises(UnsupportedModelError, match="isolation"):
        objective_for(dm.convert(forest))


@pytest.mark.parametrize(
    ("name", "y", "words"),
    [
        ("squared", [1.0, math.nan], r"y\[1\]"),
        ("poisson", [1.0, -1.0], "at least 0"),
        ("gamma", [0.0, 1.0], "above 0"),
        ("squared", ["a", "b"], "numbers are needed"),
        ("squared", [[1.0, 2.0]], "output"),
    ],
)
def test_targets_that_do_not_fit_are_refused(name, y, words):
    with pytest.raises(InputError, match=words):
        objective_for(dm.figure_one(), name).encode(y)


def test_unknown_labels_are_named():
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(max_depth=1).fit([[0.0], [1.0]], ["no", "yes"])
    encode = objective_for(dm.convert(tree)).encode
    assert encode(["yes", "no"]).ravel().tolist() == [1.0, 0.0]
    with pytest.raises(InputError, match=r"y\[1\] = 'maybe' is not a label") as caught:
        encode(["yes", "maybe"])
    assert "'no', 'yes'" in str(caught.value)
