"""Install the wheels of a folder in fresh environments without a compiler, and use them.

    python tools/wheels/check.py [--dist dist] [--out build/wheels.json] [--without-tests]

For each Python that is declared: the wheel and what it needs are installed by pip, a model file is
read and predicted (timed, from the empty environment to the answer), the disk is measured, the cost
of the import is measured, and the tests of the native engine are run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from pythons import RELEASES, environment, find_python, install  # noqa: E402

LIMIT = 20.0
"""Seconds from an empty environment to the first prediction."""
TESTS = ("tests/run/test_native.py", "tests/libraries/own", "tests/machine", "tests/paper")


def without_compiler(python: Path) -> dict[str, str]:
    """Variables of a process that finds no compiler: its PATH has the environment alone."""
    kept = {name: value for name, value in os.environ.items() if name not in ("CC", "CXX")}
    return kept | {"PATH": str(python.parent), "CXX": "/no/compiler", "CC": "/no/compiler"}


def sizes(python: Path) -> dict[str, float]:
    """Megabytes on disk of each package that is installed."""
    code = (
        "import importlib.metadata as m, json, os\n"
        "print(json.dumps({d.metadata['Name']: sum(os.path.getsize(f.locate()) for f in d.files\n"
        "    if os.path.exists(f.locate())) / 1e6 for d in m.distributions()}))"
    )
    told = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return {name: round(size, 1) for name, size in json.loads(told.stdout).items()}


def check(release: str, python: Path, dist: Path, folder: Path, has_tests: bool) -> dict[str, Any]:
    """What was measured with this Python; a wrong answer or a failing test ends the program."""
    started = time.perf_counter()
    own = environment(python, folder / release)
    made = time.perf_counter()
    quiet = [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    wheels = ["--only-binary", ":all:", "--find-links", str(dist), "decision-machines"]
    plain = without_compiler(own)
    subprocess.run([*quiet, *wheels], check=True, env=plain)
    installed = time.perf_counter()
    files = ROOT / "tests/libraries/xgboost/files"
    first = [own, ROOT / "tools/wheels/first_prediction.py", files]
    subprocess.run(first, check=True, env=plain, cwd=folder)
    predicted = time.perf_counter()
    found = {
        "environment": made - started,
        "installation": installed - made,
        "first prediction": predicted - made,
    }
    disk = sizes(own)
    imported = subprocess.run(
        [own, ROOT / "benchmarks/import_time.py"], capture_output=True, text=True, cwd=folder
    )
    print(imported.stdout, end="", flush=True)
    if has_tests:
        install(own, "pytest", "hypothesis")
        tests = [own, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
        subprocess.run(tests, check=True, env=plain | {"OMP_NUM_THREADS": "1"}, cwd=ROOT)
    return {
        "seconds": {k: round(v, 1) for k, v in found.items()},
        "megabytes": disk,
        "import": imported.stdout.splitlines(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    parser.add_argument("--python", nargs="+", default=RELEASES, help="releases to check with")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "wheels.json")
    parser.add_argument("--without-tests", action="store_true", help="measure only")
    given = parser.parse_args()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for release in given.python:
            python = find_python(release)
            if python is None:
                print(f"Python {release} is not here: its wheel is NOT checked", flush=True)
                continue
            found[release] = check(
                release, python, given.dist, Path(folder), not given.without_tests
            )
            print(release, json.dumps(found[release]), flush=True)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(found, indent=1) + "\n")
    slow = [r for r in found if found[r]["seconds"]["first prediction"] > LIMIT]
    if slow or not found:
        sys.exit(f"over {LIMIT:g} s to the first prediction on: {slow or 'no Python at all'}")


if __name__ == "__main__":
    main()
