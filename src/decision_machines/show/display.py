"""What all pictures share: the convention of displays, colours, and the library that draws.

A display holds what it draws; `plot` draws it, on given axes or on new ones, and leaves `ax_` and
`figure_` behind, as scikit-learn's displays do.
"""

from __future__ import annotations

from typing import Any, Self

from ..errors import InputError, MissingLibraryError

LEFT, RIGHT = "#3b6fb6", "#d9822b"
"""Blue and orange: told apart by most colour-blind readers, and in grey."""
QUIET = "#9aa3ad"
CLASSES = (
    *("#3b6fb6", "#d9822b", "#2a9d73", "#b65a9b", "#c9b31f", "#6fb7d6", "#a0522d", "#555b66"),
)
"""For classes, told apart by most colour-blind readers; repeated where there are more."""


class Display:
    """A picture that can be drawn again.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn last.
    """

    size = (7.0, 5.0)

    def plot(self, ax: Any = None) -> Self:
        """Draw on these matplotlib axes, or on new ones."""
        plt = pyplot()
        if ax is None:
            _, ax = plt.subplots(figsize=self.size, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(ax)
        return self

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError


def pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingLibraryError(
            "drawing a picture",
            "matplotlib is not installed",
            "pip install 'decision-machines[plot]'",
        ) from None
    return plt


def one_tree(machine: Any, tree: int | None, doing: str) -> Any:
    """The tree to draw; a machine of many must be told which."""
    if tree is None and machine.n_trees != 1:
        raise InputError(
            doing, f"a machine of {machine.n_trees} trees", "choose one of them: tree=0"
        )
    return machine.tree(tree or 0)
