"""Fail closed: a field that no reader knows is refused by name and place, at every level."""

from __future__ import annotations

import functools
import json
import re

import numpy as np
import pytest
from library_models import models, onnx_models
from unknown_fields import GATE, at, levels, ubjson, with_gate, with_slot

import decision_machines as dm
from decision_machines.libraries.own.read import read_dm_bytes
from decision_machines.libraries.own.safetensors import read_container
from decision_machines.libraries.own.write import container, dm_bytes


def refused(data, place):
    """The content is refused by an error that names the field and where it stands."""
    with pytest.raises(dm.UnsupportedModelError) as raised:
        dm.convert(data)
    assert GATE in raised.value.found or "slot" in raised.value.found
    assert place in raised.value.found, raised.value.found


def place_of(path):
    """How errors write a path: learner.trees[0].gate."""
    return re.sub(r"\.\[", "[", ".".join(f"[{p}]" if type(p) is int else p for p in path))


# ---------------------------------------------------------------------- XGBoost

XGBOOST = ("XGBClassifier, 3", "XGBRegressor, dart", "XGBRegressor, vector leaves")


@pytest.mark.parametrize("encode", [lambda d: json.dumps(d).encode(), ubjson], ids=["json", "ubj"])
@pytest.mark.parametrize("name", [*XGBOOST, "XGBClassifier, table"])
def test_xgboost(name, encode):
    booster = models("xgboost")[name].get_booster()
    document = json.loads(bytes(booster.save_raw("json")))
    dm.convert(encode(document))
    # `attributes` belong to the user, and the objective's settings to training.
    paths = [path for path in levels(document) if path != ("learner", "attributes")]
    paths = [path for path in paths if path[1:2] != ("objective",) or len(path) == 2]
    assert len(paths) > 8
    for path in paths:
        refused(encode(with_gate(document, path)), place_of((*path, GATE)))


# ---------------------------------------------------------------------- LightGBM

LIGHTGBM = ("LGBMClassifier, 3", "LGBMRegressor, linear", "LGBMRegressor, rf")


def without_sizes(text):
    """A text that does not say how long its trees are, so that lines can be added."""
    return re.sub(r"tree_sizes=.*\n", "", text)


@pytest.mark.parametrize("name", [*LIGHTGBM, "LGBMClassifier, table"])
def test_lightgbm(name):
    text = without_sizes(models("lightgbm")[name].booster_.model_to_string())
    dm.convert(text)
    lines = text.split("\n")
    first, last = lines.index("Tree=0"), lines.index("end of trees")
    for number, line in enumerate(lines[:last]):
        if "=" in line and number > 1:
            changed = [*lines[: number + 1], f"{GATE}=1", *lines[number + 1 :]]
            trees = sum(entry.startswith("Tree=") for entry in lines[: number + 1])
            place = "header.gate" if number < first else f"trees[{trees - 1}].gate"
            refused("\n".join(changed), place)
    for number in (last, len(lines) - 1):
        changed = [*lines[: number + 1], f"{GATE}:", "1", *lines[number + 1 :]]
        refused("\n".join(changed), "after the trees.gate")


# ---------------------------------------------------------------------- CatBoost


@functools.cache
def catboost_file(name, kind, folder):
    path = folder / f"model.{kind}"
    models("catboost")[name].save_model(str(path), format=kind)
    return path.read_bytes()


CATBOOST = ("CatBoostClassifier, 3", "CatBoostRegressor", "CatBoostClassifier, labels")


@pytest.mark.parametrize("name", CATBOOST)
def test_catboost_json(name, tmp_path):
    document = json.loads(catboost_file(name, "json", tmp_path))
    dm.convert(json.dumps(document))
    # Notes belong to CatBoost's training and to the user, but for the labels of the classes.
    paths = [
        path
        for path in levels(document)
        if path[:1] != ("model_info",) or path[1:2] == ("class_params",)
    ]
    assert ("model_info", "class_params") in paths or "Classifier" not in name
    for path in paths:
        refused(json.dumps(with_gate(document, path)), place_of((*path, GATE)))


