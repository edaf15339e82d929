"""The explorer page, opened in a real browser: its numbers are Python's, and people can use it."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import shutil
from dataclasses import replace
from importlib import resources

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from library_models import LIBRARIES, models, onnx_models, table
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from strategies import make_machine, probe_rows
from typer.testing import CliRunner

import decision_machines as dm
from decision_machines.machine.coded import coded
from decision_machines.show.explore import MODULES, as_json, joined_modules

EVIL = (
    "</script><img src=x onerror=alert(1)>",
    "\"><svg onload=alert(1)>'",
    "<!--\u2028{{script}} \\u003c 🌲🏽",
    "&lt;b&gt; ]]> ${alert(1)}",
)


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium of the distribution, one for all tests here."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no Chromium with its chromedriver is installed")
    selenium = pytest.importorskip("selenium", reason="selenium is not installed")
    from selenium.webdriver.chrome.service import Service

    options = selenium.webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(flag)
    # A scrollbar that comes late would have the tree drawn again, under the hands of a test.
    options.add_argument("--hide-scrollbars")
    options.add_argument("--window-size=1440,1000")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = started(lambda: selenium.webdriver.Chrome(options=options, service=Service(driver)))
    yield found
    found.quit()


def started(start):
    """A browser; on a busy machine the first start may take longer than its driver waits."""
    from selenium.common.exceptions import WebDriverException

    for _ in range(2):
        with contextlib.suppress(WebDriverException):
            return start()
    return start()


@pytest.fixture
def show(browser, tmp_path):
    """Open the page of a machine; nothing may go wrong in it, then or later."""

    def open_page(machine, *args, **options):
        return visit(browser, machine.explore(tmp_path / "page.html", *args, **options))

    browser.get_log("browser")
    yield open_page
    assert browser.get_log("browser") == []


def visit(browser, page):
    """Open a page and wait until it is ready."""
    browser.get(page.as_uri())
    awaited(browser, lambda: browser.find_elements("css selector", "html[data-ready]"))
    return browser


def element(browser, selector):
    return browser.find_element("css selector", selector)


def run(browser, function, X, *args):
    """Call a function of the page on rows, handed over bit by bit."""
    rows = base64.b64encode(np.ascontiguousarray(X, "<f8").tobytes()).decode()
    script = f"return explorer.{function}(...arguments)"
    return browser.execute_script(script, rows, *args)


def floats(bits):
    """Numbers that the page gives as their 64 bits."""
    return np.array([[int(b) for b in row] for row in bits], np.uint64).view(np.float64)


def settle(browser):
    """Wait for the next frame, in which the page draws what was changed."""
    browser.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))"
    )


def awaited(browser, found):
    """What `found` gives once it gives something: events of a pointer may come late."""
    from selenium.webdriver.support.wait import WebDriverWait

    return WebDriverWait(browser, 60).until(lambda _: found())


def assert_same(browser, machine, X):
    """Exit leaves and margins to the bit; responses to the last places; the same answers."""
    machine = coded(machine)
    found = run(browser, "evaluate", X)
    exits = np.array([row["exits"] for row in found]).reshape(len(X), machine.n_trees)
    np.testing.assert_array_equal(exits, machine.apply(X, n_threads=1))
    margin = machine.margin(X, n_threads=1)
    assert floats([row["margin"] for row in found]).tobytes() == margin.astype(float).tobytes()
    response = machine.response(X, n_threads=1).astype(float)
    close = {"rtol": 1e-6, "atol": 1e-7} if machine.output.dtype == np.float32 else {"rtol": 1e-13}
    np.testing.assert_allclose(floats([row["response"] for row in found]), response, **close)
    if machine.output.classes is not None and machine.output.decision != "each_margin_above":
        answers = np.asarray(machine.predict(X, n_threads=1)).reshape(len(X), -1)
        said = [row["prediction"] for row in found]
        assert said == [", ".join(map(str, row)) for row in answers.tolist()]


# -- every number is Python's ----------------------------------------------------------------------

MODELS = [(library, name) for library in LIBRARIES for name, *_ in LIBRARIES[library]()]


@pytest.mark.parametrize(("library", "name"), MODELS, ids=[f"{a}: {b}" for a, b in MODELS])
def test_the_page_computes_as_the_machine_does(show, library, name):
    machine = dm.convert(models(library)[name])
    X = probe_rows(machine, max_rows=100)
    page = show(machine)
    assert_same(page, machine, X)
    assert "equal to Python" in element(page, "#check").text


@pytest.mark.parametrize("name", ["RandomForestClassifier", "GradientBoostingRegressor"])
def test_the_page_computes_as_machines_of_onnx_do(show, name):
    machine = dm.convert(onnx_models()[name])
    assert_same(show(machine), machine, probe_rows(machine, max_rows=100))


@pytest.mark.parametrize("seed", range(12))
def test_the_page_computes_as_any_machine_does(show, seed):
    rng = np.random.default_rng(seed)
    floats = (np.float64, np.float32)
    machine = make_machine(
        rng.integers(1, 16, size=rng.integers(1, 6)).tolist(),
        rng,
        dtype=floats[seed % 2],
        values="real",
        values_dtype=floats[seed // 2 % 2],
        output_dtype=floats[seed // 4 % 2],
        n_outputs=1 + seed % 3,
        narrow=seed % 5 == 0,
        oblique=seed % 4 == 3,
    )
    assert_same(show(machine), machine, probe_rows(machine, max_rows=100))


@pytest.mark.parametrize("aggregate", ["min", "max", "median"])
def test_trees_that_are_not_summed_are_not_summed(show, aggregate):
    rng = np.random.default_rng(3)
    machine = make_machine([5, 3, 8, 1], rng, values="real", n_outputs=1)
    machine = replace(machine, output=replace(machine.output, aggregate=aggregate))
    if aggregate == "median":
        machine = replace(machine, output=dm.Output(np.zeros(1), aggregate="median"))
    assert_same(show(machine), machine, probe_rows(machine, max_rows=50))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_link_is_pythons(show, dtype):
    from decision_machines.machine.links import LINKS as known
    from decision_machines.machine.schema import parameter_to_json
    from decision_machines.machine.steps import STEPS, Step
    from decision_machines.run.links import LINKS

    page = show(dm.figure_one())
    edge = [-90.0, -3.0, -0.1, 0.0, 1e-9, 0.7, 4.0, 40.0]
    single, double = {"rtol": 1e-6, "atol": 1e-7}, {"rtol": 1e-13, "atol": 1e-300}

    def compare(link, params, margins):
        with np.errstate(all="ignore"):
            answer = LINKS[link](margins, *params)
        expected = answer.astype(float)
        k = margins.shape[1]
        given = [parameter_to_json(p) for p in params]
        output = {"link": link, "link_params": given, "dtype": dtype.__name__, "groups": [0, k]}
        found = page.execute_script(
            "return explorer.respond(...arguments)", output, margins.astype(float).tolist()
        )
        # Some links round their answers to float32, whatever they are given.
        close = single if np.float32 in (dtype, answer.dtype) else double
        np.testing.assert_allclose(floats(found), expected, err_msg=f"{link} {params}", **close)

    for link in known:
        name = link.removeprefix("averaged ")
        if name == "onnx" or (dtype == np.float32 and name.startswith(("catboost", "lightgbm"))):
            continue  # these libraries sum in float64 alone
        widths = (2,) if name == "catboost_mean_and_variance" else (1, 3)
        for k in widths:
            margins = np.stack([np.roll(edge, o) for o in range(k)], axis=1).astype(dtype)
            compare(link, [7.0] if link != name else [], margins)
    double = single  # most of these steps are in float32
    for name, kind in STEPS.items():
        constants = (2.0, 0.5, -1.5) if kind.takes_constants else ()
        margins = np.stack([np.roll(edge, o) for o in range(3)], axis=1).astype(dtype)
        if name == "probit":
            margins = np.array([[0.01, 0.5, 0.9]], dtype)
        if name == "sigmoid":
            margins = margins.astype(np.float32).astype(dtype)
        first = [] if name != "sigmoid" else [Step("single")]
        compare("onnx", [*first, Step(name, constants)], margins)


def names_of(table, module):
    """The names in an object of the page's sources; each stands on a line of its own."""
    text = (resources.files("decision_machines.libraries.javascript") / module).read_text("utf-8")
    (body,) = re.findall(rf"^const {table} = \{{\n(.*?)^\}};", text, re.MULTILINE | re.DOTALL)
    return re.findall(r"^  (\w+)(?:: |\()", body, re.MULTILINE)


