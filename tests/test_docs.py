"""Documentation that stays true."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\| (?P<paper>[^|]+) \| `(?P<symbol>[\w.]+)` \| `(?P<test>[\w/.]+)` \|$")
TABLE = [
    match.groupdict()
    for line in (ROOT / "docs" / "paper.md").read_text().splitlines()
    if (match := ROW.match(line))
]


def resolve(symbol: str):
    parts = symbol.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            found = getattr(found, name)
        return found
    raise AssertionError(f"no module of {symbol}")


def test_the_paper_table_is_there():
    assert len(TABLE) >= 15


@pytest.mark.parametrize("row", TABLE, ids=[row["paper"] for row in TABLE])
def test_every_equation_has_its_symbol_and_its_test(row):
    symbol = resolve(row["symbol"])
    says = (inspect.getdoc(symbol) or "") + (inspect.getdoc(inspect.getmodule(symbol)) or "")
    if label := re.search(r"`([^`]+)`", row["paper"]):
        assert f"`{label.group(1)}`" in says, f"{row['symbol']} does not name {label.group(1)}"
    assert "Paper:" in says or "paper" in says
    text = (ROOT / row["test"]).read_text()
    assert re.search(r"^def test_", text, re.MULTILINE)
    assert row["symbol"].split(".")[-1] in text, f"{row['test']} does not use {row['symbol']}"


def test_every_equation_named_in_the_code_is_in_the_table():
    named = set()
    for path in (ROOT / "src" / "decision_machines").rglob("*.py"):
        for line in re.findall(r"Paper: (.*)", path.read_text()):
            named |= set(re.findall(r"(?:Eq\.|Theorem) `([^`]+)`", line))
    listed = {label for row in TABLE for label in re.findall(r"`([^`]+)`", row["paper"])}
    assert named <= listed


def test_the_readme_names_the_two_commands():
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme


def test_links_between_documents_lead_somewhere():
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_changelog_citation_and_package_name_one_version():
    import tomllib

    import decision_machines as dm

    changes = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## (\S+) \((\d{4}-\d{2}-\d{2})\)$", changes, re.MULTILINE)
    assert changes.index("## Unreleased") < changes.index(f"## {versions[0][0]}")
    assert versions[0][0] == dm.__version__
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {versions[0][0]}\ndate-released: {versions[0][1]}\n" in citation
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["urls"]["Paper"] in citation
    assert "Typing :: Typed" in project["classifiers"]


def test_the_checks_before_a_change_lands_are_all_of_them():
    script = (ROOT / ".ci" / "run").read_text()
    commands = re.findall(r"^make (\S+)$", script, re.MULTILINE)
    assert commands == ["checks-ready", "lint", "docs", "test"]
    makefile = (ROOT / "Makefile").read_text()
    for tool in ("ruff check", "ruff format --check", "mypy", "lint-imports", "sphinx-build -W"):
        assert f"$(BIN)/{tool}" in makefile
