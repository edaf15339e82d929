"""The explain room: proofs and reasons.

`certify` proves by probes that a machine and a model route every input alike; `explain_mismatch`
says why rows differ where they do. `oracles` ask the other libraries for their own answers.
"""

from __future__ import annotations

from .certify import Certificate, Disagreement, certify
from .mismatch import Mismatch, MismatchReport, explain_mismatch

__all__ = [
    "Certificate",
    "Disagreement",
    "Mismatch",
    "MismatchReport",
    "certify",
    "explain_mismatch",
]
