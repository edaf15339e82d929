"""Modules of real models answer with the model's own response."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from relax_forests import make_forest, make_rows

from decision_machines import convert
from decision_machines.machine import links
from decision_machines.machine.steps import STEPS, Step
from decision_machines.relax.links import OF_FAMILY, ONNX_STEPS, link_named
from decision_machines.run.links import LINKS as RUN_LINKS
from decision_machines.run.links.onnx import STEPS as RUN_STEPS

ONNX_STEPS_OF_ONE = (Step("add", (0.1,)), Step("logistic"), Step("complement"))


def test_every_family_has_a_torch_form():
    assert set(OF_FAMILY) == set(links.FAMILIES)


def test_every_step_has_a_torch_form():
    assert set(ONNX_STEPS) == set(STEPS)


@pytest.mark.parametrize("name", links.LINKS)
def test_torch_links_are_the_engine_s(name):
    link = links.LINKS[name]
    margin = make_rows(50, 2).numpy() * 2
    params = (3.0,) if link.is_averaged else ()
    if link.takes_steps:
        params += ONNX_STEPS_OF_ONE
        margin = margin[:, :1]
    if link.family.n_outputs is not None:
        margin = margin[:, : link.family.n_outputs]
    ours = link_named(name)(torch.from_numpy(margin), *params)
    theirs = RUN_LINKS[name](margin, *params)
    np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("name", STEPS)
def test_torch_steps_of_onnx_graphs_are_the_engine_s(name):
    x = make_rows(50, 2).numpy()
    if name == "probit":
        x = 0.1 + 0.8 / (1 + np.exp(-x))
    several = (0.5, 2.0) if name in ("add", "subtract", "multiply", "divide") else (0.7,)
    constants = several if STEPS[name].takes_constants else ()
    ours = ONNX_STEPS[name](torch.from_numpy(x), *constants)
    np.testing.assert_allclose(ours, RUN_STEPS[name](x, *constants), rtol=2e-5, atol=1e-4)


def test_groups_of_outputs_have_their_own_softmax():
    machine = make_forest([5, 7], n_outputs=4)
    output = replace(
        machine.output,
        link="softmax",
        groups=(0, 2, 4),
        classes=([0, 1], [0, 1]),
        decision="argmax",
    )
    machine, X = replace(machine, output=output), make_rows(10)
    np.testing.assert_allclose(machine.soften("logical")(X).detach(), machine.response(X.numpy()))


def models():
    from lightgbm import LGBMClassifier
    from sklearn.ensemble import (
        GradientBoostingClassifier,
        HistGradientBoostingRegressor,
        RandomForestClassifier,
    )
    from xgboost import XGBClassifier

    small = {"n_estimators": 5, "random_state": 0}
    return {
        "sklearn forest": RandomForestClassifier(max_depth=4, n_jobs=1, **small),
        "sklearn boosting": GradientBoostingClassifier(max_depth=3, **small),
        "histogram boosting": HistGradientBoostingRegressor(max_iter=5, max_leaf_nodes=8),
        "lightgbm": LGBMClassifier(num_leaves=8, verbose=-1, n_jobs=1, **small),
        "xgboost": XGBClassifier(max_depth=3, n_jobs=1, **small),
    }


@pytest.mark.parametrize(
    "name", ["sklearn forest", "sklearn boosting", "histogram boosting", "lightgbm", "xgboost"]
)
def test_modules_of_trained_models_answer_as_the_model(name):
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    model = models()[name].fit(X, y)
    machine = convert(model)
    rows = torch.from_numpy(X)
    hard = machine.soften("straight_through")
    assert np.array_equal(
        hard.margin(rows).detach().numpy().astype(machine.output.dtype), machine.margin(X)
    )
    np.testing.assert_allclose(hard(rows).detach(), machine.response(X), rtol=1e-6, atol=1e-7)
    answer, weights = machine.soften("soft_tree", tau=1e-4)(rows, return_weights=True)
    assert answer.shape == machine.response(X).shape
    assert torch.isfinite(answer).all()
    torch.testing.assert_close(
        weights.sum(-1), torch.full((150,), float(machine.n_trees)).to(weights)
    )
    assert hard.harden().equals(machine)
