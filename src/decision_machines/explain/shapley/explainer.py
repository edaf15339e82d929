"""`TreeExplainer`: the names and shapes of `shap.TreeExplainer`, computed here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError, MissingLibraryError
from ...libraries import convert
from ...machine import DecisionMachine
from .shares import DOING

if TYPE_CHECKING:
    from jaxtyping import Float

MODEL_OUTPUTS = {"raw": "margin", "margin": "margin", "probability": "probability"}
PERTURBATIONS = ("auto", "interventional", "tree_path_dependent")


class TreeExplainer:
    """Exact Shapley values of a tree model, called as `shap.TreeExplainer` is.

    Parameters
    ----------
    model
        A fitted model of any library that `dm.convert` reads, or a machine.
    data
        Background rows. Without them values go by the covers that the model stores, as its own
        library's contributions do.
    model_output
        "raw": values of the margin. "probability": of the response; needs `data`.
    feature_perturbation
        "interventional" needs `data`, "tree_path_dependent" takes none; "auto" goes by `data`.
    feature_names
        Names for plots; by default the model's own.
    n_threads
        Threads to use; by default all that the process may run on.

    Attributes
    ----------
    expected_value
        What the values of a row add to: a number, or (outputs,).

    Examples
    --------
    >>> import decision_machines as dm
    >>> rows = np.array([[2, 1, 2, 2], [0, 0, 0, 0], [9, 9, 9, 9]])
    >>> explainer = dm.TreeExplainer(dm.figure_one(), rows)
    >>> explainer.shap_values(rows[:1]).shape
    (1, 4)
    """

    def __init__(
        self,
        model: Any,
        data: Any = None,
        model_output: str = "raw",
        feature_perturbation: str = "auto",
        feature_names: Any = None,
        *,
        n_threads: int | None = None,
    ) -> None:
        if model_output not in MODEL_OUTPUTS:
            raise InputError(
                DOING, f"model_output={model_output!r}", f"use one of {', '.join(MODEL_OUTPUTS)}"
            )
        if feature_perturbation not in PERTURBATIONS:
            raise InputError(
                DOING,
                f"feature_perturbation={feature_perturbation!r}",
                f"use one of {', '.join(PERTURBATIONS)}",
            )
        if feature_perturbation == "interventional" and data is None:
            raise InputError(
                DOING,
                "feature_perturbation='interventional' without data",
                "give background rows as data, or use 'tree_path_dependent'",
            )
        if feature_perturbation == "tree_path_dependent":
            data = None
        self.machine = model if isinstance(model, DecisionMachine) else convert(model)
        self.model = model
        self.data = data
        self.n_threads = n_threads
        self.feature_names = feature_names
        self.output = MODEL_OUTPUTS[model_output]
        self.expected_value = self.machine.shap_base(data, output=self.output)

    def shap_values(
        self, X: Any, y: Any = None, check_additivity: bool = False
    ) -> Float[np.ndarray, "m n ..."]:
        """(m, n_features) values, or (m, n_features, outputs); see `DecisionMachine.shap_values`.

        Parameters
        ----------
        X
            Rows as for `predict`.
        y
            Not supported: values of a loss.
        check_additivity
            Whether to check that values add up to the margin; they do, whatever the rows.
        """
        if y is not None:
            raise InputError(
                DOING, "labels y, for values of a loss", "leave y out: values of margins are given"
            )
        found = self.machine.shap_values(X, self.data, n_threads=self.n_threads, output=self.output)
        if check_additivity and self.output == "margin":
            margins = self.machine.margin(X)
            total = found.sum(axis=1).reshape(margins.shape) + self.expected_value
            gap = float(np.max(np.abs(total - margins), initial=0.0))
            if gap > 1e-3 * max(float(np.max(np.abs(margins), initial=0.0)), 1.0):
                raise InputError(
                    DOING,
                    f"values that miss the margin by {gap:.3g}",
                    "please report this model: it is a bug in decision-machines",
                )
        return found

    def shap_interaction_values(self, X: Any, y: Any = None) -> Float[np.ndarray, "m n n ..."]:
        """(m, n_features, n_features) interactions, with outputs last where there are several.

        Parameters
        ----------
        X
            Rows as for `predict`.
        y
            Not supported: values of a loss.
        """
        if y is not None:
            raise InputError(
                DOING, "labels y, for values of a loss", "leave y out: values of margins are given"
            )
        return self.machine.shap_interaction_values(X, self.data, n_threads=self.n_threads)

    def __call__(self, X: Any, y: Any = None, interactions: bool = False) -> Any:
        """A `shap.Explanation` of the rows, for shap's plots; needs shap."""
        try:
            from shap import Explanation
        except ModuleNotFoundError as error:
            if error.name != "shap":
                raise
            raise MissingLibraryError(
                "making a shap.Explanation",
                "shap is not installed",
                "pip install shap, or use explainer.shap_values(X) and machine.plot_shap(X)",
            ) from None
        values = self.shap_interaction_values(X, y) if interactions else self.shap_values(X, y)
        data = self.machine.features(X)
        base = np.asarray(self.expected_value)
        names = self.feature_names
        if names is None:
            columns = self.machine.columns
            names = [columns.feature_name(f) for f in range(columns.n_features)]
        return Explanation(
            values,
            base_values=np.tile(base, (len(data), *([1] * base.ndim))),
            data=data,
            feature_names=list(names),
        )
