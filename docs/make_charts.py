"""Charts and compact tables of the benchmark pages, from benchmarks/results.

`docs/conf.py` calls `main` before the pages are built, so that they always show the files as they
are. Each chart is written twice, for light and for dark pages; each table is Markdown.

    python docs/make_charts.py
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from statistics import mean

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
HERE = Path(__file__).parent / "_made"
COLOURS = {
    "light": {"ink": "#1a1d21", "soft": "#565f69", "ours": "#0067a6", "other": "#b9bdc3"},
    "dark": {"ink": "#eceef1", "soft": "#a9b2bc", "ours": "#63b9ee", "other": "#59636f"},
}
WIDTH, BAR, ROW, LINE = 420, 110, 24, 18
"""Of a chart, of its longest bar at least, of a row, and of a name above its bar.

A telephone shows a page about 400 pixels wide: letters of a wider chart would be too small there.
"""
LETTER = 8.0
"""The width of a letter, about."""


def bars(name: str, rows: list[tuple[str, float, str, bool]], *, most: float | None = None) -> None:
    """A bar for each row: its name, its length, what stands at its end, whether it is ours.

    Bars longer than `most` are broken at the edge; their text says how long they are.
    """
    limit = most or max(value for _, value, _, _ in rows)
    left = 10 + LETTER * max(len(label) for label, _, _, _ in rows)
    right = 10 + LETTER * max(len(says) for _, _, says, _ in rows)
    is_stacked = left + BAR + right > WIDTH
    if is_stacked:
        left, row, top = 0, ROW + LINE, LINE
    else:
        row, top = ROW, 0
    bar = WIDTH - left - right
    for theme, colour in COLOURS.items():
        parts = []
        for at, (label, value, says, is_ours) in enumerate(rows):
            y = 4 + at * row + top
            width = max(2.0, bar * min(value, limit) / limit)
            fill, weight = (colour["ours"], 700) if is_ours else (colour["other"], 400)
            place = (
                f'x="0" y="{y - 2}"'
                if is_stacked
                else f'x="{left - 8:.0f}" y="{y + 16}" text-anchor="end"'
            )
            parts.append(
                f'<text {place} font-weight="{weight}" '
                f'fill="{colour["ink"]}">{escape(label)}</text>'
                f'<rect x="{left:.0f}" y="{y + 4}" width="{width:.1f}" height="{ROW - 8}" rx="2" '
                f'fill="{fill}"/>'
            )
            if value > limit:
                x = round(left + bar - 22)
                parts.append(
                    f'<path d="M{x} {y + 2}l6 {ROW - 4}M{x + 7} {y + 2}l6 {ROW - 4}" '
                    f'stroke="{colour["ink"]}" stroke-width="1.5"/>'
                )
            parts.append(
                f'<text x="{left + width + 8:.1f}" y="{y + 16}" font-weight="{weight}" '
                f'fill="{colour["soft"]}">{escape(says)}</text>'
            )
        (HERE / f"{name}-{theme}.svg").write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {row * len(rows) + 8}" '
            f'font-family="system-ui, sans-serif" font-size="13">{"".join(parts)}</svg>\n'
        )


def table(name: str, head: list[str], rows: list[list[str]]) -> None:
    """A table, columns of numbers to the right."""
    is_number = [all(_is_number(row[c]) for row in rows) for c in range(len(head))]
    rule = "".join("|---:" if number else "|---" for number in is_number) + "|"
    lines = ["| " + " | ".join(head) + " |", rule]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    (HERE / f"{name}.md").write_text("\n".join(lines) + "\n")


def _is_number(text: str) -> bool:
    return not text or (text.lstrip("+-")[:1].isdigit() and text[-1].isdigit() and "," not in text)


def micro(value: float) -> str:
    """Microseconds, in no more digits than say something; milliseconds from 1 000 on."""
    if value >= 1000:
        return f"{value / 1000:.3g} ms"
    return f"{value:.0f} µs" if value >= 100 else f"{value:.3g} µs"


def short(value: object, digits: int = 4) -> str:
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def with_spread(row: dict, key: str) -> str:
    if key not in row:
        return ""
    spread = row.get(f"± {key}")
    return short(row[key]) + (f" ± {short(spread, 2)}" if spread else "")


# -- prediction -----------------------------------------------------------------------------------


CHARTED = {
    "lightgbm 500 x 64": "LightGBM, 500 trees of 64 leaves",
    "xgboost 500 x depth 6": "XGBoost, 500 trees of depth 6",
    "catboost 500 x depth 6": "CatBoost, 500 trees of depth 6",
    "hist gradient boosting 300 x 31": "Histogram boosting, 300 trees of 31 leaves",
    "forest 100 x 2900": "Forest, 100 trees of about 2 900 leaves",
    "one row, lightgbm 500 x 64": "One row, LightGBM, 500 trees of 64 leaves",
}
"""Workloads that have a chart of their own, and what they are called."""
CALLED = CHARTED | {
    "lightgbm 1000 x 8": "LightGBM, 1 000 trees of 8 leaves",
    "lightgbm 50 x 1000": "LightGBM, 50 trees of 1 000 leaves",
    "xgboost 500 x depth 3": "XGBoost, 500 trees of depth 3",
    "forest 100 x depth 8": "Forest, 100 trees of depth 8",
    "forest 100, 2 classes": "Forest, 100 full trees, 2 classes",
    "forest 100, 10 classes": "Forest, 100 full trees, 10 classes",
    "forest 100 x 12600": "Forest, 100 trees of about 12 600 leaves",
    "one row, xgboost 500 x depth 6": "One row, XGBoost, 500 trees of depth 6",
    "one row, forest 100 x depth 8": "One row, forest, 100 trees of depth 8",
}
SOURCES = ("LightGBM", "XGBoost", "CatBoost", "scikit-learn")


def times(row: dict) -> str:
    """A ratio and its range over the rounds."""

    def said(value: float) -> str:
        return f"{value:.1f}" if value < 10 else f"{value:.0f}"

    return f"{said(row['ratio'])} × ({said(row['lowest'])}–{said(row['highest'])})"


def by_workload(file: str) -> dict[str, dict[str, dict]]:
    """Rows of one thread by workload and rival."""
    found: dict[str, dict[str, dict]] = {}
    for row in json.loads((RESULTS / file).read_text())["rows"]:
        if row["threads"] == 1:
            found.setdefault(row["workload"], {})[row["rival"]] = row
    return found


def rivals_as_columns(name: str, found: dict[str, dict[str, dict]], called: dict) -> None:
    """A table with a line for each workload and a column for each rival."""
    rivals = sorted(
        {r for rows in found.values() for r in rows if r != "ours" and r not in SOURCES},
        key=lambda rival: -sum(rival in rows for rows in found.values()),
    )
    lines = []
    for workload, rows in found.items():
        own = [times(rows[source]) for source in SOURCES if source in rows]
        cells = [times(rows[rival]) if rival in rows else "" for rival in rivals]
        said = called.get(workload, workload)
        lines.append([said, micro(rows["ours"]["us_per_row"]), *own, *cells])
    table(name, ["model", "ours", "its own library", *rivals], lines)


def prediction() -> None:
    found = by_workload("engine.json")
    at = 0
    for workload in CHARTED:
        if workload not in found:
            continue
        rows = found[workload]
        ours = rows["ours"]["us_per_row"]
        rivals = [row for row in rows.values() if row["rival"] != "ours"]
        rivals.sort(key=lambda row: row["us_per_row"])
        shown = [("Decision Machines", ours, micro(ours), True)]
        shown += [
            (
                f"{row['rival']} {row['release']}",
                row["us_per_row"],
                f"{micro(row['us_per_row'])}, {row['ratio']:.3g} ×",
                False,
            )
            for row in rivals
        ]
        longest = sorted(value for _, value, _, _ in shown)
        bars(f"engine-{at}", shown, most=longest[-2] if len(shown) > 3 else None)
        at += 1
    rivals_as_columns("engine", found, CALLED)
    rivals_as_columns("shapes", by_workload("shapes.json"), {})
    tables_of_people()


def tables_of_people() -> None:
    """Categories, text and single rows: each library's time and ours."""
    found = json.loads((RESULTS / "tables.json").read_text())["workloads"]
    names = {"lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost"}
    lines = []
    for workload, row in found.items():
        library, what = workload.split(", ", 1)
        lines.append(
            [names[library], what, micro(row["theirs"]), micro(row["ours"]), times(row)],
        )
    table("tables", ["library", "given", "its time", "ours", "times as fast"], lines)


