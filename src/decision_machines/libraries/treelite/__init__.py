"""Treelite: written alone; `write.to_treelite`."""

from __future__ import annotations

from ..library import Library


class Treelite(Library):
    name = "treelite"


LIBRARY = Treelite()
