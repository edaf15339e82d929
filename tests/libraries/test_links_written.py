"""Every link and decision of a machine: each writer writes it, or refuses it in words."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import treelite
from strategies import make_machine

import decision_machines as dm
from decision_machines.libraries.catboost.objectives import REGRESSION_LINKS
from decision_machines.libraries.lightgbm import objectives as lightgbm_objectives
from decision_machines.libraries.lightgbm import write as write_lightgbm
from decision_machines.libraries.onnx import write_links as write_onnx
from decision_machines.libraries.sklearn import read_hist
from decision_machines.libraries.treelite import write as write_treelite
from decision_machines.libraries.xgboost import objectives as xgboost_objectives
from decision_machines.libraries.xgboost import write_objectives as write_xgboost
from decision_machines.machine.decisions import DECISIONS
from decision_machines.machine.links import FAMILIES, LINKS, PLAIN_LINKS, STEPS
from decision_machines.machine.steps import Step


def test_every_link_that_a_reader_names_is_known():
    assert set(lightgbm_objectives.LINK_OF.values()) <= set(PLAIN_LINKS)
    assert {how.link for how in xgboost_objectives.OBJECTIVES.values()} <= set(PLAIN_LINKS)
    assert set(REGRESSION_LINKS.values()) <= set(PLAIN_LINKS)
    assert set(read_hist.LINKS.values()) <= set(PLAIN_LINKS)


@pytest.mark.parametrize("room", [write_onnx, write_treelite], ids=["onnx", "treelite"])
def test_every_family_is_written_or_refused_for_a_reason(room):
    written = {*room.WRITTEN, STEPS} if room is write_onnx else set(room.WRITTEN)
    assert written | set(room.REFUSED) == set(FAMILIES)
    assert not written & set(room.REFUSED)
    assert all(room.REFUSED.values())


def test_links_that_are_written_to_the_bit_are_known():
    assert set(write_lightgbm.WRITTEN) <= set(PLAIN_LINKS)
    assert {link for link, _ in write_xgboost.WRITTEN} <= set(PLAIN_LINKS)
    assert {decision for _, decision in write_xgboost.WRITTEN} <= set(DECISIONS)


def answers_of_treelite(model, X):
    return np.asarray(treelite.gtil.predict(model, X, nthread=1)).reshape(len(X), -1)


def answers_read_back(model, X):
    return dm.convert(model).response(X)


TARGETS = {
    "lightgbm": (dm.DecisionMachine.to_lightgbm, answers_read_back, np.float64),
    "xgboost": (dm.DecisionMachine.to_xgboost, answers_read_back, np.float32),
    "sklearn": (dm.DecisionMachine.to_sklearn, answers_read_back, np.float64),
    "onnx": (dm.DecisionMachine.to_onnx, answers_read_back, np.float32),
    "treelite": (dm.DecisionMachine.to_treelite, answers_of_treelite, np.float32),
}
"""How each writes, how it is asked, and the dtype that it adds in."""


def machine_of(target, link, k, decision="response"):
    machine = make_machine(
        [5, 3], np.random.default_rng(3), n_features=3, n_outputs=k, rules=False, values="real",
        dtype=np.float32, output_dtype=TARGETS[target][2], plain_output=True, narrow=True,
    )  # fmt: skip
    params = (2.0,) if LINKS[link].is_averaged else ()
    params += (Step("single"),) if LINKS[link].takes_steps else ()
    output = replace(
        machine.output, link=link, link_params=params, decision=decision, groups=(0, k),
        classes=(np.arange(max(k, 2)),) if DECISIONS[decision].labels else None,
    )  # fmt: skip
    return replace(machine, output=output, V=np.abs(machine.V) + 0.25)


def written_or_refused(machine, target):
    """The answers of what was written and whether they may differ; or the refusal's words."""
    write, ask, dtype = TARGETS[target]
    X = np.random.default_rng(0).normal(size=(20, 3)).astype(dtype)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", dm.InexactWarning)
        try:
            model = write(machine)
        except dm.UnsupportedModelError as error:
            return str(error)
    is_exact = not any(issubclass(w.category, dm.InexactWarning) for w in seen)
    return machine.response(X), ask(model, X), is_exact


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("link", LINKS)
def test_a_link_is_written_or_refused_by_name(link, target):
    widths = (LINKS[link].family.n_outputs,) if LINKS[link].family.n_outputs else (1, 3)
    for k in widths:
        found = written_or_refused(machine_of(target, link, k), target)
        if isinstance(found, str):
            assert repr(link) in found
            continue
        ours, theirs, is_exact = found
        np.testing.assert_allclose(theirs.reshape(ours.shape), ours, rtol=1e-5)
        assert not is_exact or np.array_equal(theirs.reshape(ours.shape), ours)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("decision", DECISIONS)
def test_a_decision_is_written_or_refused_in_words(decision, target):
    for k in (1, 2):
        if DECISIONS[decision].least_outputs <= k:
            found = written_or_refused(machine_of(target, "identity", k, decision), target)
            assert isinstance(found, tuple) or "margins=True" in found or "machine.save" in found