# -- questions about a model ----------------------------------------------------------------------


def inspection() -> None:
    found = json.loads((RESULTS / "inspection.json").read_text())
    lines = [
        [
            row["model"],
            row["question"],
            f"{row['scikit-learn']:.2f}",
            f"{row['ours']:.3f}",
            f"{row['ratio']:.0f}",
            f"{row['largest difference']:.0e}",
        ]
        for row in found
    ]
    table(
        "inspection",
        ["model", "question", "scikit-learn, s", "ours, s", "times as fast", "largest difference"],
        lines,
    )
    shown = [
        (
            question,
            mean(row["ratio"] for row in rows),
            f"{mean(row['ratio'] for row in rows):.0f} times as fast",
            True,
        )
        for question, rows in _by(found, "question").items()
    ]
    bars("inspection", shown)


def _by(rows: list[dict], key: str) -> dict[str, list[dict]]:
    found: dict[str, list[dict]] = {}
    for row in rows:
        found.setdefault(row[key], []).append(row)
    return found


# -- Shapley values -------------------------------------------------------------------------------


def low(ratio: float) -> str:
    """A number in three digits or its whole part, without an exponent."""
    return f"{ratio:.3g}" if ratio < 1000 else f"{int(ratio)}"


def shapley() -> None:
    found = json.loads((RESULTS / "shapley.json").read_text())
    table(
        "shapley",
        ["workload", "beside", "theirs, µs a row", "ours, µs a row", "times as fast", "difference"],
        [
            [
                row["workload"],
                row["rival"],
                low(row["rival_us"]),
                low(row["ours_us"]),
                low(row["ratio_low"]),
                f"{row['error']:.0e}" if row["error"] else "",
            ]
            for row in found
        ],
    )
    beside = [row for row in found if not row["rival"].startswith("ours")]
    bars(
        "shapley",
        [
            (row["workload"], row["ratio_low"], f"{low(row['ratio_low'])} × {row['rival']}", True)
            for row in beside
            if "float32" not in row["workload"]
        ],
        most=sorted(row["ratio_low"] for row in beside)[-2],
    )