def test_the_page_knows_every_link_step_and_decision():
    from decision_machines.machine.decisions import DECISIONS
    from decision_machines.machine.links import PLAIN_LINKS
    from decision_machines.machine.steps import STEPS

    assert sorted(names_of("LINKS", "links.js")) == sorted(PLAIN_LINKS)
    assert sorted(names_of("ONNX_STEPS", "links.js")) == sorted(STEPS)
    assert sorted(names_of("DECISIONS", "decisions.js")) == sorted(DECISIONS)


@pytest.mark.parametrize("tau", [0.01, 0.3, 5.0])
def test_soft_weights_are_those_of_the_soft_tree(show, tau):
    torch = pytest.importorskip("torch")
    for seed in range(4):
        rng = np.random.default_rng(seed)
        machine = make_machine(
            [7, 1, 12], rng, values="real", oblique=seed == 3, n_outputs=2, narrow=seed == 1
        )
        X = np.round(3 * rng.standard_normal((20, machine.n_features)), 2)
        X[rng.random(X.shape) < 0.1] = np.nan
        net = machine.soften("soft_tree", tau=tau, output="margin", dtype=torch.float64)
        margin, weights = net(torch.from_numpy(X), return_weights=True)
        page = show(machine)
        for tree, expected in enumerate(net.by_tree(weights)):
            found = run(page, "soft", X, tree, tau)
            np.testing.assert_allclose(
                [row["weights"] for row in found], expected.detach(), atol=1e-9
            )
        np.testing.assert_allclose([row["margin"] for row in found], margin.detach(), rtol=1e-9)


# -- what would change the answer ------------------------------------------------------------------


def choices_of(machine, x, spans):
    """For each feature its own value and all others at which some test of it turns."""
    columns = machine.columns
    found = []
    for feature in range(machine.n_features):
        t = machine.t[(columns.feature == feature)[machine.selection]]
        zero = np.array([1e-35], np.float32).astype(t.dtype)
        beyond = np.nextafter(zero, np.inf, dtype=t.dtype)
        values = [
            t,
            np.nextafter(t, np.inf, dtype=t.dtype),
            [0.0, *zero, *-zero, *beyond, *-beyond],
        ]
        if np.any(columns.rule[columns.feature == feature] == dm.Rule.MEMBER):
            values.append(np.arange(14.0))
        values.append([spans[feature].mean()])
        own = np.unique(np.concatenate([np.asarray(v, float) for v in values]))
        found.append(np.concatenate([[x[feature]], own[np.isfinite(own)]]))
    return found


def brute_force(machine, x, spans, is_met):
    """Fewest features and smallest change that meet a goal, over every combination of values.

    A change of category, and one of a missing value, counts as a whole slider.
    """
    columns = machine.columns
    named = np.unique(columns.feature[columns.rule == dm.Rule.MEMBER])
    whole = np.isnan(x) | np.isin(np.arange(machine.n_features), named)
    choices = choices_of(machine, x, spans)
    grid = np.stack(np.meshgrid(*choices, indexing="ij"), axis=-1).reshape(-1, machine.n_features)
    grid = grid[is_met(grid)]
    if not len(grid):
        return None
    is_changed = ~((grid == x) | (np.isnan(grid) & np.isnan(x)))
    parts = np.where(whole, 1.0, np.abs(grid - x) / np.diff(spans, axis=1)[:, 0])
    counts, sizes = is_changed.sum(axis=1), np.where(is_changed, parts, 0).max(axis=1)
    return counts.min(), sizes[counts == counts.min()].min(), sizes.min()


def rows_of(machine, rng, n, *, missing=0.1):
    X = np.round(2 * rng.standard_normal((n, machine.n_features)), 1)
    X = X.astype(machine.columns.dtype).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X


