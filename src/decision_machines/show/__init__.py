"""The show room: pictures of machines (extra `plot`), and the page to explore them.

Every picture is a display: `plot(ax)` draws it, `ax_` and `figure_` say where.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .attention import AttentionDisplay
from .boundary import BoundaryDisplay
from .curves import LearningCurveDisplay
from .explore import explore
from .html import repr_html
from .shapley import ShapleyDisplay
from .sizes import SizePathDisplay
from .templates import TemplatesDisplay
from .tree import TreeDisplay

if TYPE_CHECKING:
    from ..machine import DecisionMachine

__all__ = [
    "AttentionDisplay",
    "BoundaryDisplay",
    "LearningCurveDisplay",
    "ShapleyDisplay",
    "SizePathDisplay",
    "TemplatesDisplay",
    "TreeDisplay",
    "explore",
    "plot_attention",
    "plot_boundary",
    "plot_learning_curve",
    "plot_shap",
    "plot_templates",
    "plot_tree",
    "repr_html",
]


def plot_tree(machine: DecisionMachine, ax: Any = None, **options: Any) -> TreeDisplay:
    """A tree with its tests and leaves; see `TreeDisplay`."""
    return TreeDisplay(machine, **options).plot(ax)


def plot_templates(machine: DecisionMachine, ax: Any = None, **options: Any) -> TemplatesDisplay:
    """The template matrix B; see `TemplatesDisplay`."""
    return TemplatesDisplay(machine, **options).plot(ax)


def plot_attention(
    machine: DecisionMachine, X: Any, ax: Any = None, **options: Any
) -> AttentionDisplay:
    """The weights over the leaves; see `AttentionDisplay`."""
    return AttentionDisplay(machine, X, **options).plot(ax)


def plot_boundary(
    machine: DecisionMachine, X: Any, ax: Any = None, **options: Any
) -> BoundaryDisplay:
    """The answers over two features; see `BoundaryDisplay`."""
    return BoundaryDisplay(machine, X, **options).plot(ax)


def plot_shap(machine: DecisionMachine, X: Any, ax: Any = None, **options: Any) -> ShapleyDisplay:
    """What each feature adds; see `ShapleyDisplay`."""
    return ShapleyDisplay(machine, X, **options).plot(ax)


def plot_learning_curve(history: Any, ax: Any = None, **options: Any) -> LearningCurveDisplay:
    """Losses against steps, of a history or of what has one; see `LearningCurveDisplay`."""
    history = getattr(history, "history_", getattr(history, "history", history))
    return LearningCurveDisplay(history, **options).plot(ax)
