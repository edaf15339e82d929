"""What can be done with a machine, one file for each room that does it.

Each verb imports what does it inside the method, by name: the machine imports no room, and an
editor can follow every verb.
"""

from __future__ import annotations

from .explain import ExplainVerbs
from .relax import RelaxVerbs
from .run import RunVerbs
from .shapley import ShapleyVerbs
from .show import ShowVerbs
from .write import WriteVerbs

__all__ = ["ExplainVerbs", "RelaxVerbs", "RunVerbs", "ShapleyVerbs", "ShowVerbs", "WriteVerbs"]
