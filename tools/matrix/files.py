"""Model files that one environment writes and every other reads: an exchange, kept in results."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from matrix.sets import RESULTS, ROOT

KEPT = RESULTS / "files.json"
SCRIPTS = ROOT / "tests" / "compatibility"


def make_files(inside: Path, folder: Path) -> None:
    """Models of every library of this environment, written with the libraries' own answers."""
    subprocess.run([inside, SCRIPTS / "make_files.py", folder], check=True)


def exchange(readers: dict[str, Path], folder: Path) -> int:
    """Let every environment read the files of every one, store what came of it; failures."""
    kept: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    n_failed = 0
    for maker in sorted(one.name for one in folder.iterdir() if (one / "files.json").exists()):
        for reader, inside in readers.items():
            found = read_files(inside, folder / maker)
            kept.setdefault(maker, {})[reader] = found
            n_failed += len(found["failed"])
            print(
                f"files of {maker} read by {reader}: {found['equal']} equal, "
                f"{len(found['rounded'])} with rounded probabilities, "
                f"{len(found['refused'])} refused, {len(found['failed'])} failed",
                flush=True,
            )
    KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    return n_failed


def read_files(inside: Path, files: Path) -> dict[str, Any]:
    """How many files are equal to the bit; the others by name (see check_files.py)."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        subprocess.run([inside, SCRIPTS / "check_files.py", files, out], capture_output=True)
        if not out.exists():
            raise SystemExit(f"reading the files of {files.name}: {inside} wrote no result")
        return json.loads(out.read_text())
