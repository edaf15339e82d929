"""A checkpoint is gone on with by the run that wrote it, and by no other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.ensemble import GradientBoostingRegressor

import decision_machines as dm
from decision_machines.errors import InputError
from decision_machines.train.tune.descent import Setting

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4))
Z = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
GRADE = np.digitize(Z, [-0.6, 0.0, 0.6]).astype(float)
OTHER = rng.normal(size=(40, 4))
SOURCE = dm.convert(
    GradientBoostingRegressor(n_estimators=4, max_depth=3, random_state=0).fit(X, Z)
)
SETTINGS = (Setting(0.3, 0.05, 0.05, 0.05),)


def tuned(machine=SOURCE, rows=X, y=Z, **options):
    given = {"epochs": 1, "settings": SETTINGS, "n_threads": 1, "verbose": False}
    return dm.tune(machine, rows, y, **(given | options))


def other_selection(machine):
    """The machine whose first test reads another column, everything else the same."""
    selection = machine.selection.copy()
    selection[0] = (selection[0] + 1) % machine.n_features
    return replace(machine, selection=selection)


def other_output(machine):
    return replace(machine, output=replace(machine.output, base=machine.output.base + 1.0))


GROUPS = np.arange(120) // 6
RANKED = {"group": GROUPS, "y": GRADE}
VALID = {"validation": (OTHER, OTHER[:, 0])}
DIFFERENCES = {
    "groups": (RANKED, {**RANKED, "group": np.arange(120) // 4}, "training group"),
    "groups to judge by": (
        {**RANKED, "validation": (OTHER, OTHER[:, 0] > 0, None, np.arange(40) // 5)},
        {**RANKED, "validation": (OTHER, OTHER[:, 0] > 0, None, np.arange(40) // 8)},
        "validation group",
    ),
    "a selection": ({}, {"machine": other_selection(SOURCE)}, "machine"),
    "an output": ({}, {"machine": other_output(SOURCE)}, "machine"),
    "a selection of the machine to train again": (
        {**VALID, "refit": SOURCE},
        {**VALID, "refit": other_selection(SOURCE)},
        "refit",
    ),
    "targets": ({}, {"y": Z + 1}, "training y"),
    "weights": ({}, {"sample_weight": np.arange(120) + 1.0}, "training weights"),
    "rows to judge by": (VALID, {"validation": (OTHER + 1, OTHER[:, 0])}, "validation X"),
    "an option": ({}, {"epochs": 2}, "epochs"),
    "a setting": ({}, {"settings": (Setting(0.4, 0.05, 0.05, 0.05),)}, "settings"),
    "an objective": ({}, {"objective": "absolute"}, "objective"),
}


@pytest.mark.parametrize("what", DIFFERENCES)
def test_another_run_is_refused_with_the_name_of_what_differs(what, tmp_path):
    one, other, name = DIFFERENCES[what]
    tuned(**one, checkpoint=tmp_path / "state")
    with pytest.raises(InputError, match=f"another {name}"):
        tuned(**other, checkpoint=tmp_path / "state", resume=True)


def test_all_that_differs_is_named(tmp_path):
    tuned(checkpoint=tmp_path / "state")
    with pytest.raises(InputError, match="another epochs, another seed"):
        tuned(epochs=2, seed=1, checkpoint=tmp_path / "state", resume=True)


def test_a_loss_of_the_same_name_that_asks_for_something_else_is_refused(tmp_path):
    tuned(objective=lambda margin, y: (margin - y) ** 2, checkpoint=tmp_path / "state")
    with pytest.raises(InputError, match="another loss of the source"):
        tuned(
            objective=lambda margin, y: (margin - y).abs(),
            checkpoint=tmp_path / "state",
            resume=True,
        )


def test_the_same_run_goes_on_whatever_kind_of_whole_numbers_it_is_given(tmp_path):
    first = tuned(epochs=2, seed=3, checkpoint=tmp_path / "state")
    again = tuned(epochs=np.int64(2), seed=np.int32(3), checkpoint=tmp_path / "state", resume=True)
    assert again.machine.equals(first.machine)


def test_a_checkpoint_of_an_older_version_is_refused_by_its_number(tmp_path):
    path = tmp_path / "state"
    torch.save({"version": 1, "fingerprint": "abc", "state": {}}, path)
    with pytest.raises(InputError, match="has version 1"):
        tuned(checkpoint=path, resume=True)


def test_a_mistake_in_softening_is_not_taken_for_a_link_without_a_torch_form(monkeypatch):
    soften = dm.DecisionMachine.soften

    def wrong(self, *given, output="response", **options):
        if output == "response":
            raise TypeError("a mistake of ours")
        return soften(self, *given, output=output, **options)

    monkeypatch.setattr(dm.DecisionMachine, "soften", wrong)
    with pytest.raises(TypeError, match="a mistake of ours"):
        tuned()
