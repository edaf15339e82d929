"""Documentation that stays true."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\| (?P<paper>[^|]+) \| `(?P<symbol>[\w.]+)` \| `(?P<test>[\w/.]+)` \|$")
TABLE = [
    match.groupdict()
    for line in (ROOT / "docs" / "paper.md").read_text().splitlines()
    if (match := ROW.match(line))
]
CITATION = re.compile(
    r"^\| (?P<keys>`[\w-]+`(?:, `[\w-]+`)*) \| (?P<what>[^|`]+) "
    r"\| `(?P<symbol>[\w.]+)` \| `(?P<test>[\w/.]+)` \|$"
)
CITATIONS = [
    match.groupdict()
    for line in (ROOT / "docs" / "paper.md").read_text().splitlines()
    if (match := CITATION.match(line))
]
CITED = {
    "DCT",
    "EntropyNet",
    "Kong95error-correctingoutput",
    "Sigsoftmax1",
    "allwein2001reducing",
    "biau2019neural",
    "breiman2001random",
    "chen2015xgboost",
    "correia2019adaptively",
    "dato2016fast",
    "dietterich1994solving",
    "escalerasergio2010on",
    "fridedman1991multivariate",
    "gupta2021memoryefficient",
    "hehn2019end",
    "hlm2008",
    "hsc2018",
    "irsoy2012soft",
    "jang2016categorical",
    "kathRNN2020",
    "kernel2016",
    "kontschieder2015deep",
    "kuralenok2019monoforest",
    "laha2018controllable",
    "lee2020oblique",
    "lettich2016gpu",
    "loh2011classification",
    "lucchese2015quickscorer",
    "lucchese2017quickscorer",
    "malaviya2018sparse",
    "martins2016softmax",
    "mino-etal-2017-key",
    "niculae2017regularized",
    "norouzi2015efficient",
    "pmlr-vR5-morin05a",
    "tsai-etal-2019-transformer",
    "vaswani2017attention",
    "welbl2014casting",
    "xu2015show",
    "yang2018deep",
    "ye2018rapidscorer",
    "zhang2018weighted",
}
"""Every key that the paper's source cites."""


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


def keys_of(row):
    return re.findall(r"`([^`]+)`", row["keys"])


def test_every_key_that_the_paper_cites_has_a_row():
    listed = {key for row in CITATIONS for key in keys_of(row)}
    assert listed == CITED


@pytest.mark.parametrize("row", CITATIONS, ids=[row["symbol"] for row in CITATIONS])
def test_every_citation_has_its_symbol_and_its_test(row):
    says = inspect.getdoc(resolve(row["symbol"])) or ""
    cited = says.split("cites", 1)[-1]
    for key in keys_of(row):
        assert f"`{key}`" in cited, f"{row['symbol']} does not say that the paper cites {key}"
    text = (ROOT / row["test"]).read_text()
    assert re.search(r"^ *def test_", text, re.MULTILINE)
    assert row["symbol"].split(".")[-1] in text, f"{row['test']} does not use {row['symbol']}"


def test_every_citation_named_in_the_code_is_in_the_table():
    named = set()
    for path in (ROOT / "src" / "decision_machines").rglob("*.py"):
        for said in re.findall(r"\bcites\s((?:`[\w-]+`(?:,\s+)?)+)", path.read_text()):
            named |= set(re.findall(r"`([^`]+)`", said))
    assert named <= {key for row in CITATIONS for key in keys_of(row)}


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
    assert commands == ["checks-ready", "lint", "docs", "test", "matrix-fast"]
    makefile = (ROOT / "Makefile").read_text()
    for tool in ("ruff check", "ruff format --check", "mypy", "lint-imports", "sphinx-build -W"):
        assert f"$(BIN)/{tool}" in makefile


