"""ONNX's tree operators: the machine answers as ONNX Runtime does on one thread."""

from __future__ import annotations

import itertools

import catboost
import lightgbm
import numpy as np
import onnx
import onnxmltools
import onnxruntime
import pytest
import skl2onnx
import xgboost
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnxmltools.convert.common.data_types import FloatTensorType as MltoolsFloat
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import decision_machines as dm
from decision_machines.libraries.onnx import steps
from decision_machines.libraries.onnx.read import looks_like_onnx, read_onnx, read_onnx_bytes
from decision_machines.machine import Rule
from decision_machines.machine.steps import STEPS

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")
ODD = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-36, -1e-36, 1e-45, 2.0**24 + 1, -0.5, 0.5, 31.5, 40.5]


def session(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def answers(model, X):
    """Labels (or None) and scores of ONNX Runtime."""
    run = session(model)
    given = run.get_inputs()
    dtype = np.float64 if "double" in given[0].type else np.float32
    with np.errstate(over="ignore"):
        X = X.astype(dtype)
    feed = {given[0].name: X}
    if len(given) > 1:
        feed = {g.name: X[:, i : i + 1] for i, g in enumerate(given)}
    found = run.run(None, feed)
    if len(found) == 1:
        return None, found[0]
    labels, scores = found
    if isinstance(scores, list):
        scores = np.array([list(row.values()) for row in scores], np.float32)
    return labels, scores


def ulps(a, b):
    a, b = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    step = np.spacing(np.maximum(np.abs(a), np.abs(b)).astype(np.float32)).astype(np.float64)
    with np.errstate(invalid="ignore"):
        return float(np.max(np.where(same, 0.0, np.abs(a - b) / step), initial=0.0))


def assert_same(model, X, within=0.0):
    machine = read_onnx_bytes(model.SerializeToString(), "a model")
    labels, scores = answers(model, X)
    if machine.output.classes is None:
        found = machine.predict(X)
        assert found.dtype == scores.dtype
        assert ulps(found.reshape(scores.shape), scores) <= within
    else:
        assert np.array_equal(machine.predict(X), labels)
        assert ulps(machine.predict_proba(X), scores) <= within
    return machine


def probes(machine, n=3):
    """Rows with each feature at and beside each threshold, and at odd values."""
    rng = np.random.default_rng(0)
    rows = []
    for feature in range(machine.n_features):
        t = np.unique(machine.t[machine.columns.feature[machine.selection] == feature])
        members = [] if machine.columns.sets is None else machine.columns.sets.members.tolist()
        with np.errstate(over="ignore"):
            near = [np.nextafter(t, t.dtype.type(side)) for side in (-np.inf, np.inf)]
        whole = [m + d for m in members for d in (-1, -0.5, 0, 0.5, 1)]
        for value in np.concatenate([t, *near, ODD, whole]).astype(np.float64):
            row = rng.normal(size=machine.n_features) * 20
            row[feature] = value
            rows.append(row)
    return np.concatenate([np.array(rows), rng.normal(size=(n, machine.n_features)) * 20])


# ---------------------------------------------------------------------- graphs made by hand


def graph_of(nodes, n_features, outputs, dtype=np.float32, opset=3, initializers=()):
    kind = TensorProto.DOUBLE if dtype == np.float64 else TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info("X", kind, [None, n_features])]
    made = [helper.make_tensor_value_info(name, t, None) for name, t in outputs]
    graph = helper.make_graph(nodes, "g", inputs, made, list(initializers))
    versions = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", opset)]
    return helper.make_model(graph, opset_imports=versions, ir_version=9)


def random_tree(rng, n_features, modes, depth, values):
    """Nodes of a random tree, in preorder: (mode, feature, value, true, false)."""
    nodes = []

    def grow(level):
        at = len(nodes)
        nodes.append(None)
        if level == 0 or rng.random() < 0.15 * (level < depth):
            nodes[at] = ("LEAF", 0, 0.0, 0, 0)
        else:
            test = (
                str(rng.choice(modes)),
                int(rng.integers(n_features)),
                float(rng.choice(values)),
            )
            nodes[at] = (*test, grow(level - 1), grow(level - 1))
        return at

    grow(depth)
    return nodes


