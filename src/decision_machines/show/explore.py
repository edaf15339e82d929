"""The explorer page: a machine, its matrices and its arithmetic in one HTML file.

The sources are in `page/`: a skeleton, a style sheet and ES modules. Here they become one file that
loads nothing: modules are joined into one script, which the page's own security policy names by its
hash, and the machine lies beside it as JSON. No text of a model is ever read as HTML or as code.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import webbrowser
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..files.atomic import write_atomically
from ..libraries.javascript.modules import evaluator, joined
from .page_data import page_data

if TYPE_CHECKING:
    import os

    from ..machine import DecisionMachine

MODULES = (
    *("numbers", "soften"),
    *("cells", "moves", "goals", "reach", "tree_change", "forest_change", "one_feature"),
    *(
        "change_search",
        "conditions",
        "words",
        "drawn",
        "svg",
        "how",
        "tree_view",
        "grid_view",
        "matrix_view",
    ),
    *(
        "values_view",
        "inputs",
        "forest",
        "attribution",
        "answer",
        "scene",
        "change",
        "rows",
        "temperature",
    ),
    *("theme", "check", "app"),
)
"""The page's own modules, each after those that it imports; the evaluator stands before all."""


def explore(
    machine: DecisionMachine,
    path: str | os.PathLike[str],
    X: Any = None,
    y: Any = None,
    *,
    open: bool = False,
    title: str | None = None,
    max_rows: int = 1000,
) -> Path:
    """Write the explorer page of a machine; see `DecisionMachine.explore`."""
    text = page(page_data(machine, X, y, title=title, max_rows=max_rows))
    path = Path(path)
    write_atomically(path, [text.encode("utf-8")])
    if open:
        webbrowser.open(path.resolve().as_uri())
    return path


def page(data: dict[str, Any]) -> str:
    """The whole page as text."""
    style, script = _source("style.css"), joined_modules()
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    parts = {
        "policy": html.escape(policy),
        "title": html.escape(data["title"]),
        "style": style,
        "data": as_json(data),
        "script": script,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _source("page.html"))


def joined_modules() -> str:
    """The evaluator that exported modules have too, and the page's own modules, as one script."""
    return joined([*evaluator(), *(_source(f"{name}.js") for name in MODULES)])


def as_json(data: Any) -> str:
    """JSON that can stand in a script element: no character of it can end the element."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _source(name: str) -> str:
    text = resources.files(__package__).joinpath("page", name).read_text(encoding="utf-8")
    return text.replace("\r\n", "\n")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
