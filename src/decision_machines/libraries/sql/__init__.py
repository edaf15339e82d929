"""SQL: written alone, as the text of one SELECT; `write.to_sql`."""

from __future__ import annotations

from ..library import Library, Target


class SQL(Library):
    name = "sql"

    def targets(self) -> tuple[Target, ...]:
        from .write import sql_content

        return (Target("sql", (".sql",), sql_content, ("margins",)),)


LIBRARY = SQL()
