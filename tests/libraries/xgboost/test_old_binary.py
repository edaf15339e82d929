"""Binary files of old releases, which XGBoost no longer reads, answer as the last one that did."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import decision_machines as dm
from decision_machines import DecisionMachine, ModelFormatError, UnsupportedModelError
from decision_machines.libraries.xgboost.read import read_xgboost_binary
from decision_machines.libraries.xgboost.read_binary import looks_like_binary

FILES = sorted((Path(__file__).parent / "files").glob("*.model"))


@pytest.fixture(scope="module")
def answers():
    with np.load(FILES[0].parent / "answers.npz") as stored:
        return dict(stored)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_binary_file_answers_as_xgboost_1_7_does(path, answers):
    machine = dm.load(path)
    margin = answers[f"{path.stem} margin"]
    assert np.array_equal(machine.margin(answers["X"]).reshape(margin.shape), margin)
    response = answers[f"{path.stem} response"]
    assert np.array_equal(machine.response(answers["X"]).reshape(response.shape), response)


def test_there_are_files_from_before_and_after_release_1():
    releases = {path.stem.rsplit("-", 1)[1].split(".")[0] for path in FILES}
    assert releases == {"0", "1"}


@pytest.mark.parametrize("path", FILES[:2], ids=lambda path: path.stem)
def test_a_file_cut_anywhere_is_refused(path):
    data = path.read_bytes()
    for end in range(0, len(data), 37):
        with pytest.raises(ModelFormatError):
            read_xgboost_binary(data[:end])
    with pytest.raises(ModelFormatError, match="follow the end"):
        read_xgboost_binary(data + b"\0")


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_damaged_file_is_refused_or_read_as_what_it_says(data):
    content = bytearray(data.draw(st.sampled_from(FILES)).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    try:
        found = read_xgboost_binary(bytes(content))
    except (ModelFormatError, UnsupportedModelError):
        return
    assert isinstance(found, DecisionMachine)


@given(st.binary(max_size=400))
def test_other_bytes_are_not_taken_for_a_binary_file(data):
    assert not looks_like_binary(data)
