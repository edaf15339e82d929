"""Numbers as people read them: the fewest digits that are still true.

The explorer page has the same functions in `show/page/numbers.js`; the tests hold both to the same
texts.
"""

from __future__ import annotations

import functools
import math
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import NamedTuple

import numpy as np

MOST_PLAIN = 16
"""Numbers from 10 to this power on are written with an exponent."""
FEW = 4
"""Digits that `rounded` keeps."""
_ROUNDED = [Context(prec=n, rounding=ROUND_HALF_UP) for n in range(1, 18)]
"""Rounding to 1 … 17 digits, halves away from zero, as JavaScript does."""


class Boundary(NamedTuple):
    """A number that splits a dtype in two, and on which side it lies itself.

    Every value of the dtype that goes left is below `number`, every other above it. The number
    itself, read as a float64 or in the dtype, goes left where `is_left`.
    """

    number: str
    is_left: bool

    @property
    def below(self) -> str:
        """What holds on the left: "≤ 3" or "< 30"."""
        return f"{'≤' if self.is_left else '<'} {self.number}"

    @property
    def above(self) -> str:
        """What holds on the right: "> 3" or "≥ 30"."""
        return f"{'>' if self.is_left else '≥'} {self.number}"


def boundary(t: float, dtype: np.dtype, *, whole: bool = False) -> Boundary:
    """The shortest number that splits a dtype's values where x ≤ t does.

    Parameters
    ----------
    t
        The threshold, a value of the dtype.
    dtype
        float32 or float64, as the column is read.
    whole
        Whether x is known to be a whole number.

    Examples
    --------
    >>> float32 = np.dtype(np.float32)
    >>> boundary(np.nextafter(np.float32(30), np.float32(0)), float32).below
    '< 30'
    >>> boundary(0.8, np.dtype(float)).above
    '> 0.8'
    >>> boundary(27.5, np.dtype(float), whole=True).below
    '≤ 27'
    """
    return _boundary(float(t), dtype == np.float32, whole)


@functools.lru_cache(maxsize=1 << 16)
def _boundary(t: float, single: bool, whole: bool) -> Boundary:
    if np.isinf(t):
        return Boundary(str(t), True)
    # Beyond these numbers neighbours are a whole number or more apart.
    if whole and abs(t) < (2.0**24 if single else 2.0**53):
        low, high, in_between = float(np.floor(t)), float(np.floor(t)) + 1.0, False
    else:
        low, high, in_between = t, next_above(t, single), single
    if high == np.inf:
        return Boundary("inf", False)
    exact_low, exact_high = Decimal(low), Decimal(high)
    for n in range(1 if in_between else max(1, min(_least(low), _least(high))), 18):
        text, above = _of(exact_low, n), _of(exact_high, n)
        exact = [Boundary(_plain(text), True)] if float(text) == low else []
        if float(above) == high:
            exact.append(Boundary(_plain(above), False))
        if exact:
            return min(exact, key=lambda found: len(found.number))
        if in_between:
            if float(text) < low:
                text = _step_up(text)
            # Where the text lies between two float32 numbers, so that either sign is true, the
            # one that is also true of the text as a float32.
            if low < float(text) < high:
                return Boundary(_plain(text), float(np.float32(float(text))) == low)
    raise AssertionError("seventeen digits tell all float64 numbers apart")


def next_above(x: float, single: bool) -> float:
    """The next number above x in float32 or float64."""
    if not single:
        return math.nextafter(x, math.inf)
    with np.errstate(over="ignore", under="ignore"):
        return float(np.nextafter(np.float32(x), np.float32(np.inf)))


def digits(x: float, dtype: np.dtype) -> str:
    """The fewest digits that read back as the same number of the dtype.

    Examples
    --------
    >>> digits(0.1 + 0.2, np.dtype(float)), digits(np.float32(0.1), np.dtype(np.float32))
    ('0.30000000000000004', '0.1')
    """
    if x == 0:  # both zeros are one key of a cache
        return "-0" if np.signbit(x) else "0"
    return _digits(float(x), dtype == np.float32)


@functools.lru_cache(maxsize=1 << 16)
def _digits(x: float, single: bool) -> str:
    if not np.isfinite(x):
        return str(x)
    for n in range(1 if single else max(_least(x), 1), 18):
        text = _of(Decimal(x), n)
        back = float(text)
        with np.errstate(over="ignore", under="ignore"):
            if (float(np.float32(back)) if single else back) == x:
                return _plain(text)
    # A number that is not a float32 has all its digits.
    return _digits(x, False)


def rounded(x: float) -> str:
    """Four digits, marked with ≈ where there are more.

    Examples
    --------
    >>> [rounded(x) for x in (1782.5, 3.0, 2 / 3, 123456)]
    ['≈1783', '3', '≈0.6667', '123456']
    """
    text, is_exact = few_digits(x)
    return text if is_exact else f"≈{text}"


def few_digits(x: float) -> tuple[str, bool]:
    """Four digits (all of a whole number below a million), and whether that is all there is."""
    x = float(x)
    if not np.isfinite(x):
        return str(x), True
    if x == np.trunc(x) and abs(x) < 1e6:
        return str(int(x)), True
    text = _of(Decimal(x), FEW)
    return _plain(text), float(text) == x


def percent(share: float) -> str:
    """A share in whole percent, marked where it is rounded; never 0 or 100 unless it is.

    Examples
    --------
    >>> [percent(share) for share in (0.5, 2 / 3, 0.999, 1.0)]
    ['50%', '≈67%', '>99%', '100%']
    """
    value = 100.0 * float(share)
    nearest = math.floor(value + 0.5)
    if nearest == 100 and value < 100:
        return ">99%"
    if nearest == 0 and value > 0:
        return "<1%"
    return f"{'' if nearest == value else '≈'}{nearest}%"


def _of(x: Decimal, n: int) -> str:
    """x rounded to n digits, as mantissa and exponent."""
    return f"{_ROUNDED[n - 1].create_decimal(x):e}"


def _least(x: float) -> int:
    """So many digits at least tell a float64 from its neighbours."""
    return len(repr(x).partition("e")[0].replace(".", "").strip("-0"))


def _parts(text: str) -> tuple[int, int]:
    """The whole number and the power of ten of such a text."""
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    return int(whole + fraction), int(exponent) - len(fraction)


def _step_up(text: str) -> str:
    """The next number above with as many digits."""
    mantissa, power = _parts(text)
    return f"{mantissa + 1}e{power}"


def _plain(text: str) -> str:
    """As people write it: 30, 0.25, 1e-35."""
    mantissa, power = _parts(text)
    if not mantissa:
        return "0"
    sign, figures = "-" if mantissa < 0 else "", str(abs(mantissa))
    short = figures.rstrip("0")
    power += len(figures) - len(short)
    exponent = power + len(short) - 1
    if not -5 < exponent < MOST_PLAIN:
        fraction = f".{short[1:]}" if short[1:] else ""
        return f"{sign}{short[0]}{fraction}e{exponent}"
    if power >= 0:
        return sign + short + "0" * power
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{short}"
    return f"{sign}{short[: exponent + 1]}.{short[exponent + 1 :]}"
