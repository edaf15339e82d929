"""What databases call the same thing: names, numbers, texts, types, by sqlglot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import InputError
from ..limits import require

EXACT = ("duckdb", "postgres")
"""Databases in which the tests compare margins with the machine's, bit for bit."""
KNOWN = (*EXACT, "sqlite", "bigquery", "snowflake")
DOING = "writing a machine as SQL"
CASELESS = ("duckdb", "sqlite", "bigquery")
"""To which "a" and "A" are one column."""
SINGLE = {"duckdb": "REAL", "postgres": "REAL"}
"""How a dialect calls float32, where it computes in it."""


@dataclass(frozen=True)
class Dialect:
    """How one database writes what a machine needs.

    Examples
    --------
    >>> postgres = Dialect.named("postgres")
    >>> postgres.identifier("a"), postgres.text("it's"), postgres.number(0.1)
    ('"a"', "'it''s'", 'CAST(0.1e0 AS DOUBLE PRECISION)')
    """

    name: str
    double: str
    glot: Any

    @classmethod
    def named(cls, name: str) -> Dialect:
        """The dialect of this name, refused where it is not known."""
        if name not in KNOWN:
            raise InputError(DOING, f"dialect={name!r:.60}", f"use one of {', '.join(KNOWN)}")
        glot = require("sqlglot", DOING, "sql")
        return cls(name, glot.exp.DataType.build("double").sql(dialect=name), glot)

    def identifier(self, name: str) -> str:
        """A column's or table's name, in quotes, so that it can be any text."""
        if "\0" in name or not name:
            raise InputError(DOING, f"the name {name!r:.60}", "give names that are not empty")
        found: str = self.glot.exp.to_identifier(name, quoted=True).sql(dialect=self.name)
        return found

    def text(self, value: str) -> str:
        """A text as a literal."""
        found: str = self.glot.exp.Literal.string(value).sql(dialect=self.name)
        return found

    def number(self, value: float, single: bool = False) -> str:
        """A number of float64, or of float32, with all of its digits."""
        value = float(value)
        kind = SINGLE[self.name] if single else self.double
        if np.isfinite(value):
            # With an exponent it is read as a floating-point number at once; without one some
            # databases read a decimal, and round twice.
            digits = repr(value)
            digits = digits if "e" in digits else digits + "e0"
            # DuckDB reads it as a double already, and plans faster without the casts.
            is_typed = self.name == "duckdb" and not single
            return digits if is_typed else f"CAST({digits} AS {kind})"
        named = "NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        if self.name == "sqlite":
            return {"NaN": "NULL", "Infinity": "9e999", "-Infinity": "-9e999"}[named]
        return f"CAST('{named}' AS {kind})"

    def as_double(self, expression: str) -> str:
        return f"CAST({expression} AS {self.double})"

    def no_nan(self, expression: str) -> str:
        """NULL where a number is NaN; databases hold NaN for equal to itself."""
        if self.name == "sqlite":
            return expression
        if self.name == "bigquery":
            return f"IF(IS_NAN({expression}), NULL, {expression})"
        return f"NULLIF({expression}, {self.number(np.nan)})"
