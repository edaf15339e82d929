"""What a machine answers over two of its features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..machine.coded import coded
from ..machine.feature_names import feature_number
from ..run.inputs.given_rows import given_row
from .display import CLASSES, Display

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..machine import DecisionMachine

DOING = "drawing a boundary"


class BoundaryDisplay(Display):
    """The answers over a plane of two features, the others held still, with the rows on it.

    Parameters
    ----------
    X
        Rows that say how far the plane reaches; drawn on it.
    features
        The two, as numbers or names.
    y
        Labels or targets that colour the rows.
    at
        A row whose other features are held; the medians of X by default.
    resolution
        Points along each side.

    Attributes
    ----------
    xx0, xx1
        (r, r) the grid.
    response
        (r, r) the class' number at each point, or the prediction.
    """

    def __init__(
        self,
        machine: DecisionMachine,
        X: Any,
        *,
        features: Sequence[int | str] = (0, 1),
        y: Any = None,
        at: Any = None,
        resolution: int = 200,
    ) -> None:
        if machine.output.classes is not None and len(machine.output.classes) > 1:
            raise InputError(
                DOING, f"{len(machine.output.classes)} targets", "draw a model of one target"
            )
        if resolution < 2:
            raise InputError(DOING, f"resolution = {resolution}", "use 2 points or more")
        self.machine = machine
        self.X = machine.features(X, dtype=np.float64)
        self.features = [feature_number(machine.columns, f, doing=DOING) for f in features]
        if len(set(self.features)) != 2:
            raise InputError(DOING, f"features {list(features)}", "choose two different ones")
        self.y = None if y is None else np.asarray(y)
        if len(self.X) == 0 or (self.y is not None and len(self.y) != len(self.X)):
            raise InputError(
                DOING,
                f"{len(self.X)} rows" + ("" if self.y is None else f" and {len(self.y)} targets"),
                "give at least one row, and a target for each where any are given",
            )
        points = [self._side(f, resolution) for f in self.features]
        self.xx0, self.xx1 = np.meshgrid(*points)
        with np.errstate(all="ignore"):
            middle = np.nanmedian(self.X, axis=0)
        held = middle if at is None else given_row(at, machine.columns, DOING)
        grid = np.tile(held, (self.xx0.size, 1))
        grid[:, self.features] = np.column_stack([self.xx0.ravel(), self.xx1.ravel()])
        answer = np.asarray(coded(machine).predict(grid))
        if answer.ndim > 1:
            raise InputError(DOING, f"{answer.shape[1]} outputs", "draw a model of one output")
        self.response = self._codes(answer).reshape(self.xx0.shape)

    def _side(self, feature: int, resolution: int) -> np.ndarray:
        x = self.X[:, feature]
        x = x[np.isfinite(x)]
        low, high = (x.min(), x.max()) if len(x) else (0.0, 1.0)
        edge = 0.05 * (high - low) or 1.0
        return np.linspace(low - edge, high + edge, resolution)

    def _codes(self, answer: np.ndarray) -> np.ndarray:
        classes = self.machine.output.classes
        if classes is None:
            return answer.astype(float)
        place = {label: i for i, label in enumerate(classes[0].tolist())}
        return np.array([place.get(label, -1) for label in answer.tolist()])

    def _draw(self, ax: Any) -> None:
        from matplotlib.colors import ListedColormap

        classes = self.machine.output.classes
        extent = (self.xx0[0, 0], self.xx0[0, -1], self.xx1[0, 0], self.xx1[-1, 0])
        how = {"origin": "lower", "extent": extent, "aspect": "auto", "interpolation": "nearest"}
        x0, x1 = (self.X[:, f] for f in self.features)
        if classes is None:
            image = ax.imshow(self.response, cmap="cividis", **how)
            ax.figure.colorbar(image, ax=ax, label="prediction")
            colours = self.y if self.y is not None else "0.2"
            same = {} if self.y is None else {"cmap": "cividis", "norm": image.norm}
            ax.scatter(x0, x1, c=colours, s=14, edgecolor="white", linewidth=0.4, **same)
        else:
            n = len(classes[0])
            palette = [CLASSES[i % len(CLASSES)] for i in range(n)]
            shown = ListedColormap(palette)
            ax.imshow(self.response, cmap=shown, vmin=-0.5, vmax=n - 0.5, alpha=0.35, **how)
            codes = None if self.y is None else self._codes(self.y)
            for i, label in enumerate(classes[0].tolist()):
                of = np.ones(len(x0), bool) if codes is None else codes == i
                if codes is None and i:
                    break
                marker = "os^Dv<>P"[i % 8]
                colour = "0.25" if codes is None else palette[i]
                name = None if codes is None else str(label)
                ax.scatter(
                    *(x0[of], x1[of]),
                    **{"s": 16, "color": colour, "marker": marker, "label": name},
                    **{"edgecolor": "white", "linewidth": 0.4},
                )
            if codes is not None:
                ax.legend(title="class", framealpha=0.9)
        labels = [self.machine.columns.feature_name(f) for f in self.features]
        ax.set(xlabel=labels[0], ylabel=labels[1], title="Answers over two features")
