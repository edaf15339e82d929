"""The progress room: what people see of long work, and how they stop it.

On a terminal a bar, in a notebook a bar without further packages, in a pipe a plain line now and
then: `displays` has them. `Progress` shows how far some work is; `Watch`, for training, also keeps
the learning curve and ends cleanly when it is interrupted. Every function that takes long has
``verbose``: True or 1 shows progress, False or 0 shows none, None decides by who is looking.

What is not progress (what was chosen, what was gone on with, what was given up) goes to the
standard `logging` module, under the logger "decision_machines".
"""

from __future__ import annotations

from .watch import Progress, Verbosity, Watch

__all__ = ["Progress", "Verbosity", "Watch"]
