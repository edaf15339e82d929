"""The machines that are served, and their files, which are read again when they change."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import DecisionMachinesError, InputError
from ..libraries import load
from ..machine import Assembly, single
from ..machine.soft import RULE as SOFT
from ..machine.soft import hard_of
from .limits import Refused
from .tensors import NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ..machine import DecisionMachine

DOING = "serving models"
METHODS = {
    "predict": "predict",
    "predict_proba": "predict_proba",
    "margin": "margin",
    "leaves": "apply",
}
"""Outputs that every row has → the machine's method."""
SHAPLEY = ("shap_values", "shap_base")
logger = logging.getLogger("decision_machines.serve")


@dataclass(eq=False)
class Model:
    """One machine with what answers for it; another takes its place when its file changes."""

    name: str
    machine: DecisionMachine | Assembly
    """Of assemblies, soft trees alone."""
    path: Path | None = None
    version: int = 1
    """How many times its file was read."""
    stamp: tuple[int, ...] | None = None
    """Of the file that was read, or that was found broken."""
    error: str | None = None
    """Why the newest file is not served."""
    loaded: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        soft = self.machine if isinstance(self.machine, Assembly) else None
        machine = self.hard = self.machine if soft is None else hard_of(soft)
        lacks = {"predict_proba"} if machine.output.classes is None else set()
        lacks |= {"leaves"} if soft is not None else set()
        self.outputs = [name for name in METHODS if name not in lacks]
        # Soft trees are computed many rows at once; one row has no shorter way.
        of_row = self.outputs if soft is None else []
        self.row: dict[str, Callable[[Any], Any]] = {
            name: machine.row_function(METHODS[name]) for name in of_row
        }
        # The JSON that every response begins with, without its bracket.
        told = {"model_name": self.name, "model_version": str(self.version)}
        self.head = json.dumps(told)[1:-1]
        self.shapley_base: Any = None
        self.no_shapley = "soft trees have none"
        """Why there are no Shapley values."""
        if soft is None:
            try:
                self.shapley_base = machine.shap_base()
                self.outputs += SHAPLEY
            except DecisionMachinesError as error:
                self.no_shapley = error.found

    def answer(self, output: str, X: Any) -> Any:
        """One output for rows."""
        if output == "shap_base":
            return self.shapley_base
        return getattr(self.machine, METHODS.get(output, output))(X)

    def wanted(self, asked: Mapping[str, Any]) -> tuple[str, ...]:
        """The outputs that a request asks for; `parameters: {"shap": true}` adds Shapley values."""
        listed, parameters = asked.get("outputs"), asked.get("parameters") or {}
        names: tuple[Any, ...] = ("predict",)
        if listed:
            if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
                raise Refused(400, 'outputs is not a list of objects: send [{"name": "predict"}]')
            names = tuple(one.get("name") for one in listed)
        if isinstance(parameters, dict) and parameters.get("shap"):
            names = (*names, *SHAPLEY)
        unknown = [name for name in names if name not in self.outputs]
        if unknown:
            why = f" ({self.no_shapley})" if unknown[0] in SHAPLEY else ""
            raise Refused(
                400, f"no output {unknown[0]!r:.60}{why}; the model has {', '.join(self.outputs)}"
            )
        return tuple(dict.fromkeys(names))

    def metadata(self) -> dict[str, Any]:
        """What the protocol tells of a model: its inputs and outputs."""
        machine = self.hard
        labels = None if machine.output.classes is None else machine.output.classes[0]
        kinds = {"leaves": "INT32", "predict": "FP64"}
        if labels is not None:
            kinds["predict"] = NAMES.get(labels.dtype, "BYTES")
        return {
            "name": self.name,
            "versions": [str(self.version)],
            "platform": "decision-machines",
            "inputs": [
                {
                    "name": "X",
                    "datatype": NAMES[machine.columns.dtype],
                    "shape": [-1, machine.n_features],
                }
            ],
            "outputs": [
                {
                    "name": name,
                    "datatype": kinds.get(name, "FP64"),
                    "shape": [-1] if name in ("predict", "shap_base") else [-1, -1],
                }
                for name in self.outputs
            ],
            "parameters": {
                "features": None if machine.columns.names is None else list(machine.columns.names),
                "classes": None if labels is None else labels.tolist(),
                **({"reload_error": self.error} if self.error else {}),
            },
        }


class Models:
    """The models by name.

    Examples
    --------
    >>> import decision_machines as dm
    >>> Models.of({"tree": dm.figure_one()}).find("tree").outputs
    ['predict', 'margin', 'leaves']
    """

    def __init__(self, models: Mapping[str, Model], *, trust: bool = False) -> None:
        self.by_name, self.trust = dict(models), trust
        self.reloads = dict.fromkeys(models, 0)
        self.failures = dict.fromkeys(models, 0)

    @classmethod
    def of(cls, machines: Mapping[str, DecisionMachine | Assembly]) -> Models:
        """Machines that have no file."""
        return cls({name: Model(name, machine) for name, machine in machines.items()})

    @classmethod
    def read(cls, paths: Mapping[str, Path], *, trust: bool = False) -> Models:
        """The machines of files; one that cannot be read is an error now."""
        if not paths:
            raise InputError(DOING, "no model", "name at least one model file")
        found = {}
        for name, path in paths.items():
            stamp = _stamp(path) if path.exists() else None
            machine = served(load(path, trust=trust))
            found[name] = Model(name, machine, path, stamp=stamp)
        return cls(found, trust=trust)

    def find(self, name: str, version: str | None = None) -> Model:
        """A model, or the answer 404."""
        model = self.by_name.get(name)
        if model is None or version not in (None, str(model.version)):
            of = f" of version {version!r:.60}" if version else ""
            known = ", ".join(self.by_name)
            raise Refused(404, f"no model {name!r:.60}{of}; there are {known}")
        return model

    async def watch(self, seconds: float) -> None:
        """Look at the files now and then; one that changed is read in a thread of its own.

        A file that cannot be read changes nothing but `error`: the machine that was read before
        goes on answering, and requests that it was given are answered by it.
        """
        while True:
            await asyncio.sleep(seconds)
            for model in list(self.by_name.values()):
                if model.path is not None:
                    await asyncio.to_thread(self.refresh, model)

    def refresh(self, model: Model) -> bool:
        """Whether the model's file was read again."""
        assert model.path is not None
        stamp: tuple[int, ...] | None = None
        try:
            stamp = _stamp(model.path)
            if stamp == model.stamp:
                return False
            machine = served(load(model.path, trust=self.trust))
            newer = Model(model.name, machine, model.path, model.version + 1, stamp)
            if _stamp(model.path) != stamp:
                return False  # It is being written; look again later.
        except Exception as error:  # Whatever is wrong with a file, the server goes on.
            text = (
                str(error) if isinstance(error, (DecisionMachinesError, OSError)) else repr(error)
            )
            if text != model.error or stamp != model.stamp:
                self.failures[model.name] += 1
                logger.error(
                    "%s: the new file is not served, the old model goes on. %s", model.name, text
                )
            model.error, model.stamp = text, stamp
            return False
        self.by_name[model.name] = newer
        self.reloads[model.name] += 1
        logger.warning("%s: read again from %s, version %d", model.name, model.path, newer.version)
        return True


def served(read: DecisionMachine | Assembly) -> DecisionMachine | Assembly:
    """A machine, or soft trees; other assemblies are refused."""
    is_soft = isinstance(read, Assembly) and read.rule == SOFT
    return read if is_soft else single(read, DOING)


def _stamp(path: Path) -> tuple[int, ...]:
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns
