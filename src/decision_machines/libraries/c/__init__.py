"""C: written alone, as one header of tables and a small kernel; `write.to_c`."""

from __future__ import annotations

from ..library import Library, Target


class C(Library):
    name = "c"

    def targets(self) -> tuple[Target, ...]:
        from .write import c_content

        return (Target("c", (".h",), c_content, ("margins",)),)


LIBRARY = C()
