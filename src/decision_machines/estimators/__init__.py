"""The estimators room: the library's learners with scikit-learn's contract (extra `sklearn`).

`DecisionMachineClassifier` and `DecisionMachineRegressor` learn one tree or many,
`OptimalTreeClassifier` and `OptimalTreeRegressor` a small one that is proven to be the best,
`NonGreedyTreeClassifier` and `NonGreedyTreeRegressor` one oblique tree by the convex-concave bound,
`TemplateCodeClassifier` many classes from learners of two; `LeafEncoder` gives the leaves that rows
reach. Trees are held as a `DecisionMachine`
in `machine_`. Learning itself is done in the train room; here are parameters, checked input, and
rows made ready.
"""

from __future__ import annotations

from .codes import TemplateCodeClassifier
from .leaf_encoder import LeafEncoder
from .machines import DecisionMachineClassifier, DecisionMachineRegressor
from .non_greedy import NonGreedyTreeClassifier, NonGreedyTreeRegressor
from .optimal import OptimalTreeClassifier, OptimalTreeRegressor

__all__ = [
    "DecisionMachineClassifier",
    "DecisionMachineRegressor",
    "LeafEncoder",
    "NonGreedyTreeClassifier",
    "NonGreedyTreeRegressor",
    "OptimalTreeClassifier",
    "OptimalTreeRegressor",
    "TemplateCodeClassifier",
]
