"""The guide's plots are made by code, and show what the guide says of them."""

import importlib.util
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).parents[2]


def load_script():
    path = ROOT / "docs" / "guides" / "make_attention_plots.py"
    spec = importlib.util.spec_from_file_location("make_attention_plots", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_the_plots_are_drawn(tmp_path):
    drawn = load_script().main(tmp_path)
    names = ["falling-temperature.png", "attention-maps.png", "weights.png"]
    assert [path.name for path in drawn] == names
    for path in drawn:
        assert path.stat().st_size > 20_000
        assert (ROOT / "docs" / "guides" / "images" / path.name).exists()


def test_all_forms_but_the_affine_end_at_the_exit_leaf():
    script = load_script()
    x = torch.tensor([[2.0, 1.0, 2.0, 2.0]])
    ends = [script.weights(x, 0.05, **options)[0] for options in script.FORMS.values()]
    assert [int(np.argmax(end)) for end in ends] == [4, 4, 4, 1]
    assert all(end.max() > 0.99 for end in ends)


def test_the_plot_of_the_weights_shows_every_choice_and_what_the_guide_says_of_it():
    from decision_machines.relax.weights import WEIGHTS

    script = load_script()
    shown = {options["form"] for options in script.WEIGHTS.values()}
    elsewhere = {"delta", "sparsemax", "entmax15", "positive_part", "gumbel_hard"}
    assert shown | elsewhere == set(WEIGHTS)
    X = script.crossing()[1]
    found = {o["form"]: script.weights(X, 1.0, **o) for o in script.WEIGHTS.values()}
    for weights in found.values():
        np.testing.assert_allclose(weights.sum(1), 1.0)
    assert np.all((found["top_k"] > 0).sum(1) <= 2)
    assert found["constrained_sparsemax"].max() <= 0.6 + 1e-12
    assert set(np.unique(found["sampled"])) == {0.0, 1.0}
    assert np.all(found["softmax"] > 0)
    assert np.mean(found["sparsegen"] == 0) > np.mean(found["entmax"] == 0) > 0.3
    share = {name: np.mean(found[name] == found[name].max(1, keepdims=True)) for name in found}
    assert share["oscarmax"] > share["softmax"]
    prior, plain = found["weighted_softmax"], found["softmax"]
    assert np.all(prior[:, 0] > plain[:, 0])
