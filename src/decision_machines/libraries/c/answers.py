"""From margins to responses, probabilities and predictions, in C."""

from __future__ import annotations

import functools
import math
import re
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine.decisions import DECISIONS
from ...machine.links import LINKS
from .text import array, number, table, text

if TYPE_CHECKING:
    from ...machine import DecisionMachine, Output

SAME = {
    "expit": "sigmoid",
    "xgboost_exp": "exp",
    "lightgbm_exp": "exp",
    "lightgbm_softmax": "softmax",
}
"""Links that are the same C as another."""
EXP_STEPS = 2048


def answers(machine: DecisionMachine) -> str:
    """The link, and what follows it."""
    output = machine.output
    link, divisor, numbers = output.without_average()
    single = output.dtype == np.float32
    name = SAME.get(link.name, link.name)
    widths = [output.response_width(b - a) for a, b in _groups(output)]
    pieces = _pieces()
    before = "".join(_exp_bits() + pieces["catboost_"] if name.startswith("catboost_") else "")
    most = max([1, *(b - a for a, b in _groups(output)), *widths])
    return (
        f"#define DM_EXP {'expf' if single else 'exp'}\n"
        f"#define DM_LOG1P {'log1pf' if single else 'log1p'}\n"
        f"#define DM_SLOPE {number(numbers[0] if name == 'sigmoid' and numbers else 1.0, single)}\n"
        f"#define DM_AVERAGED {int(LINKS[output.link].is_averaged)}\n"
        f"#define DM_AVERAGED_OVER {number(divisor, single)}\n"
        f"#define DM_N_GROUPS {len(widths)}\n"
        f"#define DM_N_RESPONSES {sum(widths)}\n"
        f"#define DM_MOST_OF_GROUP {most}\n"
        + array("dm_group_start", np.array(output.groups), "int32_t")
        + array("dm_response_start", np.cumsum([0, *widths]), "int32_t")
        + before
        + pieces[name]
        + pieces["response"]
        + _probabilities(output, widths, pieces)
        + _prediction(output, pieces)
    )


def has_link(name: str) -> bool:
    """Whether there is C for a link."""
    return SAME.get(name, name) in _pieces()


def _groups(output: Output) -> list[tuple[int, int]]:
    return list(zip(output.groups, output.groups[1:], strict=False))


def _probabilities(output: Output, widths: list[int], pieces: dict[str, str]) -> str:
    classes = output.classes
    if classes is None:
        return ""
    is_one_of_two = len(classes) == 1 and widths == [1] and len(classes[0]) == 2
    n = 2 if is_one_of_two else sum(widths)
    return (
        f"#define DM_N_PROBABILITIES {n}\n#define DM_ONE_OF_TWO {int(is_one_of_two)}\n"
        + pieces["probabilities"]
    )


def _prediction(output: Output, pieces: dict[str, str]) -> str:
    """`dm_predict`: numbers, or labels; a label that is a text is given by its position."""
    decision = DECISIONS[output.decision]
    name, parameters = output.decision, output.decision_params
    is_plain = name == "second_margin_above" and len(parameters) > 1 and bool(parameters[1])
    found = ""
    labels: list[Any] = []
    if decision.gives_labels:
        assert output.classes is not None
        labels = [label for group in output.classes for label in group.tolist()]
        starts = np.cumsum([0, *(len(group) for group in output.classes)])
        is_number = all(isinstance(v, (int, float)) for v in labels) and not is_plain
        values = (
            np.array(labels, np.float64)
            if is_number
            else np.concatenate(
                [np.arange(len(group), dtype=np.float64) for group in output.classes]
            )
        )
        found += array("dm_class_start", starts, "int32_t") + array("dm_class_value", values)
        if not is_number and not is_plain:
            found += "/* The labels: dm_predict gives a position in them. */\n" + table(
                "dm_classes", "char *const", [text(str(v)) for v in labels]
            )
    n = {"margin": "DM_N_OUTPUTS", "each_margin_above": "DM_N_OUTPUTS"}.get(name, "DM_N_RESPONSES")
    n = "1" if name == "inlier" else n
    if decision.gives_labels:
        n = "DM_N_GROUPS" if name == "argmax" else "1"
    default = {"above": 0.5, "above_each": 0.5}.get(name, 0.0)
    threshold = parameters[0] if parameters else default
    if name in ("above", "above_each") or decision.reads == "margin":
        # NumPy compares numbers of float32 with a Python number in float32.
        threshold = float(output.dtype.type(threshold))
    return (
        found
        + f"#define DM_N_PREDICTIONS {n}\n#define DM_THRESHOLD {number(threshold, False)}\n"
        + pieces["predict"].replace("DM_DECISION", pieces[f"decision {name}"].strip())
    )


def _exp_bits() -> str:
    table_ = np.array([math.pow(2.0, i / EXP_STEPS) for i in range(EXP_STEPS)]).view(np.int64)
    return (
        f"#define DM_STEPS_PER_LOG2 {number(EXP_STEPS / math.log(2.0), False)}\n"
        f"#define DM_LOG2_PER_STEP {number(math.log(2.0) / EXP_STEPS, False)}\n"
        + array("dm_exp_bits", table_ & ((1 << 52) - 1), "int64_t")
    )


@functools.cache
def _pieces() -> dict[str, str]:
    """The pieces of links.h and answers.h by their names."""
    found: dict[str, str] = {}
    for file in ("links.h", "answers.h"):
        text_ = resources.files(__package__).joinpath(file).read_text(encoding="ascii")
        parts = re.split(r"^/\* (?:link|before|piece): (.+) \*/\n", text_, flags=re.MULTILINE)
        found |= dict(zip(parts[1::2], parts[2::2], strict=True))
    return found