def ensemble(
    rng, *, kind="target", modes=("BRANCH_LEQ",), n_trees=7, depth=3, n_features=3, k=1,
    dtype=np.float32, tracks=True, values=None, ids=None, low=-1.0, labels=None, **attributes,
):  # fmt: skip
    """A TreeEnsembleRegressor or TreeEnsembleClassifier of random trees."""
    values = np.round(rng.normal(size=30) * 10, 1).astype(dtype) if values is None else values
    trees = [random_tree(rng, n_features, modes, depth, values) for _ in range(n_trees)]
    flat = [(t, i, *node) for t, tree in enumerate(trees) for i, node in enumerate(tree)]
    ids = range(k) if ids is None else ids
    weights = [
        (t, i, c, float(dtype(rng.uniform(low, 1.0))))
        for t, i, mode, *_ in flat
        if mode == "LEAF"
        for c in ids
    ]
    columns = {
        "nodes_treeids": [f[0] for f in flat],
        "nodes_nodeids": [f[1] for f in flat],
        "nodes_modes": [f[2] for f in flat],
        "nodes_featureids": [f[3] for f in flat],
        "nodes_truenodeids": [f[5] for f in flat],
        "nodes_falsenodeids": [f[6] for f in flat],
        f"{kind}_treeids": [w[0] for w in weights],
        f"{kind}_nodeids": [w[1] for w in weights],
        f"{kind}_ids": [w[2] for w in weights],
    }
    numbers = {"nodes_values": [f[4] for f in flat], f"{kind}_weights": [w[3] for w in weights]}
    if "base_values" in attributes:
        numbers["base_values"] = attributes.pop("base_values")
    for key, given_numbers in numbers.items():
        if dtype == np.float64:
            columns[f"{key}_as_tensor"] = numpy_helper.from_array(np.array(given_numbers, dtype))
        else:
            columns[key] = given_numbers
    if tracks:
        columns["nodes_missing_value_tracks_true"] = rng.integers(0, 2, len(flat)).tolist()
    if kind == "target":
        node = helper.make_node(
            "TreeEnsembleRegressor", ["X"], ["Y"], domain="ai.onnx.ml", n_targets=k,
            **columns, **attributes,
        )  # fmt: skip
        return graph_of([node], n_features, [("Y", TensorProto.FLOAT)], dtype)
    is_text = isinstance(labels[0], str)
    columns["classlabels_strings" if is_text else "classlabels_int64s"] = list(labels)
    node = helper.make_node(
        "TreeEnsembleClassifier", ["X"], ["L", "Z"], domain="ai.onnx.ml", **columns, **attributes
    )
    label_type = TensorProto.STRING if is_text else TensorProto.INT64
    return graph_of([node], n_features, [("L", label_type), ("Z", TensorProto.FLOAT)], dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tracks", [False, True])
@pytest.mark.parametrize("mode", [*MODES, "all"])
def test_every_branch_mode_sends_every_value_where_onnx_runtime_does(mode, tracks, dtype):
    modes = MODES if mode == "all" else (mode,)
    values = None
    if "EQ" in mode or mode == "all":
        values = np.array([0, 1, 2, 3, 40, 100, 0.5, -3, 1e-3, 2.5], dtype)
    rng = np.random.default_rng(MODES.index(mode) if mode in MODES else 9)
    model = ensemble(rng, modes=modes, dtype=dtype, tracks=tracks, values=values)
    machine = read_onnx(model)
    assert machine.columns.dtype == dtype
    assert_same(model, probes(machine))


@pytest.mark.parametrize("mode", MODES[:4])
@pytest.mark.parametrize("tracks", [False, True])
def test_infinite_thresholds_and_both_zeros(mode, tracks):
    values = np.array([np.inf, -np.inf, 0.0, -0.0, 3.4e38, 1e-45], np.float32)
    model = ensemble(np.random.default_rng(3), modes=(mode,), tracks=tracks, values=values)
    assert_same(model, probes(read_onnx(model)))


@pytest.mark.parametrize("n_trees", [1, 2, 79, 200])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_rows", [1, 2, 49, 51, 300])
def test_sums_take_trees_in_order_for_any_number_of_trees_and_rows(n_trees, k, dtype, n_rows):
    rng = np.random.default_rng(n_trees + k)
    model = ensemble(rng, n_trees=n_trees, k=k, dtype=dtype, base_values=[0.3, 0.7, -0.1][:k])
    assert_same(model, rng.normal(size=(n_rows, 3)) * 10)


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("with_base", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_aggregates_add_the_base_last(aggregate, k, with_base, dtype):
    base = {"base_values": [0.3, -7.0][:k]} if with_base else {}
    rng = np.random.default_rng(k)
    model = ensemble(rng, k=k, dtype=dtype, aggregate_function=aggregate, **base)
    assert_same(model, probes(read_onnx(model)))


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_regressors_are_transformed_as_onnx_runtime_does(transform, k, dtype):
    model = ensemble(np.random.default_rng(1), k=k, dtype=dtype, post_transform=transform)
    assert_same(model, probes(read_onnx(model)))


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("low", [0.0, -1.0])
@pytest.mark.parametrize("ids", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("base", [(), (0.25,)])
@pytest.mark.parametrize("labels", [(0, 1), ("no", "yes"), (7, 4)])
def test_two_classes_follow_onnx_runtimes_rules_or_are_refused(transform, low, ids, base, labels):
    model = ensemble(
        np.random.default_rng(5), kind="class", labels=labels, ids=ids, low=low, n_trees=3,
        post_transform=transform, **({"base_values": list(base)} if base else {}),
    )  # fmt: skip
    if (base and ids != (0,)) or (ids == (0,) and transform == "PROBIT"):
        with pytest.raises(dm.UnsupportedModelError, match="leaves some of them out"):
            read_onnx(model)
        return
    assert_same(model, probes(read_onnx(model)))


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("low", [0.0, -1.0])
@pytest.mark.parametrize("base", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_classes(transform, low, base, dtype):
    model = ensemble(
        np.random.default_rng(6), kind="class", labels=("a", "b", "c", "d"), k=4, low=low,
        dtype=dtype, post_transform=transform,
        **({"base_values": [0.1, -0.2, 0.3, 0.0]} if base else {}),
    )  # fmt: skip
    assert_same(model, probes(read_onnx(model)))


def test_a_class_that_some_leaves_leave_out_is_refused_where_it_would_matter():
    model = ensemble(np.random.default_rng(7), kind="class", labels=(0, 1, 2), ids=(0, 2))
    with pytest.raises(dm.UnsupportedModelError, match="no weight in some leaves"):
        read_onnx(model)
    positive = ensemble(np.random.default_rng(7), kind="class", labels=(0, 1, 2), ids=(0, 2), low=0)
    assert_same(positive, probes(read_onnx(positive)))


def test_boosted_classes_are_stored_narrow():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4)).astype(np.float32)
    y = np.digitize(X[:, 0] + X[:, 1], [-1, 0, 1])
    booster = xgboost.XGBClassifier(n_estimators=5, max_depth=3, n_jobs=1).fit(X, y)
    model = onnxmltools.convert_xgboost(booster, initial_types=[("X", MltoolsFloat([None, 4]))])
    machine = assert_same(model, X)
    assert machine.is_narrow
    assert machine.V.shape[1] == 1


# ---------------------------------------------------------------------- sets


def chain(values, tracks):
    """x in values, written as a chain of equalities with one true leaf."""
    n = len(values)
    node = helper.make_node(
        "TreeEnsembleRegressor", ["X"], ["Y"], domain="ai.onnx.ml", n_targets=1,
        nodes_treeids=[0] * (n + 2), nodes_nodeids=list(range(n + 2)),
        nodes_featureids=[0] * (n + 2), nodes_modes=["BRANCH_EQ"] * n + ["LEAF"] * 2,
        nodes_values=[float(v) for v in values] + [0.0, 0.0], nodes_truenodeids=[n] * n + [0, 0],
        nodes_falsenodeids=[*range(1, n), n + 1, 0, 0],
        nodes_missing_value_tracks_true=[*tracks, 0, 0],
        target_ids=[0, 0], target_nodeids=[n, n + 1], target_treeids=[0, 0],
        target_weights=[1.0, 2.0],
    )  # fmt: skip
    return graph_of([node], 1, [("Y", TensorProto.FLOAT)])


SETS = [(2,), (0, 1, 2), (33, 34), (1, 33), (0, 30), (0, 31), (2.5, 1), (-1, 1), (100, 7, 8)]


def around(values):
    steps = (-1, -0.5, 0, 0.5, 1)
    return np.array([[v + d] for v in values for d in steps] + [[v] for v in ODD])


@pytest.mark.parametrize("values", SETS)
@pytest.mark.parametrize("track", [0, 1])
def test_chains_of_equalities_are_sets(values, track):
    model = chain(values, [track] * len(values))
    machine = assert_same(model, around(values))
    is_categories = all(v >= 0 and v == int(v) for v in values)
    assert (machine.n_tests == 1) == is_categories


def test_a_chain_of_two_minds_about_missing_values_is_refused():
    with pytest.raises(dm.UnsupportedModelError, match="missing"):
        read_onnx(chain((1, 2), [0, 1]))


def ensemble_5(
    modes=(0,), splits=(0.0,), true=(0,), false=(1,), leaf=((1,), (1,)), weights=(0.3, 0.9),
    targets=(0, 0), n_targets=1, roots=(0,), dtype=np.float32, members=None, **attributes,
):  # fmt: skip
    n = len(modes)
    if members is not None:
        attributes["membership_values"] = numpy_helper.from_array(np.array(members, dtype))
    node = helper.make_node(
        "TreeEnsemble", ["X"], ["Y"], domain="ai.onnx.ml", nodes_featureids=[0] * n,
        nodes_modes=numpy_helper.from_array(np.array(modes, np.uint8)),
        nodes_splits=numpy_helper.from_array(np.array(splits, dtype)),
        nodes_truenodeids=list(true), nodes_falsenodeids=list(false),
        nodes_trueleafs=list(leaf[0]), nodes_falseleafs=list(leaf[1]),
        leaf_weights=numpy_helper.from_array(np.array(weights, dtype)),
        leaf_targetids=list(targets), n_targets=n_targets, tree_roots=list(roots), **attributes,
    )  # fmt: skip
    kind = TensorProto.DOUBLE if dtype == np.float64 else TensorProto.FLOAT
    return graph_of([node], 1, [("Y", kind)], dtype, opset=5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("mode", range(6))
@pytest.mark.parametrize("track", [0, 1])
def test_version_5_modes(mode, dtype, track):
    for split in (0.0, 2.0, 2.5, 40.0, -1.0):
        model = ensemble_5((mode,), (split,), dtype=dtype, nodes_missing_value_tracks_true=[track])
        assert_same(model, around([split]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("values", SETS)
@pytest.mark.parametrize("track", [0, 1])
def test_version_5_sets(values, track, dtype):
    model = ensemble_5(
        (6,), members=[*values, np.nan], dtype=dtype, nodes_missing_value_tracks_true=[track]
    )
    if min(values) < 0:
        with pytest.raises(dm.UnsupportedModelError, match="cuts off fractions"):
            read_onnx(model)
        return
    assert_same(model, around(values))


def test_version_5_sets_of_both_kinds_in_one_model():
    model = ensemble_5(
        (6, 6), (0.0, 0.0), (0, 1), (1, 2), ((1, 1), (0, 1)), (0.3, 0.9, 0.5), (0, 0, 0),
        members=[1, 2, np.nan, 33, 40, np.nan],
    )  # fmt: skip
    machine = assert_same(model, around([1, 2, 33, 40]))
    assert machine.columns.sets is not None


@pytest.mark.parametrize("aggregate", range(4))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_version_5_aggregates_shared_roots_and_single_leaves(aggregate, dtype):
    model = ensemble_5(roots=(0, 0, 0), aggregate_function=aggregate, dtype=dtype)
    assert_same(model, around([0]))
    alone = ensemble_5(true=(0,), false=(0,), aggregate_function=aggregate, dtype=dtype)
    assert assert_same(alone, around([0])).n_tests == 0


def test_version_5_transforms_that_runtime_and_specification_read_differently_are_refused():
    for transform in (1, 2):
        model = ensemble_5(n_targets=2, targets=(0, 1), post_transform=transform)
        with pytest.raises(dm.UnsupportedModelError, match="differently"):
            read_onnx(model)
    zero = ensemble_5(n_targets=2, targets=(0, 1), post_transform=3)
    assert_same(zero, around([0]))


# ---------------------------------------------------------------------- converters

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 5)).astype(np.float32)
Y3 = np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-0.5, 0.5])
Y2 = (Y3 > 0).astype(int)
MISSING = X.copy()
MISSING[rng.random(X.shape) < 0.2] = np.nan
ROWS = np.concatenate([X, MISSING, np.full((1, 5), np.inf), np.full((1, 5), -np.inf)])


def with_single_outputs(model):
    """Some converters declare outputs of float64 that the operator gives in float32."""
    for output in model.graph.output:
        if output.type.HasField("sequence_type"):
            kind = output.type.sequence_type.elem_type.map_type.value_type.tensor_type
        else:
            kind = output.type.tensor_type
        if kind.elem_type == TensorProto.DOUBLE:
            kind.elem_type = TensorProto.FLOAT
    return model


SKLEARN = {
    "tree of two classes": (DecisionTreeClassifier(max_depth=4), Y2),
    "tree of labels": (DecisionTreeClassifier(max_depth=4), np.array(["a", "b", "ç"])[Y3]),
    "tree regressor": (DecisionTreeRegressor(max_depth=5), Y3 * 1.7),
    "forest of two classes": (RandomForestClassifier(9, max_depth=4), Y2),
    "forest of three classes": (RandomForestClassifier(9, max_depth=4), Y3),
    "extra trees": (ExtraTreesClassifier(9, max_depth=4), Y3),
    "forest regressor": (RandomForestRegressor(9, max_depth=4), Y3 * 1.1),
    "forest of two targets": (RandomForestRegressor(9, max_depth=4), np.stack([Y3, Y2], 1) * 1.1),
    "boosting of two classes": (GradientBoostingClassifier(n_estimators=9), Y2),
    "boosting of three classes": (GradientBoostingClassifier(n_estimators=9), Y3),
    "boosting regressor": (GradientBoostingRegressor(n_estimators=9), Y3 * 1.3),
}


@pytest.mark.parametrize("name", SKLEARN)
@pytest.mark.parametrize("kind", [FloatTensorType, DoubleTensorType])
@pytest.mark.parametrize("zipmap", [True, False])
def test_skl2onnx(name, kind, zipmap):
    model, target = SKLEARN[name]
    model.set_params(random_state=0).fit(X, target)
    options = {"zipmap": zipmap} if hasattr(model, "classes_") else None
    made = skl2onnx.to_onnx(model, initial_types=[("X", kind([None, 5]))], options=options)
    machine = assert_same(with_single_outputs(made), ROWS)
    assert_same(made, probes(machine))


def test_inputs_of_one_column_each_are_a_table_with_names():
    trees = ensemble(np.random.default_rng(2), n_features=3).graph.node[0]
    join = helper.make_node("Concat", ["c", "a", "b"], ["X"], axis=1)
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None, 1]) for n in "abc"]
    outputs = [helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)]
    graph = helper.make_graph([join, trees], "g", inputs, outputs)
    versions = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    made = helper.make_model(graph, opset_imports=versions, ir_version=9)
    machine = assert_same(made, probes(read_onnx(made)))
    assert machine.columns.names == ("a", "b", "c")


