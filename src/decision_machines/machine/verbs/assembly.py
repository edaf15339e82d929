"""Predicting with an assembly, and saving it: what other rooms do with one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import UnsupportedModelError
from ..made_once import made_once
from ..soft import RULE

if TYPE_CHECKING:
    import os

    import numpy as np
    from jaxtyping import Float

    from ...run.soft import SoftEngine
    from ..assembly import Assembly


class AssemblyVerbs:
    """Predicting with an assembly, and saving it."""

    def predict(
        self: Assembly, X: Any, *, n_threads: int | None = None, engine: str = "auto"
    ) -> np.ndarray:
        """What the source's `predict` gives for the rows of X; see `DecisionMachine.predict`."""
        from ...run.assemblies import predict

        return predict(self, X, n_threads=n_threads, engine=engine)

    def predict_proba(
        self: Assembly, X: Any, *, n_threads: int | None = None, engine: str = "auto"
    ) -> Float[np.ndarray, "m c"] | list[Float[np.ndarray, "m c"]]:
        """What the source's `predict_proba` gives; see `DecisionMachine.predict_proba`."""
        from ...run.assemblies import predict_proba

        found: Float[np.ndarray, "m c"] | list[Float[np.ndarray, "m c"]]
        found = predict_proba(self, X, n_threads=n_threads, engine=engine)
        return found

    def predict_quantiles(
        self: Assembly,
        X: Any,
        quantiles: Any = None,
        *,
        interpolation: str = "linear",
        weighted_quantile: bool = True,
        weighted_leaves: bool = False,
        aggregate_leaves_first: bool = True,
        n_threads: int | None = None,
        engine: str = "auto",
    ) -> np.ndarray:
        """Quantiles of the training targets in the leaves of a quantile-forest model.

        Parameters
        ----------
        quantiles
            A number from 0 to 1, several of them, "mean", or None for the model's own.
        interpolation, weighted_quantile, weighted_leaves, aggregate_leaves_first
            The options of quantile-forest's `predict`.

        Returns
        -------
        np.ndarray
            (m,) for one quantile, (m, q) for several; (m, targets, q) where there are several
            targets.
        """
        from ...run.assemblies import predict_quantiles

        return predict_quantiles(
            self, X, quantiles, interpolation=interpolation, weighted_quantile=weighted_quantile,
            weighted_leaves=weighted_leaves, aggregate_leaves_first=aggregate_leaves_first,
            n_threads=n_threads, engine=engine,
        )  # fmt: skip

    def predict_survival_function(
        self: Assembly, X: Any, *, n_threads: int | None = None, engine: str = "auto"
    ) -> Float[np.ndarray, "m times"]:
        """(m, times) the probability to survive each of `event_times`, of a survival model."""
        from ...run.assemblies import answer

        found: Float[np.ndarray, "m times"]
        found = answer(self, "predict_survival_function", X, n_threads=n_threads, engine=engine)
        return found

    def predict_cumulative_hazard_function(
        self: Assembly, X: Any, *, n_threads: int | None = None, engine: str = "auto"
    ) -> Float[np.ndarray, "m times"]:
        """(m, times) the hazard up to each of `event_times`, of a survival model."""
        from ...run.assemblies import answer

        found: Float[np.ndarray, "m times"]
        found = answer(
            self, "predict_cumulative_hazard_function", X, n_threads=n_threads, engine=engine
        )
        return found

    @property
    def event_times(self: Assembly) -> Float[np.ndarray, "times"]:
        """The times at which a survival model's functions are given."""
        found = self.numbers.get("times")
        if found is None:
            raise UnsupportedModelError(
                "asking an assembly for its event_times",
                f"it is a {self.rule}, not a survival model",
                "convert a model of scikit-survival",
            )
        return found

    def predict_parameters(
        self: Assembly, X: Any, *, n_threads: int | None = None, engine: str = "auto"
    ) -> dict[str, Float[np.ndarray, "m"]]:
        """The parameters of every row's distribution by name, of an NGBoost model."""
        from ...run.assemblies import answer

        found: dict[str, Float[np.ndarray, "m"]]
        found = answer(self, "predict_parameters", X, n_threads=n_threads, engine=engine)
        return found

    @made_once
    def _engine(self: Assembly) -> SoftEngine:
        """Of soft trees: what predicting needs, kept for the next time."""
        from ...run.soft import SoftEngine

        return SoftEngine(self)

    def margin(
        self: Assembly,
        X: Any,
        *,
        n_threads: int | None = None,
        engine: str = "auto",
        skip: float = 0.0,
    ) -> Float[np.ndarray, "m k"]:
        """(m, k) sums of soft trees before the link; other assemblies have none.

        Parameters
        ----------
        engine
            "auto" and "native": the native kernel; "reference": plain NumPy.
        skip
            Paths that carry less weight than this may end in the mean of the leaves below; 0 is
            exact. `run.soft.cut_bound` says what it can change at most.
        """
        from ...run.soft import margin

        if self.rule != RULE:
            self._refuse("margin")
        return margin(self, X, n_threads=n_threads, engine=engine, skip=skip)

    def response(
        self: Assembly, X: Any, *, n_threads: int | None = None, engine: str = "auto"
    ) -> Float[np.ndarray, "m r"]:
        """(m, r) margins of soft trees through the link; other assemblies have none."""
        from ...run.soft import response

        if self.rule != RULE:
            self._refuse("response")
        return response(self, X, n_threads=n_threads, engine=engine)

    def save(self: Assembly, path: str | os.PathLike[str]) -> None:
        """Write it to a `.dm` file, which `dm.load` reads; see `DecisionMachine.save`."""
        from ...libraries.own.write import save

        save(self, path)
