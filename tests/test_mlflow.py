"""The MLflow flavor: what comes back is the machine, and MLflow's own interface answers as it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeRegressor

import decision_machines as dm

mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def frame():
    X = np.random.default_rng(0).standard_normal((200, 3))
    return pd.DataFrame(X, columns=["a", "b c", "d"])


@pytest.fixture(scope="module")
def machine(frame):
    y = np.where(frame["a"] > 0, "yes", "no")
    return dm.convert(RandomForestClassifier(5, random_state=0).fit(frame, y))


def flavor():
    import decision_machines.mlflow as found

    return found


def test_a_saved_model_comes_back_and_answers_by_the_generic_interface(machine, frame, tmp_path):
    flavor().save_model(machine, tmp_path / "m", input_example=frame[:2])
    assert flavor().load_model(str(tmp_path / "m")).equals(machine)
    generic = mlflow.pyfunc.load_model(str(tmp_path / "m"))
    assert np.array_equal(generic.predict(frame), machine.predict(frame))
    for output in ("predict_proba", "margin", "apply", "shap_values"):
        found = generic.predict(frame, params={"output": output})
        assert np.array_equal(found, getattr(machine, output)(frame))
    assert [(c.name, c.type.name) for c in generic.metadata.signature.inputs] == [
        *(("a", "double"), ("b c", "double"), ("d", "double"))
    ]
    assert f"decision-machines[data]=={dm.__version__}" in (
        (tmp_path / "m" / "requirements.txt").read_text()
    )
    gaps = frame[:3].assign(a=[np.nan, 1.0, 2.0])
    assert np.array_equal(generic.predict(gaps), machine.predict(gaps))
    assert np.array_equal(generic.predict(frame[["d", "a", "b c"]]), machine.predict(frame))
    with pytest.raises(mlflow.exceptions.MlflowException):
        generic.predict(frame.assign(a="text"))


def test_a_model_object_is_converted_and_a_table_of_labels_goes_through(tmp_path, frame):
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    color = pd.Categorical(np.where(frame["a"] > 0, "red", "blue"))
    rows = pd.DataFrame({"x": frame["d"], "color": color})
    model = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1).fit(rows, frame["a"])
    flavor().save_model(model, tmp_path / "m", output="margin")
    generic = mlflow.pyfunc.load_model(str(tmp_path / "m"))
    kinds = {c.name: c.type.name for c in generic.metadata.signature.inputs}
    assert kinds == {"x": "double", "color": "string"}
    given = rows.assign(color=rows["color"].astype(object))
    given.loc[0, "color"] = None
    given.loc[1, "color"] = "unseen"
    wanted = dm.convert(model).margin(given)
    assert np.array_equal(generic.predict(given), wanted)
    assert np.array_equal(generic.predict(given[:1]), wanted[:1])


def test_a_machine_without_names_takes_arrays(tmp_path):
    X = np.random.default_rng(1).standard_normal((50, 4))
    tree = DecisionTreeRegressor(max_depth=4).fit(X, X[:, 0])
    flavor().save_model(tree, tmp_path / "m")
    generic = mlflow.pyfunc.load_model(str(tmp_path / "m"))
    assert np.array_equal(generic.predict(X), tree.predict(X))
    with pytest.raises(mlflow.exceptions.MlflowException):
        generic.predict(np.zeros((1, 3)))


def test_a_model_is_logged_with_a_run_and_found_again(machine, frame, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    try:
        with mlflow.start_run():
            info = flavor().log_model(machine, "forest", metadata={"team": "risk"})
        assert flavor().load_model(info.model_uri).equals(machine)
        generic = mlflow.pyfunc.load_model(info.model_uri)
        assert np.array_equal(generic.predict(frame), machine.predict(frame))
        assert generic.metadata.metadata["team"] == "risk"
    finally:
        mlflow.set_tracking_uri(None)


def test_wrong_calls_say_what_to_do(machine, tmp_path):
    with pytest.raises(dm.InputError, match="use one of predict"):
        flavor().save_model(machine, tmp_path / "m", output="leaves")
    assert not (tmp_path / "m").exists()
    flavor().save_model(machine, tmp_path / "m")
    with pytest.raises(dm.InputError, match="is not empty"):
        flavor().save_model(machine, tmp_path / "m")
    (tmp_path / "m" / "model.dm").write_bytes(b"rubbish")
    with pytest.raises(dm.ModelFormatError):
        flavor().load_model(str(tmp_path / "m"))
    (tmp_path / "m" / "model.dm").unlink()
    with pytest.raises(dm.ModelFormatError, match="log the model again"):
        flavor().load_model(str(tmp_path / "m"))
