"""The write room: machines into our own file, and back into the models of other libraries.

One file for each library. A writer is exact or refuses: a machine whose answers the target cannot
give is refused with the field, the tree and the test that it cannot say, and a way out.
"""

from __future__ import annotations

from .dm_file import save

__all__ = ["save"]