@pytest.mark.parametrize("seed", range(10))
def test_no_change_of_a_tree_is_nearer_than_the_one_shown(show, seed):
    from decision_machines.show.page_data import feature_spans

    rng = np.random.default_rng(seed)
    dtype = (np.float64, np.float32)[seed % 2]
    both = make_machine([6, 5], rng, rules=seed >= 4, dtype=dtype, n_outputs=1 + seed % 3)
    X = rows_of(both, rng, 10)
    for tree in range(2):
        machine = both.tree(tree)
        page, spans = show(machine), feature_spans(machine, None)
        found = run(page, "change", X, {"kind": "other"}, 0)
        for x, change in zip(X, found, strict=True):
            before = machine.margin(x[None])

            def is_met(rows, machine=machine, before=before):
                return np.any(machine.margin(rows) != before, axis=1)

            expected = brute_force(machine, x, spans, is_met)
            assert change["method"] == "tree"
            assert change["isProvenNone"] == (expected is None)
            if expected is None:
                assert change["fewest"] is None
                assert change["smallest"] is None
                continue
            assert change["fewest"]["count"] == expected[0]
            assert change["fewest"]["size"] == pytest.approx(expected[1], rel=1e-12)
            assert change["smallest"]["size"] == pytest.approx(expected[2], rel=1e-12)
            for kind, proof in (("fewest", "isFewest"), ("smallest", "isSmallest")):
                assert change[kind][proof]
                assert is_met(floats([change[kind]["x"]])).all()


@pytest.mark.parametrize("missing_value", [-1.5, 0.0, 2.0])
def test_a_change_never_lands_on_the_mark_of_what_is_missing(show, missing_value):
    """The number just above a threshold may be the one that the machine reads as missing."""
    from decision_machines.show.page_data import feature_spans

    machine = make_machine([2], np.random.default_rng(0), rules=False, n_features=1)
    columns = replace(machine.columns, missing_value=missing_value)
    t = np.nextafter(np.array([missing_value]), -np.inf)
    machine = replace(machine, columns=columns, t=t, missing=np.array([-1], np.int8))
    x = np.array([missing_value - 1])
    change = run(show(machine), "change", x[None], {"kind": "other"}, 0)[0]["smallest"]
    moved = floats([change["x"]])
    assert machine.apply(moved).item() == 1
    assert moved.item() == np.nextafter(missing_value, np.inf)
    length = np.diff(feature_spans(machine, None)[0]).item()
    assert change["size"] == pytest.approx((moved.item() - x.item()) / length)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_proven_of_a_forest_is_true_and_small_forests_are_proven(show, seed):
    from decision_machines.show.page_data import feature_spans

    rng = np.random.default_rng(seed)
    dtype = (np.float64, np.float32)[seed % 2]
    machine = make_machine(
        [4, 3, 5],
        rng,
        rules=seed >= 6,
        dtype=dtype,
        values="real",
        n_features=3,
        n_outputs=(1, 3)[seed % 3 == 2],
        output_dtype=(np.float64, np.float32)[seed // 2 % 2],
    )
    if seed % 3 == 2:
        output = replace(machine.output, classes=(np.array(["a", "b", "c"]),), decision="argmax")
        machine = replace(machine, output=output)
    X = rows_of(machine, rng, 6)
    page, spans = show(machine), feature_spans(machine, None)
    middle = float(np.median(machine.margin(X)[:, 0]))
    goals = [{"kind": "atLeast", "output": 0, "value": middle + 0.5}]
    goals.append({"kind": "atMost", "output": 0, "value": middle - 0.5})
    if machine.output.classes is not None:
        goals = [{"kind": "other"}, {"kind": "label", "index": 1}]
    for goal in goals:
        for x, change in zip(X, run(page, "change", X, goal, 4000), strict=True):
            before = machine.predict(x[None])

            def is_met(rows, goal=goal, before=before):
                if goal["kind"] == "other":
                    return machine.predict(rows) != before
                if goal["kind"] == "label":
                    return machine.predict(rows) == "abc"[goal["index"]]
                found = machine.predict(rows)
                low = goal["kind"] == "atLeast"
                return found >= goal["value"] if low else found <= goal["value"]

            if is_met(x[None]).all():
                continue
            assert change["method"] == "forest"
            expected = brute_force(machine, x, spans, is_met)
            assert change["isProvenNone"] == (expected is None)
            if expected is None:
                continue
            assert change["smallest"]["isSmallest"]
            assert change["fewest"]["isFewest"]
            assert change["fewest"]["count"] == change["fewest"]["countAtLeast"] == expected[0]
            assert change["smallest"]["size"] == pytest.approx(expected[2], rel=1e-12)
            for kind in ("fewest", "smallest"):
                assert is_met(floats([change[kind]["x"]])).all()


@pytest.mark.parametrize("boxes", [0, 300, 4000])
def test_bounds_of_a_forest_hold_beside_pythons_own_search(show, boxes):
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import GradientBoostingClassifier

    X, y = load_breast_cancer(return_X_y=True)
    model = GradientBoostingClassifier(n_estimators=40, max_depth=3, random_state=0).fit(X, y)
    machine = dm.convert(model)
    from decision_machines.show.page_data import feature_spans

    spans = feature_spans(machine, machine.features(X))
    rows = X[[0, 3, 40, 81]].astype(np.float32).astype(float)
    found = run(show(machine, X), "change", rows, {"kind": "other"}, boxes)
    n_open = 0
    for x, change in zip(rows, found, strict=True):
        python = machine.counterfactual(x, scale=np.diff(spans, axis=1)[:, 0], budget=4000)
        smallest = change["smallest"]
        assert smallest["sizeAtLeast"] <= python.distance * (1 + 1e-12)
        assert python.lower <= smallest["size"] * (1 + 1e-12)
        assert smallest["sizeAtLeast"] <= smallest["size"]
        if smallest["isSmallest"] and python.exact:
            assert smallest["size"] == pytest.approx(python.distance, rel=1e-12)
        n_open += not smallest["isSmallest"]
        for kind in ("fewest", "smallest"):
            moved = floats([change[kind]["x"]])
            assert machine.predict(moved)[0] != machine.predict(x[None])[0]
    assert boxes == 300 or (n_open > 0) == (boxes == 0)


@pytest.mark.parametrize(("library", "name"), MODELS, ids=[f"{a}: {b}" for a, b in MODELS])
def test_every_change_shown_gives_the_promised_answer(show, library, name):
    machine = dm.convert(models(library)[name])
    page, numbers = show(machine), coded(machine)
    X = probe_rows(machine, max_rows=3)
    decision = machine.output.decision
    is_labels = machine.output.classes is not None and decision != "each_margin_above"
    is_value = not is_labels and decision in ("response", "margin")
    goal = {"kind": "other"}
    if is_value and machine.n_trees > 1:
        value = float(numbers.response(X).ravel()[0])
        goal = {"kind": "atLeast", "output": 0, "value": value + 0.01 * abs(value) + 1e-3}
    for x, change in zip(X, run(page, "change", X, goal, 200), strict=True):
        for found in filter(None, (change["fewest"], change["smallest"])):
            moved = floats([found["x"]])
            assert_same(page, machine, moved)
            if goal["kind"] == "atLeast":
                assert numbers.response(moved).ravel()[0] >= goal["value"] * (1 - 1e-12)
                continue
            before, after = (np.asarray(numbers.predict(rows)) for rows in (x[None], moved))
            assert not np.array_equal(before, after)
            if is_labels:
                assert found["prediction"] == ", ".join(map(str, after.reshape(-1).tolist()))


def test_a_change_of_class_changes_the_class(show):
    X, y = load_iris(return_X_y=True)
    words = np.array(["setosa", "versicolor", "virginica"])[y]
    tree = dm.convert(DecisionTreeClassifier(max_depth=5, random_state=0).fit(X, words))
    page = show(tree, X, words)
    goals = [{"kind": "other"}, {"kind": "label", "index": 0}, {"kind": "label", "index": 2}]
    for wanted in goals:
        found = run(page, "change", X[::10], wanted, 0)
        for x, moves in zip(X[::10], found, strict=True):
            before = tree.predict(x[None])[0]
            after = tree.predict(floats([moves["fewest"]["x"]]))[0]
            if wanted["kind"] == "other":
                assert after != before
                continue
            assert after == tree.output.classes[0][wanted["index"]]
            assert (moves["fewest"]["count"] == 0) == (before == after)


def test_features_of_whole_numbers_move_by_whole_numbers(show):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 90, 400), rng.integers(0, 9, 400), rng.random(400)])
    y = (X[:, 0] + 8 * X[:, 1] + 20 * X[:, 2] > 70).astype(int)
    model = RandomForestClassifier(8, max_depth=5, random_state=0).fit(X, y)
    machine = dm.convert(model)
    rows = X[:10].astype(np.float32).astype(float)
    for change in run(show(machine, X), "change", rows, {"kind": "other"}, 400):
        for found in (change["fewest"], change["smallest"]):
            moved = floats([found["x"]])[0]
            assert np.array_equal(moved[:2], np.round(moved[:2]))