def test_catboost_json_of_trees_of_any_shape(tmp_path):
    import catboost

    model = catboost.CatBoostRegressor(
        iterations=2, depth=3, grow_policy="Lossguide", verbose=0, allow_writing_files=False
    ).fit(np.arange(80.0).reshape(40, 2) % 17, np.arange(40.0))
    model.save_model(str(tmp_path / "m.json"), format="json")
    document = json.loads((tmp_path / "m.json").read_text())
    paths = [path for path in levels(document) if path[0:1] == ("trees",)]
    assert any(path[-1] == "split" for path in paths)
    for path in paths:
        place = f"trees[{path[1]}]" + (".split" if path[-1] == "split" else "")
        refused(json.dumps(with_gate(document, path)), f"{place}.gate")


@pytest.mark.parametrize("name", CATBOOST)
def test_catboost_cbm(name, tmp_path):
    from decision_machines.libraries.catboost.flatbuffer import Table

    data = catboost_file(name, "cbm", tmp_path)
    size = int.from_bytes(data[4:8], "little")
    core = data[8 : 8 + size]
    root = Table.root(core, "testing")
    trees = root.table(1)
    tables = [(root, "ModelCore"), (trees, "ModelTrees")]
    for slot, field in ((4, "CatFeatures"), (5, "FloatFeatures"), (6, "OneHotFeatures")):
        found = trees.tables(slot)
        tables += [(t, f"ModelTrees.{field}[{i}]") for i, t in enumerate(found)]
    for table, place in tables:
        changed = with_slot(core, table.at, 23)
        head = data[:4] + len(changed).to_bytes(4, "little")
        refused(head + changed + data[8 + size :], f"{place}, slot 23")


def test_an_unknown_part_of_a_cbm_file_is_refused_by_name(tmp_path):
    import catboost

    X, y = np.array([[f"{i}"] for i in range(60)] * 2), np.arange(120) % 2
    model = catboost.CatBoostClassifier(
        iterations=2, depth=1, one_hot_max_size=1, verbose=0, allow_writing_files=False
    ).fit(X, y, cat_features=[0])
    model.save_model(str(tmp_path / "m.cbm"))
    data = (tmp_path / "m.cbm").read_bytes()
    assert b"static_provider_v1" in data
    with pytest.raises(dm.UnsupportedModelError, match="a part 'static_provider_v9'"):
        dm.convert(data.replace(b"static_provider_v1", b"static_provider_v9"))


def test_a_loss_that_catboost_has_not_today_is_refused_by_name(tmp_path):
    data = catboost_file("CatBoostRegressor", "json", tmp_path)
    with pytest.raises(dm.UnsupportedModelError, match="loss_function is 'Gate'"):
        dm.convert(data.replace(b'"type":"RMSE"', b'"type":"Gate"'))


# ---------------------------------------------------------------------- ONNX

UNKNOWN_FIELD = b"\xc0\x3e\x01"
"""Field number 1000 with the value 1, in protobuf's code."""


def onnx_documents():
    yield from onnx_models().items()
    machine = dm.convert(models("sklearn")["RandomForestRegressor"])
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.InexactWarning)
        yield "v5", machine.to_onnx(operator="v5")


@pytest.mark.parametrize(("name", "model"), list(onnx_documents()))
def test_onnx_attributes(name, model):
    import onnx

    for number, node in enumerate(model.graph.node):
        changed = onnx.ModelProto()
        changed.CopyFrom(model)
        changed.graph.node[number].attribute.append(onnx.helper.make_attribute(GATE, 1))
        refused(changed.SerializeToString(), f"graph.node[{number}] ({node.op_type}).gate")


