"""The show room: pictures of machines (extra `plot`)."""

from __future__ import annotations

from .templates import plot_templates

__all__ = ["plot_templates"]