@pytest.mark.parametrize("target", [Y2, Y3, None])
def test_onnxmltools_xgboost(target):
    params = {"n_estimators": 9, "max_depth": 3, "n_jobs": 1}
    if target is None:
        booster = xgboost.XGBRegressor(**params).fit(MISSING, Y3 * 1.3)
    else:
        booster = xgboost.XGBClassifier(**params).fit(MISSING, target)
    made = onnxmltools.convert_xgboost(booster, initial_types=[("X", MltoolsFloat([None, 5]))])
    machine = assert_same(made, ROWS)
    assert_same(made, probes(machine))


@pytest.mark.parametrize("objective", ["binary", "multiclass", "regression", "poisson"])
@pytest.mark.parametrize("categorical", [[], [0, 1]])
def test_onnxmltools_lightgbm(objective, categorical):
    data = X.copy()
    data[:, 0], data[:, 1] = np.arange(200) % 7, (np.arange(200) // 3) % 40
    target = (np.isin(data[:, 0], [1, 3, 5]) + np.isin(data[:, 1], [2, 3, 31, 33]) * 2) % 3
    params = {
        "n_estimators": 9, "num_leaves": 6, "verbose": -1, "n_jobs": 1, "min_data_per_group": 1,
        "cat_smooth": 1, "objective": objective,
    }  # fmt: skip
    is_class = objective in ("binary", "multiclass")
    booster = (lightgbm.LGBMClassifier if is_class else lightgbm.LGBMRegressor)(**params)
    target = (target > 0).astype(int) if objective == "binary" else target
    booster.fit(data, target, categorical_feature=categorical)
    types = [("X", MltoolsFloat([None, 5]))]
    made = onnxmltools.convert_lightgbm(booster, initial_types=types, zipmap=False)
    rows = np.concatenate([data, data + 0.5, -data, ROWS])
    machine = assert_same(made, rows, within=1.0 if objective == "poisson" else 0.0)
    assert bool(np.any(machine.columns.rule == Rule.MEMBER)) == bool(categorical)


@pytest.mark.parametrize(
    "target", [Y2, Y3, np.array(["u", "v"])[Y2], np.array([4, 7])[Y2], Y3 * 1.3]
)
def test_catboosts_own_export(target, tmp_path):
    params = {"iterations": 9, "depth": 3, "verbose": 0, "allow_writing_files": False}
    is_class = target.dtype.kind in "iU"
    model = (catboost.CatBoostClassifier if is_class else catboost.CatBoostRegressor)(**params)
    model.fit(X, target)
    model.save_model(str(tmp_path / "m.onnx"), format="onnx")
    made = onnx.load(str(tmp_path / "m.onnx"))
    machine = assert_same(made, ROWS)
    assert_same(made, probes(machine))
    loaded = dm.load(tmp_path / "m.onnx")
    assert np.array_equal(loaded.predict(X), machine.predict(X))


# ---------------------------------------------------------------------- the graph around


def after(operators, dtype=np.float32, k=3, outputs=("Z",)):
    """Random trees whose scores Y go through operators (name, inputs, output, attributes)."""
    model = ensemble(np.random.default_rng(8), k=k, dtype=dtype)
    nodes = [model.graph.node[0]]
    constants = []
    for i, (name, given_inputs, output, attributes) in enumerate(operators):
        names = []
        for j, value in enumerate(given_inputs):
            if isinstance(value, str):
                names.append(value)
            else:
                constants.append(numpy_helper.from_array(np.asarray(value), f"c{i}{j}"))
                names.append(f"c{i}{j}")
        domain = "ai.onnx.ml" if name in ("Normalizer", "ArrayFeatureExtractor", "Scaler") else ""
        nodes.append(helper.make_node(name, names, [output], domain=domain, **attributes))
    kinds = [(o, TensorProto.INT64 if o == "L" else TensorProto.FLOAT) for o in outputs]
    return graph_of(nodes, 3, kinds, dtype, initializers=constants)


F = np.float32
EXACT = {
    "add": ("Add", ["Y", F([0.1])], "Z", {}),
    "add a row": ("Add", ["Y", F([0.1, 0.2, 0.3])], "Z", {}),
    "add from the left": ("Add", [F(0.1), "Y"], "Z", {}),
    "sub": ("Sub", ["Y", F([0.1])], "Z", {}),
    "sub from": ("Sub", [F([0.1]), "Y"], "Z", {}),
    "mul": ("Mul", ["Y", F([1.7])], "Z", {}),
    "div": ("Div", ["Y", F([1.7])], "Z", {}),
    "div into": ("Div", [F([1.7]), "Y"], "Z", {}),
    "neg": ("Neg", ["Y"], "Z", {}),
    "identity": ("Identity", ["Y"], "Z", {}),
    "reshape": ("Reshape", ["Y", np.array([-1, 3])], "Z", {}),
    "normalizer": ("Normalizer", ["Y"], "Z", {"norm": "L1"}),
}


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_simple_operators_after_the_trees(name, dtype):
    model = after([EXACT[name]], dtype)
    assert_same(model, probes(read_onnx(model)))


@pytest.mark.parametrize(("name", "within"), [("Sigmoid", 0.0), ("Exp", 1.0)])
def test_functions_after_the_trees(name, within):
    model = after([("Mul", ["Y", F([9.0])], "A", {}), (name, ["A"], "Z", {})])
    assert_same(model, probes(read_onnx(model)), within)


def test_labels_chosen_by_the_largest_score():
    model = after(
        [
            ("Sigmoid", ["Y"], "Z", {}),
            ("ArgMax", ["Z"], "A", {"axis": 1}),
            ("ArrayFeatureExtractor", [np.array([10, 20, 30]), "A"], "B", {}),
            ("Reshape", ["B", np.array([-1])], "C", {}),
            ("Cast", ["C"], "L", {"to": TensorProto.INT64}),
        ],
        outputs=("L", "Z"),
    )
    machine = assert_same(model, probes(read_onnx(model)))
    assert machine.output.classes[0].tolist() == [10, 20, 30]


@pytest.mark.parametrize(
    ("operator", "name"),
    [
        (("Tanh", ["Y"], "Z", {}), "Tanh"),
        (("Softmax", ["Y"], "Z", {}), "Softmax"),
        (("Pow", ["Y", F([2.0])], "Z", {}), "Pow"),
        (("Normalizer", ["Y"], "Z", {"norm": "L2"}), "Normalizer"),
        (("Add", ["Y", "Y"], "Z", {}), "Add"),
        (("Reshape", ["Y", np.array([-1, 1])], "Z", {}), "Reshape"),
    ],
)
def test_other_operators_are_refused_by_name(operator, name):
    with pytest.raises(dm.UnsupportedModelError, match=name):
        read_onnx(after([operator]))


def test_operators_before_the_trees_are_followed_or_refused():
    model = ensemble(np.random.default_rng(2), n_features=3)
    trees = model.graph.node[0]
    trees.input[0] = "C"
    which = numpy_helper.from_array(np.array([2, 0, 1]), "which")
    cast = helper.make_node("Cast", ["X"], ["B"], to=TensorProto.FLOAT)
    select = helper.make_node("ArrayFeatureExtractor", ["B", "which"], ["C"], domain="ai.onnx.ml")
    outputs = [("Y", TensorProto.FLOAT)]
    made = graph_of([cast, select, trees], 4, outputs, np.float64, initializers=[which])
    machine = assert_same(made, probes(read_onnx(made)))
    assert machine.n_features == 4
    assert machine.columns.dtype == np.float32
    scaler = helper.make_node(
        "Scaler", ["X"], ["C"], domain="ai.onnx.ml", offset=[0.0], scale=[2.0]
    )
    with pytest.raises(dm.UnsupportedModelError, match="Scaler"):
        read_onnx(graph_of([scaler, trees], 3, outputs))


def test_float32_features_widened_to_float64_are_compared_as_float32():
    model = ensemble(np.random.default_rng(4), modes=MODES[:4], dtype=np.float64)
    trees = model.graph.node[0]
    trees.input[0] = "C"
    widen = helper.make_node("Cast", ["X"], ["C"], to=TensorProto.DOUBLE)
    made = graph_of([widen, trees], 3, [("Y", TensorProto.FLOAT)])
    machine = assert_same(made, probes(read_onnx(made)))
    assert machine.columns.dtype == np.float32


def test_versions_that_are_not_known_are_refused():
    model = ensemble(np.random.default_rng(1))
    model.opset_import[1].version = 6
    with pytest.raises(dm.UnsupportedModelError, match="version 6"):
        read_onnx(model)
    del model.opset_import[1]
    with pytest.raises(dm.ModelFormatError, match="no version"):
        read_onnx(model)


def test_two_tree_operators_are_refused():
    first = ensemble(np.random.default_rng(1)).graph.node[0]
    second = ensemble(np.random.default_rng(2)).graph.node[0]
    second.output[0] = "Q"
    outputs = [("Y", TensorProto.FLOAT), ("Q", TensorProto.FLOAT)]
    with pytest.raises(dm.UnsupportedModelError, match="2 tree operators"):
        read_onnx(graph_of([first, second], 3, outputs))


def test_onnx_has_a_place_for_every_step():
    parts = (steps.TRANSFORMS, steps.PAIRS, steps.CASTS, steps.ARITHMETIC, steps.FUNCTIONS)
    named = [name for part in parts for name in part] + [steps.NORMALIZE]
    # Treelite's steps, by the C library's functions, are in no ONNX graph.
    assert sorted(named) == sorted(STEPS.keys() - {"libm_exp", "libm_log1p"})
    assert {name for name, kind in STEPS.items() if kind.takes_constants} == set(steps.ARITHMETIC)
    assert {name for name, kind in STEPS.items() if kind.columns == 2} == set(steps.PAIRS)


# ---------------------------------------------------------------------- broken files


class Files(dict):
    def __repr__(self):
        return f"Files({', '.join(self)})"


@pytest.fixture(scope="module")
def files():
    r = np.random.default_rng(0)
    models = {
        "regressor": ensemble(r, n_trees=2, depth=2, modes=MODES),
        "double": ensemble(r, n_trees=2, depth=2, dtype=np.float64, k=2),
        "two classes": ensemble(r, n_trees=2, depth=2, kind="class", labels=(0, 1), ids=(0,)),
        "classes": ensemble(r, n_trees=2, depth=2, kind="class", labels=("a", "b", "c"), k=3),
        "version 5": ensemble_5((6,), members=[1, 2, 33, np.nan]),
        "operators": after([EXACT["add a row"]]),
    }
    return Files({name: model.SerializeToString() for name, model in models.items()})


def try_to_read(data):
    try:
        machine = read_onnx_bytes(data, "a broken file")
    except (dm.ModelFormatError, dm.UnsupportedModelError):
        return
    assert np.all(np.isfinite(machine.V))
    if machine.n_features < 100:
        machine.predict(np.zeros((2, machine.n_features)))


def test_files_are_told_by_their_content(files):
    assert all(looks_like_onnx(data) for data in files.values())
    assert all(looks_like_onnx(data[: len(data) * 3 // 4]) for data in files.values())
    for other in (b"", b"{}", b"tree\nversion=v4\n", b"CBM1\x00\x00", b'{"a": 1}', b"\x80\x04\x95"):
        assert not looks_like_onnx(other)


BROKEN = settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.7, 0.95])
def test_truncated_files_are_refused(files, share):
    for data in files.values():
        with pytest.raises((dm.ModelFormatError, dm.UnsupportedModelError)):
            read_onnx_bytes(data[: int(len(data) * share)], "cut")


@BROKEN
@given(st.data())
def test_flipped_bytes_never_crash(files, data):
    content = bytearray(files[data.draw(st.sampled_from(sorted(files)))])
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try_to_read(bytes(content))


@BROKEN
@given(st.data())
def test_edited_attributes_never_crash(files, data):
    model = onnx.ModelProto.FromString(files[data.draw(st.sampled_from(sorted(files)))])
    node = next(n for n in model.graph.node if n.op_type.startswith("Tree"))
    attribute = data.draw(st.sampled_from(list(node.attribute)))
    if data.draw(st.booleans()):
        node.attribute.remove(attribute)
    elif len(attribute.ints):
        at = data.draw(st.integers(0, len(attribute.ints) - 1))
        odd = st.sampled_from([-1, 0, 1, 2, 5, 10**6, 2**31, 2**63 - 1, -(2**63)])
        attribute.ints[at] = data.draw(odd)
    elif len(attribute.floats):
        at = data.draw(st.integers(0, len(attribute.floats) - 1))
        attribute.floats[at] = data.draw(st.sampled_from([np.nan, np.inf, -np.inf, 0.0, 3e38]))
    elif len(attribute.strings):
        at = data.draw(st.integers(0, len(attribute.strings) - 1))
        attribute.strings[at] = data.draw(st.sampled_from([b"LEAF", b"BRANCH_EQ", b"", b"\xff"]))
    elif attribute.type == onnx.AttributeProto.INT:
        attribute.i = data.draw(st.sampled_from([-1, 0, 1, 3, 10**9, 2**63 - 1]))
    else:
        attribute.t.dims[:] = data.draw(st.sampled_from([[], [0], [1], [2**40], [2, 2], [-1]]))
    try_to_read(model.SerializeToString())


def test_nodes_in_a_circle_are_refused():
    for targets in ([1, 0], [1, 1]):
        node = helper.make_node(
            "TreeEnsembleRegressor", ["X"], ["Y"], domain="ai.onnx.ml", n_targets=1,
            nodes_treeids=[0, 0], nodes_nodeids=[0, 1], nodes_featureids=[0, 0],
            nodes_modes=["BRANCH_LEQ"] * 2, nodes_values=[0.0, 1.0], nodes_truenodeids=targets,
            nodes_falsenodeids=[1, 0],
        )  # fmt: skip
        with pytest.raises((dm.UnsupportedModelError, dm.ModelFormatError)):
            read_onnx(graph_of([node], 1, [("Y", TensorProto.FLOAT)]))


def test_a_tensor_in_another_file_is_not_opened(tmp_path):
    model = after([EXACT["add"]])
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", str(tmp_path / "elsewhere")
    with pytest.raises(dm.UnsupportedModelError, match="another file"):
        read_onnx(model)


def test_other_objects_are_refused():
    with pytest.raises(dm.UnsupportedModelError, match="ModelProto"):
        read_onnx(helper.make_node("Add", ["a", "b"], ["c"]))


def test_all_combinations_of_modes_and_missing_values_agree_on_deep_trees():
    for seed, tracks in itertools.product(range(4), (False, True)):
        r = np.random.default_rng(seed)
        values = np.array([0, 1, 2, 35, 1.5, -2, 7.25], np.float32)
        model = ensemble(r, modes=MODES, depth=6, n_features=2, tracks=tracks, values=values)
        assert_same(model, probes(read_onnx(model)))


def test_two_weights_for_one_output_of_a_leaf_are_refused():
    model = ensemble(np.random.default_rng(1), k=2, ids=(0, 1, 1))
    with pytest.raises(dm.UnsupportedModelError, match="two weights"):
        read_onnx(model)
    with pytest.raises(dm.ModelFormatError, match="2 weights"):
        read_onnx(ensemble(np.random.default_rng(1), ids=(0, 0)))
