"""ONNX: ONNX Runtime answers as the machine does, or a warning says why not."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest
from library_models import models, onnx_models
from strategies import make_machine, probe_rows

import decision_machines as dm


def run(model, X):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    given = session.get_inputs()[0]
    with np.errstate(over="ignore"):
        X = X.astype(np.float64 if "double" in given.type else np.float32)
    return session.run(None, {given.name: X})


def written(machine, operator):
    """The model and the causes that it is warned of; None where it is refused.

    Labels in a graph have tests of their own: test_write_labels.
    """
    if machine.columns.categories or machine.columns.table_categories:
        return None, ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = machine.to_onnx(operator=operator)
        except dm.UnsupportedModelError:
            return None, ""
    return model, " ".join(str(w.message) for w in caught if w.category is dm.InexactWarning)


@pytest.mark.parametrize("operator", ["v3", "v5"])
@pytest.mark.parametrize("library", ["sklearn", "xgboost", "lightgbm", "catboost"])
def test_what_is_not_warned_of_is_equal_to_the_bit(library, operator):
    exact = 0
    for name, source in models(library).items():
        machine = dm.convert(source)
        model, causes = written(machine, operator)
        if model is None:
            continue
        onnx.checker.check_model(model, full_check=True)
        X = probe_rows(machine, 60)
        found = run(model, X)
        ours = [machine.response(X)]
        if len(found) == 2:
            ours = [machine.predict(X), machine.predict_proba(X)]
        scores = np.asarray(found[-1]).reshape(ours[-1].shape)
        if causes:
            np.testing.assert_allclose(scores, ours[-1], rtol=2e-6, atol=2e-7, err_msg=name)
        else:
            exact += 1
            assert scores.dtype == ours[-1].dtype
            assert np.array_equal(scores, ours[-1])
        if len(found) == 2:
            assert np.array_equal(found[0], np.asarray(ours[0]).reshape(found[0].shape))
        back = dm.convert(model)
        if back.output.classes is None:
            back_scores = back.predict(X).reshape(scores.shape)
        else:
            back_scores = back.predict_proba(X).reshape(scores.shape)
            assert np.array_equal(back.predict(X).reshape(-1), found[0].reshape(-1))
        within = 2e-7 if "exp" in causes and "expit" not in causes else 0
        np.testing.assert_allclose(back_scores, scores, rtol=within, atol=0)
    # Version 3 answers in float32, as XGBoost alone does.
    assert exact >= (1 if library == "xgboost" or operator == "v5" else 0)


@pytest.mark.parametrize("name", ["RandomForestClassifier", "RandomForestRegressor"])
def test_onnx_models_come_back_as_the_same_machine(name):
    machine = dm.convert(onnx_models()[name])
    model, causes = written(machine, "v3")
    assert not causes
    assert dm.convert(model).equals(machine)
    assert dm.certify(machine, model)


def test_the_versions_are_stated():
    for operator, plain, trees in (("v3", 17, 3), ("v5", 21, 5)):
        model, _ = written(dm.figure_one(), operator)
        versions = {entry.domain: entry.version for entry in model.opset_import}
        assert versions == {"": plain, "ai.onnx.ml": trees}
        names = {node.op_type for node in model.graph.node}
        assert ("TreeEnsemble" if operator == "v5" else "TreeEnsembleRegressor") in names


def test_float64_sums_in_version_3_are_warned_of_by_name():
    with pytest.warns(dm.InexactWarning, match="sums of float64 are rounded to float32"):
        dm.convert(models("sklearn")["RandomForestRegressor"]).to_onnx()


def test_links_are_warned_of_by_name():
    with pytest.warns(dm.InexactWarning, match="'xgboost_softmax' is ONNX Runtime's"):
        dm.convert(models("xgboost")["XGBClassifier, 3"]).to_onnx()


def test_an_operator_that_does_not_exist_is_refused():
    with pytest.raises(dm.InputError, match="'v3' or 'v5'"):
        dm.figure_one().to_onnx(operator="v4")


def test_a_classifier_without_a_negative_weight_decides_at_a_margin_of_0():
    """ONNX Runtime would take such weights for probabilities and decide at 0.5."""
    machine = make_machine(
        [4, 4], np.random.default_rng(0), rules=False, dtype=np.float32, output_dtype=np.float32
    )
    V = np.abs(machine.V) * 0.05
    output = dm.Output(
        np.float32([0.0]), np.float32, link="expit", decision="margin_above",
        decision_params=(0.0,), classes=(np.array([3, 8]),),
    )  # fmt: skip
    machine = replace(machine, V=V.astype(np.float32), output=output)
    model, _ = written(machine, "v3")
    X = probe_rows(machine, 60)
    assert np.array_equal(run(model, X)[0], machine.predict(X))
    assert np.array_equal(dm.convert(model).predict(X), machine.predict(X))


def test_no_root_of_version_5_has_one_number_on_both_sides():
    """ONNX Runtime takes such a root for a tree of one leaf."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        machine = make_machine([3] * 12, rng, rules=False, plain_output=True)
        model, _ = written(machine, "v5")
        (node,) = (n for n in model.graph.node if n.op_type == "TreeEnsemble")
        found = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        for root in found["tree_roots"]:
            assert found["nodes_truenodeids"][root] != found["nodes_falsenodeids"][root]
        X = probe_rows(machine, 20)
        assert np.array_equal(run(model, X)[0].reshape(len(X), -1), machine.margin(X))


def test_labels_of_text_bool_and_float_come_out_as_they_are():
    for labels in (np.array(["x", "y", "zß"]), np.array([1.5, 2.5, 9.0]), np.array([7, 5, 6])):
        machine = make_machine([4, 4], np.random.default_rng(1), n_outputs=3, rules=False)
        output = replace(machine.output, decision="argmax", classes=(labels,))
        machine = replace(machine, output=output)
        model, causes = written(machine, "v5")
        assert not causes
        X = probe_rows(machine, 30)
        found, scores = run(model, X)
        assert found.tolist() == machine.predict(X).tolist()
        assert np.array_equal(scores, machine.predict_proba(X))
        assert dm.convert(model).predict(X).tolist() == machine.predict(X).tolist()