def test_changes_of_categories_and_oblique_tests_hold(show):
    frame, _ = table()
    machine = dm.convert(models("lightgbm")["LGBMClassifier, table"])
    codes = machine.features(frame)[:20].astype(float)
    numbers = coded(machine)
    oblique = make_machine([9, 6], np.random.default_rng(5), oblique=True, rules=False)
    rows = np.round(np.random.default_rng(0).standard_normal((20, oblique.n_features)), 2)
    value = float(np.quantile(oblique.margin(rows)[:, 0], 0.7))
    more = {"kind": "atLeast", "output": 0, "value": value}
    n_found = 0
    for given, own, X, goal in (
        (machine, numbers, codes, {"kind": "other"}),
        (oblique, oblique, rows, more),
    ):
        page = show(given)
        for x, change in zip(X, run(page, "change", X, goal, 400), strict=True):
            assert change["method"] == ("forest" if given is machine else "one feature")
            for found in filter(None, (change["fewest"], change["smallest"])):
                n_found += 1
                moved = floats([found["x"]])
                if goal is more:
                    assert own.margin(moved)[0, 0] >= value
                    assert not found.get("isSmallest")
                else:
                    assert own.predict(moved)[0] != own.predict(x[None])[0]
    assert n_found > 40


def test_no_change_goes_to_a_label_of_which_the_page_has_no_text(show):
    catboost = pytest.importorskip("catboost", reason="catboost is not installed")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"home": rng.choice(["own", "rent", "none"], 200), "pay": rng.random(200)})
    y = ((frame["home"] == "rent") | ((frame["home"] == "own") & (frame["pay"] > 0.5))).astype(int)
    small = {"iterations": 8, "depth": 2, "thread_count": 1, "verbose": 0}
    for one_hot in (2, 9):  # by statistics of labels, and by labels
        model = catboost.CatBoostClassifier(
            **small, cat_features=["home"], one_hot_max_size=one_hot, allow_writing_files=False
        )
        machine = dm.convert(model.fit(frame, y))
        codes = machine.features(frame)[:12].astype(float)
        changed = {}
        for rows in ((), (frame,)):
            page = show(machine, *rows)
            notices = page.find_element("css selector", "body").text
            assert ("known to the model by a hash alone" in notices) == (not rows)
            found = run(page, "change", codes, {"kind": "other"}, 100)
            moved = [
                floats([c["fewest"]["x"]])[0] if c["fewest"] else x
                for c, x in zip(found, codes, strict=True)
            ]
            changed[bool(rows)] = np.array(moved)[:, 0] != codes[:, 0]
            assert np.array_equal(np.array(moved)[:, 0], np.round(np.array(moved)[:, 0]))
        assert not np.any(changed[False])
        assert np.any(changed[True])


def test_a_change_of_a_forest_can_be_tried_and_keeps_its_promise(show):
    machine, X = forest()
    page = show(machine, X)
    for row in (0, 60, 140):
        page.execute_script(f"explorer.setInput(new Float64Array({X[row].tolist()}))")
        settle(page)
        before = element(page, "#prediction").text
        done = "#change [data-state=done] button.try"
        awaited(page, lambda: "searching" not in (state(page) or "searching"))
        n_cards = len(page.find_elements("css selector", done))
        assert n_cards > 0
        for card in range(n_cards):
            promised = page.find_elements("css selector", ".promised")[card].text
            assert "Proven" in page.find_elements("css selector", ".proof")[card].text
            page.find_elements("css selector", done)[card].click()
            settle(page)
            assert element(page, "#prediction").text == promised != before
            assert str(machine.predict(present_x(page)[None])[0]) == promised
            page.execute_script(f"explorer.setInput(new Float64Array({X[row].tolist()}))")
            settle(page)
            awaited(page, lambda: "searching" not in (state(page) or "searching"))


def state(page):
    return element(page, "#change .changes").get_attribute("data-state")


# -- people use it ---------------------------------------------------------------------------------


def fill(browser, selector, text):
    """Put text into a field at once, as pasting does."""
    browser.execute_script(
        "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))",
        element(browser, selector),
        text,
    )
    settle(browser)


