"""What is declared is what the matrix tests, and its page is what its results say."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import pythons  # noqa: E402
from matrix import page, sets  # noqa: E402
from matrix.run import tally  # noqa: E402

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_pythons_that_are_declared_are_those_of_the_matrix():
    prefix = "Programming Language :: Python :: 3."
    listed = [one[len(prefix) - 2 :] for one in PROJECT["project"]["classifiers"] if prefix in one]
    assert tuple(listed) == pythons.RELEASES
    assert {one.python for one in sets.environments()} == set(pythons.RELEASES)
    assert all(
        any(one.is_newest and one.python == release for one in sets.environments())
        for release in pythons.RELEASES
    )


def test_the_oldest_releases_are_the_lower_bounds_that_are_declared():
    (oldest,) = (one for one in sets.environments() if one.name == "3.11-oldest")
    assert not oldest.instead
    wanted = dict(one.split("==") for one in oldest.requirements() if "==" in one)
    listed = " ".join(PROJECT["project"]["dependencies"])
    assert f"numpy>={wanted['numpy']}" in listed
    assert f"scipy>={wanted['scipy']}" in listed
    assert {"scikit-learn", "xgboost", "lightgbm", "catboost", "onnx", "pandas"} <= set(wanted)


def test_every_extra_is_in_the_matrix_or_is_tested_at_its_lower_bound():
    """Extras that only name others (test, lint, all, ...) declare no release to users."""
    extras = PROJECT["project"]["optional-dependencies"]
    for name in {"test", "lint", "docs", "bench", "dev", "all"}:
        extras.pop(name)
    assert set(extras) - set(sets.all_extras()) == {"torch"}
    # torch is in no environment of the matrix: `make test` runs with the release that is declared.
    (torch,) = (one for one in extras["torch"] if one.startswith("torch>="))
    pinned = (ROOT / "constraints.txt").read_text()
    assert f"torch=={torch.removeprefix('torch>=')}" in pinned


@pytest.mark.parametrize("name", ["checks", "wheels"])
def test_the_public_workflows_can_be_read(name):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    flow = yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text())
    assert all("runs-on" in job and job["steps"] for job in flow["jobs"].values())
    if name == "wheels":
        built, used = (flow["jobs"][job]["strategy"]["matrix"] for job in ("build", "use"))
        assert built["runner"] == used["runner"]
        assert tuple(used["python"]) == pythons.RELEASES


def test_files_of_another_environment_are_counted_by_what_became_of_them():
    sys.path.insert(0, str(ROOT / "tests" / "compatibility"))
    from check_files import summary

    found = summary(
        {
            "a.json": "equal",
            "b.skops": "refused: old",
            "c.json": "refused: old",
            "d.dm": "probabilities rounded",
            "e.dm": "margin differs",
        }
    )
    assert found == {
        "equal": 1,
        "rounded": ["d.dm"],
        "refused": ["b.skops: refused: old"],
        "failed": ["c.json: refused: old", "e.dm: margin differs"],
    }
    assert summary({})["failed"] == ["there is no file"]


def test_a_requirement_without_a_lower_bound_is_refused():
    with pytest.raises(SystemExit, match="'numpy' has no lower bound"):
        sets._parts("numpy")


def test_the_page_is_what_the_results_say():
    assert page.PAGE.read_text() == page.page()


def test_failures_errors_and_skips_are_each_counted_once():
    report = ElementTree.ElementTree(
        ElementTree.fromstring(
            "<testsuites><testsuite>"
            "<testcase classname='a' name='good'/>"
            "<testcase classname='a' name='bad'><failure message='1 != 2&#10;more'/></testcase>"
            "<testcase classname='a' name='broken'><error message='no such file'/></testcase>"
            "<testcase classname='a' name='left'><skipped message='no torch'/></testcase>"
            "<testcase name='file'><skipped message='collection skipped'>"
            "('a/test_b.py', 11, 'Skipped: no ngboost')</skipped></testcase>"
            "</testsuite></testsuites>"
        )
    )
    assert tally(report) == {
        "passed": 1,
        "failed": ["a::bad: 1 != 2", "a::broken: no such file"],
        "skipped": {"no ngboost": 1, "no torch": 1},
    }


def test_no_test_of_the_rooms_is_left_out():
    listed = [ROOT / path for tests in sets.SETS["rooms"].values() for path in tests]
    for room in ("libraries", "run", "machine", "explain", "stream"):
        for path in (ROOT / "tests" / room).rglob("test_*.py"):
            assert any(one == path or one in path.parents for one in listed), path


def test_the_releases_that_readers_call_oldest_are_the_lower_bounds():
    from decision_machines.libraries.registry import libraries

    bounds = sets.declared(sets.all_extras())
    known = [one.releases for one in libraries() if one.releases is not None]
    names = {"scikit-learn", "XGBoost", "LightGBM", "CatBoost", "ONNX"}
    assert names <= {one.library for one in known}
    for one in known:
        if one.library in names:
            assert bounds[one.library.lower()].startswith(one.oldest), one


def test_every_test_of_the_matrix_exists():
    for rooms in (sets.SETS["rooms"], sets.SETS["fast"]["rooms"]):
        for tests in rooms.values():
            assert all((ROOT / path).exists() for path in tests)
