"""Run the conformance tests in the environments of the matrix: `make matrix`, `make matrix-fast`.

    python tools/matrix/run.py [--sets 3.13-newest ...] [--rooms read ...] [--fast] [--dist dist]

For each set: a virtual environment, the wheel (never the sources), the releases of the set, and
pytest for each room. Results go to tools/matrix/results, and from there to docs/compatibility.md.
In sets of the newest releases a library's deprecation warning is an error.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from pythons import RELEASES, find_python  # noqa: E402

from matrix.files import exchange, make_files  # noqa: E402
from matrix.page import write_page  # noqa: E402
from matrix.prepare import prepare  # noqa: E402
from matrix.sets import (  # noqa: E402
    RESULTS,
    SETS,
    Environment,
    environments,
    fast_environment,
    left_to_others,
)

SURPRISES = ("DeprecationWarning", "FutureWarning")


def versions(inside: Path) -> dict[str, str]:
    """Names and releases of all that is installed in the environment."""
    code = (
        "import importlib.metadata as m, json\n"
        "print(json.dumps({d.metadata['Name'].lower(): d.version for d in m.distributions()}))"
    )
    told = subprocess.run([inside, "-c", code], capture_output=True, text=True, check=True)
    return dict(sorted(json.loads(told.stdout).items()))


def run_room(inside: Path, tests: list[str], surprises: bool, cores: int) -> dict[str, Any]:
    """pytest's tally of these tests: passed, failed by name, skipped by reason."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
        command += ["--continue-on-collection-errors"]
        if cores > 1:
            command += ["-n", str(cores)]
        if surprises:
            command += [f"-Werror::{warning}" for warning in SURPRISES]
        started = time.perf_counter()
        alone = os.environ | {"OMP_NUM_THREADS": "1"}
        if not surprises:
            alone["DECISION_MACHINES_OLD_RELEASES"] = "1"
        done = subprocess.run(
            [*command, *tests], cwd=ROOT, env=alone, capture_output=True, text=True
        )
        if not report.exists():
            raise SystemExit(f"running {' '.join(tests)}: pytest wrote no report:\n{done.stdout}")
        return tally(ElementTree.parse(report)) | {
            "seconds": round(time.perf_counter() - started),
            "tests": tests,
        }


def tally(report: ElementTree.ElementTree[Any]) -> dict[str, Any]:
    """Counts of a report in JUnit's format."""
    passed, failed, skipped = 0, [], Counter[str]()
    for case in report.iter("testcase"):
        problems = [*case.iter("failure"), *case.iter("error")]
        skips = [*case.iter("skipped")]
        if problems:
            said = (problems[0].get("message") or "").splitlines() or [""]
            failed.append(f"{case.get('classname')}::{case.get('name')}: {said[0][:160]}")
        elif skips:
            skipped[_reason(skips[0])[:160]] += 1
        else:
            passed += 1
    return {"passed": passed, "failed": failed, "skipped": dict(sorted(skipped.items()))}


def _reason(skip: ElementTree.Element) -> str:
    """Why a test was skipped; of a whole file pytest keeps (path, line, reason) in the text."""
    said = skip.get("message") or "no reason given"
    if said != "collection skipped":
        return said
    return str(ast.literal_eval(skip.text or "('', 0, 'no reason given')")[2]).removeprefix(
        "Skipped: "
    )


def keep(found: dict[str, Any]) -> None:
    """Store the set's results; rooms that were not run this time keep what they had."""
    path = RESULTS / f"{found['set']}.json"
    if path.exists():
        before = json.loads(path.read_text())
        same = all(before[key] == found[key] for key in ("python", "packages"))
        if same:
            found = found | {"rooms": before["rooms"] | found["rooms"]}
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n")


def run_set(
    given: Environment, inside: Path, rooms: dict[str, list[str]], options: Any
) -> dict[str, Any]:
    """The results of one set, printed as they come."""
    code = (
        "import platform; print(platform.python_version(), platform.machine(), platform.system())"
    )
    told = subprocess.run([inside, "-c", code], capture_output=True, text=True, check=True)
    python, machine, system = told.stdout.split()
    found: dict[str, Any] = {
        "set": given.name,
        "date": time.strftime("%Y-%m-%d"),
        "python": python,
        "platform": f"{system} {machine}",
        "packages": versions(inside),
        "rooms": {},
    }
    for room, tests in rooms.items():
        ignored = [f"--ignore={path}" for path in left_to_others(room)]
        one = run_room(inside, [*tests, *ignored], given.is_newest, options.cores)
        found["rooms"][room] = one
        print(
            f"{given.name} {room}: {one['passed']} passed, {len(one['failed'])} failed, "
            f"{sum(one['skipped'].values())} skipped, {one['seconds']} s",
            flush=True,
        )
        for line in one["failed"]:
            print(f"    failed: {line}")
        for reason, n in one["skipped"].items():
            print(f"    skipped {n}: {reason}")
        if not options.fast:
            keep(found)
    return found


def main() -> None:
    names = [one.name for one in environments()]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=names, help="all of them, if not given")
    parser.add_argument(
        "--rooms",
        nargs="*",
        choices=list(SETS["rooms"]),
        help="all of them, if not given; without a name, only the exchange of files",
    )
    parser.add_argument(
        "--fast",
        action="store_true",
        help="a part of the tests, on the newest Python that is here; keeps nothing",
    )
    parser.add_argument("--dist", type=Path, help="wheels that are already built")
    parser.add_argument("--environments", type=Path, default=ROOT / "build" / "matrix")
    parser.add_argument("--cores", type=int, default=1)
    options = parser.parse_args()
    rooms = SETS["fast"]["rooms"] if options.fast else SETS["rooms"]
    rooms = {
        room: tests
        for room, tests in rooms.items()
        if options.rooms is None or room in options.rooms
    }
    chosen = [one for one in environments() if one.name in (options.sets or names)]
    if options.fast:
        here = [one for one in reversed(RELEASES) if one != "3.11" and find_python(one)]
        chosen = [fast_environment(one) for one in here[:1]]
        if not chosen:
            print("Neither Python 3.13 nor 3.12 is here: the fast part of the matrix is NOT run.")
    n_failed = 0
    readers: dict[str, Path] = {}
    files = options.environments / "files"
    for given in chosen:
        started = time.perf_counter()
        try:
            inside = prepare(given, options.environments, options.dist)
        except LookupError as absent:
            print(f"{given.name}: {absent}: NOT run")
            continue
        print(f"{given.name}: ready after {time.perf_counter() - started:.0f} s", flush=True)
        readers[given.name] = inside
        found = run_set(given, inside, rooms, options)
        n_failed += sum(len(one["failed"]) for one in found["rooms"].values())
        if not options.fast:
            make_files(inside, files / given.name)
            write_page()
    if not options.fast:
        n_failed += exchange(readers, files)
        write_page()
    if n_failed:
        sys.exit(f"{n_failed} tests failed")


if __name__ == "__main__":
    main()
