"""From margins to what users see: the link, then the decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from .links import LINKS
from .links.decisions import DECISIONS

if TYPE_CHECKING:
    from jaxtyping import Float

    from ..machine import DecisionMachine


def respond(
    machine: DecisionMachine, margins: Float[np.ndarray, "m k"]
) -> Float[np.ndarray, "m r"]:
    """The link applied to margins, group by group; see `DecisionMachine.response`."""
    output = machine.output
    link = LINKS[output.link]
    if len(output.groups) == 2:
        return link(margins, *output.link_params)
    parts = [
        link(margins[:, a:b], *output.link_params)
        for a, b in zip(output.groups, output.groups[1:], strict=False)
    ]
    return np.concatenate(parts, axis=1)


def decide(machine: DecisionMachine, margins: Float[np.ndarray, "m k"]) -> np.ndarray:
    """Labels or values of rows with these margins; see `DecisionMachine.predict`."""
    output = machine.output
    if output.decision == "response" and output.link == "identity":
        found: np.ndarray = DECISIONS["response"](output, margins, margins)
        return found  # the short way, for single rows
    decision = DECISIONS[output.decision]
    found = decision(output, margins, respond(machine, margins), *output.decision_params)
    return found


def probabilities(
    machine: DecisionMachine, margins: Float[np.ndarray, "m k"]
) -> Float[np.ndarray, "m c"] | list[Float[np.ndarray, "m c"]]:
    """Probabilities of the classes of rows with these margins; see `check_classes`."""
    output = machine.output
    assert output.classes is not None
    found = respond(machine, margins)
    if len(output.classes) > 1:
        return [found[:, a:b] for a, b in zip(output.groups, output.groups[1:], strict=False)]
    if found.shape[1] == 1 and len(output.classes[0]) == 2:
        return np.concatenate([1 - found, found], axis=1)
    return found


def check_classes(machine: DecisionMachine) -> None:
    """Refuse a machine that has no classes to give probabilities of."""
    if machine.output.classes is None:
        raise InputError(
            "predicting probabilities",
            f"the machine ({machine.source or 'of unknown source'}) has no classes",
            "use predict or margin",
        )


def given_margins(machine: DecisionMachine, margins: Any) -> Float[np.ndarray, "m k"]:
    """Margins that somebody gives, in the machine's dtype."""
    found = np.asarray(margins, machine.output.dtype)
    if found.ndim != 2 or found.shape[1] != machine.n_outputs:
        raise InputError(
            "reading margins",
            f"margins of shape {found.shape}; the machine has {machine.n_outputs} outputs",
            f"give rows of {machine.n_outputs} margins",
        )
    return found
