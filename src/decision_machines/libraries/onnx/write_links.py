"""Links and labels as ONNX has them: what is done to the sums, and who chooses the label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...machine import links
from ...machine.steps import Step
from .steps import PAIRS, TRANSFORMS

if TYPE_CHECKING:
    import numpy as np

    from ...machine.links import Link
    from ..limits import Limits

WRITTEN = {
    links.IDENTITY: (),
    links.SIGMOID: (Step("single"), Step("sigmoid")),
    links.SOFTMAX: (Step("softmax"),),
    links.EXPONENTIAL: (Step("single"), Step("exp")),
}
"""Steps for the links of other libraries; ONNX Runtime computes them in float32, in its own way."""
REFUSED = {
    links.SOFTPLUS: "log(1 + exp), which is not among the steps",
    links.STEP: "a step at 0, which is not among the steps",
    links.SIGNED_SQUARE: "a square with a sign, which is not among the steps",
    links.ISOLATION: "a power of 2, which is not among the steps",
    links.ANOMALY: "a power of 2, which is not among the steps",
    links.CLAMPED: "sums that are held between 0 and 1, which is not among the steps",
    links.ADABOOST: "a softmax of margins that are divided by the number of classes",
    links.SORTED: "margins in rising order, which is not among the steps",
    links.INCREMENTS: "sums of log(1 + exp), which is not among the steps",
    links.OPPOSED: "two outputs of which the second is what the first leaves of 1",
    links.MEAN_AND_VARIANCE: "two outputs that are linked in two ways",
}
"""Why links of the other families are refused. (The family of steps is written as it is.)"""


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
    link = links.LINKS[output.link]
    if link.takes_steps and not link.is_averaged:
        return _program(limits, operator, labels)
    if output.link == "averaged identity" and not decides:
        return [Step("divide", output.link_numbers)], None
    if link.is_averaged:
        limits.unknown_link("averages, and not sums, are linked")
    if link.family in REFUSED:
        limits.unknown_link(REFUSED[link.family])
    if link.family is links.SIGMOID and output.link_numbers not in ((), (1.0,)):
        limits.unknown_link("ONNX's sigmoid has no slope")
    if decides and output.decision not in (
        "argmax", "argmax_margin", "above", "margin_above", "margin_at_least"
    ):  # fmt: skip
        limits.unknown_link()
    if link.family is not links.IDENTITY:
        causes.append(f"the link {output.link!r} is ONNX Runtime's, in float32")
    if link.family is links.SOFTMAX and len(output) == 1:
        limits.unknown_link("ONNX Runtime leaves a single score out of a softmax")
    if decides and len(output) == 1:
        return _binary(limits, operator, causes, link, labels)
    return list(WRITTEN[link.family]), None


def _binary(
    limits: Limits, operator: str, causes: list[str], link: Link, labels: Any
) -> tuple[list[Step], Chooser]:
    """Two labels of one margin: what TreeEnsembleClassifier does, with a threshold of 0."""
    output = limits.machine.output
    threshold = (output.decision_params or (0.0,))[0]
    fits = (output.decision == "above" and output.decision_params in ((), (0.5,))) or threshold == 0
    is_number = labels is not None and labels.dtype.kind in "biu"
    if (
        link.family is not links.SIGMOID
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
    return [Step("logistic")], Chooser(labels, "opposite", 0)


def _program(limits: Limits, operator: str, labels: Any) -> tuple[list[Step], Chooser | None]:
    """The steps of a machine that was read from an ONNX model."""
    output = limits.machine.output
    steps = list(output.link_steps)
    names = [step.name for step in steps]
    if any(name.startswith("libm_") for name in names):
        limits.unknown_link("functions of the C library, which no operator has to the bit")
    pair = names[0] if names and names[0] in PAIRS else None
    if pair is None and output.decision in ("response", "margin", "argmax"):
        return steps, None
    if operator != "v3" or names[-1:] != ["single"]:
        limits.refuse(
            "it chooses labels as TreeEnsembleClassifier does, which version 5 has not",
            "use operator='v3', or margins=True",
        )
    at_most_one = [n for n in names[:-1] if n not in PAIRS]
    if len(at_most_one) > 1 or set(at_most_one) - set(TRANSFORMS):
        limits.unknown_link()
    fed = {"beside_zero": 1, None: None}.get(pair, 0)
    return list(map(Step, at_most_one)), Chooser(labels, pair, fed)
