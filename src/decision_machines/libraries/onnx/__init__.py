"""ONNX: graphs with tree operators, read, written, and asked through ONNX Runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..library import UNMARKED, Format, Library, Target
from .releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...machine import DecisionMachine
    from ..oracles import Oracle


class Onnx(Library):
    name = package = "onnx"
    releases = RELEASES
    engine = "onnxruntime"

    def formats(self) -> tuple[Format, ...]:
        from .read import looks_like_onnx, read_onnx_bytes

        return (Format("ONNX", looks_like_onnx, read_onnx_bytes, UNMARKED),)

    def targets(self) -> tuple[Target, ...]:
        from .write import onnx_content

        return (Target("onnx", (".onnx",), onnx_content, ("margins", "operator", "labels")),)

    def read(self, model: Any) -> DecisionMachine:
        from .read import read_onnx

        return read_onnx(model)

    def open(self, package: Any, data: bytes) -> Any:
        return package.load_model_from_string(data)

    def oracle(self, model: Any, machine: DecisionMachine) -> Oracle:
        from .ask import OnnxOracle

        return OnnxOracle(model, machine)

    def predictor(self, model: Any) -> Callable[[Any, int], Any]:
        from .ask import predictor

        return predictor(model)


LIBRARY = Onnx()
