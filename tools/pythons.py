"""The Pythons of this computer, by release: the wheels and the matrix are built with them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

RELEASES = ("3.11", "3.12", "3.13")
"""Releases that pyproject.toml declares."""


def find_python(release: str) -> Path | None:
    """An interpreter of this release: on the PATH, of pyenv or of uv; None where there is none.

    PYTHONS, a list of interpreters with `:` between them, is looked through first.
    """
    for candidate in _candidates(release):
        ask = "import sys; print('%d.%d' % sys.version_info[:2])"
        try:
            told = subprocess.run([candidate, "-c", ask], capture_output=True, text=True)
        except OSError:
            continue
        if told.returncode == 0 and told.stdout.strip() == release:
            return Path(candidate)
    return None


def _candidates(release: str) -> list[str]:
    named = [path for path in os.environ.get("PYTHONS", "").split(os.pathsep) if path]
    found = [shutil.which(f"python{release}"), shutil.which("python3")]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    made = sorted(pyenv.glob(f"{release}.*/bin/python"), reverse=True)
    made += sorted((Path.home() / ".local/share/uv/python").glob(f"*-{release}.*/bin/python3"))
    # A shim of pyenv answers only for releases that are switched on, so its versions come first.
    return [*named, *map(str, made), *(path for path in found if path)]


def environment(python: Path, folder: Path) -> Path:
    """A fresh virtual environment in the folder; its interpreter."""
    if folder.exists():
        shutil.rmtree(folder)
    subprocess.run([python, "-m", "venv", folder], check=True)
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def install(python: Path, *what: str) -> None:
    """pip's installation of packages, files and options into the interpreter's environment."""
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *what], check=True)
