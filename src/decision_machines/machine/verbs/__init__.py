"""What can be done with a machine, one file for each room that does it.

Each verb says what it gives and looks its room up when it is used: the machine imports no room.
"""

from __future__ import annotations

from .explain import ExplainVerbs
from .relax import RelaxVerbs
from .run import RunVerbs
from .show import ShowVerbs
from .write import WriteVerbs

__all__ = ["ExplainVerbs", "RelaxVerbs", "RunVerbs", "ShowVerbs", "WriteVerbs"]
