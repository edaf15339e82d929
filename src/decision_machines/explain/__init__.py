"""The explain room: proofs and reasons.

- `prove`: `certify` proves by probes that a machine and a model route every input alike;
  `explain_mismatch` says why rows differ where they do.
- `paths`: `rules` in words, `code_margin` (how many tests must change their answer), `polynomial`.
- `space`: leaves as `boxes`, `bounds` over a box of inputs, `is_monotone`. They rest on cells:
  every feature's values cut where some test does, so that what holds for all inputs is a finite
  question.
- `change`: `counterfactual`, what would have changed the answer.
- `identity`: `simplify`, `fingerprint` and `diff`.
- `effects`: `partial_dependence`, `ice`, `importance`; `proximity` and `nearest` rows.
- `shapley`: `shap_values` and interactions, exactly; `TreeExplainer`; covers counted on rows.

`given` reads what people give: a row by names or as a vector, features, a box, labels. What is
printed is written by `machine.words` and `machine.conditions`, and true of every value.
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
