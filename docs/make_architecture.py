"""The pictures of the page "Architecture": the rooms, and the ways of a model and of a row.

    python docs/make_architecture.py

SVG by hand, readable on light and on dark paper: the background is its own.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

HERE = Path(__file__).parent / "images"
INK, PAPER, LINE = "#1a1d21", "#fbfaf7", "#b9bdc3"
BLUE, ORANGE, GREEN, GREY = "#d8eaf6", "#fbe5d6", "#dcefe6", "#eceae4"

ROOMS = (
    (("cli", "one file for each command", GREY),),
    (
        ("estimators", "scikit-learn's contract", GREY),
        ("mlflow", "an MLflow flavor", GREY),
        ("serve", "machines behind HTTP", ORANGE),
    ),
    (("stream", "files and clusters of rows", ORANGE), ("train", "trees learned and tuned", GREEN)),
    (("show", "pictures, the explorer page", ORANGE),),
    (
        ("explain", "prove, paths, space, change, identity, …", ORANGE),
        ("nn", "layers made from sizes", GREEN),
    ),
    (
        ("libraries", "a folder for each, one registry", BLUE),
        ("relax", "torch modules, and back", GREEN),
    ),
    (("run", "engines, inputs, links", ORANGE),),
    (("files", "tables in, whole files out", BLUE),),
    (("machine", "S t B V, columns, output; facts that rooms share", BLUE),),
    (("progress", "what people see while they wait", GREY),),
    (("errors", "what we did, what we found, what to do", GREY),),
)


def text(x: float, y: float, words: str, size: int = 15, weight: int = 400) -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" '
        f'text-anchor="middle" fill="{INK}">{escape(words)}</text>'
    )


def box(x: float, y: float, width: float, height: float, fill: str) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" '
        f'fill="{fill}" stroke="{LINE}"/>'
    )


def picture(width: int, height: int, label: str, parts: list[str]) -> str:
    arrow = (
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
        f'markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8Z" fill="{INK}"/></marker></defs>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(label)}" font-family="system-ui, sans-serif">{arrow}'
        f'<rect width="{width}" height="{height}" rx="10" fill="{PAPER}"/>{"".join(parts)}</svg>\n'
    )


def rooms() -> str:
    width, step, high = 760, 58, 48
    parts = []
    for level, row in enumerate(ROOMS):
        y = 16 + level * step
        each = (width - 100 - 12 * (len(row) - 1)) / len(row)
        for at, (name, says, fill) in enumerate(row):
            x = 16 + at * (each + 12)
            parts.append(box(x, y, each, high, fill))
            parts.append(text(x + each / 2, y + 20, name, 16, 700))
            parts.append(text(x + each / 2, y + 38, says, 13))
    bottom = 16 + len(ROOMS) * step - 10
    x = width - 52
    parts.append(
        f'<path d="M{x} 24V{bottom}" stroke="{INK}" stroke-width="1.5" marker-end="url(#arrow)"/>'
    )
    parts.append(
        f'<text x="{x + 20}" y="{bottom / 2}" font-size="14" text-anchor="middle" fill="{INK}" '
        f'transform="rotate(90 {x + 20} {bottom / 2})">may import</text>'
    )
    return picture(width, bottom + 16, "The rooms, each above those that it may import", parts)


def flow(steps: list[tuple[str, str, str, str]], label: str) -> str:
    """Boxes one below the other: (room, what is done there, what comes out, colour)."""
    width, step, high = 760, 86, 50
    parts = []
    for at, (room, does, gives, fill) in enumerate(steps):
        y = 16 + at * step
        parts.append(box(110, y, 540, high, fill))
        parts.append(text(380, y + 21, room, 15, 700))
        parts.append(text(380, y + 40, does, 13))
        if at + 1 < len(steps):
            parts.append(
                f'<path d="M380 {y + high + 2}V{y + step - 3}" stroke="{INK}" '
                f'stroke-width="1.5" marker-end="url(#arrow)"/>'
            )
            parts.append(
                f'<text x="394" y="{y + high + 23}" font-size="13" fill="{INK}" '
                f'font-style="italic">{escape(gives)}</text>'
            )
    return picture(width, 16 + len(steps) * step - 20, label, parts)


MODEL = [
    (
        "libraries/registry",
        "which library made this object, or this file (by its content)?",
        "its reader",
        BLUE,
    ),
    (
        "libraries/<library>/read",
        "every field is read, or refused by name",
        "trees, columns, output",
        BLUE,
    ),
    ("machine", "every invariant checked; arrays made read-only", "DecisionMachine", BLUE),
    (
        "explain/prove",
        "certify: both sides of every test, asked of the source",
        "certificate",
        ORANGE,
    ),
    (
        "run · relax · explain · show · train",
        "predict, soften, explain, draw, tune",
        "another DecisionMachine",
        GREEN,
    ),
    ("libraries/<library>/write", "written back exactly, or refused", "", BLUE),
]
ROW = [
    ("files/tables, or the caller", "CSV, Parquet, Arrow; arrays and tables", "X", BLUE),
    ("run/inputs", "columns matched by name, labels to codes, None to NaN", "features x", ORANGE),
    (
        "run/engines",
        "columns z, answers h, exit leaves; values added in the source's order",
        "margins",
        ORANGE,
    ),
    ("run/links", "the source's own exponential", "responses", ORANGE),
    ("run/decide", "the largest, or above a threshold; the source's labels", "", ORANGE),
]


def main() -> None:
    HERE.mkdir(exist_ok=True)
    (HERE / "rooms.svg").write_text(rooms())
    (HERE / "way-of-a-model.svg").write_text(flow(MODEL, "The way of a model through the rooms"))
    (HERE / "way-of-a-row.svg").write_text(flow(ROW, "The way of a row through the rooms"))


if __name__ == "__main__":
    main()