@pytest.mark.parametrize(("name", "model"), list(onnx_documents()))
def test_onnx_fields_that_the_package_itself_does_not_know(name, model):
    import onnx

    def messages(model):
        yield "model", model
        graph = model.graph
        yield "graph", graph
        for kind in ("input", "initializer", "node"):
            for i, item in enumerate(getattr(graph, kind)):
                yield f"graph.{kind}[{i}]", item
        for i, node in enumerate(graph.node):
            for j, attribute in enumerate(node.attribute):
                yield f"graph.node[{i}].attribute[{j}]", attribute
                if attribute.HasField("t"):
                    yield f"graph.node[{i}].attribute[{j}].t", attribute.t
        for i, opset in enumerate(model.opset_import):
            yield f"model.opset_import[{i}]", opset

    for place in [place for place, _ in messages(model)]:
        changed = onnx.ModelProto()
        changed.CopyFrom(model)
        dict(messages(changed))[place].MergeFromString(UNKNOWN_FIELD)
        with pytest.raises(
            dm.UnsupportedModelError, match=re.escape(f"{place}, field number 1000")
        ):
            dm.convert(changed)


def test_onnx_parts_that_change_what_a_graph_means_are_refused_by_name():
    import onnx

    model = onnx_models()["RandomForestRegressor"]
    function = onnx.helper.make_function(
        "ai.onnx.ml", "TreeEnsembleRegressor", ["X"], ["Y"], [], [onnx.helper.make_opsetid("", 18)]
    )
    for field, item in (
        ("functions", function),
        ("sparse_initializer", onnx.SparseTensorProto()),
        ("quantization_annotation", onnx.TensorAnnotation()),
    ):
        changed = onnx.ModelProto()
        changed.CopyFrom(model)
        holder = changed if field == "functions" else changed.graph
        getattr(holder, field).append(item)
        with pytest.raises(dm.UnsupportedModelError, match=f"{field} is a field"):
            dm.convert(changed)
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    changed.graph.node[0].input.append("more")
    with pytest.raises(dm.UnsupportedModelError, match="2 inputs where 1 are known"):
        dm.convert(changed)


def test_every_operator_that_is_read_has_its_attributes_listed():
    from decision_machines.libraries.onnx.fields import ATTRIBUTES
    from decision_machines.libraries.onnx.read_graph import OPERATORS

    assert ATTRIBUTES.keys() == OPERATORS.keys()


# ---------------------------------------------------------------------- scikit-learn


def sklearn_parts(model):
    """The objects that a model is read from, with their places."""
    yield "", model
    for i, member in enumerate(np.ravel(getattr(model, "estimators_", []))):
        yield f"estimators_[{i}].", member
    if not isinstance(getattr(model, "init_", "zero"), str):
        yield "init_.", model.init_
    if hasattr(model, "_loss"):
        yield "_loss.", model._loss
    for i, stage in enumerate(getattr(model, "_predictors", [])):
        yield f"tree {i * len(stage)}.", stage[0]
    if getattr(model, "_preprocessor", None) is not None:
        yield "_preprocessor.encoder.", model._preprocessor.named_transformers_["encoder"]
        yield "_bin_mapper.", model._bin_mapper


@pytest.mark.parametrize("name", list(models("sklearn")))
@pytest.mark.parametrize("attribute", ["gate_", "_gate"])
def test_sklearn(name, attribute):
    model = models("sklearn")[name]
    for place, part in sklearn_parts(model):
        setattr(part, attribute, 1)
        try:
            with pytest.raises(dm.UnsupportedModelError) as raised:
                dm.convert(model)
            assert raised.value.found.startswith(f"{place}{attribute} is a field")
        finally:
            delattr(part, attribute)
    dm.convert(model)


def models_made_of_models():
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.ensemble import StackingClassifier, VotingClassifier, VotingRegressor
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
    from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, RegressorChain
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    X = np.random.default_rng(0).normal(size=(90, 3))
    y, both = np.arange(90) % 3, np.column_stack([np.arange(90) % 2, X[:, 0] > 0]).astype(int)
    tree, number = DecisionTreeClassifier(max_depth=2), DecisionTreeRegressor(max_depth=2)
    return [
        VotingClassifier([("a", tree)], voting="soft").fit(X, y),
        VotingRegressor([("a", number)]).fit(X, y),
        StackingClassifier([("a", tree)], LogisticRegression(), cv=2).fit(X, y),
        CalibratedClassifierCV(tree, cv=2).fit(X, y),
        CalibratedClassifierCV(tree, method="isotonic", cv=2).fit(X, y),
        OneVsRestClassifier(tree).fit(X, y),
        OneVsOneClassifier(tree).fit(X, y),
        MultiOutputClassifier(tree).fit(X, both),
        ClassifierChain(tree).fit(X, both),
        RegressorChain(number).fit(X, both),
        TransformedTargetRegressor(number, func=np.log1p, inverse_func=np.expm1).fit(X, y),
        make_pipeline(StandardScaler(), tree).fit(X, y),
    ]


