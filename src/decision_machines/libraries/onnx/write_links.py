"""Links and labels as ONNX has them: what is done to the sums, and who chooses the label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from ..limits import Limits

Step = tuple[str, list[float]]
"""The name of a step and its constants."""

STEPS = (
    "single", "double", "logistic", "softmax", "softmax_zero", "probit", "complement", "opposite",
    "beside_zero", "normalize", "add", "subtract", "subtract_from", "multiply", "divide",
    "divide_into", "negate", "exp", "sigmoid",
)  # fmt: skip
"""The steps of the link `onnx`, by their numbers."""
TRANSFORMS = ("logistic", "softmax", "softmax_zero", "probit")
PAIRS = ("complement", "opposite", "beside_zero")
LINKS = {
    **dict.fromkeys(("sigmoid", "expit", "xgboost_sigmoid"), "sigmoid"),
    **dict.fromkeys(
        ("softmax", "xgboost_softmax", "lightgbm_softmax", "catboost_softmax"), "softmax"
    ),
    **dict.fromkeys(("exp", "xgboost_exp", "lightgbm_exp", "catboost_exp"), "exp"),
}
"""Links of other libraries that ONNX Runtime computes in its own way."""


@dataclass(frozen=True)
class Chooser:
    """How TreeEnsembleClassifier makes labels and scores of its sums."""

    labels: np.ndarray
    pair: str | None
    """What it makes of the one sum of two classes."""
    output: int | None
    """The class that all weights are given to; None where each has its own."""


def steps_of(limits: Limits, operator: str, causes: list[str]) -> tuple[list[Step], Chooser | None]:
    """The steps from sums to the response, and how a classifier's operator chooses labels.

    Parameters
    ----------
    operator
        "v3" or "v5".
    causes
        Gets a text for everything that may differ in the last digits.
    """
    output = limits.machine.output
    labels = None if output.classes is None else output.classes[0]
    decides = output.decision not in ("response", "margin")
    if len(output.groups) > 2 or (output.decision == "margin" and output.link != "identity"):
        limits.unknown_link()
    if labels is not None and decides and labels.dtype.kind not in "biufU":
        limits.refuse(
            f"output.classes of dtype {labels.dtype}, which ONNX does not have",
            "write the margins alone, with margins=True, and choose the labels yourself",
        )
    if output.link == "onnx":
        return _program(limits, operator, labels)
    if output.link == "averaged identity" and not decides:
        return [("divide", [output.link_params[0]])], None
    if output.link != "identity" and output.link not in LINKS:
        limits.unknown_link()
    link = LINKS.get(output.link, "identity")
    if link == "sigmoid" and output.link_params not in ((), (1.0,)):
        limits.unknown_link()
    if decides and output.decision not in (
        "argmax", "argmax_margin", "above", "margin_above", "margin_at_least"
    ):  # fmt: skip
        limits.unknown_link()
    if link != "identity":
        causes.append(f"the link {output.link!r} is ONNX Runtime's, in float32")
    k = len(output)
    if decides and k == 1:
        return _binary(limits, operator, causes, link, labels)
    if link == "softmax":
        return [("softmax", [])], None
    if link == "identity":
        return [], None
    return [("single", []), (link, [])], None


def _binary(limits: Limits, operator: str, causes: list[str], link: str, labels: Any):
    """Two labels of one margin: what TreeEnsembleClassifier does, with a threshold of 0."""
    output = limits.machine.output
    threshold = (output.decision_params or (0.0,))[0]
    fits = (output.decision == "above" and output.decision_params in ((), (0.5,))) or threshold == 0
    is_number = labels is not None and labels.dtype.kind in "biu"
    if (
        link != "sigmoid"
        or operator != "v3"
        or not fits
        or labels is None
        or len(labels) != 2
        or not (is_number or labels.dtype.kind == "U")
    ):
        limits.refuse(
            f"the decision {output.decision!r}{output.decision_params} between two labels of "
            f"{getattr(labels, 'dtype', None)} by one margin, with operator={operator!r}",
            "use operator='v3' for a classifier that decides at a margin of 0, or write the "
            "margins alone, with margins=True",
        )
    if output.decision == "margin_at_least":
        causes.append("a margin of exactly 0 gives the first label, the machine's second")
    return [("logistic", [])], Chooser(labels, "opposite", 0)


def _program(limits: Limits, operator: str, labels: Any):
    """The steps of a machine that was read from an ONNX model."""
    output = limits.machine.output
    steps: list[Step] = []
    at, params = 0, output.link_params
    while at < len(params):
        n = int(params[at + 1])
        steps.append((STEPS[int(params[at])], list(params[at + 2 : at + 2 + n])))
        at += 2 + n
    pair = steps[0][0] if steps and steps[0][0] in PAIRS else None
    if pair is None and output.decision in ("response", "margin", "argmax"):
        return steps, None
    names = [name for name, _ in steps]
    if operator != "v3" or names[-1:] != ["single"]:
        limits.refuse(
            "it chooses labels as TreeEnsembleClassifier does, which version 5 has not",
            "use operator='v3', or margins=True",
        )
    at_most_one = [n for n in names[:-1] if n not in PAIRS]
    if len(at_most_one) > 1 or set(at_most_one) - set(TRANSFORMS):
        limits.unknown_link()
    fed = {"beside_zero": 1, None: None}.get(pair, 0)
    return [(n, []) for n in at_most_one], Chooser(labels, pair, fed)
