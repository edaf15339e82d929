"""The train room: machines learned from rows, and machines that go on learning.

`axis` searches for trees whose tests read one feature; `oblique` and `regression` for trees whose
tests weigh all of them, with classes or linear functions in their leaves; `soft` for trees that
answer softly; `forests` for many trees; `tune` fine-tunes a machine of any library end to end. Each
gives a `Fit`: the hard machine, the soft module where there is one, and the curve of how it was
learned. What several of them use lies beside them: `complete` (soft trees as one batch), `adam`,
`logistic`, `scaling`, `starts`, `fold`. The room sits on `relax` (gradients) and `run` (answers);
torch is imported only by what trains with gradients.
"""

from __future__ import annotations

from ..progress import Watch
from .fit import Fit

__all__ = ["Fit", "Watch"]
