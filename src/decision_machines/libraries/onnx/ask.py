"""Asking ONNX Runtime."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import MissingLibraryError
from ..oracles import Oracle

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float


class OnnxOracle(Oracle):
    """The whole graph, row after row: ONNX Runtime tells no leaves and cannot be cut."""

    compared = "responses of the whole graph"
    one_tree_at_a_time = False

    @cached_property
    def session(self) -> Any:
        try:
            import onnxruntime
        except ImportError:
            raise MissingLibraryError(
                "asking an ONNX model",
                "ONNX Runtime is not installed",
                "pip install 'decision-machines[onnx]'",
            ) from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        return onnxruntime.InferenceSession(
            self.model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )

    def _feed(self, X: Float[np.ndarray, "m n"]) -> dict[str, np.ndarray]:
        given = self.session.get_inputs()[0]
        dtype = np.float64 if "double" in given.type else np.float32
        with np.errstate(over="ignore"):
            return {given.name: X.astype(dtype)}

    def whole(self, X: Float[np.ndarray, "m n"]) -> tuple[str, np.ndarray, np.ndarray]:
        """Probabilities of a classifier, values of a regressor."""
        answers = self.session.run(None, self._feed(X))
        if self.machine.output.classes is None:
            ours = self.machine.predict(X)
            return "response", ours, np.asarray(answers[0]).reshape(ours.shape)
        ours = np.asarray(self.machine.predict_proba(X))
        theirs = answers[-1]
        if isinstance(theirs, list):
            labels = self.machine.output.classes[0].tolist()
            theirs = np.array([[row[label] for label in labels] for row in theirs])
        return "probabilities", ours, np.asarray(theirs).reshape(ours.shape)


def predictor(model: Any) -> Callable[[Any, int], Any]:
    """ONNX Runtime's `predict` as its users call it."""
    import onnxruntime

    sessions: dict[int, Any] = {}

    def predict(X: Any, threads: int) -> Any:
        if threads not in sessions:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads
            sessions[threads] = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        session = sessions[threads]
        given = session.get_inputs()[0]
        dtype = np.float64 if "double" in given.type else np.float32
        return session.run(None, {given.name: X.astype(dtype, copy=False)})[0]

    return predict