def move_slider(browser, feature, value):
    fill(browser, f"#slider-{feature}", value)


def present_x(browser):
    return np.array(browser.execute_script("return Array.from(explorer.state.x)"), float)


def test_moving_a_slider_lights_the_leaf_where_x_leaves(show):
    machine = dm.figure_one()
    page = show(machine, [[2.0, 1.0, 2.0, 2.0]])
    assert element(page, "#exit-leaf").text == "leaf 4"
    assert element(page, "#prediction").text == "5"
    rng = np.random.default_rng(0)
    seen = set()
    for value in rng.uniform(0, 6, 12):
        feature = int(rng.integers(4))
        move_slider(page, feature, value)
        exit_leaf = machine.apply(present_x(page)[None]).item()
        seen.add(exit_leaf)
        assert element(page, "#exit-leaf").text == f"leaf {exit_leaf}"
        lit = element(page, "#tree g.leaf.lit")
        assert lit.get_attribute("aria-label").startswith(f"Leaf {exit_leaf}:")
        # In one call: what would change the answer comes a moment later, and moves the page.
        row, apart = page.execute_script(
            "const band = document.querySelector('#matrix .band');"
            "const name = document.querySelector('#matrix .row-name.strong');"
            "const y = (e) => e.getBoundingClientRect().y;"
            "return [name.textContent, Math.abs(y(band) - y(name))];"
        )
        assert row == f"leaf {exit_leaf}"
        assert apart < 26
    assert len(seen) > 2


@pytest.mark.parametrize("library", ["xgboost", "sklearn"])
def test_margins_are_written_in_all_their_digits(show, library):
    name = {"xgboost": "XGBClassifier, 3", "sklearn": "GradientBoosting, 3"}[library]
    machine = dm.convert(models(library)[name])
    X = load_iris().data[::25]
    page = show(machine, X)
    for expected in machine.margin(X):
        cells = page.find_elements("css selector", "td[data-margin]")
        shown = [machine.output.dtype.type(cell.text.replace("−", "-")) for cell in cells]
        assert shown == expected.tolist()
        element(page, "[aria-label='Next row']").click()
        settle(page)


def test_the_worked_example_shows_its_scores(show):
    page = show(dm.figure_one(), [[2.0, 1.0, 2.0, 2.0]])
    p = page.execute_script("return Array.from(explorer.scene().p)")
    np.testing.assert_array_equal(p, [1 / 3, 0, -1 / 2, -1, 1, 0])
    h = page.execute_script("return Array.from(explorer.scene().h)")
    assert h == [1, -1, -1, -1, -1]


def test_the_temperature_spreads_the_weight_and_hard_brings_it_back(show):
    page = show(dm.figure_one(), [[2.0, 1.0, 2.0, 2.0]])
    bars = page.find_elements("css selector", "#values .bar")
    wide = [bar for bar in bars if float(bar.get_attribute("width") or 0) > 0]
    assert len(wide) == 1
    fill(page, "#tau", "2")
    assert all(float(bar.get_attribute("width")) > 0 for bar in bars)
    assert "soft, τ = 2" in element(page, "#answer").text
    fill(page, "#tau", "-1")
    assert element(page, "#tau").get_attribute("aria-invalid") == "true"
    assert "Kept: 2" in element(page, "#tau-error").text
    fill(page, "#tau", "0")
    wide = [bar for bar in bars if float(bar.get_attribute("width") or 0) > 0]
    assert len(wide) == 1


def test_what_is_no_number_is_said_and_the_state_kept(show):
    page = show(dm.figure_one(), [[2.0, 1.0, 2.0, 2.0]])
    for typed in ("hello", "", "  ", "1e999", "0x10", "1,5", "--3", "1 2", "<b>", "∞∞"):
        fill(page, "#field-0", typed)
        assert element(page, "#field-0").get_attribute("aria-invalid") == "true", typed
        assert "Kept: 2" in element(page, "#error-0").text
        assert element(page, "#exit-leaf").text == "leaf 4"
        assert present_x(page)[0] == 2.0
        assert element(page, "#field-0").get_property("value") == typed
    from selenium.webdriver.common.keys import Keys

    element(page, "#field-0").send_keys(Keys.CONTROL, "a")
    element(page, "#field-0").send_keys("0.5")
    settle(page)
    assert element(page, "#field-0").get_attribute("aria-invalid") is None
    assert element(page, "#error-0").text == ""
    assert element(page, "#exit-leaf").text == "leaf 0"


def test_missing_is_a_choice(show):
    machine = dm.figure_one()
    page = show(machine, [[0.0, 1.0, 2.0, 2.0]])
    element(page, "#missing-0").click()
    settle(page)
    assert np.isnan(present_x(page)[0])
    leaf = machine.apply(present_x(page)[None]).item()
    assert element(page, "#exit-leaf").text == f"leaf {leaf}" == "leaf 4"
    assert element(page, "#field-0").get_property("value") == "NaN"
    element(page, "#missing-0").click()
    settle(page)
    assert element(page, "#exit-leaf").text == "leaf 0"
    fill(page, "#field-0", "nan")
    assert element(page, "#missing-0").is_selected()
    fill(page, "#field-0", "-inf")
    assert not element(page, "#missing-0").is_selected()
    assert element(page, "#exit-leaf").text == "leaf 0"


def test_rows_are_picked_and_cut_visibly(show):
    X, y = load_iris(return_X_y=True)
    words = np.array(["setosa", "versicolor", "virginica"])[y]
    tree = dm.convert(DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, words))
    page = show(tree, X, words, max_rows=50)
    assert "50 of the 150 rows" in element(page, "#rows").text
    number = int(page.execute_script("return document.getElementById('row').value"))
    assert number == 0
    element(page, "[aria-label='Previous row']").click()
    settle(page)
    assert element(page, "#prediction").text == tree.predict(X[-1:])[0]
    assert "virginica" in element(page, ".actual").text
    fill(page, "#row", "1")
    assert "not in the page" in element(page, "#row-error").text
    fill(page, "#row", "999")
    assert "Rows are 0 to 149" in element(page, "#row-error").text


def test_a_counterfactual_can_be_tried(show):
    X, y = load_iris(return_X_y=True)
    tree = dm.convert(DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y))
    page = show(tree, X)
    before = element(page, "#prediction").text
    found = awaited(page, lambda: page.find_elements("css selector", "button.try"))
    found[0].click()
    settle(page)
    assert element(page, "#prediction").text != before
    assert tree.predict(present_x(page)[None])[0] == int(element(page, "#prediction").text)


