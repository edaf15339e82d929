"""Machines behind HTTP: the Open Inference Protocol (v2) in JSON, on FastAPI.

    python examples/serve/app.py model.txt other.onnx --port 8000

serves each model under its file's name without the ending. A request's input is one tensor of
rows × features, or a tensor for each feature, by name; `null` is a missing value.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

import decision_machines as dm

VERSION = "1"
DATATYPES = {
    "BOOL": np.bool_,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "FP32": np.float32,
    "FP64": np.float64,
    "BYTES": object,
}
NAMES = {np.dtype(kind): name for name, kind in DATATYPES.items() if name != "BYTES"}
ASK = {
    "predict": lambda machine, X: machine.predict(X),
    "predict_proba": lambda machine, X: machine.predict_proba(X),
    "margin": lambda machine, X: machine.margin(X),
    "leaves": lambda machine, X: machine.apply(X),
}
ROW_METHODS = {"leaves": "apply"}
"""The methods of outputs that have another name."""
ROWS_AT_ONCE = 1000
"""More rows than this are scored in a thread, for other requests not to wait."""


class Refused(Exception):
    """A request that cannot be answered, with the status that says why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def create_app(machines: dict[str, dm.DecisionMachine]) -> FastAPI:
    """An ASGI app that serves machines by their names."""
    app = FastAPI(title="Decision Machines", docs_url="/docs")
    functions = {name: row_functions(machine) for name, machine in machines.items()}

    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> JSONResponse:
        return JSONResponse({"error": str(error)}, error.status)

    @app.exception_handler(dm.DecisionMachinesError)
    async def wrong_input(request: Request, error: dm.DecisionMachinesError) -> JSONResponse:
        return JSONResponse({"error": str(error)}, 400)

    def find(name: str, version: str | None = None) -> dm.DecisionMachine:
        if name not in machines or version not in (None, VERSION):
            raise Refused(404, f"no model {name!r}" + (f" of version {version}" if version else ""))
        return machines[name]

    @app.get("/v2")
    async def server() -> dict[str, Any]:
        return {"name": "decision-machines", "version": dm.__version__, "extensions": []}

    @app.get("/v2/health/live")
    async def live() -> dict[str, bool]:
        return {"live": True}

    @app.get("/v2/health/ready")
    async def ready() -> dict[str, bool]:
        return {"ready": True}

    @app.get("/v2/models/{name}/ready")
    @app.get("/v2/models/{name}/versions/{version}/ready")
    async def model_ready(name: str, version: str | None = None) -> dict[str, Any]:
        find(name, version)
        return {"name": name, "ready": True}

    @app.get("/v2/models/{name}")
    @app.get("/v2/models/{name}/versions/{version}")
    async def model(name: str, version: str | None = None) -> dict[str, Any]:
        return metadata(name, find(name, version))

    @app.post("/v2/models/{name}/infer")
    @app.post("/v2/models/{name}/versions/{version}/infer")
    async def infer(name: str, request: Request, version: str | None = None) -> JSONResponse:
        machine = find(name, version)
        try:
            asked = json.loads(await request.body())
        except ValueError as error:
            raise Refused(400, f"the body is no JSON: {error}") from None
        X = read_inputs(asked, machine)
        wanted = outputs_of(asked, machine)
        if isinstance(X, dict):
            answers = tensors_of({one: functions[name][one](X) for one in wanted}, is_row=True)
        elif len(X) > ROWS_AT_ONCE:
            answers = await asyncio.to_thread(answer, machine, X, wanted)
        else:
            answers = answer(machine, X, wanted)
        found = {"model_name": name, "model_version": VERSION, "outputs": answers}
        if "id" in asked:
            found["id"] = asked["id"]
        return JSONResponse(found)

    return app


def row_functions(machine: dm.DecisionMachine) -> dict[str, Any]:
    """What answers one row, by output: most requests have one."""
    return {
        output: machine.row_function(ROW_METHODS.get(output, output))
        for output in possible_outputs(machine)
    }


def metadata(name: str, machine: dm.DecisionMachine) -> dict[str, Any]:
    """What the protocol tells of a model: its inputs and outputs."""
    datatype = NAMES[machine.columns.dtype]
    shape = [-1, machine.n_features]
    outputs = [
        {"name": output, "datatype": "FP64" if output != "leaves" else "INT32", "shape": [-1, -1]}
        for output in possible_outputs(machine)
    ]
    labels = None if machine.output.classes is None else machine.output.classes[0]
    if labels is not None:
        outputs[0]["datatype"] = NAMES.get(labels.dtype, "BYTES")
    outputs[0]["shape"] = [-1]
    return {
        "name": name,
        "versions": [VERSION],
        "platform": "decision-machines",
        "inputs": [{"name": "X", "datatype": datatype, "shape": shape}],
        "outputs": outputs,
        "parameters": {
            "features": None if machine.columns.names is None else list(machine.columns.names),
            "classes": None if labels is None else labels.tolist(),
        },
    }


