"""The read room: trained models of other libraries, and files, turned into machines exactly.

One file for each library. A field that changes a prediction is read or refused, never ignored.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ..errors import UnsupportedModelError
from ..machine import DecisionMachine

if TYPE_CHECKING:
    from collections.abc import Callable

READERS: dict[str, tuple[str, str]] = {
    "lightgbm": ("lightgbm", "read_lightgbm"),
    "sklearn": ("sklearn", "read_sklearn"),
}
"""The package that a model's class comes from → the file of this room and its function."""


def convert(model: Any) -> DecisionMachine:
    """The machine that answers as `model` does, to the bit.

    Parameters
    ----------
    model
        A fitted tree model of a supported library. A machine is returned as it is.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> convert(model)
    DecisionMachine(1 tree, 3 leaves, depth 2, 4 features, 3 outputs; scikit-learn DecisionTreeClassifier)
    """
    if isinstance(model, DecisionMachine):
        return model
    return reader_of(model)(model)


def reader_of(model: Any) -> Callable[[Any], DecisionMachine]:
    """The reader for an object, found by the package of its class; nothing else is imported."""
    for cls in type(model).__mro__:
        found = READERS.get(cls.__module__.split(".")[0])
        if found is not None:
            module, function = found
            return getattr(importlib.import_module(f"{__name__}.{module}"), function)
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    raise UnsupportedModelError(
        "converting a model",
        f"an object of type {kind}",
        f"pass a fitted tree model of {', '.join(READERS)}, or a file to dm.load",
    )
