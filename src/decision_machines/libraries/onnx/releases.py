"""Which releases of ONNX the tests run against."""

from __future__ import annotations

from typing import Any

from ..releases import Releases

RELEASES = Releases("ONNX", oldest="1.18", newest="1.23")
OPSET = Releases("an ONNX of the operator set ai.onnx", oldest="11", newest="28")
IR = Releases("an ONNX of the IR version", oldest="3", newest="14")
"""A file tells the version of its operators and of its form; these are 1.23's."""


def note_versions(model: Any, versions: dict[str, int], doing: str) -> None:
    """Warn where a model has newer operators, or a newer form, than those tested."""
    OPSET.note(str(versions.get("ai.onnx", 0)), doing)
    IR.note(str(model.ir_version), doing)
