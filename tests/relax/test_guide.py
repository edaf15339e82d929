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
    assert [path.name for path in drawn] == ["falling-temperature.png", "attention-maps.png"]
    for path in drawn:
        assert path.stat().st_size > 20_000
        assert (ROOT / "docs" / "guides" / "images" / path.name).exists()


def test_all_forms_but_the_affine_end_at_the_exit_leaf():
    script = load_script()
    x = torch.tensor([[2.0, 1.0, 2.0, 2.0]])
    ends = [script.weights(x, 0.05, **options)[0] for options in script.FORMS.values()]
    assert [int(np.argmax(end)) for end in ends] == [4, 4, 4, 1]
    assert all(end.max() > 0.99 for end in ends)