# -- training -------------------------------------------------------------------------------------


def training() -> None:
    sections = json.loads((RESULTS / "training.json").read_text())["sections"]
    for name, section in sections.items():
        # What a run is and how it is called, as the benchmark itself says it.
        says = section["says"].split("\n    python ")[0].strip()
        (HERE / f"training-{name}-says.md").write_text(says + "\n")
    oblique = sections["oblique"]["rows"]
    overall = oblique[-1]
    bars(
        "training-oblique",
        [
            ("Decision Machines", overall["ours"], f"{overall['ours']:.1f} %", True),
            ("DTSemNet, published", overall["DTSemNet"], f"{overall['DTSemNet']:.1f} %", False),
            ("CART, here", overall["CART here"], f"{overall['CART here']:.1f} %", False),
        ],
    )
    table(
        "training-oblique",
        ["set", "height", "ours", "CART here", "DTSemNet", "TAO", "seconds"],
        [_oblique_line(row) for row in oblique],
    )
    regression = sections["regression"]["rows"]
    bars(
        "training-regression",
        [
            (f"{row['set']}: {who}", row[key] / row["CART here"], f"{row[key]:.3g}", key == "ours")
            for row in regression
            for who, key in (("ours", "ours"), ("DTSemNet", "DTSemNet"), ("CART", "CART here"))
        ],
    )
    table(
        "training-regression",
        ["set", "height", "ours", "CART here", "DTSemNet", "seconds"],
        [_oblique_line(row, tao=False) for row in regression],
    )
    _axis(sections["axis"]["rows"])
    _soft(sections["soft"]["rows"])
    _tuning(sections["tuning"]["rows"])