def forest():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = RandomForestClassifier(12, max_depth=3, max_features=1, random_state=0)
    return dm.convert(model.fit(X, y)), X.to_numpy(float)


def test_a_forest_is_filtered_by_feature_and_shown_tree_by_tree(show):
    machine, X = forest()
    page = show(machine, X)
    search = element(page, "#tree-search")
    search.send_keys("sepal width")
    reads = [
        tree
        for tree in range(machine.n_trees)
        if 1 in machine.columns.feature[machine.tree(tree).selection]
    ]
    listed = [
        int(e.get_attribute("value"))
        for e in page.find_elements("css selector", "#tree-list option")
    ]
    assert sorted({*listed} - {0}) == sorted({*reads} - {0})
    for tree in (3, 11):
        page.execute_script("explorer.pickTree(arguments[0])", tree)
        leaf = machine.apply(X[:1])[0, tree]
        assert element(page, "#exit-leaf").text == f"leaf {leaf}"
        n_leaves = machine.tree(tree).n_leaves
        assert len(page.find_elements("css selector", "#tree g.leaf")) == n_leaves


def test_a_large_tree_is_folded_visibly_and_opens(show):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 5))
    model = DecisionTreeRegressor(random_state=0).fit(X, rng.standard_normal(3000))
    machine = dm.convert(model)
    page = show(machine, X)
    assert f"{machine.n_leaves:_}".replace("_", " ") in element(page, "#cut").text
    before = len(page.find_elements("css selector", "#tree g.node"))
    assert before < 300
    for row in (5, 700, 1500):
        page.execute_script(f"explorer.setInput(new Float64Array({X[row].tolist()}))")
        settle(page)
        leaf = machine.apply(X[row : row + 1]).item()
        assert element(page, "#exit-leaf").text == f"leaf {leaf}"
        lit = element(page, "#tree g.leaf.lit").get_attribute("aria-label")
        assert lit.startswith(f"Leaf {leaf} (") or lit.startswith(f"Leaf {leaf}:")
    before = len(page.find_elements("css selector", "#tree g.node"))
    fold = element(page, "#tree g.fold")
    page.execute_script(
        "arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", fold
    )
    assert len(page.find_elements("css selector", "#tree g.node")) > before


def test_b_can_show_the_tests_on_the_path_alone(show):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 4))
    model = DecisionTreeRegressor(max_leaf_nodes=50, random_state=0)
    machine = dm.convert(model.fit(X, rng.standard_normal(400)))
    page = show(machine, X)
    n_drawn = len(page.find_elements("css selector", "#matrix .sign.on-path"))
    box = element(page, "#only-path")
    box.click()
    leaf = machine.apply(X[:1]).item()
    depth = machine.structure.leaf_depth[leaf]
    assert len(page.find_elements("css selector", "#matrix .sign.on-path")) == depth == n_drawn
    page.execute_script(f"explorer.setInput(new Float64Array({X[7].tolist()}))")
    settle(page)
    depth = machine.structure.leaf_depth[machine.apply(X[7:8]).item()]
    tests = page.find_elements("css selector", "#matrix .index")
    assert len(tests) == depth


def test_labels_are_found_with_a_table_and_without(show):
    frame, y = table()
    machine = dm.convert(models("lightgbm")["LGBMClassifier, table"])
    page = show(machine, frame, y)
    labels = [e.text for e in page.find_elements("css selector", "#list-1 option")]
    assert labels[:4] == ["red", "green", "blue", "grey"]
    element(page, "#list-2").find_element("css selector", "option[value='1']").click()
    settle(page)
    row = frame.head(1).copy()
    row["size"] = row["size"].cat.categories[1]
    row["size"] = row["size"].astype(frame["size"].dtype)
    assert element(page, "#prediction").text == str(machine.predict(row)[0])
    page = show(machine)
    labels = [e.text for e in page.find_elements("css selector", "#list-1 option")]
    assert labels[:4] == ["red", "green", "blue", "grey"]


def test_a_page_that_computes_otherwise_says_so(browser, tmp_path):
    path = dm.figure_one().explore(tmp_path / "page.html")
    text = path.read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    held = data["check"]["margin"]["base64"]
    other = np.frombuffer(base64.b64decode(held), "<f8").copy()
    other[3] = np.nextafter(other[3], np.inf)
    path.write_text(text.replace(held, base64.b64encode(other.tobytes()).decode()))
    visit(browser, path)
    assert element(browser, "#check").text.startswith("✗ 1 of 32 rows differ")


def test_a_tree_of_one_leaf_and_a_machine_without_trees_open(show):
    rng = np.random.default_rng(0)
    one = make_machine([1], rng, rules=False)
    assert_same(show(one), one, np.zeros((2, one.n_features)))
    none = make_machine([], rng, rules=False)
    assert "no trees" in element(show(none), "#notices").text


def test_the_keyboard_reaches_and_explains_everything(show):
    from selenium.webdriver.common.keys import Keys

    page = show(dm.figure_one(), [[2.0, 1.0, 2.0, 2.0]])

    def focused():
        return page.switch_to.active_element

    def said():
        return element(page, "#explain-text").text

    seen = []
    for _ in range(60):
        focused().send_keys(Keys.TAB)
        seen.append(focused().get_attribute("id") or focused().get_attribute("role") or "")
        if seen[-1] == "values":
            break
    order = [seen.index(name) for name in ("theme", "row", "slider-0", "wanted", "tau-slider")]
    assert order == sorted(order)
    assert {"missing-3", "field-3", "tau", "treeitem", "matrix", "values"} <= set(seen)

    page.execute_script("document.querySelector('#tree g.node').focus()")
    assert "Test 0: x[1] ≤ 1? It reads 2 and answers +1, right." in said()
    focused().send_keys(Keys.ARROW_RIGHT)
    assert "Test 2: x[3] ≤ 3?" in said()
    focused().send_keys(Keys.ARROW_RIGHT)
    assert "Leaf 4" in said()
    assert "x leaves here" in said()
    focused().send_keys(Keys.ARROW_LEFT)
    assert "Test 2" in said()

    element(page, "#matrix").send_keys(Keys.HOME)
    assert said().startswith("h = +1.")
    focused().send_keys(Keys.ARROW_DOWN)
    assert "B = −1: leaf 0 is to the left of test 0" in said()
    assert "it disagrees" in said()
    focused().send_keys(Keys.END)
    assert "leaf 4" in said()
    for _ in range(2):
        focused().send_keys(Keys.ARROW_DOWN)
    assert said().startswith("S z = 2:")
    focused().send_keys(Keys.ARROW_DOWN)
    assert said().startswith("t = 1:")
    focused().send_keys(Keys.ARROW_DOWN)
    assert said().startswith("S = 1: test 0 reads x[1]")
    focused().send_keys(Keys.ARROW_DOWN)
    assert said().startswith("S = 0: test 0 does not read x[2]")
    element(page, "#values").send_keys(Keys.HOME)
    assert "p = (2 − 1) / 3 = 0.3333333333333333" in said()
    slider = element(page, "#slider-0")
    before = present_x(page)[0]
    slider.send_keys(Keys.ARROW_RIGHT)
    assert present_x(page)[0] > before


