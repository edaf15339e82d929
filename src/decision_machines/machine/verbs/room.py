"""The rooms that do a machine's verbs."""

from __future__ import annotations

import functools
import importlib


@functools.cache
def room(name: str):
    """The room that does a verb, looked up when the verb is used: this room imports no other."""
    return importlib.import_module(f"decision_machines.{name}")
