"""Showing a machine: pictures, a page, a notebook."""

from __future__ import annotations

from .room import room


class ShowVerbs:
    """Showing a machine: pictures, a page, a notebook."""

    def plot_tree(self, ax=None, *, tree: int | None = None, x=None, X=None):
        """Draw a tree (extra `plot`): the path of a row `x` lit, branches as thick as rows `X` go.

        Returns a display, as do all pictures: `ax_` and `figure_` are matplotlib's.
        """
        return room("show").plot_tree(self, ax, tree=tree, x=x, X=X)

    def explore(
        self,
        path,
        X=None,
        y=None,
        *,
        open: bool = False,
        title: str | None = None,
        max_rows: int = 1000,
    ):
        """Write one HTML page in which the machine can be explored; returns its path.

        The page needs no server and no network. It draws each tree beside its S, t, B and V,
        computes in the machine's own arithmetic while x is moved, and shows what would change the
        answer.

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
        """
        return room("show").explore(self, path, X, y, open=open, title=title, max_rows=max_rows)

    def plot_templates(self, ax=None, *, trees=None):
        """Draw the template matrix B (extra `plot`)."""
        return room("show").plot_templates(self, ax, trees=trees)

    def plot_attention(
        self, X, ax=None, *, tau: float | None = None, form="soft_tree", tree: int | None = None
    ):
        """Draw the weights of rows X over the leaves: the tree's own, or soft ones at τ."""
        return room("show").plot_attention(self, X, ax, tau=tau, form=form, tree=tree)

    def plot_boundary(self, X, ax=None, *, features=(0, 1), y=None, at=None, resolution: int = 200):
        """Draw the answers over two features, the others held at the row `at` or at medians."""
        return room("show").plot_boundary(
            self, X, ax, features=features, y=y, at=at, resolution=resolution
        )

    def _repr_html_(self) -> str:
        return room("show").repr_html(self)