def _oblique_line(row: dict, *, tao: bool = True) -> list[str]:
    line = [
        row["set"],
        str(row.get("height", "")),
        with_spread(row, "ours"),
        short(row["CART here"]),
    ]
    line += [with_spread(row, "DTSemNet")] + ([str(row.get("TAO", ""))] if tao else [])
    return [*line, short(row.get("seconds", ""), 3)]


def _axis(rows: list[dict]) -> None:
    cells = [row for row in rows if "leaves" in row]
    shown, lines = [], []
    for leaves, group in sorted(_by_number(cells, "leaves").items()):
        ahead = mean(100 * row["ahead by"] for row in group)
        won = sum(row["ahead by"] > 0 for row in group)
        shown.append(
            (
                f"{leaves} leaves",
                ahead,
                f"{ahead:.2f}, in {won} of {len(group)}",
                True,
            )
        )
    bars("training-axis", shown)
    for name, group in _by(cells, "set").items():
        by_leaves = {row["leaves"]: row for row in group}
        line = [f"{name} ({group[0]['metric']})"]
        for leaves in sorted(_by_number(cells, "leaves")):
            row = by_leaves.get(leaves)
            line.append(f"{row['ours']:.3f} / {row['CART']:.3f}" if row else "")
        lines.append(line)
    head = ["set: ours / CART", *(f"{n} leaves" for n in sorted(_by_number(cells, "leaves")))]
    table("training-axis", head, lines)


def _by_number(rows: list[dict], key: str) -> dict[int, list[dict]]:
    found: dict[int, list[dict]] = {}
    for row in rows:
        found.setdefault(int(row[key]), []).append(row)
    return found


def _soft(rows: list[dict]) -> None:
    shown = []
    for row in rows:
        kind = next((kind for kind in ("soft", "hard") if kind in row), None)
        if kind is not None:
            name = f"{row['set']}: {row['method']}"
            shown.append((name, row[kind], f"{kind} {short(row[kind])} %", row["method"] == "ours"))
    bars("training-soft", shown)
    table(
        "training-soft",
        ["set", "method", "soft", "hard", "seconds"],
        [
            [
                row["set"],
                row["method"],
                with_spread(row, "soft"),
                with_spread(row, "hard"),
                short(row.get("seconds", ""), 3),
            ]
            for row in rows
        ],
    )


def _tuning(rows: list[dict]) -> None:
    shown = []
    for library, group in _by(rows, "library").items():
        for kind in ("soft", "hard"):
            less = -mean(row[f"{kind} %"] for row in group)
            shown.append(
                (f"{library}, {kind}", max(less, 0.0), f"{less:.1f} % less loss", kind == "soft")
            )
    bars("training-tuning", shown)
    table(
        "training-tuning",
        ["set", "library", "loss before", "soft, %", "hard, %", "early stopping, %", "seconds"],
        [
            [
                row["set"],
                row["library"],
                short(row["source"]),
                *(f"{row[f'{kind} %'] or 0:+.1f}" for kind in ("soft", "hard", "early")),
                short(row["seconds"], 3),
            ]
            for row in rows
        ],
    )


def main() -> None:
    HERE.mkdir(exist_ok=True)
    prediction()
    inspection()
    shapley()
    training()


if __name__ == "__main__":
    main()
