"""Shapley values drawn: over many rows, for one row, and a feature's values beside its shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..machine.feature_names import feature_number
from .display import LEFT, QUIET, RIGHT, Display

if TYPE_CHECKING:
    from ..machine import DecisionMachine

DOING = "drawing Shapley values"
KINDS = ("bar", "beeswarm", "waterfall", "dependence")


class ShapleyDisplay(Display):
    """What each feature adds to the margin of rows.

    Parameters
    ----------
    machine
        With covers, or with a background given.
    X
        Rows; of a waterfall one row.
    kind
        "bar": the mean of ``|φ|`` over the rows, feature by feature. "beeswarm": every row's value
        of every feature, coloured by the feature's own value. "waterfall": how one row's margin
        comes about, from the base upwards. "dependence": a feature's value against its share.
    feature
        Of "dependence": a name or a number; by default the one with the largest mean of ``|φ|``.
    background
        As in `shap_values`.
    output
        Which output to draw, of a machine with several.
    most
        How many features are drawn; those with the largest values.

    Examples
    --------
    >>> import decision_machines as dm
    >>> rows = [[2, 1, 2, 2], [0, 0, 0, 0], [9, 9, 9, 9]]
    >>> shown = ShapleyDisplay(dm.figure_one(), rows, background=rows)
    >>> shown.values.shape
    (3, 4)
    """

    def __init__(
        self,
        machine: DecisionMachine,
        X: Any,
        *,
        kind: str = "beeswarm",
        feature: int | str | None = None,
        background: Any = None,
        output: int = 0,
        most: int = 15,
    ) -> None:
        if kind not in KINDS:
            raise InputError(DOING, f"kind={kind!r}", f"use one of {', '.join(KINDS)}")
        if not isinstance(output, (int, np.integer)) or not 0 <= output < machine.n_outputs:
            raise InputError(
                DOING, f"output={output!r}", f"use a number from 0 to {machine.n_outputs - 1}"
            )
        if kind == "waterfall" and np.ndim(X) == 1 and not hasattr(X, "columns"):
            X = np.asarray(X)[None]
        values = machine.shap_values(X, background)
        if not len(values):
            raise InputError(DOING, "no rows", "give at least one")
        if kind == "waterfall" and len(values) != 1:
            raise InputError(
                DOING, f"{len(values)} rows for one waterfall", "give one row, such as X[:1]"
            )
        self.kind = kind
        self.values = values if values.ndim == 2 else values[:, :, output]
        self.base = float(np.atleast_1d(machine.shap_base(background))[output])
        self.x = np.asarray(machine.features(X), np.float64)
        columns = machine.columns
        self.names = [columns.feature_name(f) for f in range(columns.n_features)]
        self.labels = columns.categories
        mean = np.abs(self.values).mean(axis=0)
        self.order = np.argsort(-mean, kind="stable")[: max(int(most), 1)]
        self.feature = (
            int(self.order[0]) if feature is None else feature_number(columns, feature, doing=DOING)
        )
        height = 1.2 + 0.32 * (len(self.order) + 1)
        self.size = (7.0, 4.2) if kind == "dependence" else (7.0, height)

    def _value(self, f: int) -> str:
        """The row's value of a feature in words; its label, where it has one."""
        x = self.x[0, f]
        if np.isnan(x):
            return "missing"
        labels = self.labels.get(f, ())
        return str(labels[int(x)]) if 0 <= x < len(labels) and x == int(x) else f"{x:.4g}"

    def _draw(self, ax: Any) -> None:
        getattr(self, f"_draw_{self.kind}")(ax)
        ax.spines[["top", "right"]].set_visible(False)

    def _draw_bar(self, ax: Any) -> None:
        shown = self.order[::-1]
        mean = np.abs(self.values).mean(axis=0)[shown]
        ax.barh(range(len(shown)), mean, color=LEFT, height=0.7)
        for i, value in enumerate(mean):
            ax.annotate(
                f"{value:.3g}", (value, i), (4, 0), textcoords="offset points", va="center",
                color="0.35", fontsize=8,
            )  # fmt: skip
        ax.set_yticks(range(len(shown)), [self.names[f] for f in shown])
        ax.margins(x=0.12)
        ax.set_xlabel("mean of |φ|, in units of the margin")
        ax.set_title(f"What matters, over {_rows(len(self.values))}")

    def _draw_beeswarm(self, ax: Any) -> None:
        shown = self.order[::-1]
        span = float(np.ptp(self.values)) or 1.0
        ax.axvline(0, color="0.8", lw=1, zorder=0)
        for i, f in enumerate(shown):
            values = self.values[:, f]
            shade = _ranks(self.x[:, f])
            drawn = ax.scatter(
                values, i + _spread(values, span), c=np.nan_to_num(shade, nan=0.5), cmap="coolwarm",
                vmin=0, vmax=1, s=9, lw=0,
            )  # fmt: skip
            gone = np.isnan(shade)
            if np.any(gone):
                ax.scatter(values[gone], (i + _spread(values, span))[gone], c=QUIET, s=9, lw=0)
        ax.set_yticks(range(len(shown)), [self.names[f] for f in shown])
        ax.set_ylim(-0.6, len(shown) - 0.4)
        bar = ax.figure.colorbar(drawn, ax=ax, ticks=[0, 1], aspect=30, pad=0.02)
        bar.ax.set_yticklabels(["low", "high"])
        bar.set_label("the feature's value (grey: missing)")
        bar.outline.set_visible(False)
        ax.set_xlabel("φ: what the feature adds to the margin")
        ax.set_title(f"Shapley values of {_rows(len(self.values))}")

    def _draw_waterfall(self, ax: Any) -> None:
        values = self.values[0]
        shown = self.order.tolist()
        rest = float(values.sum() - values[shown].sum())
        steps = [(f"{self.names[f]} = {self._value(f)}", float(values[f])) for f in shown]
        if len(shown) < len(values):
            steps.append((f"{len(values) - len(shown)} more features", rest))
        at, n = self.base, len(steps)
        spans = [at]
        for i, (_, value) in enumerate(steps):
            y = n - 1 - i
            ax.barh(y, value, left=at, color=RIGHT if value > 0 else LEFT, height=0.62)
            ax.plot([at + value] * 2, [y - 0.31, max(y - 1.31, -0.9)], color="0.7", lw=0.8)
            side = 1 if value >= 0 else -1
            ax.annotate(
                f"{value:+.3g}", (at + value, y), (4 * side, 0), textcoords="offset points",
                va="center", ha="left" if side > 0 else "right", fontsize=8, color="0.25",
            )  # fmt: skip
            at += value
            spans.append(at)
        ax.axvline(self.base, color="0.8", lw=1, ls="--", zorder=0)
        ax.set_yticks(range(n), [name for name, _ in steps[::-1]])
        ax.set_ylim(-0.9, n - 0.4)
        ax.use_sticky_edges = False
        ax.margins(x=0.14)
        ax.set_xlabel(f"margin: from {self.base:.4g} (no feature known) to {at:.4g}")
        ax.set_title("How one margin comes about")

    def _draw_dependence(self, ax: Any) -> None:
        x, phi = self.x[:, self.feature], self.values[:, self.feature]
        ax.axhline(0, color="0.85", lw=1, zorder=0)
        known = ~np.isnan(x)
        ax.scatter(x[known], phi[known], s=12, color=LEFT, lw=0, alpha=0.8)
        if np.any(~known):
            left = float(np.min(x[known], initial=0.0))
            ax.scatter(
                np.full(int((~known).sum()), left), phi[~known], s=18, color=QUIET, marker="x",
                label="missing",
            )  # fmt: skip
            ax.legend(frameon=False)
        ax.set_xlabel(self.names[self.feature])
        ax.set_ylabel(f"φ of {self.names[self.feature]}")
        ax.set_title(f"A feature's value and what it adds, over {_rows(len(x))}")


def _rows(n: int) -> str:
    return f"{n} row{'' if n == 1 else 's'}"


def _ranks(x: np.ndarray) -> np.ndarray:
    """The rank of each value from 0 to 1, ties alike; NaN stays."""
    known = np.unique(x[~np.isnan(x)])
    found = np.searchsorted(known, x) / max(len(known) - 1, 1)
    return np.where(np.isnan(x), np.nan, found)


def _spread(values: np.ndarray, span: float) -> np.ndarray:
    """How far each point is moved off its line, so that points close to each other stay apart."""
    place = np.round(values / span * 120).astype(np.int64)
    found = np.zeros(len(values))
    for p in np.unique(place):
        own = np.flatnonzero(place == p)
        order = np.arange(len(own))
        side = np.where(order % 2 == 0, 1, -1) * ((order + 1) // 2)
        found[own] = side * min(0.06, 0.8 / max(len(own), 1))
    return found
