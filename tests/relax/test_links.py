"""Modules of real models answer with the model's own response."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from relax_forests import make_forest, make_rows

from decision_machines import convert
from decision_machines.relax.links import LINKS, ONNX_STEPS, link_named
from decision_machines.run.links import LINKS as RUN_LINKS
from decision_machines.run.links.onnx import STEPS

PARAMS = {
    "averaged": (3.0,),
    "onnx": (
        *(10, 1, 0.1),  # add
        *(2, 0),  # logistic
        *(6, 0),  # complement
    ),
}


def test_every_link_has_a_torch_form():
    for name in RUN_LINKS:
        assert link_named(name)
    assert set(LINKS) <= set(RUN_LINKS)


def test_onnx_steps_stand_in_the_same_order():
    assert list(ONNX_STEPS) == list(STEPS)


@pytest.mark.parametrize("name", [name for name in RUN_LINKS if name != "onnx"])
def test_torch_links_are_the_engine_s(name):
    margin = make_rows(50, 2).numpy() * 2
    params = (3.0,) if name.startswith("averaged") else ()
    if name == "averaged onnx":
        params = (3.0, *PARAMS["onnx"])
    if name in ("catboost_mean_and_variance", "averaged catboost_mean_and_variance"):
        margin = margin[:, :2]
    if "onnx" in name:
        margin = margin[:, :1]
    ours = link_named(name)(torch.from_numpy(margin), *params)
    theirs = RUN_LINKS[name](margin, *params)
    np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("name", STEPS)
def test_torch_steps_of_onnx_graphs_are_the_engine_s(name):
    x = make_rows(50, 2).numpy()
    if name == "probit":
        x = 0.1 + 0.8 / (1 + np.exp(-x))
    constants = (0.5, 2.0) if name in ("add", "subtract", "multiply", "divide") else ()
    constants = constants or ((0.7,) if name.endswith(("_from", "_into")) else ())
    ours = ONNX_STEPS[name](torch.from_numpy(x), *constants)
    np.testing.assert_allclose(ours, STEPS[name](x, *constants), rtol=2e-5, atol=1e-4)


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