def test_every_page_stands_in_a_section_and_the_front_page_leads_to_all_of_them():
    """The side navigation shows a section's pages, so a page outside of one would have none."""
    docs = ROOT / "docs"

    def children(page: Path) -> list[Path]:
        found = []
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), re.DOTALL):
            for line in block.splitlines():
                if not line or line.startswith(":"):
                    continue
                names = page.parent.glob(f"{line}.md") if "*" in line else [page.parent / line]
                found += [p if p.suffix else p.parent / f"{p.name}.md" for p in names]
        return [p if p.exists() else p.with_suffix(".ipynb") for p in found]

    sections = children(docs / "index.md")
    assert len(sections) <= 5, "more would wrap in the header"
    listed = {docs / "index.md", *sections}
    for section in sections:
        for page in children(section):
            listed |= {page, *children(page)}
    written = {p for p in docs.rglob("*.md") if not set(p.parts) & {"_made", "_build"}}
    written |= {p for p in docs.rglob("*.ipynb") if not set(p.parts) & {"_made", "_build"}}
    assert {p.resolve() for p in written} == {p.resolve() for p in listed}
    front = (docs / "index.md").read_text()
    assert "(glossary.md)" in front
    assert "(architecture.md)" in front


def test_every_word_of_the_glossary_is_defined_once():
    words = re.findall(r"^(\S.*)\n: ", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)
    assert {"test", "column", "feature", "leaf", "template", "cover", "margin"} <= set(words)
    assert {"response", "prediction", "answer of a test"} <= set(words)
    assert len(set(words)) == len(words)


def test_the_picture_of_the_rooms_is_the_order_that_is_checked():
    import tomllib

    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = [layer.split(" | ") for layer in contract["contracts"][0]["layers"]]
    drawn = re.findall(
        r'y="(\d+)" font-size="16"[^>]*>(\w+)<',
        (ROOT / "docs" / "images" / "rooms.svg").read_text(),
    )
    rows = {}
    for y, name in drawn:
        rows.setdefault(int(y), []).append(name)
    assert [sorted(rows[y]) for y in sorted(rows)] == [sorted(layer) for layer in layers]


@pytest.fixture
def made_charts(tmp_path, monkeypatch):
    """The folder of the charts and tables, made anew."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    make_charts = importlib.import_module("make_charts")
    try:
        monkeypatch.setattr(make_charts, "HERE", tmp_path)
        make_charts.main()
    finally:
        sys.modules.pop("make_charts")
    return tmp_path


def test_charts_and_tables_come_from_the_results(made_charts):
    results = json.loads((ROOT / "benchmarks" / "results" / "engine.json").read_text())["rows"]
    ours = next(row["us_per_row"] for row in results if row["rival"] == "ours")
    assert f"{ours:.3g} µs" in (made_charts / "engine-0-light.svg").read_text()
    made = {path.name for path in made_charts.iterdir()}
    for page in (ROOT / "docs").rglob("*.md"):
        assert set(re.findall(r"_made/([\w-]+\.\w+)", page.read_text())) <= made, page


def test_files_named_by_the_architecture_are_there():
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = re.findall(r"`([\w/]+\.py)`", text)
    assert len(named) >= 5
    for path in named:
        assert (ROOT / "src" / "decision_machines" / path).exists(), path


def test_charts_are_narrow_enough_for_a_telephone_and_no_text_is_cut(made_charts):
    """Letters of 13 units in a chart of 420 are 11 pixels high on a page of 368."""
    charts = sorted(made_charts.glob("*.svg"))
    assert charts
    for chart in charts:
        root = ElementTree.fromstring(chart.read_text())
        _, _, width, height = map(float, root.get("viewBox").split())
        assert width <= 420
        for text in root.iter("{http://www.w3.org/2000/svg}text"):
            length = 7.6 * len(text.text)  # of wide letters in bold, at most
            x = float(text.get("x"))
            first = x - length if text.get("text-anchor") == "end" else x
            assert first >= -1, (chart.name, text.text)
            assert first + length <= width + 1, (chart.name, text.text)
            assert 0 < float(text.get("y")) <= height


def test_the_front_page_shows_whole_outputs():
    code = (ROOT / "docs" / "index.md").read_text().split("```pycon")[1].split("```")[0]
    assert "..." not in code


def test_the_table_of_exports_comes_from_the_results():
    spec = importlib.util.spec_from_file_location("exports", ROOT / "benchmarks" / "exports.py")
    exports = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(exports)
    made = exports.table(json.loads(exports.RESULTS.read_text()))
    shown = exports.PAGE.read_text().split(exports.BEGIN)[1].split(exports.END)[0]
    assert shown.strip() == made.strip()
