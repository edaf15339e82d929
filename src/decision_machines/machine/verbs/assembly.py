"""Predicting with an assembly, and saving it: what other rooms do with one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os

    import numpy as np
    from jaxtyping import Float

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

    def save(self: Assembly, path: str | os.PathLike[str]) -> None:
        """Write it to a `.dm` file, which `dm.load` reads; see `DecisionMachine.save`."""
        from ...libraries.own.write import save

        save(self, path)
