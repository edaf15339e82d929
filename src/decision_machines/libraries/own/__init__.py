"""Our own file, `.dm`: read and written. `machine.schema` says what it holds."""

from __future__ import annotations

from ..library import MARKED, Format, Library, Target


class Own(Library):
    name = "own"

    def formats(self) -> tuple[Format, ...]:
        from .read import looks_like_dm, read_dm_bytes

        return (Format("decision machine (.dm)", looks_like_dm, read_dm_bytes, MARKED),)

    def targets(self) -> tuple[Target, ...]:
        from .write import dm_content

        return (Target("dm", (".dm",), dm_content),)


LIBRARY = Own()
