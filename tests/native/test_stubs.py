"""The types of the native module are those of the module that is built."""

import subprocess
import sys
from pathlib import Path

import pytest

import decision_machines

pytest.importorskip("nanobind", reason="nanobind, which writes the stubs, is not installed")

STUBS = Path(decision_machines.__file__).parent / "_native.pyi"


def test_the_stubs_are_what_the_module_says_of_itself(tmp_path):
    made = tmp_path / "_native.pyi"
    command = ["-m", "nanobind.stubgen", "-q", "-m", "decision_machines._native", "-o", str(made)]
    subprocess.run([sys.executable, *command], check=True)
    assert made.read_text() == STUBS.read_text(), "the native module has changed: run `make stubs`"


def test_the_stubs_name_the_types_of_arrays():
    text = STUBS.read_text()
    assert "Annotated[NDArray[numpy.int32]" in text
    assert "def __getattr__" not in text