def test_pointing_at_a_node_explains_it_and_marks_its_column(show):
    page = show(dm.figure_one(), [[2.0, 1.0, 2.0, 2.0]])
    from selenium.webdriver import ActionChains

    # The pointer may lie on the node already, left there by another page: it must come to it.
    node = element(page, "#tree g.node.test")
    ActionChains(page).move_to_element(element(page, "#title")).move_to_element(node).perform()
    awaited(page, lambda: "Test 0" in element(page, "#explain-text").text)
    marks = page.find_elements("css selector", "#matrix .cross[visibility=visible]")
    assert len(marks) == 1


# -- nothing in a model becomes code ---------------------------------------------------------------


def test_names_cannot_inject(show):
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, np.array(EVIL)[y])
    machine = dm.convert(model)
    machine = replace(machine, columns=replace(machine.columns, names=EVIL), source=EVIL[0])
    page = show(machine, X, np.array(EVIL)[y], title=EVIL[0])
    assert page.find_elements("css selector", "img, [onload], [onerror], #features b") == []
    assert page.execute_script("return document.scripts.length") == 2
    assert page.title.startswith(EVIL[0])
    assert element(page, "#title").text == EVIL[0]
    names = page.execute_script(
        "return Array.from(document.querySelectorAll('.feature-name'), (e) => e.textContent)"
    )
    assert sorted(names) == sorted(EVIL)
    assert element(page, "#prediction").get_property("textContent") == machine.predict(X[:1])[0]


def test_the_policy_lets_nothing_in(show):
    page = show(dm.figure_one())
    policy = element(page, "meta[http-equiv]").get_attribute("content")
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    blocked = page.execute_script(
        "try { document.body.innerHTML = '<img src=x onerror=window.hit=1>'; return false }"
        "catch (error) { return error instanceof TypeError }"
    )
    assert blocked
    page.get_log("browser")  # the refusal that was asked for


def test_json_cannot_end_its_element():
    text = as_json({"a": "</script><!--&\u2028\u2029", "b": EVIL})
    assert not re.search(r"[<>&\u2028\u2029]", text)
    assert json.loads(text) == {"a": "</script><!--&\u2028\u2029", "b": list(EVIL)}


