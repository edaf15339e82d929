"""JavaScript: written alone, as one ES module; `write.to_javascript`."""

from __future__ import annotations

from ..library import Library, Target


class JavaScript(Library):
    name = "javascript"

    def targets(self) -> tuple[Target, ...]:
        from .write import javascript_content

        return (Target("javascript", (".mjs", ".js"), javascript_content, ("margins",)),)


LIBRARY = JavaScript()
