"""The estimators are found by name, and their library is asked for by its extra."""

from __future__ import annotations

import subprocess
import sys

import pytest

import decision_machines as dm

NAMES = [
    "DecisionMachineClassifier",
    "DecisionMachineRegressor",
    "NonGreedyTreeClassifier",
    "NonGreedyTreeRegressor",
    "TemplateCodeClassifier",
]


@pytest.mark.parametrize("name", NAMES)
def test_every_estimator_is_a_public_name(name):
    assert getattr(dm, name).__name__ == name
    assert name in dir(dm)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'NonGreedyForest'"):
        dm.NonGreedyForest  # noqa: B018


def test_without_scikit_learn_the_extra_is_named():
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import decision_machines as dm\n"
        "try: dm.DecisionMachineClassifier\n"
        "except dm.MissingLibraryError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "scikit-learn is not installed" in done.stdout
    assert "decision-machines[sklearn]" in done.stdout
