"""Bad arguments: what we were doing, what was found, what to do."""

import builtins
from dataclasses import replace

import numpy as np
import pytest
import torch
from relax_forests import make_forest, make_rows

import decision_machines as dm


def refused(error, said, **options):
    with pytest.raises(error, match=said) as caught:
        dm.figure_one().soften(**options)
    assert_three_parts(caught.value)


def assert_three_parts(error):
    assert error.doing
    assert error.found
    assert error.remedy
    assert "What to do" in str(error)


@pytest.mark.parametrize("tau", [0, -1.0, float("nan"), float("inf"), "hot", None])
def test_temperatures_are_positive(tau):
    refused(dm.InputError, "tau=", tau=tau)
    net = dm.figure_one().soften()
    with pytest.raises(dm.InputError, match="tau="):
        net.tau = tau


@pytest.mark.parametrize(
    "options",
    [
        {"form": "hard_tree"},
        {"form": None},
        {"form": None, "query": "sign"},
        {"query": "cosine"},
        {"form": "softmax", "keys": "B"},
        {"form": "softmax", "weights": "sigmoid"},
        {"form": "soft_tree", "query": "affine"},
        {"form": None, "query": "relu", "weights": "kernel"},
        {"form": None, "query": "relu", "weights": "delta"},
        {"form": "linear", "query": "sign"},
        {"form": "multi_head", "weights": "sparsemax"},
    ],
    ids=str,
)
def test_unknown_forms_and_axes_are_named(options):
    refused(dm.InputError, "softening a machine", **options)


@pytest.mark.parametrize(
    "options",
    [
        {"learn": ("T",)},
        {"learn": ("W_Q",)},
        {"form": "linear", "learn": ("keys",)},
        {"learn": ("S",), "selection": "fixed"},
        {"selection": "lasso"},
        {"slope": -1.0},
        {"slope": [1.0, 2.0]},
        {"slope": float("nan")},
        {"form": "entmax", "alpha": 1.0},
        {"form": "entmax", "alpha": 2.5},
        {"form": "positive_part", "alpha": 0.0},
        {"form": "positive_part", "alpha": "a"},
        {"output": "logits"},
        {"dtype": torch.int64},
        {"dtype": "float32"},
        {"feature_map": "cos"},
        {"n_random": 0},
        {"gap": 0.0},
        {"mask": [7]},
    ],
    ids=str,
)
def test_bad_options_are_refused(options):
    with pytest.raises(dm.InputError) as caught:
        dm.figure_one().soften(**options)
    assert_three_parts(caught.value)


@pytest.mark.parametrize("shape", [(3, 5), (5,), (0, 3), ()])
def test_rows_of_the_wrong_width_are_refused(shape):
    with pytest.raises(dm.InputError, match="reads 4 features") as caught:
        dm.figure_one().soften()(torch.zeros(shape))
    assert_three_parts(caught.value)


def test_arrays_are_refused_with_the_way_to_make_a_tensor():
    with pytest.raises(dm.InputError, match="from_numpy"):
        dm.figure_one().soften()(np.zeros((1, 4)))


def test_mixed_devices_are_refused():
    with pytest.raises(dm.InputError, match="on meta and the module on cpu") as caught:
        dm.figure_one().soften()(torch.zeros(1, 4, device="meta"))
    assert_three_parts(caught.value)


def test_oblique_machines_keep_their_weights():
    machine = make_forest([5, 3], oblique=True)
    assert machine.soften().selection.kind == "oblique"
    for selection in ("fixed", "sparse", "hard"):
        with pytest.raises(dm.InputError, match="oblique"):
            machine.soften(selection=selection)


@pytest.mark.parametrize("aggregate", ["min", "max", "median"])
def test_machines_that_do_not_sum_their_trees_are_refused(aggregate):
    machine = make_forest([5, 3], n_outputs=1)
    machine = replace(machine, output=replace(machine.output, aggregate=aggregate))
    with pytest.raises(dm.UnsupportedModelError, match=aggregate) as caught:
        machine.soften()
    assert_three_parts(caught.value)


@pytest.mark.parametrize(("library", "form"), [("torch", "soft_tree"), ("entmax", "sparsemax")])
def test_a_missing_library_is_named_with_its_extra(monkeypatch, library, form):
    plain = builtins.__import__

    def missing(name, *args, **kwargs):
        if name.split(".")[0] == library:
            raise ImportError(name)
        return plain(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(dm.MissingLibraryError, match=rf"{library} is not installed") as caught:
        dm.figure_one().soften(form)
    assert "decision-machines[torch]" in str(caught.value)


def test_unused_features_of_any_table_can_be_read_first():
    machine = dm.figure_one()
    X = torch.from_numpy(machine.features([[2, 1, 2, 2]]))
    assert machine.soften("logical")(X).item() == 5.0
    assert make_rows(1).shape == (1, 4)
