"""Shared test set-up: `from strategies import machines` works in every test file."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

settings.register_profile(
    "modest",
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("modest")

NO_DEPRECATIONS = ("libraries", "run", "machine", "explain", "compatibility")
"""Folders of tests that read, run and compare models: they call what the libraries offer."""


def pytest_collection_modifyitems(items):
    if "DECISION_MACHINES_OLD_RELEASES" in os.environ:
        return  # old releases of libraries call what newer ones beside them have deprecated
    here = Path(__file__).parent
    for item in items:
        folder = item.path.relative_to(here).parts[0] if item.path.is_relative_to(here) else ""
        if folder in NO_DEPRECATIONS:
            item.add_marker(pytest.mark.filterwarnings("error::DeprecationWarning"))
