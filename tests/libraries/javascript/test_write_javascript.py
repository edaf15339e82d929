"""Machines as ES modules: run by node, and compared with the machine to the bit."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from library_models import LIBRARIES, data, models, table
from strategies import make_machine, probe_rows

import decision_machines as dm
from decision_machines.errors import UnsupportedModelError
from decision_machines.machine.label_hash import label_hash

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")
CODE = """
const special = (v) => (v === "nan" ? NaN : v === "inf" ? Infinity : v === "-inf" ? -Infinity : v);
const named = (v) => String(v).replace("Infinity", "inf").toLowerCase();
const plain = (v) => (typeof v === "number" && !Number.isFinite(v) ? named(v) : v);
let text = "";
for await (const part of process.stdin) text += part;
const found = [];
for (const { path, calls } of JSON.parse(text)) {
  const model = await import(path);
  found.push(calls.map(({ name, rows }) => rows.map((row) => {
    const given = Array.isArray(row) ? row.map(special) : row;
    try {
      return { value: [model[name](given)].flat(3).map(plain) };
    } catch (error) {
      return { error: error.message };
    }
  })));
}
console.log(JSON.stringify(found));
"""


def plain(rows):
    """Rows for JSON."""
    special = lambda v: v if np.isfinite(v) else str(v)  # noqa: E731
    return [[special(float(v)) for v in row] for row in np.asarray(rows, np.float64)]


def run(asked):
    """[(path, [(function, rows)])] → what each call gives: {value: [...]} or {error: ...}."""
    given = [
        {"path": path.as_uri(), "calls": [{"name": n, "rows": r} for n, r in calls]}
        for path, calls in asked
    ]
    done = subprocess.run(
        [NODE, "--input-type=module", "--eval", CODE],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def values(found):
    return np.array([[float(v) for v in one["value"]] for one in found])


def written(machines, folder):
    return [m.to_javascript(folder / f"m{i}.mjs") for i, m in enumerate(machines)]


def test_random_machines_are_equal(tmp_path):
    rng = np.random.default_rng(5)
    machines = [
        make_machine(
            rng.integers(1, 10, size=rng.integers(0, 6)).tolist(),
            rng,
            dtype=dtype,
            output_dtype=sums,
            values="real",
            n_outputs=k,
            narrow=k > 1,
            oblique=oblique,
        )
        for dtype in (np.float32, np.float64)
        for sums in (np.float32, np.float64)
        for k in (1, 3)
        for oblique in (False, True)
    ]
    rows = [probe_rows(m, 40) for m in machines]
    asked = [
        (path, [("margin", plain(X)), ("apply", plain(X))])
        for path, X in zip(written(machines, tmp_path), rows, strict=True)
    ]
    for machine, X, (margins, leaves) in zip(machines, rows, run(asked), strict=True):
        assert np.array_equal(values(margins), machine.margin(X), equal_nan=True)
        assert np.array_equal(values(leaves).reshape(len(X), -1), machine.apply(X))


def test_machines_of_every_size_are_equal(tmp_path):
    rng = np.random.default_rng(6)
    make = lambda sizes, n: make_machine(sizes, rng, n_features=n, values="real")  # noqa: E731
    machines = [
        make([300, 2], 3),
        make([400] * 12, 2),
        make([700, 1, 90], 4),
        make([400] * 3, 1200),
    ]
    rows = [probe_rows(m, 40) for m in machines]
    asked = [
        (path, [("margin", plain(X)), ("apply", plain(X))])
        for path, X in zip(written(machines, tmp_path), rows, strict=True)
    ]
    for machine, X, (margins, leaves) in zip(machines, rows, run(asked), strict=True):
        assert np.array_equal(values(margins), machine.margin(X), equal_nan=True)
        assert np.array_equal(values(leaves), machine.apply(X))


@pytest.mark.parametrize(
    "thresholds",
    [
        [0.0, -0.0, 5e-324, 1e-310, -5e-324],
        [-1.7e308, 1.7e308, 0.0, 1.0, 1.0],
        [-np.inf, np.inf, 1.0, 2.0, 3.0],
        [np.inf] * 5,
        [1.0, 1.0 + 2**-52, 1.0 + 2**-51, 1e30, -3.0],
    ],
)
def test_thresholds_of_any_spread_are_compared_exactly(thresholds, tmp_path):
    machine = make_machine([6], np.random.default_rng(0), n_features=1, rules=False)
    machine = replace(machine, t=np.array(thresholds, machine.t.dtype))
    near = [np.nextafter(t, to) for t in machine.t for to in (-np.inf, np.inf)]
    X = np.array([*machine.t, *near, 0.0, -np.inf, np.inf, np.nan])[:, None]
    path = machine.to_javascript(tmp_path / "m.mjs")
    ((leaves,),) = run([(path, [("apply", plain(X))])])
    assert np.array_equal(values(leaves), machine.apply(X))


def test_models_of_every_library(tmp_path):
    machines = [dm.convert(model) for library in LIBRARIES for model in models(library).values()]
    coded = [replace(m, columns=m.columns.coded()) for m in machines]
    rows = [probe_rows(m, 40) for m in coded]
    calls = ("margin", "response", "predict", "predictProba")
    asked = [
        (path, [(name, plain(X)) for name in calls])
        for path, X in zip(written(coded, tmp_path), rows, strict=True)
    ]
    for machine, X, found in zip(coded, rows, run(asked), strict=True):
        margins, responses, predicted, chances = found
        assert np.array_equal(values(margins), machine.margin(X), equal_nan=True)
        np.testing.assert_allclose(values(responses), machine.response(X), rtol=1e-5, atol=1e-12)
        expected = np.asarray(machine.predict(X)).reshape(len(X), -1)
        if expected.dtype.kind in "OUSb" or machine.output.decision not in ("response", "margin"):
            assert [[str(v).lower() for v in one["value"]] for one in predicted] == [
                [str(v).lower() for v in row] for row in expected.tolist()
            ] or np.array_equal(values(predicted), expected.astype(float))
        else:
            np.testing.assert_allclose(values(predicted), expected, rtol=1e-5)
        if machine.output.classes is None:
            assert all("no classes" in one["error"] for one in chances)
        else:
            shares = machine.predict_proba(X)
            shares = np.concatenate(shares, axis=1) if isinstance(shares, list) else shares
            np.testing.assert_allclose(values(chances), shares, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize(
    ("library", "name"),
    [
        ("xgboost", "XGBClassifier, table"),
        ("sklearn", "HistGradientBoosting, table"),
        ("catboost", "CatBoostClassifier, labels"),
    ],
)
def test_rows_by_name_with_labels(library, name, tmp_path):
    frame, _ = table()
    if library == "catboost":
        frame = frame.assign(color=frame["color"].astype(str), size=frame["size"].astype(str))
    machine = dm.convert(models(library)[name])
    rows = json.loads(frame.head(30).to_json(orient="records"))
    unknown = {**rows[0], "color": "ultraviolet"}
    gap = {**rows[0], "color": None}
    short = {"weight": 1.0}
    asked = [
        (machine.to_javascript(tmp_path / "m.mjs"), [("margin", [*rows, unknown, gap, short])])
    ]
    ((found,),) = run(asked)
    assert np.array_equal(values(found[:30]), machine.margin(frame.head(30)))
    for given, one in ((unknown, found[30]), (gap, found[31])):
        one_row = pd.DataFrame([given]).astype({"color": object})
        try:
            expected = machine.margin(one_row)
        except dm.InputError:
            assert "color" in one["error"]
        else:
            assert np.array_equal(values([one]), expected)
    assert "color" in found[32]["error"]


def test_folded_pipelines_take_what_the_pipeline_takes(tmp_path):
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import KBinsDiscretizer

    X, y = data("two")
    forest = RandomForestClassifier(5, max_depth=4, random_state=0)
    pipeline = make_pipeline(SimpleImputer(), KBinsDiscretizer(4, encode="ordinal"), forest)
    machine = dm.convert(pipeline.fit(X, y))
    infinite = X[:1].copy()
    infinite[0, 2] = np.inf
    path = machine.to_javascript(tmp_path / "m.mjs")
    ((found, refused),) = run([(path, [("margin", plain(X)), ("margin", plain(infinite))])])
    assert np.array_equal(values(found), machine.margin(X))
    assert "x[2]" in refused[0]["error"]


def test_the_hash_of_labels_is_catboosts():
    texts = [
        "",
        "a",
        "ab",
        "abcd",
        "red car",
        "é雪🌲",
        *("x" * n for n in (9, 17, 33, 64, 65, 129, 200)),
    ]
    from page_texts import EVALUATOR

    module = json.dumps((EVALUATOR / "city_hash.js").as_uri())
    code = (
        f"const {{ labelHash }} = await import({module});"
        f"console.log(JSON.stringify({json.dumps(texts)}.map(labelHash)));"
    )
    done = subprocess.run(
        [NODE, "--input-type=module", "--eval", code], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [label_hash(text) for text in texts]


HOSTILE = ["</script>", "`${1}`", "'; x()", '"', "\\", "\u2028", "雪🌲", "__proto__", "constructor"]


def test_hostile_names_and_labels_are_data(tmp_path):
    machine = make_machine([4, 3], np.random.default_rng(0), n_features=len(HOSTILE), rules=False)
    machine = replace(
        machine,
        source="</script>`${x}`",
        columns=replace(machine.columns, names=tuple(HOSTILE), categories={0: tuple(HOSTILE)}),
        output=replace(
            machine.output,
            dtype=np.float64,
            link="sigmoid",
            decision="above",
            classes=(np.array(HOSTILE[:2], object),),
        ),
    )
    path = machine.to_javascript(tmp_path / "m.mjs")
    assert path.read_bytes().isascii()
    assert b"</script" not in path.read_bytes()
    rows = [[HOSTILE[i], *([0.5] * (len(HOSTILE) - 1))] for i in range(len(HOSTILE))]
    coded = np.array([[i, *row[1:]] for i, row in enumerate(rows)], np.float64)
    ((margins, predicted),) = run([(path, [("margin", rows), ("predict", rows)])])
    numbers = replace(machine, columns=machine.columns.coded())
    assert np.array_equal(values(margins), numbers.margin(coded))
    assert [one["value"][0] for one in predicted] == numbers.predict(coded).tolist()


def test_rubbish_rows_are_refused_in_words(tmp_path):
    path = dm.figure_one().to_javascript(tmp_path / "m.mjs")
    rows = [[1, 2], "row", None, 3, [1, 2, 3, "x"], {"x[0]": 1}]
    ((found,),) = run([(path, [("margin", rows)])])
    assert all("While reading a row" in one["error"] for one in found)
    assert all("What to do" in one["error"] for one in found)


def test_statistics_of_combinations_are_refused():
    machine = make_machine([3], np.random.default_rng(0), n_features=2, rules=False)
    columns = replace(machine.columns)
    object.__setattr__(columns, "rule", np.full(2, dm.Rule.LOOK_UP))
    with pytest.raises(UnsupportedModelError, match="combinations of features"):
        replace(machine, columns=columns).to_javascript("never.mjs")
