"""A machine in a notebook: its parts in a table, and its templates where they are few."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from ..machine.summary import shown, summary
from ..machine.words import words_of_leaf, words_of_test
from .display import LEFT, RIGHT

if TYPE_CHECKING:
    from ..machine import DecisionMachine

MOST_LEAVES, MOST_TESTS = 16, 15
CELL = "padding:2px 8px;text-align:"


def repr_html(machine: DecisionMachine) -> str:
    """HTML that stands alone: styles inline, every name escaped."""
    rows = "".join(
        f"<tr><th style='{CELL}left;font-weight:normal;opacity:.7'>{escape(name)}</th>"
        f"<td style='{CELL}left'>{escape(shown(name, value))}</td></tr>"
        for name, value in summary(machine).items()
        if value is not None
    )
    table = f"<table style='border-collapse:collapse'>{rows}</table>"
    one = machine.n_trees == 1 and 1 < machine.n_leaves <= MOST_LEAVES
    templates = _templates(machine) if one and machine.n_tests <= MOST_TESTS else ""
    name = escape(repr(machine))
    return f"<details><summary><code>{name}</code></summary>{table}</details>{templates}"


def _templates(machine: DecisionMachine) -> str:
    B = machine.B.toarray()
    head = "".join(
        f"<th style='{CELL}center;font-weight:normal'>{escape(words_of_test(machine, j))}</th>"
        for j in range(machine.n_tests)
    )
    body = ""
    for leaf, template in enumerate(B):
        cells = "".join(_cell(int(b)) for b in template)
        value = escape(words_of_leaf(machine, leaf, brief=True))
        body += f"<tr><td style='{CELL}right'>leaf {leaf}</td>{cells}"
        body += f"<td style='{CELL}left'>{value}</td></tr>"
    return (
        "<table style='border-collapse:collapse;margin-top:.6em'><caption style='text-align:left'>"
        "templates B and values V</caption>"
        f"<tr><th></th>{head}<th style='{CELL}left;font-weight:normal'>V</th></tr>{body}</table>"
    )


def _cell(b: int) -> str:
    if b == 0:
        return f"<td style='{CELL}center;opacity:.4'>0</td>"
    colour, text = (LEFT, "−1") if b < 0 else (RIGHT, "+1")
    return f"<td style='{CELL}center;background:{colour};color:white'>{text}</td>"
