"""Which size of a tree: how well each size predicts rows that it has not seen."""

from __future__ import annotations

from typing import Any

from .display import LEFT, QUIET, RIGHT, Display


class SizePathDisplay(Display):
    """The score of each size with its standard error, the limit of the rule, and the choice.

    Parameters
    ----------
    path
        An estimator's `path_`, a `SizePath`.

    Examples
    --------
    >>> from decision_machines.train.sizes import SizePath
    >>> path = SizePath("accuracy", (1, 2, 4), (0.6, 0.79, 0.8), (0.05, 0.02, 0.02))
    >>> SizePathDisplay(path).plot().ax_.get_xlabel()
    'leaves'
    """

    size = (7.0, 4.2)

    def __init__(self, path: Any) -> None:
        self.path = path

    def _draw(self, ax: Any) -> None:
        path = self.path
        best, chosen = path.sizes.index(path.best), path.sizes.index(path.chosen)
        ax.errorbar(
            path.sizes,
            path.score,
            path.standard_error,
            color=LEFT,
            marker="o",
            lw=2,
            capsize=3,
            label="± one standard error",
        )
        least = path.score[best] - path.standard_error[best]
        ax.axhline(least, color=QUIET, ls="--", lw=1, label="best less one standard error")
        ax.plot(
            path.chosen,
            path.score[chosen],
            marker="o",
            ms=13,
            mfc="none",
            mec=RIGHT,
            mew=2.5,
            ls="none",
            label=f"chosen: {path.chosen} leaves, {path.name} {path.score[chosen]:.3g}",
        )
        ax.set_xscale("log", base=2)
        ax.set_xticks(path.sizes, [str(size) for size in path.sizes])
        ax.minorticks_off()
        ax.set_xlabel("leaves")
        ax.set_ylabel(f"{path.name} on rows kept apart")
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", color="0.92")
        ax.legend(frameon=False)
        ax.set_title("Size of the tree")
