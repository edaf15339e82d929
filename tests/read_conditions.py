"""Printed conditions, read back: a small parser that shares no code with what prints them.

A number in a condition is read as everybody reads it, as a float64; `holds` also reads it in the
column's own dtype and insists that both readings agree.
"""

from __future__ import annotations

import json
import re

import numpy as np

NUMBER = r"-?(?:\d+(?:\.\d+)?(?:e-?\d+)?|inf)"
OPERATORS = {
    "<": lambda a, b: a < b,
    "≤": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    "≥": lambda a, b: a >= b,
    "=": lambda a, b: a == b,
    "≠": lambda a, b: a != b,
}
ZERO = float(np.float32(1e-35))


def split(text, word):
    """Parts between a word, outside brackets, braces and quotes."""
    parts, depth, quoted, last, i = [], 0, False, 0, 0
    while i < len(text):
        if quoted:
            i += text[i] == "\\"
            quoted = text[i] != '"'
        elif text[i] == '"':
            quoted = True
        elif text[i] in "({[":
            depth += 1
        elif text[i] in ")}]":
            depth -= 1
        elif depth == 0 and text.startswith(word, i):
            parts.append(text[last:i])
            i += len(word) - 1
            last = i + 1
        i += 1
    return [*parts, text[last:]]


def conditions_of(rule):
    """The conditions of a printed rule, "if A and (B or missing) then 5"."""
    found = re.fullmatch(r"if (.*) then [^}]*", rule)
    if found is None:
        return []
    whole = []
    for part in split(found[1], " and "):
        # "x ≤ 5 and x ≠ -999" is one condition of two parts: each is read alone.
        is_bracketed = part.startswith("(") and part.endswith(")")
        whole.append(part[1:-1] if is_bracketed else part)
    return whole


def holds(text, name, x, columns):
    """Whether a value of the feature, a number or a label, meets a condition as it is printed."""
    if isinstance(x, str):
        return _holds(text, name, x, float, columns)
    dtype = columns.dtype
    with np.errstate(over="ignore"):
        x = dtype.type(x)
    in_double = _holds(text, name, float(x), float, columns)
    with np.errstate(over="ignore"):
        in_dtype = _holds(text, name, x, lambda number: dtype.type(float(number)), columns)
    assert in_double == in_dtype, (text, x)
    return in_double


def _holds(text, name, x, read, columns):
    text = text.removesuffix(" (never)")
    ways = split(text, " or ")
    return any(_all(way, name, x, read, columns, is_first=i == 0) for i, way in enumerate(ways))


def _all(way, name, x, read, columns, is_first):
    if not is_first and way in ("missing", "zero"):
        return _is(way, x, read)
    if not is_first and re.fullmatch(NUMBER, way):
        return _is(way, x, read)
    return all(_one(part, name, x, read, columns) for part in split(way, " and "))


def _is(word, x, read):
    if word == "missing":
        return x != x
    if x != x:
        return False
    return abs(x) <= ZERO if word == "zero" else x == read(word)


def _one(part, name, x, read, columns):
    own = re.escape(name)
    if found := re.fullmatch(rf"{own} is (.*)", part):
        if found[1] == "anything":
            return True
        if found[1] == "present":
            return x == x
        if found[1] == "not zero":
            return abs(x) > ZERO
        return _is(found[1], x, read)
    if found := re.fullmatch(rf"{own} (in|not in) {{(.*)}}", part):
        named = x if isinstance(x, str) else category(x, columns)
        return x == x and (named in labels_in(found[2])) == (found[1] == "in")
    if x != x:
        return False
    if found := re.fullmatch(rf"({NUMBER}) ([<≤]) {own} ([<≤]) ({NUMBER})", part):
        low, first, second, high = found.groups()
        return OPERATORS[first](read(low), x) and OPERATORS[second](x, read(high))
    found = re.fullmatch(rf"{own} ([<≤>≥=≠]) ({NUMBER})", part)
    assert found is not None, f"a condition that cannot be read: {part!r}"
    return bool(OPERATORS[found[1]](x, read(found[2])))


def labels_in(text):
    parts = [p for p in split(text, ", ") if p]
    return {json.loads(p) if p.startswith('"') else p for p in parts}


def category(x, columns):
    """The code of the category that a number is; None where it is none."""
    sets, x = columns.sets, float(x)
    if x != x:
        return None
    lowest = -1.0 if sets.negative_fractions else 0.0
    if not ((x > lowest or x == 0) and x < 2**31) or (sets.whole and x != int(x)):
        return None
    return str(int(x))
