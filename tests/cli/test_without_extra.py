"""`dm` where the extra `cli` is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("absent", ["typer", "rich"])
def test_without_its_libraries_the_command_names_its_extra(absent):
    code = (
        f"import sys; sys.modules[{absent!r}] = None\n"
        "from decision_machines.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        f"error While running dm: {absent} is not installed.\n"
        "What to do: pip install 'decision-machines[cli]'.\n"
    )


def test_another_missing_module_is_not_blamed_on_the_extra():
    code = (
        "import sys; sys.modules['decision_machines.cli.bench'] = None\n"
        "from decision_machines.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "decision_machines.cli.bench" in done.stderr
    assert "decision-machines[cli]" not in done.stderr
