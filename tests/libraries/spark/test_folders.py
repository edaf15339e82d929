"""Folders in Spark's layout answer as Spark's rules say, without Spark and without Java."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spark_folders import answers, leaf, metadata, save, split, table

import decision_machines as dm

KINDS = {
    "classification.DecisionTreeClassificationModel": {"numClasses": 3},
    "classification.RandomForestClassificationModel": {"numClasses": 3},
    "classification.GBTClassificationModel": {},
    "regression.DecisionTreeRegressionModel": {},
    "regression.RandomForestRegressionModel": {},
    "regression.GBTRegressionModel": {},
}
NUMBERS = st.floats(-4, 4).map(lambda v: round(v, 2))
VALUES = st.sampled_from([-1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, 7.0, np.nan, np.inf, -np.inf])


def settings_of(kind):
    if "GBT" not in kind:
        return {}
    return {"lossType": "logistic" if "Class" in kind else "squared"}


def leaves(kind):
    stats = st.lists(st.integers(0, 9).map(float), min_size=3, max_size=3)
    return st.builds(leaf, NUMBERS, stats)


def trees(kind):
    category = st.sets(st.integers(0, 4).map(float), min_size=1, max_size=4).map(sorted)

    def above(below):
        number = st.builds(
            split, st.integers(0, 1), NUMBERS.map(lambda v: [v]), st.just(-1), below, below
        )
        labels = st.builds(split, st.just(2), category, st.just(5), below, below)
        return number | labels

    return st.recursive(leaves(kind), above, max_leaves=8)


@settings(max_examples=120)
@given(st.data(), st.sampled_from(sorted(KINDS)), st.sampled_from([3, 4]))
def test_random_forests_answer_as_they_are_walked(tmp_path_factory, data, kind, release):
    n = 1 if "DecisionTree" in kind else data.draw(st.integers(1, 4))
    held = [data.draw(trees(kind)) for _ in range(n)]
    weights = [1.0, *[0.1] * (n - 1)] if "GBT" in kind else None
    folder = tmp_path_factory.mktemp("spark") / "model"
    seed = data.draw(st.integers(0, 9))
    save(
        folder,
        kind,
        held,
        weights,
        release,
        order=lambda m: np.random.default_rng(seed).permutation(m),
        n_files=data.draw(st.integers(1, 2)),
        params=settings_of(kind),
        numFeatures=3,
        **KINDS[kind],
    )
    machine = dm.load(folder)
    X = np.array(data.draw(st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=9)))
    wanted = answers(kind, held, X, weights)
    assert np.array_equal(machine.margin(X).reshape(wanted.shape), wanted)
    assert np.array_equal(machine.margin(X[:1]).reshape(1, -1), wanted[:1])
    if "Class" in kind:
        assert np.array_equal(machine.predict(X), np.argmax(wanted, axis=1).astype(float))
    else:
        assert np.array_equal(machine.predict(X), wanted[:, 0])
    if "numClasses" in KINDS[kind]:
        total = (wanted[:, 0] + wanted[:, 1]) + wanted[:, 2]
        shares = wanted / np.where(total == 0, 1, total)[:, None]
        assert np.array_equal(machine.predict_proba(X), shares)
    machine.save(folder / "m.dm")
    assert dm.load(folder / "m.dm").equals(machine)


TREE = split(0, [0.5], -1, leaf(1.0, [3.0, 0.0]), split(1, [1.0, 2.0], 3, leaf(2.0, [0.0, 1.0]),
             leaf(-1.0, [1.0, 1.0])))  # fmt: skip
GBT = "classification.GBTClassificationModel"
LOGISTIC = {"lossType": "logistic"}


def pipeline(folder, invalid="keep", stages=(), after=(), **model):
    """StringIndexer → VectorAssembler → boosted trees."""
    before = [
        (
            "feature.StringIndexerModel",
            {"inputCol": "c", "outputCol": "ci", "handleInvalid": invalid},
        ),
        (
            "feature.VectorAssembler",
            {"inputCols": ["a", "ci"], "outputCol": "features", "handleInvalid": invalid},
        ),
        *stages,
    ]
    kinds = [*before, (GBT, {}), *after]
    uids = [f"stage_{i}" for i in range(len(kinds))]
    for i, (kind, params) in enumerate(kinds):
        at = folder / "stages" / f"{i}_{uids[i]}"
        if kind == GBT:
            save(at, kind, [TREE, TREE], [1.0, 0.5], params=LOGISTIC, numFeatures=2, **model)
            continue
        metadata(at, kind, params)
        if "StringIndexer" in kind:
            labels = pa.array([[["x", "7"]]], pa.list_(pa.list_(pa.string())))
            table(at, "data", {"labelsArray": labels})
    metadata(folder, "PipelineModel", {"stageUids": uids})
    return folder


def test_a_pipeline_reads_raw_columns_by_name(tmp_path):
    machine = dm.load(pipeline(tmp_path / "p"))
    rows = pd.DataFrame(
        {
            "label": list("abcdefg"),
            "c": ["x", "7", "new", None, "x", "7", 7],
            "a": [1.0, 2.0, 1.0, 9.0, np.nan, 0.5, 2.0],
        }
    )
    # An unknown label, or none, has the place after the last one.
    X = np.array([[1, 0], [2, 1], [1, 2], [9, 2], [np.nan, 0], [0.5, 1], [2, 1]], float)
    wanted = answers(GBT, [TREE, TREE], X, [1.0, 0.5])
    assert np.array_equal(machine.margin(rows), wanted)
    for i in range(len(rows)):
        assert np.array_equal(machine.margin(rows[i : i + 1]), wanted[i : i + 1])
    one = machine.row_function()
    assert one({"a": 1.0, "c": "x"}) == machine.predict(rows[:1])[0]
    assert machine.predict(rows[:0]).shape == (0,)


@pytest.mark.parametrize(
    "row", [{"a": 1.0, "c": "new"}, {"a": 1.0, "c": None}, {"a": np.nan, "c": "x"}]
)
def test_what_the_stages_refuse_is_refused(tmp_path, row):
    machine = dm.load(pipeline(tmp_path / "p", invalid="error"))
    assert machine.predict(pd.DataFrame([{"a": 1.0, "c": "x"}])).shape == (1,)
    with pytest.raises(dm.InputError):
        machine.predict(pd.DataFrame([row]))


def test_an_index_to_string_names_the_classes(tmp_path):
    names = {"inputCol": "prediction", "outputCol": "said", "labels": ["no", "yes"]}
    machine = dm.load(pipeline(tmp_path / "p", after=[("feature.IndexToString", names)]))
    assert set(machine.predict(pd.DataFrame({"a": [0.0, 9.0], "c": ["x", "x"]}))) <= {"no", "yes"}


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"invalid": "skip"}, "handleInvalid is 'skip'"),
        ({"stages": [("feature.PCAModel", {})]}, "PCAModel"),
        ({"stages": [("feature.StringIndexerModel", {"gate": 1})]}, "gate"),
        ({"after": [("feature.SQLTransformer", {})]}, "SQLTransformer"),
    ],
)
def test_other_stages_are_refused_by_name(tmp_path, settings, named):
    with pytest.raises(dm.UnsupportedModelError, match=named):
        dm.load(pipeline(tmp_path / "p", **settings))


def changed(folder, **more):
    """The folder with other fields in its metadata."""
    part = folder / "metadata" / "part-00000"
    content = json.loads(part.read_text())
    for name, value in more.items():
        held, _, key = name.rpartition("__")
        (content[held] if held else content)[key] = value
    part.write_text(json.dumps(content))
    return folder


@pytest.fixture
def saved(tmp_path):
    save(tmp_path / "model", GBT, [TREE], [1.0], params=LOGISTIC, numFeatures=2)
    return tmp_path / "model"


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"gate": 1}, "gate"),
        ({"paramMap__gate": 1}, "gate"),
        ({"defaultParamMap__gate": 1}, "gate"),
        ({"paramMap__thresholds": [0.3, 0.7]}, "thresholds"),
        ({"paramMap__lossType": "new"}, "lossType"),
        ({"class": "org.apache.spark.ml.classification.NaiveBayesModel"}, "NaiveBayesModel"),
    ],
)
def test_what_may_change_predictions_is_refused_by_name(saved, more, named):
    with pytest.raises(dm.UnsupportedModelError, match=named):
        dm.load(changed(saved, **more))


@pytest.mark.parametrize("more", [{"numFeatures": 1}, {"numTrees": 2}, {"numFeatures": "x"}])
def test_a_folder_that_does_not_fit_together_is_refused(saved, more):
    with pytest.raises(dm.ModelFormatError):
        dm.load(changed(saved, **more))


def test_broken_folders_are_refused(saved, tmp_path):
    for file in (saved / "data").glob("*.parquet"):
        file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(dm.ModelFormatError, match="data/"):
        dm.load(saved)
    (saved / "metadata" / "part-00000").write_text("{")
    with pytest.raises(dm.DecisionMachinesError):
        dm.load(saved)
    (tmp_path / "empty").mkdir()
    with pytest.raises(dm.InputError, match="Spark model"):
        dm.load(tmp_path / "empty")


def test_a_column_of_nodes_that_is_not_known_is_refused(tmp_path):
    save(
        tmp_path / "m",
        "regression.DecisionTreeRegressionModel",
        [TREE],
        numFeatures=2,
    )
    part = next((tmp_path / "m" / "data").glob("*.parquet"))
    held = pa.parquet.read_table(part)
    pa.parquet.write_table(held.append_column("gate", pa.array([1] * len(held))), part)
    with pytest.raises(dm.UnsupportedModelError, match="gate"):
        dm.load(tmp_path / "m")


def test_a_newer_release_is_noted(saved):
    with pytest.warns(dm.UntestedReleaseWarning, match="5.0"):
        dm.load(changed(saved, sparkVersion="5.0.0"))