def test_sklearns_models_made_of_models():
    for model in models_made_of_models():
        parts = list(sklearn_parts(model))
        for i, one in enumerate(getattr(model, "calibrated_classifiers_", ())):
            place = f"calibrated_classifiers_[{i}]."
            parts += [(place, one), (f"{place}calibrators[1].", one.calibrators[1])]
        for place, part in parts:
            part.gate_ = 1
            with pytest.raises(dm.UnsupportedModelError) as raised:
                dm.convert(model)
            # A member is read as a model of its own, and its place is its own.
            wanted = place if place == "" or place.startswith("calibrated") else ""
            assert f"{wanted}gate_ is a field" in raised.value.found, (model, place)
            del part.gate_
        dm.convert(model)


def test_a_new_parameter_of_sklearn_is_refused_and_a_note_of_the_user_is_not(monkeypatch):
    from sklearn.tree import DecisionTreeClassifier

    model = DecisionTreeClassifier(max_depth=1).fit([[0.0], [1.0]], [0, 1])
    model.gate = 1
    dm.convert(model)
    names = DecisionTreeClassifier._get_param_names()
    monkeypatch.setattr(DecisionTreeClassifier, "_get_param_names", lambda: [*names, "gate"])
    with pytest.raises(dm.UnsupportedModelError, match="gate is a field"):
        dm.convert(model)


def test_a_method_that_was_replaced_on_the_object_is_refused():
    from sklearn.tree import DecisionTreeClassifier

    model = DecisionTreeClassifier(max_depth=1).fit([[0.0], [1.0]], [0, 1])
    model.predict = lambda X: None
    with pytest.raises(dm.UnsupportedModelError, match="predict is a field"):
        dm.convert(model)


def test_a_new_field_of_sklearns_nodes_is_refused_by_name():
    model = models("sklearn")["HistGradientBoosting"]
    predictor = model._predictors[0][0]
    nodes = predictor.nodes
    dtype = np.dtype([*((n, nodes.dtype[n]) for n in nodes.dtype.names), (GATE, "<i4")])
    wide = np.zeros(len(nodes), dtype)
    for field in nodes.dtype.names:
        wide[field] = nodes[field]
    try:
        predictor.nodes = wide
        with pytest.raises(dm.UnsupportedModelError, match=r"tree 0, nodes\.gate is a field"):
            dm.convert(model)
    finally:
        predictor.nodes = nodes


def test_skops():
    import copy

    import skops.io

    model = copy.deepcopy(models("sklearn")["RandomForestClassifier"])
    model.estimators_[1].gate_ = 1
    refused(skops.io.dumps(model), "estimators_[1].gate_ is a field")


# ---------------------------------------------------------------------- our own file


@pytest.mark.parametrize(
    ("library", "name"),
    [
        ("sklearn", "two classifications"),
        ("xgboost", "XGBClassifier, table"),
        ("lightgbm", "LGBMRegressor, linear"),
    ],
)
def test_our_own_file(library, name):
    machine = dm.convert(models(library)[name])
    metadata, arrays = read_container(dm_bytes(machine), "testing")
    texts = json.loads(metadata["machine"])
    for path in levels(texts):
        if "link_params" in path:
            continue
        changed = {**metadata, "machine": json.dumps(with_gate(texts, path))}
        refused(b"".join(container(arrays, changed)), place_of((*path, GATE)))
    refused(b"".join(container(arrays, {**metadata, GATE: "1"})), "__metadata__.gate")
    more = {**arrays, GATE: np.zeros(1)}
    refused(b"".join(container(more, metadata)), "the array 'gate'")
    assert read_dm_bytes(dm_bytes(machine)).equals(machine)
    assert at(texts, ())["source"] == machine.source
