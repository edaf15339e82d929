"""Numbers, arrays and texts as C writes them: exact, and closed in themselves."""

from __future__ import annotations

import functools
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

INTEGERS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32)


def number(value: float, single: bool) -> str:
    """A floating-point number by its hexadecimal digits, which every compiler reads alike.

    Examples
    --------
    >>> number(0.1, single=False), number(-2.0, single=True), number(float("inf"), single=True)
    ('0x1.999999999999ap-4', '-0x1.0p+1f', 'INFINITY')
    """
    value = float(value)
    if np.isnan(value):
        return "NAN"
    if np.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    mantissa, exponent = value.hex().split("p")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0")
        mantissa += "0" if mantissa.endswith(".") else ""
    return f"{mantissa}p{exponent}{'f' if single else ''}"


def c_type(array: np.ndarray) -> str:
    """The C type of an array's entries; of integers, the smallest that holds them."""
    if array.dtype.kind == "f":
        return "float" if array.dtype == np.float32 else "double"
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    for dtype in INTEGERS:
        known = np.iinfo(dtype)
        if known.min <= low and high <= known.max:
            return f"{np.dtype(dtype).name}_t"
    raise OverflowError(f"{high} does not fit 32 bits")


def entries(array: np.ndarray) -> list[str]:
    """The entries of an array as C writes them."""
    flat = array.reshape(-1)
    if flat.dtype.kind == "f":
        single = flat.dtype == np.float32
        return [number(v, single) for v in flat.tolist()]
    return [str(v) for v in flat.astype(np.int64).tolist()]


def array(name: str, values: Any, kind: str | None = None) -> str:
    """The definition of a constant array; one entry of 0 where there are none."""
    values = np.asarray(values)
    return table(name, kind or c_type(values), entries(values) or ["0"])


def table(name: str, kind: str, written: Iterable[str]) -> str:
    """The definition of a constant array of entries that are written already."""
    lines, line = [], ""
    for entry in written:
        if line and len(line) + len(entry) > 96:
            lines.append(line)
            line = ""
        line += entry + ","
    lines.append(line)
    body = "\n".join(lines)
    return f"static const {kind} {name}[] = {{\n{body}\n}};\n"


def text(value: str) -> str:
    """A string literal: ASCII letters, digits and spaces as they are, all other bytes by number.

    Examples
    --------
    >>> print(text('a "b" */ ??/'))
    "a \\042b\\042 \\052\\057 \\077\\077\\057"
    """
    found = "".join(
        chr(b) if chr(b).isascii() and (chr(b).isalnum() or b == 32) else f"\\{b:03o}"
        for b in value.encode("utf-8", "surrogatepass")
    )
    return f'"{found}"'


def comment(value: str) -> str:
    """A text that cannot end the comment it stands in."""
    plain = "".join(c if c.isprintable() and c.isascii() else "?" for c in value)
    return plain.replace("*/", "* /").replace("/*", "/ *").replace("\\", "/").replace("??", "? ?")


@functools.cache
def source(name: str) -> str:
    """A piece of C that is the same in every model."""
    return resources.files(__package__).joinpath(name).read_text(encoding="ascii")
