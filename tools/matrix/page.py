"""Write docs/compatibility.md from the stored results: `python tools/matrix/page.py`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from matrix.files import KEPT  # noqa: E402
from matrix.sets import (  # noqa: E402
    CPU_ALONE,
    RESULTS,
    SETS,
    all_extras,
    declared,
    environments,
)

PAGE = ROOT / "docs" / "compatibility.md"
NOT_RUN = "not run"

HEAD = """# Compatibility

What was tested, written by `make matrix` from its own output (`tools/matrix/results`). Each column
is an environment of its own: a Python, the wheel, and releases of the libraries. *Oldest*
environments hold the lower bounds that `pyproject.toml` declares; *newest* ones what pip found on
the day of the run, and there a library's deprecation warning fails the test. Most tests compare
with the library itself, bit for bit. A cell says what was run; "not run" is said where it was not.

On Python 3.11 `make test` runs the whole suite besides, with torch; the environments here have no
torch.
"""

FILES = """## Files

Models of scikit-learn, XGBoost, LightGBM and CatBoost, written in the environment of the row and
read in that of the column: margins, exit leaves, predictions and probabilities, equal to the bit.
A skops or pickle file is a copy of scikit-learn's objects; a release that cannot make them again
refuses it by name. *Rounded*: all is equal but probabilities of scikit-learn's classes that call
NumPy's exponential, where the two NumPys give other last digits for the same exponents on this
processor; they differ by at most 4 units of rounding.

"""


def write_page() -> None:
    """Write the page from the results that are stored."""
    PAGE.write_text(page())
    print(f"{PAGE.relative_to(ROOT)} is written")


def page() -> str:
    """The text of the page, from the results that are stored."""
    results = {
        one.name: json.loads(path.read_text())
        for one in environments()
        if (path := RESULTS / f"{one.name}.json").exists()
    }
    sections = [HEAD, tests(results), files(), releases(results)]
    sections += [skipped(results), failed(results)]
    sections.append((Path(__file__).parent / "platforms.md").read_text())
    return "\n".join(sections).rstrip() + "\n"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def tests(results: dict[str, Any]) -> str:
    """Passed, failed and skipped tests of each room."""
    rows = [
        [room, *(_counts(result["rooms"].get(room)) for result in results.values())]
        for room in SETS["rooms"]
    ]
    dates = ["date", *(result["date"] for result in results.values())]
    absent = [one.name for one in environments() if one.name not in results]
    note = f"\nDefined, and not run yet: {', '.join(absent)}.\n" if absent else ""
    return "## Tests\n\n" + table(["room", *results], [*rows, dates]) + note


def _counts(room: dict[str, Any] | None) -> str:
    if room is None:
        return NOT_RUN
    n_skipped = sum(room["skipped"].values())
    parts = [f"{room['passed']} passed"]
    parts += [f"**{len(room['failed'])} failed**"] if room["failed"] else []
    parts += [f"{n_skipped} skipped"] if n_skipped else []
    return ", ".join(parts)


def files() -> str:
    """Model files written in one environment (row) and read in another (column)."""
    kept: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    names = [one.name for one in environments()]
    rows = [
        [maker, *(_exchanged(kept.get(maker, {}).get(reader)) for reader in names)]
        for maker in names
    ]
    wrong = [
        f"{maker} read by {reader}: {line}".replace("|", "\\|")
        for maker, readers in kept.items()
        for reader, one in readers.items()
        for line in one["failed"]
    ]
    return FILES + table(["written in", *names], rows) + "".join(f"\n- {line}" for line in wrong)


def _exchanged(one: dict[str, Any] | None) -> str:
    if one is None:
        return NOT_RUN
    parts = [f"{one['equal']} equal"]
    parts += [f"**{len(one['failed'])} wrong**"] if one["failed"] else []
    parts += [f"{len(one['rounded'])} rounded"] if one["rounded"] else []
    parts += [f"{len(one['refused'])} refused"] if one["refused"] else []
    return ", ".join(parts)


def releases(results: dict[str, Any]) -> str:
    """The release of every declared library, beside the lower bound."""
    rows = [["Python", "3.11", *(result["python"] for result in results.values())]]
    for asked, lowest in declared(all_extras()).items():
        name = asked.partition("[")[0]
        held = (result["packages"] for result in results.values())
        cells = [one.get(name) or one.get(CPU_ALONE.get(name, ""), "absent") for one in held]
        rows.append([name, lowest, *cells])
    return "## Releases\n\n" + table(["library", "declared from", *results], rows)


def skipped(results: dict[str, Any]) -> str:
    """Reasons of skipped tests, with how many of them each environment skips."""
    of_set = {name: Counter[str]() for name in results}
    for name, result in results.items():
        for room in result["rooms"].values():
            of_set[name].update(room["skipped"])
    reasons = sorted(set().union(*of_set.values()))
    if not reasons:
        return "## Skipped\n\nNothing.\n"
    rows = [
        [
            reason.replace("|", "\\|").replace("\n", " "),
            *(str(of_set[name][reason] or "") for name in results),
        ]
        for reason in reasons
    ]
    return "## Skipped\n\n" + table(["reason", *results], rows)


def failed(results: dict[str, Any]) -> str:
    """Failed tests by name."""
    lines = [
        f"- {name}, {room}: `{line.replace('`', chr(39))}`"
        for name, result in results.items()
        for room, one in result["rooms"].items()
        for line in one["failed"]
    ]
    return "## Failed\n\n" + ("\n".join(lines) or "None of the tests that ran.") + "\n"


if __name__ == "__main__":
    write_page()
