"""What the tables of links, steps and decisions say is true of what runs, and covers all of it."""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from strategies import make_machine

import decision_machines as dm
from decision_machines.machine import links
from decision_machines.machine.decisions import DECISIONS
from decision_machines.machine.links import FAMILIES, LINKS, PLAIN_LINKS
from decision_machines.machine.steps import STEPS, Step, width_after
from decision_machines.run.links import LINKS as FUNCTIONS
from decision_machines.run.links.decisions import DECISIONS as DECIDE
from decision_machines.run.links.onnx import STEPS as STEP_FUNCTIONS

COMPUTED = [name for name in LINKS if not LINKS[name].takes_steps]
"""Links that are one function; of a link of steps nothing is known but its steps."""


def respond(name, margins, dtype=np.float64):
    params = (3.0,) if LINKS[name].is_averaged else ()
    with np.errstate(all="ignore"):
        return FUNCTIONS[name](np.asarray(margins, dtype), *params)


def takes(function, n_given):
    """How few and how many numbers a function takes after those that are always given."""
    parameters = list(inspect.signature(function).parameters.values())[n_given:]
    return sum(p.default is p.empty for p in parameters), len(parameters)


# ---------------------------------------------------------------------- every map covers the table


def test_a_function_runs_for_every_link_step_and_decision():
    assert set(FUNCTIONS) == set(LINKS)
    assert set(STEP_FUNCTIONS) == set(STEPS)
    assert set(DECIDE) == set(DECISIONS)


def test_functions_take_the_parameters_that_the_table_says():
    for name in PLAIN_LINKS:
        if not LINKS[name].takes_steps:
            assert (LINKS[name].least_params, LINKS[name].most_params) == takes(FUNCTIONS[name], 1)
    for name, decision in DECISIONS.items():
        assert takes(DECIDE[name], 3) == (0, decision.most_params), name


def test_every_link_has_an_averaged_one_beside_it():
    assert len(LINKS) == 2 * len(PLAIN_LINKS)
    for name in PLAIN_LINKS:
        averaged = LINKS[links.AVERAGED + name]
        assert averaged.plain is LINKS[name].plain is LINKS[name]
        assert averaged.is_averaged
        assert not LINKS[name].is_averaged


def test_every_family_has_a_link_and_a_name_of_its_own():
    assert {link.family for link in LINKS.values()} == set(FAMILIES)
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


def test_what_a_step_gives_is_as_wide_as_the_table_says():
    for name, kind in STEPS.items():
        step = Step(name, (0.5, 2.0, 4.0) if kind.takes_constants else ())
        for width in (1, 3):
            with np.errstate(all="ignore"):
                found = STEP_FUNCTIONS[name](np.full((4, width), 0.25), *step.constants)
            assert found.shape == (4, width_after([step], width)), name


# ---------------------------------------------------------------------- facts of the families

MARGINS = npst.arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(1, 4)),
    elements=st.floats(-50, 50, width=32),
)


@pytest.mark.parametrize("name", COMPUTED)
@given(margins=MARGINS)
def test_links_of_one_family_are_one_function(name, margins):
    family = LINKS[name].family
    if family.n_outputs is not None:
        margins = np.resize(margins, (len(margins), family.n_outputs))
    first = next(n for n in PLAIN_LINKS if LINKS[n].family is family)
    dtype = np.float32 if name.startswith("xgboost") else np.float64
    margins = np.clip(margins, -LINKS[name].bound, LINKS[name].bound)
    divided = margins / 3 if LINKS[name].is_averaged else margins
    np.testing.assert_allclose(
        respond(name, margins, dtype), respond(first, divided, dtype), rtol=2e-5, atol=1e-30
    )


@pytest.mark.parametrize("name", [n for n in COMPUTED if LINKS[n].family.is_increasing])
@given(margins=st.lists(st.floats(-80, 80, width=32), min_size=2, max_size=20))
def test_increasing_links_never_fall(name, margins):
    found = respond(name, np.sort(margins)[:, None])
    rounding = 4 * np.finfo(found.dtype).eps * np.abs(found[1:])
    assert np.all(np.diff(found, axis=0) >= -rounding)


@pytest.mark.parametrize("name", COMPUTED)
def test_links_that_are_not_increasing_do_fall_somewhere(name):
    family = LINKS[name].family
    if family.is_increasing:
        return
    if family.n_outputs is not None:
        assert family.n_outputs > 1  # there is no response of one margin
        return
    assert np.any(np.diff(respond(name, [[-1.0], [0.0], [1.0]]), axis=0) < 0)


@pytest.mark.parametrize("name", [n for n in COMPUTED if LINKS[n].family.keeps_order])
@given(margins=MARGINS)
def test_links_that_keep_the_order_keep_the_largest(name, margins):
    found = respond(name, margins)
    best = np.take_along_axis(found, margins.argmax(axis=1)[:, None], axis=1)
    assert np.all(best >= found.max(axis=1, keepdims=True))


