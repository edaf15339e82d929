"""The explain room: proofs and reasons.

`certify` proves by probes that a machine and a model route every input alike; `explain_mismatch`
says why rows differ where they do. `oracles` ask the other libraries for their own answers.

What a machine says of itself: `rules` (paths in words), `boxes` (leaves as boxes), `counterfactual`
(what would have changed the answer), `code_margin` (how many tests that takes), `bounds` over a box
of inputs and `is_monotone`. They rest on `cells`: every feature's values cut into
cells that no test tells apart, so that what holds for all inputs is a finite question.

`simplify` makes a machine smaller without changing one bit of its answers; `fingerprint` names what
decides them; `diff` says what differs between two machines and shows an input.
`partial_dependence`, `ice` and `importance` redo only the trees that a moved feature can change.

`kernel` compares rows by the leaves they share and names the training rows behind a prediction;
`polynomial` writes a forest as a sum of products of step functions.
"""

from __future__ import annotations

from .change.counterfactual import Counterfactual, counterfactual
from .effects.importance import Importance, importance
from .effects.inspection import PartialDependence, ice, partial_dependence
from .effects.kernel import Neighbours, nearest, proximity
from .identity.canonical import fingerprint
from .identity.diff import MachineDiff, TreeChange, diff
from .identity.simplify import simplify
from .paths.code_distance import CodeMargin, code_margin
from .paths.polynomial import Polynomial, polynomial
from .paths.rules import DecisionRule, DecisionRules, rules
from .prove.certify import Certificate, Disagreement, certify
from .prove.mismatch import Mismatch, MismatchReport, explain_mismatch
from .space.bounds import OutputBounds, bounds
from .space.boxes import Boxes, boxes
from .space.monotone import Monotonicity, is_monotone

__all__ = [
    "Boxes",
    "Certificate",
    "CodeMargin",
    "Counterfactual",
    "DecisionRule",
    "DecisionRules",
    "Disagreement",
    "Importance",
    "MachineDiff",
    "Mismatch",
    "MismatchReport",
    "Monotonicity",
    "Neighbours",
    "OutputBounds",
    "PartialDependence",
    "Polynomial",
    "TreeChange",
    "bounds",
    "boxes",
    "certify",
    "code_margin",
    "counterfactual",
    "diff",
    "explain_mismatch",
    "fingerprint",
    "ice",
    "importance",
    "is_monotone",
    "nearest",
    "partial_dependence",
    "polynomial",
    "proximity",
    "rules",
    "simplify",
]
