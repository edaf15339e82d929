"""Showing a machine: pictures, a page, a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from ...show import (
        AttentionDisplay,
        BoundaryDisplay,
        ShapleyDisplay,
        TemplatesDisplay,
        TreeDisplay,
    )
    from ..machine import DecisionMachine


class ShowVerbs:
    """Showing a machine: pictures, a page, a notebook."""

    def plot_tree(
        self: DecisionMachine,
        ax: Axes | None = None,
        *,
        tree: int | None = None,
        x: Any = None,
        X: Any = None,
    ) -> TreeDisplay:
        """Draw a tree (extra `plot`).

        Returns a display, as do all pictures: `ax_` and `figure_` are matplotlib's.

        Parameters
        ----------
        ax
            Matplotlib's axes to draw on; new ones by default.
        tree
            Which of the trees; may be left out where there is one.
        x
            A row whose path is highlighted.
        X
            Rows that are counted: the more go along a branch, the thicker it is.
        """
        from ...show import plot_tree

        return plot_tree(self, ax, tree=tree, x=x, X=X)

    def explore(
        self: DecisionMachine,
        path: str | os.PathLike[str],
        X: Any = None,
        y: Any = None,
        *,
        open: bool = False,
        title: str | None = None,
        max_rows: int = 1000,
    ) -> Path:
        """Write one HTML page in which the machine can be explored; returns its path.

        The page needs no server and no network. It draws each tree beside its S, t, B and V,
        computes in the machine's own arithmetic while x is moved, and shows what would change the
        prediction.

        Parameters
        ----------
        path
            The file to write.
        X, y
            Rows to choose from, and what is known of them; of more than `max_rows`, as many are
            kept, evenly spread, and the page says so.
        open
            Whether to show the page in the browser.
        title
            The heading; by default what the machine was read from.
        max_rows
            How many rows the page holds at most.
        """
        from ...show.explore import explore

        return explore(self, path, X, y, open=open, title=title, max_rows=max_rows)

    def plot_templates(
        self: DecisionMachine, ax: Axes | None = None, *, trees: Iterable[int] | None = None
    ) -> TemplatesDisplay:
        """Draw the template matrix B (extra `plot`).

        Parameters
        ----------
        ax
            Matplotlib's axes to draw on; new ones by default.
        trees
            The trees to draw; all by default.
        """
        from ...show import plot_templates

        return plot_templates(self, ax, trees=trees)

    def plot_attention(
        self: DecisionMachine,
        X: Any,
        ax: Axes | None = None,
        *,
        tau: float | None = None,
        form: str = "soft_tree",
        tree: int | None = None,
    ) -> AttentionDisplay:
        """Draw the weights of rows X over the leaves: the tree's own, or soft ones at τ.

        The parameters are described at `AttentionDisplay`.
        """
        from ...show import plot_attention

        return plot_attention(self, X, ax, tau=tau, form=form, tree=tree)

    def plot_boundary(
        self: DecisionMachine,
        X: Any,
        ax: Axes | None = None,
        *,
        features: Sequence[int | str] = (0, 1),
        y: Any = None,
        at: Any = None,
        resolution: int = 200,
    ) -> BoundaryDisplay:
        """Draw the predictions over two features, the others held at the row `at` or at medians.

        The parameters are described at `BoundaryDisplay`.
        """
        from ...show import plot_boundary

        return plot_boundary(self, X, ax, features=features, y=y, at=at, resolution=resolution)

    def plot_shap(
        self: DecisionMachine,
        X: Any,
        ax: Axes | None = None,
        *,
        kind: str = "beeswarm",
        feature: int | str | None = None,
        background: Any = None,
        output: int = 0,
        most: int = 15,
    ) -> ShapleyDisplay:
        """Draw what each feature adds to the margin: bar, beeswarm, waterfall or dependence.

        The parameters are described at `ShapleyDisplay`.
        """
        from ...show import plot_shap

        return plot_shap(
            self,
            X,
            ax,
            kind=kind,
            feature=feature,
            background=background,
            output=output,
            most=most,
        )

    def _repr_html_(self: DecisionMachine) -> str:
        from ...show.html import repr_html

        return repr_html(self)