def test_the_page_names_no_other_address(tmp_path):
    text = dm.figure_one().explore(tmp_path / "page.html").read_text()
    text = text.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|src=|@import|url\((?!#)", text)
    assert "import " not in re.sub(r"//[^\n]*|/\*.*?\*/", "", joined_modules(), flags=re.DOTALL)
    assert len(set(MODULES)) == len(MODULES)


# -- it looks right --------------------------------------------------------------------------------


def screenshot(browser, width, height, path):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
    )
    settle(browser)
    try:
        assert browser.save_screenshot(str(path))
        overflow = browser.execute_script(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    import matplotlib.image

    return matplotlib.image.imread(path), overflow


@contextlib.contextmanager
def window(browser, width, height):
    """The page in a window of this size, laid out."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_async_script("setTimeout(arguments[0], 300)")
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def ends(browser, selector):
    """Where an element begins and ends in the window, in CSS pixels."""
    return browser.execute_script(
        "const box = document.querySelector(arguments[0]).getBoundingClientRect();"
        "return [box.top, box.bottom]",
        selector,
    )


def texts(browser, selector):
    return browser.execute_script(
        "return Array.from(document.querySelectorAll(arguments[0]), (e) => e.textContent)",
        selector,
    )


def forest_of_long_names():
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import GradientBoostingClassifier

    data = load_breast_cancer(as_frame=True)
    model = GradientBoostingClassifier(n_estimators=12, max_depth=3, random_state=0)
    names = data.target_names[data.target]
    return dm.convert(model.fit(data.data, names)), data.data, names


def test_the_tree_is_above_the_fold_with_the_help_open(show):
    machine, X, y = forest_of_long_names()
    page = show(machine, X, y)
    with window(page, 1400, 900):
        assert element(page, "#how").is_displayed()
        seen_to = ends(page, "#explain")[0]
        assert ends(page, "#tree")[1] <= seen_to
        assert 0 <= ends(page, "#change")[0] < ends(page, "#tree")[0]
        large, X, y = tree_of_forty_leaves()
        show(large, X, y)
        assert ends(page, "#tree")[0] < 600


def tree_of_forty_leaves():
    rng = np.random.default_rng(0)
    names = ["age in years", "hours-per-week", "capital-gain", "education-num", "dependants"]
    X = rng.integers(0, 40, (3000, 5)).astype(float)
    y = (X @ rng.standard_normal(5) + 8 * rng.standard_normal(3000) > 0).astype(int)
    tree = DecisionTreeClassifier(max_leaf_nodes=40, random_state=0).fit(X, y)
    machine = dm.convert(tree)
    return replace(machine, columns=replace(machine.columns, names=tuple(names))), X, y


def test_a_tree_of_forty_leaves_shows_its_tests(show):
    machine, X, y = tree_of_forty_leaves()
    page = show(machine, X, y)
    with window(page, 1400, 900):
        shown = texts(page, "#tree g.test text")
        assert len(shown) == machine.n_tests == 39
        for test, text in enumerate(shown):
            name = machine.columns.names[machine.columns.feature[machine.selection[test]]]
            assert text.startswith(name)
            assert "…" not in text
        boxes = page.execute_script(
            "return Array.from(document.querySelectorAll('#tree g.test .shape'), (e) => {"
            "const b = e.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]})"
        )
        for i, (left, top, right, bottom) in enumerate(boxes):
            for others_left, others_top, others_right, others_bottom in boxes[:i]:
                apart = others_left >= right or left >= others_right
                assert apart or others_top >= bottom or top >= others_bottom


def test_names_are_not_cut_where_there_is_room(show):
    machine, X, y = forest_of_long_names()
    page = show(machine, X, y)
    with window(page, 1400, 900):
        for tree in (0, 5, 11):
            page.execute_script("explorer.pickTree(arguments[0])", tree)
            names = texts(page, "#tree g.test text") + texts(page, "#matrix .row-name")
            assert not [name for name in names if "…" in name]


def test_how_to_read_this_explains_the_letters_and_stays_closed(show):
    page = show(dm.figure_one())
    page.execute_script("localStorage.clear()")
    page = show(dm.figure_one())
    panel, toggle = element(page, "#how"), element(page, "#how-toggle")
    assert panel.is_displayed()
    assert texts(page, "#how dt") == ["S", "t", "h", "B", "V"]
    assert toggle.get_attribute("aria-expanded") == "true"
    element(page, "#how-close").click()
    assert not panel.is_displayed()
    assert toggle.get_attribute("aria-expanded") == "false"
    page = show(dm.figure_one())
    assert not element(page, "#how").is_displayed()
    element(page, "#how-toggle").click()
    assert element(page, "#how").is_displayed()
    page = show(dm.figure_one())
    assert element(page, "#how").is_displayed()


def test_no_width_makes_the_page_scroll_sideways(show, tmp_path):
    """320 CSS pixels are a window of 1280 at 400 % zoom."""
    machine, X = forest()
    page = show(machine, X)
    for width in (320, 480, 800, 1100, 1440, 1920):
        pixels, overflow = screenshot(page, width, 700, tmp_path / f"{width}.png")
        assert pixels.shape[:2] == (700, width)
        assert len(np.unique(pixels[::4, ::4, 0])) > 20
        assert overflow <= 0, width


def test_dark_is_dark_by_wish_of_the_system_and_of_the_button(show, tmp_path):
    page = show(dm.figure_one())

    def brightness():
        return screenshot(page, 800, 600, tmp_path / "page.png")[0][:, :, :3].mean()

    assert brightness() > 0.8
    element(page, "#theme").click()
    assert brightness() < 0.25
    element(page, "#theme").click()
    assert brightness() > 0.8
    scheme = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme)
    try:
        page.refresh()
        assert brightness() < 0.25
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


# -- asking for it ---------------------------------------------------------------------------------


def test_wrong_calls_are_refused_in_words(tmp_path):
    machine = dm.figure_one()
    with pytest.raises(dm.InputError, match="y without X"):
        machine.explore(tmp_path / "a.html", y=[1])
    with pytest.raises(dm.InputError, match="2 entries of y for 1 rows"):
        machine.explore(tmp_path / "a.html", [[0, 0, 0, 0]], [1, 2])
    with pytest.raises(dm.InputError, match="X has 3 columns"):
        machine.explore(tmp_path / "a.html", [[0, 0, 0]])
    with pytest.raises(dm.InputError, match="no rows"):
        machine.explore(tmp_path / "a.html", np.empty((0, 4)))
    with pytest.raises(dm.InputError, match="max_rows"):
        machine.explore(tmp_path / "a.html", [[0, 0, 0, 0]], max_rows=0)
    with pytest.raises(dm.InputError, match="cannot be written"):
        machine.explore(tmp_path / "nowhere" / "a.html")
    assert not (tmp_path / "a.html").exists()


def test_a_page_that_cannot_be_written_whole_leaves_the_old_one(tmp_path, monkeypatch):
    path = dm.figure_one().explore(tmp_path / "page.html")
    before = path.read_bytes()

    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(dm.InputError, match="No space left"):
        dm.figure_one().explore(path, [[2.0, 1.0, 2.0, 2.0]])
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["page.html"]


def test_the_command_writes_the_page(tmp_path):
    from decision_machines.cli.app import app

    dm.figure_one().save(tmp_path / "tree.dm")
    (tmp_path / "rows.csv").write_text("id,x[1],x[2],x[3],x[4],v\n7,2,1,2,2,5\n8,0,0,0,0,1\n")
    page = tmp_path / "page.html"
    call = ["explore", str(tmp_path / "tree.dm"), "-o", str(page), "--json"]
    done = CliRunner().invoke(app, [*call, "--data", str(tmp_path / "rows.csv"), "--target", "v"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {"page": str(page), "bytes": page.stat().st_size}
    data = re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)[1]
    assert json.loads(data)["rows"]["y"] == ["5", "1"]
    done = CliRunner().invoke(app, [*call, "--data", str(tmp_path / "rows.csv"), "--target", "w"])
    assert isinstance(done.exception, dm.InputError)


def test_oblique_spans_hold_where_tests_cut_the_axes(tmp_path):
    S = sp.csr_array(np.array([[1.0, 2.0]]))
    machine = replace(
        make_machine([2], np.random.default_rng(0), rules=False, n_features=2),
        selection=S,
        t=np.array([4.0]),
    )
    from decision_machines.show.page_data import feature_spans

    spans = feature_spans(machine, None)
    assert np.all(spans[:, 0] < [4, 2])
    assert np.all(spans[:, 1] > [4, 2])


def test_the_page_attributes_the_margin_as_python_does(show):
    rng = np.random.default_rng(3)
    machine = make_machine(
        [9, 14, 6], rng, n_features=5, rules=False, plain_output=True, values="real"
    )
    rows = rng.normal(size=(50, 5))
    machine = machine.with_cover(rows)
    browser = show(machine, rows)
    block = element(browser, "#attribution")
    values = {
        item.find_element("css selector", ".share-name").text: float(
            item.get_attribute("data-added")
        )
        for item in block.find_elements("css selector", "li")
    }
    phi = machine.shap_values(rows[:1])[0]
    assert values == pytest.approx({f"x[{f}]": v for f, v in enumerate(phi) if v}, abs=1e-13)
    assert float(block.get_attribute("data-base")) == pytest.approx(machine.shap_base())
    assert float(block.get_attribute("data-total")) == pytest.approx(
        machine.margin(rows[:1])[0, 0], abs=1e-13
    )
