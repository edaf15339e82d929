"""Margins, responses, probabilities and predictions as columns of a SELECT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...machine.links import EXPONENTIAL, IDENTITY, SIGMOID, SOFTMAX
from ..limits import Limits
from .dialects import DOING

if TYPE_CHECKING:
    from ...machine import DecisionMachine
    from .dialects import Dialect

WRITTEN = (IDENTITY, SIGMOID, SOFTMAX, EXPONENTIAL)


def answer_columns(
    machine: DecisionMachine, dialect: Dialect, outputs: str, keep: Sequence[str]
) -> list[str]:
    """The columns of the answer, each with a name that no kept column has."""
    k = machine.n_outputs
    if outputs == "margin":
        found = [f"m{o}" for o in range(k)]
        names = ["margin"] if k == 1 else [f"margin_{o}" for o in range(k)]
    elif outputs == "predict":
        found, names = [_prediction(machine, dialect)], ["prediction"]
    else:
        found = responses(machine, dialect)
        names = ["response"] if k == 1 else [f"response_{o}" for o in range(k)]
    if outputs == "predict_proba":
        classes = machine.output.classes
        if classes is None or len(classes) > 1:
            raise InputError(
                DOING,
                "outputs='predict_proba' of a machine without one list of classes",
                "use outputs='response' or 'margin'",
            )
        if len(found) == 1 and len(classes[0]) == 2:
            found = [f"1 - ({found[0]})", found[0]]
        names = [f"probability_{label}" for label in classes[0].tolist()]
    doubled = [name for name in names if name in keep]
    if doubled:
        raise InputError(
            DOING, f"keep holds {doubled[0]!r}, which the answer is called", "rename that column"
        )
    return [
        f"{text} AS {dialect.identifier(name)}" for text, name in zip(found, names, strict=True)
    ]


def responses(machine: DecisionMachine, dialect: Dialect) -> list[str]:
    """What the link makes of the margins m0, m1 …"""
    output = machine.output
    link, divisor, numbers = output.without_average()
    single = bool(output.dtype == np.float32)
    if link.family not in WRITTEN or len(output.groups) > 2:
        Limits(machine, "SQL").unknown_link("SQL is written for sums, sigmoid, softmax and exp")

    def number(value: float) -> str:
        return dialect.number(value, single)

    k = len(output)
    margins = [f"m{o}" if divisor == 1.0 else f"(m{o} / {number(divisor)})" for o in range(k)]
    if link.family is IDENTITY:
        return margins
    if link.family is EXPONENTIAL:
        return [f"EXP({m})" for m in margins]
    if link.family is SIGMOID:
        slope = numbers[0] if numbers else 1.0
        scaled = [m if slope == 1.0 else f"({number(slope)} * {m})" for m in margins]
        # Far below 0 the exponential is infinite, which some databases call an error.
        return [
            f"CASE WHEN {m} < -700 THEN EXP({m}) ELSE 1 / (1 + EXP(-({m}))) END" for m in scaled
        ]
    top = (
        f"GREATEST({', '.join(margins)})"
        if dialect.name != "sqlite"
        else f"MAX({', '.join(margins)})"
    )
    top = margins[0] if k == 1 else top
    total = " + ".join(f"EXP({m} - {top})" for m in margins)
    return [f"EXP({m} - {top}) / ({total})" for m in margins]


def _prediction(machine: DecisionMachine, dialect: Dialect) -> str:
    output = machine.output
    limits = Limits(machine, "SQL")
    parameters = output.decision_params
    if output.decision in ("response", "margin") and len(output) == 1:
        return responses(machine, dialect)[0] if output.decision == "response" else "m0"
    if (
        output.classes is None
        or len(output.classes) > 1
        or output.decision in ("response", "margin")
    ):
        limits.refuse(
            f"output.decision is {output.decision!r} over {len(output)} outputs: several columns",
            "use outputs='response' or 'margin'",
        )
    assert output.classes is not None
    labels = [_label(dialect, v) for v in output.classes[0].tolist()]
    if output.decision in ("margin_above", "margin_at_least", "above"):
        sign = ">=" if output.decision == "margin_at_least" else ">"
        default = 0.5 if output.decision == "above" else 0.0
        threshold = dialect.number(
            output.dtype.type(parameters[0] if parameters else default),
            bool(output.dtype == np.float32),
        )
        what = responses(machine, dialect)[0] if output.decision == "above" else "m0"
        return (
            f"CASE WHEN m0 IS NULL THEN NULL WHEN ({what}) {sign} {threshold} THEN {labels[1]} "
            f"ELSE {labels[0]} END"
        )
    if output.decision not in ("argmax", "argmax_margin") or len(labels) < len(output):
        limits.refuse(f"output.decision is {output.decision!r}", "use outputs='margin'")
    is_margin = output.decision == "argmax_margin"
    found = [f"m{o}" for o in range(len(output))] if is_margin else responses(machine, dialect)
    found = [f"({text})" for text in found]
    whens = "".join(
        f" WHEN {' AND '.join(f'{found[o]} >= {other}' for other in found[o + 1 :]) or '1 = 1'}"
        f" THEN {labels[o]}"
        for o in range(len(found))
    )
    return f"CASE WHEN m0 IS NULL THEN NULL{whens} END"


def _label(dialect: Dialect, label: Any) -> str:
    if isinstance(label, bool):
        return "TRUE" if label else "FALSE"
    if isinstance(label, int):
        return str(label)
    return dialect.number(label) if isinstance(label, float) else dialect.text(str(label))