@pytest.mark.parametrize("name", COMPUTED)
@given(margins=MARGINS)
def test_probabilities_lie_between_0_and_1(name, margins):
    family = LINKS[name].family
    if family.n_outputs is not None:
        margins = np.resize(margins, (len(margins), family.n_outputs))
    found = respond(name, margins)
    if family.is_probability:
        assert np.all((found >= 0) & (found <= 1 + 1e-12))
    if family in (links.SOFTMAX, links.ADABOOST):
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-6)


@pytest.mark.parametrize("name", COMPUTED)
def test_only_links_that_read_all_outputs_mix_them(name):
    family = LINKS[name].family
    k = family.n_outputs or 3
    margins = np.linspace(-1, 1, k)[None]
    other = margins.copy()
    other[0, 0] += 1.5  # beyond the next one, or sorted margins would stay where they are
    changed = np.any(respond(name, margins)[:, 1:] != respond(name, other)[:, 1:])
    assert changed == family.reads_all_outputs


# ---------------------------------------------------------------------- facts of the decisions


@pytest.mark.parametrize("name", DECISIONS)
def test_a_decision_reads_what_the_table_says_and_gives_labels_where_it_says(name):
    decision = DECISIONS[name]
    machine = make_machine([3], np.random.default_rng(0), n_outputs=2)
    labels = np.array(["a", "b"])
    output = replace(machine.output, classes=(labels,), decision=name)
    low, high = np.array([[-1.0, -1.0]]), np.array([[3.0, 4.0]])
    answers = {
        (i, j): np.asarray(DECIDE[name](output, margin, answer)).tolist()
        for i, margin in enumerate((low, high[:, ::-1], high))
        for j, answer in enumerate((low, high[:, ::-1], high))
    }
    reads_margin = any(answers[i, 0] != answers[0, 0] for i in range(3))
    reads_response = any(answers[0, j] != answers[0, 0] for j in range(3))
    assert (reads_margin, reads_response) == (
        decision.reads == "margin",
        decision.reads == "response",
    )
    gives_labels = set(np.ravel(list(answers.values())).tolist()) <= set(labels.tolist())
    assert gives_labels == (decision.labels > 0)


@pytest.mark.parametrize("name", DECISIONS)
def test_a_decision_without_its_labels_is_refused_in_words(name):
    decision = DECISIONS[name]
    output = replace(make_machine([3], np.random.default_rng(0), n_outputs=2).output, classes=None)
    if decision.labels == 0:
        assert replace(output, decision=name).decision == name
        return
    with pytest.raises(dm.InvariantError, match="labels"):
        replace(output, decision=name)
    with pytest.raises(dm.InvariantError, match="labels"):
        replace(output, decision=name, classes=(np.array(["a"]),))


# ---------------------------------------------------------------------- an output checks itself


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"link": "os.system"}, "known link"),
        ({"link": "identity", "link_params": (1.0,)}, "link_params"),
        ({"link": "averaged identity"}, "link_params"),
        ({"link": "expit", "link_params": (1.0, 2.0)}, "link_params"),
        ({"link": "expit", "link_params": (-1.0,)}, "above 0"),
        ({"link": "expit", "link_params": ("1",)}, "neither a number"),
        ({"link": "averaged onnx", "link_params": (0.0, Step("negate"))}, "above 0"),
        ({"link": "onnx", "link_params": (0.0, 0.0)}, "link_params"),
        ({"link": "softmax", "link_params": (Step("negate"),)}, "takes steps"),
        ({"link": "onnx", "link_params": (Step("add", (1.0, 2.0, 3.0)),)}, "3 constants for 2"),
        ({"link": "onnx", "link_params": (Step("opposite"),) * 40}, "columns"),
        ({"link": "catboost_mean_and_variance", "groups": (0, 1, 2)}, "of 1 outputs"),
        ({"decision": "os.system"}, "known decision"),
        ({"decision": "response", "decision_params": (1.0,)}, "decision_params"),
        ({"decision": "inlier", "decision_params": (1.0, 2.0)}, "decision_params"),
        ({"decision": "inlier", "decision_params": ("1",)}, "decision_params"),
    ],
)
def test_an_output_refuses_what_no_room_could_compute(changes, match):
    output = make_machine([3], np.random.default_rng(0), n_outputs=2).output
    with pytest.raises(dm.InvariantError, match=match):
        replace(output, **changes)


def test_a_decision_by_the_second_of_one_output_is_refused():
    output = make_machine([3], np.random.default_rng(0), n_outputs=1).output
    with pytest.raises(dm.InvariantError, match="by 1 output"):
        replace(output, decision="second_margin_above", classes=(np.array(["a", "b"]),))


@pytest.mark.parametrize(
    ("name", "constants"),
    [("os.system", ()), ("", ()), (3, ()), ("add", ()), ("logistic", (1.0,)), ("single", (0.0,))],
)
def test_a_step_checks_itself(name, constants):
    with pytest.raises(dm.InvariantError):
        Step(name, constants)
