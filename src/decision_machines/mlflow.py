"""An MLflow flavor: machines saved, logged, loaded and served as MLflow's own models are.

The flavor is named `decision_machines`; its files are `model.dm` and MLflow's own. MLflow's generic
interface (`mlflow.pyfunc`) is told the features by name and type, so that it checks what it is
given. Needs the extra `mlflow`; the small distribution, mlflow-skinny, is enough.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import InputError, MissingLibraryError, ModelFormatError
from .libraries import convert, load
from .machine import DecisionMachine, single
from .machine.label_words import labels_of

if TYPE_CHECKING:
    from collections.abc import Sequence

try:
    import mlflow
    from mlflow.models import Model, ModelSignature
    from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema, TensorSpec
except ImportError:
    raise MissingLibraryError(
        "using the MLflow flavor",
        "mlflow is not installed",
        "pip install 'decision-machines[mlflow]'",
    ) from None

FLAVOR_NAME = "decision_machines"
DATA = "model.dm"
OUTPUTS = ("predict", "predict_proba", "margin", "apply", "shap_values")
DOING = "saving a model for MLflow"


def save_model(
    model: Any,
    path: str | Path,
    *,
    signature: ModelSignature | None = None,
    input_example: Any = None,
    output: str = "predict",
    pip_requirements: Sequence[str] | None = None,
    metadata: dict[str, Any] | None = None,
    mlflow_model: Model | None = None,
) -> None:
    """Save a machine, or a fitted model that is converted first, into a new folder.

    Parameters
    ----------
    signature
        By default the machine's own: a column for each feature, `double` or, where it is given as
        labels, `string`; rows of numbers where the model knows no names.
    output
        What `predict` of the generic interface answers: "predict", "predict_proba", "margin",
        "apply" or "shap_values". Callers choose another by `params={"output": "margin"}`.
    pip_requirements
        What a server installs; by default this release.

    Examples
    --------
    >>> import decision_machines as dm, decision_machines.mlflow
    >>> dm.mlflow.save_model(dm.figure_one(), "tree")  # doctest: +SKIP
    >>> dm.mlflow.load_model("tree").equals(dm.figure_one())  # doctest: +SKIP
    True
    """
    from mlflow.models.utils import _save_example
    from mlflow.utils.environment import _PythonEnv

    from . import __version__

    _check_output(output)
    machine = _machine(model)
    folder = Path(path)
    if folder.exists() and any(folder.iterdir()):
        raise InputError(DOING, f"{folder} is not empty", "name a folder that is new")
    folder.mkdir(parents=True, exist_ok=True)
    machine.save(folder / DATA)
    described = Model() if mlflow_model is None else mlflow_model
    described.signature = signature or signature_of(machine, output)
    if input_example is not None:
        _save_example(described, input_example, str(folder))
    if metadata is not None:
        described.metadata = metadata
    described.add_flavor(
        FLAVOR_NAME, decision_machines_version=__version__, data=DATA, output=output
    )
    mlflow.pyfunc.add_to_model(
        described,
        loader_module="decision_machines.mlflow",
        data=DATA,
        python_env="python_env.yaml",
        model_config={"output": output},
    )
    needed = list(pip_requirements or [f"decision-machines[data]=={__version__}"])
    (folder / "requirements.txt").write_text("".join(f"{one}\n" for one in needed))
    _PythonEnv.current().to_yaml(str(folder / "python_env.yaml"))
    described.save(str(folder / "MLmodel"))


def log_model(model: Any, name: str | None = None, **options: Any) -> Any:
    """Log a machine, or a fitted model that is converted first, with the active run.

    Parameters
    ----------
    options
        Those of `save_model`, and of MLflow's `Model.log`: `registered_model_name`, `params`,
        `tags`, ...

    Returns
    -------
    mlflow.models.model.ModelInfo
    """
    machine = _machine(model)
    return Model.log(
        artifact_path=None, name=name, flavor=sys.modules[__name__], model=machine, **options
    )


def load_model(model_uri: str, dst_path: str | None = None) -> DecisionMachine:
    """The machine of a folder, a run (`runs:/…`) or a registered model (`models:/…`)."""
    from mlflow.tracking.artifact_utils import _download_artifact_from_uri
    from mlflow.utils.model_utils import _get_flavor_configuration

    folder = _download_artifact_from_uri(model_uri, output_path=dst_path)
    found = _get_flavor_configuration(folder, FLAVOR_NAME)
    return _read(Path(folder) / found["data"])


def signature_of(machine: DecisionMachine, output: str = "predict") -> ModelSignature:
    """What the machine takes and gives, in MLflow's words.

    Examples
    --------
    >>> import decision_machines as dm
    >>> signature_of(dm.figure_one()).inputs.input_names()
    ['x[1]', 'x[2]', 'x[3]', 'x[4]']
    """
    columns = machine.columns
    if columns.names is None:
        inputs = Schema([TensorSpec(np.dtype(np.float64), (-1, machine.n_features))])
    else:
        inputs = Schema(
            [ColSpec(_type(machine, feature), name) for feature, name in enumerate(columns.names)]
        )
    labels = None if machine.output.classes is None else machine.output.classes[0]
    kind: np.dtype[Any] = np.dtype(np.float64)
    shape = (-1,) if output == "predict" else (-1, -1)
    if output == "predict" and labels is not None:
        kind = labels.dtype if labels.dtype.kind in "biuf" else np.dtype(str)
    elif output == "apply":
        kind = np.dtype(np.int32)
    return ModelSignature(
        inputs=inputs,
        outputs=Schema([TensorSpec(kind, shape)]),
        params=ParamSchema([ParamSpec("output", DataType.string, output)]),
    )


def _type(machine: DecisionMachine, feature: int) -> DataType:
    """`string` for labels, `double` for numbers."""
    known = labels_of(machine.columns, feature)
    is_text = known is not None and any(isinstance(label, str) for label in known)
    return DataType.string if is_text else DataType.double


def _machine(model: Any) -> DecisionMachine:
    return model if isinstance(model, DecisionMachine) else single(convert(model), DOING)


def _read(path: Path) -> DecisionMachine:
    if not path.is_file():
        raise ModelFormatError(
            "loading a model from MLflow", f"{path} is not there", "save or log the model again"
        )
    return single(load(path), "loading a model from MLflow")


def _check_output(output: Any) -> None:
    if output not in OUTPUTS:
        raise InputError(
            "choosing what to answer", f"output={output!r:.60}", f"use one of {', '.join(OUTPUTS)}"
        )


class _Answers:
    """What MLflow's generic interface calls."""

    def __init__(self, machine: DecisionMachine, output: str) -> None:
        self.machine, self.output = machine, output

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        output = (params or {}).get("output", self.output)
        _check_output(output)
        return getattr(self.machine, output)(model_input)


def _load_pyfunc(path: str, model_config: dict[str, Any] | None = None) -> _Answers:
    """Called by MLflow with the path of the data."""
    return _Answers(_read(Path(path)), (model_config or {}).get("output", "predict"))
