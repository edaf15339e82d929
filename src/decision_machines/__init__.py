"""Decision Machines: decision trees as matrices.

A tree is four matrices: S selects a feature for each test, t holds thresholds, the ternary
templates B say which answers each leaf asks for, V holds the leaves' values. The exit leaf is the
one whose template matches h = sgn(S x - t): hard attention.

>>> import decision_machines as dm
>>> machine = dm.figure_one()
>>> machine.predict([[2, 1, 2, 2]])
array([5.])
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from .errors import (
    DecisionMachinesError,
    InexactWarning,
    InputError,
    InvariantError,
    MissingLibraryError,
    ModelFormatError,
    NotATreeError,
    TimedOutError,
    UnsupportedModelError,
    UntestedReleaseWarning,
)
from .libraries import convert, load
from .machine import (
    Assembly,
    CategorySets,
    Columns,
    DecisionMachine,
    LinearLeaves,
    Output,
    Rule,
    Trees,
    column_rank,
    direct_sum,
    exit_is_unique,
    figure_one,
    tree_of_templates,
)
from .run.engines.processor import engine_info

__version__ = "0.1.0"

# What is not progress is told here; without a handler of the user's own it is heard by nobody.
logging.getLogger(__name__).addHandler(logging.NullHandler())

__all__ = [
    "Assembly",
    "CategorySets",
    "Columns",
    "DecisionMachine",
    "DecisionMachinesError",
    "InexactWarning",
    "InputError",
    "InvariantError",
    "LinearLeaves",
    "MissingLibraryError",
    "ModelFormatError",
    "NotATreeError",
    "Output",
    "Rule",
    "TimedOutError",
    "Trees",
    "UnsupportedModelError",
    "UntestedReleaseWarning",
    "c_library",
    "certify",
    "column_rank",
    "convert",
    "diff",
    "direct_sum",
    "engine_info",
    "exit_is_unique",
    "explain_mismatch",
    "expr",
    "figure_one",
    "load",
    "stream",
    "tree_of_templates",
]

if TYPE_CHECKING:
    from . import nn as nn
    from . import stream as stream
    from .estimators import DecisionMachineClassifier as DecisionMachineClassifier
    from .estimators import DecisionMachineRegressor as DecisionMachineRegressor
    from .estimators import LeafEncoder as LeafEncoder
    from .estimators import NonGreedyTreeClassifier as NonGreedyTreeClassifier
    from .estimators import NonGreedyTreeRegressor as NonGreedyTreeRegressor
    from .estimators import OptimalTreeClassifier as OptimalTreeClassifier
    from .estimators import OptimalTreeRegressor as OptimalTreeRegressor
    from .estimators import TemplateCodeClassifier as TemplateCodeClassifier
    from .explain import certify as certify
    from .explain import diff as diff
    from .explain import explain_mismatch as explain_mismatch
    from .explain.shapley.explainer import TreeExplainer as TreeExplainer
    from .run.engines.c_library import c_library as c_library
    from .stream import expr as expr
    from .train.tune import tune as tune

LAZY = {
    "DecisionMachineClassifier": ("estimators", "sklearn"),
    "DecisionMachineRegressor": ("estimators", "sklearn"),
    "LeafEncoder": ("estimators", "sklearn"),
    "NonGreedyTreeClassifier": ("estimators", "sklearn"),
    "NonGreedyTreeRegressor": ("estimators", "sklearn"),
    "OptimalTreeClassifier": ("estimators", "sklearn"),
    "OptimalTreeRegressor": ("estimators", "sklearn"),
    "TemplateCodeClassifier": ("estimators", "sklearn"),
    "TreeExplainer": ("explain.shapley.explainer", None),
    "c_library": ("run.engines.c_library", None),
    "certify": ("explain", None),
    "diff": ("explain", None),
    "explain_mismatch": ("explain", None),
    "expr": ("stream", None),
    "nn": ("nn", "torch"),
    "stream": ("stream", None),
    "tune": ("train.tune", "torch"),
}
"""Names looked up on first use, because importing this package loads no optional library and no
room that predicting does without: the module that has each, or is it, and the library (of an extra
of the same name) that it needs."""
LIBRARIES = {"sklearn": "scikit-learn", "torch": "torch"}


def __getattr__(name: str) -> Any:
    if name not in LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    module, library = LAZY[name]
    try:
        found = importlib.import_module(f"{__name__}.{module}")
        return found if name == module else getattr(found, name)
    except ModuleNotFoundError as error:
        if library is None or (error.name or "").split(".")[0] != library:
            raise
        raise MissingLibraryError(
            f"looking up {name}",
            f"{LIBRARIES[library]} is not installed",
            f"pip install 'decision-machines[{library}]'",
        ) from None


def __dir__() -> list[str]:
    return sorted([*globals(), *LAZY])