def possible_outputs(machine: dm.DecisionMachine) -> list[str]:
    return [name for name in ASK if name != "predict_proba" or machine.output.classes is not None]


def outputs_of(asked: dict[str, Any], machine: dm.DecisionMachine) -> list[str]:
    wanted = [output.get("name") for output in asked.get("outputs") or [{"name": "predict"}]]
    unknown = [name for name in wanted if name not in possible_outputs(machine)]
    if unknown:
        known = ", ".join(possible_outputs(machine))
        raise Refused(400, f"no output {unknown[0]!r}; the model has {known}")
    return wanted


def read_inputs(asked: Any, machine: dm.DecisionMachine) -> Any:
    """The rows of a request: an array, or where each feature has its own tensor a table; of one
    row, a dictionary."""
    inputs = asked.get("inputs") if isinstance(asked, dict) else None
    if not isinstance(inputs, list) or not inputs:
        raise Refused(400, "the body has no list of inputs")
    tensors = [tensor(given) for given in inputs]
    if len(tensors) == 1 and tensors[0][1].ndim == 2 and machine.n_features != 1:
        return tensors[0][1]
    columns = {}
    for name, values in tensors:
        if values.ndim > 2 or (values.ndim == 2 and values.shape[1] != 1):
            raise Refused(400, f"input {name!r} has the shape {values.shape}; one column is needed")
        columns[name] = values.reshape(-1)
    if len({len(values) for values in columns.values()}) != 1:
        raise Refused(400, "the inputs have different numbers of rows")
    if all(len(values) == 1 for values in columns.values()):
        return {name: values[0] for name, values in columns.items()}
    import pyarrow

    return pyarrow.table(columns)


def tensor(given: Any) -> tuple[str, np.ndarray]:
    """One tensor of a request, checked against what it says of itself."""
    try:
        name, shape, datatype = given["name"], tuple(given["shape"]), given["datatype"]
        data = given["data"]
    except (TypeError, KeyError) as error:
        raise Refused(400, f"an input lacks {error}") from None
    if datatype not in DATATYPES:
        raise Refused(
            400, f"input {name!r} has the datatype {datatype!r}, not one of {[*DATATYPES]}"
        )
    try:
        return name, _typed(np.array(data, object), DATATYPES[datatype]).reshape(shape)
    except (ValueError, TypeError, OverflowError) as error:
        raise Refused(400, f"input {name!r} does not hold {datatype} of {shape}: {error}") from None


def _typed(data: np.ndarray, kind: Any) -> np.ndarray:
    """The entries as numbers of a kind. Integers have no missing value: with one, they are objects.

    Raises
    ------
    ValueError
        Where an entry is none of this kind, such as 1.5 for an integer.
    """
    if kind is object:
        return data
    is_null = np.equal(data, None).astype(bool)
    if np.dtype(kind).kind == "f":
        return np.where(is_null, np.nan, data).astype(kind)
    values = np.array(data[~is_null].tolist(), kind)
    if values.tolist() != data[~is_null].tolist():
        raise ValueError(f"an entry is no {np.dtype(kind)}")
    if not is_null.any():
        return values.reshape(data.shape)
    found = np.full(data.shape, None, object)
    found[~is_null] = values.tolist()
    return found


def answer(machine: dm.DecisionMachine, X: Any, wanted: list[str]) -> list[dict[str, Any]]:
    """The output tensors of a response."""
    return tensors_of({name: ASK[name](machine, X) for name in wanted})


def tensors_of(answers: dict[str, Any], *, is_row: bool = False) -> list[dict[str, Any]]:
    """Answers by name as tensors; those of one row lack the axis of rows."""
    found = []
    for name, values in answers.items():
        tensors = values if isinstance(values, list) else [values]
        for target, part in enumerate(tensors):
            part = np.asarray(part)[None] if is_row else np.asarray(part)
            shown = f"{name}_{target}" if isinstance(values, list) else name
            found.append(
                {
                    "name": shown,
                    "shape": list(part.shape),
                    "datatype": NAMES.get(part.dtype, "BYTES"),
                    "data": _plain(part),
                }
            )
    return found


def _plain(values: np.ndarray) -> list:
    flat = values.reshape(-1)
    if flat.dtype.kind == "f" and not np.all(np.isfinite(flat)):
        return [value if np.isfinite(value) else None for value in flat.tolist()]
    return flat.tolist()


def main() -> None:
    import uvicorn

    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("models", nargs="+", type=Path)
    options.add_argument("--host", default="127.0.0.1")
    options.add_argument("--port", type=int, default=8000)
    options.add_argument("--trust", action="store_true", help="open pickles, which may run code")
    given = options.parse_args()
    machines = {path.stem: dm.load(path, trust=given.trust) for path in given.models}
    uvicorn.run(create_app(machines), host=given.host, port=given.port, log_level="warning")


if __name__ == "__main__":
    main()
