"""`dm demo`: the paper's example step by step, then a forest proven equal and drawn."""

from __future__ import annotations

import time
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.console import Console

from ..errors import MissingLibraryError
from ..libraries import convert
from ..machine import DecisionMachine, column_rank, exit_is_unique, figure_one, single
from ..run.engines import reference

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.table import Table


def demo(
    folder: Annotated[Path, typer.Option("--folder", help="Where the picture goes.")] = Path(
        "demo-output"
    ),
) -> None:
    """The paper's example on the terminal, then a forest proven equal, timed and drawn."""
    console = Console()
    figure_one_steps(console)
    forest_steps(console, folder)


def figure_one_steps(console: Console) -> None:
    """Fig. 1 worked through for x = (2, 1, 2, 2), as the paper does."""
    from rich.columns import Columns as SideBySide

    machine = figure_one()
    x = np.array([[2.0, 1.0, 2.0, 2.0]])
    z = machine.columns.read(x)
    h = reference.test_results(machine, z, 0)
    p = reference.similarities(machine, h, 0)
    leaf = int(reference.exit_leaf(p)[0])
    console.rule("The paper's Fig. 1: a tree as matrices")
    tests = [
        f"{machine.columns.name(c)} ≤ {t:g}?"
        for c, t in zip(machine.selection, machine.t, strict=True)
    ]
    leaves = [f"v{i + 1}" for i in range(machine.n_leaves)]
    console.print(
        SideBySide(
            [
                _matrix("S selects a feature", machine.S.toarray().astype(int), tests),
                _matrix("t", machine.t[:, None].astype(int)),
                _matrix("B, the templates", machine.B.toarray(), leaves),
            ],
            padding=(0, 3),
        )
    )
    console.print(f"\nFor x = {tuple(int(v) for v in x[0])}, h = sgn(Sx − t) and p = B̄h:")
    q = (reference.selected(machine, z, slice(0, 5)) - machine.t)[0]
    exact = [_fraction(machine, h, i) for i in range(machine.n_leaves)]
    console.print(
        SideBySide(
            [
                _matrix("Sx − t", q[:, None].astype(int), tests),
                _matrix("h", h[0][:, None].astype(int)),
                _matrix("p", np.array(exact, dtype=object)[:, None], leaves, mark=leaf),
            ],
            padding=(0, 3),
        )
    )
    console.print(
        f"The largest similarity is {exact[leaf]}, at [bold green]v{leaf + 1}[/]: "
        f"the tree answers v{leaf + 1}."
    )
    console.print(
        f"[dim]The paper prints p₄ = 0; its own definition gives {exact[3]}: "
        "h disagrees with both answers that v₄ asks for. The exit leaf is the same.[/]"
    )
    rank = int(column_rank(machine)[0])
    console.print(
        f"Theorem 1: B has rank {rank}, the number of its columns. "
        f"Theorem 2: every h matches exactly one template: {bool(exit_is_unique(machine)[0])}.\n"
    )


def forest_steps(console: Console, folder: Path) -> DecisionMachine:
    """A forest on handwritten digits: converted, compared on every row, timed, drawn."""
    try:
        from sklearn.datasets import load_digits
        from sklearn.ensemble import RandomForestClassifier
    except ImportError:
        raise MissingLibraryError(
            "training the demo's forest",
            "scikit-learn is not installed",
            "pip install 'decision-machines[sklearn,plot]'",
        ) from None
    console.rule("A trained forest, read exactly")
    X, y = load_digits(return_X_y=True)
    with console.status("training a scikit-learn forest on handwritten digits ..."):
        forest = RandomForestClassifier(100, random_state=0).fit(X, y)
    start = time.perf_counter()
    machine = single(convert(forest), "reading a forest")
    console.print(f"{machine!r}\nconverted in {1000 * (time.perf_counter() - start):.0f} ms")
    with console.status("comparing every row ..."):
        ours, theirs = machine.predict_proba(X), forest.predict_proba(X)
        leaves = machine.source_leaves(X)
    equal = np.array_equal(ours, theirs) and np.array_equal(leaves, forest.apply(X))
    if not equal:
        raise AssertionError("the machine and the forest differ; please report this")
    console.print(
        f"[bold green]equal[/] to scikit-learn on all {len(X)} rows: {leaves.size} exit leaves "
        "and the probabilities, to the last bit"
    )
    ratio = _seconds(lambda: forest.predict_proba(X)) / _seconds(lambda: machine.predict_proba(X))
    console.print(f"scoring {len(X)} rows: {ratio:.1f} times scikit-learn's speed on this machine")
    picture = _draw(machine, folder)
    console.print(f"the templates of its first tree: [bold]{picture}[/]")
    return machine


def _fraction(machine: DecisionMachine, h: np.ndarray, leaf: int) -> Fraction:
    row = machine.B.toarray()[leaf].astype(int)
    return Fraction(int(row @ h[0].astype(int)), int(np.abs(row).sum()))


def _matrix(
    title: str, values: np.ndarray, rows: list[str] | None = None, mark: int | None = None
) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(title=title, show_header=False, box=box.SIMPLE, title_style="bold")
    if rows is not None:
        table.add_column(style="dim")
    for _ in range(values.shape[1]):
        table.add_column(justify="right")
    for i, row in enumerate(values):
        cells = [str(v) for v in row]
        table.add_row(
            *([rows[i]] if rows else []), *cells, style="bold green" if i == mark else None
        )
    return table


def _seconds(call: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def _draw(machine: DecisionMachine, folder: Path) -> Path:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from ..files.atomic import whole_file, writing

    drawn = machine.plot_templates(trees=[0])
    path = folder / "templates.png"
    with writing(str(path)):
        folder.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        drawn.figure_.savefig(file, dpi=150, format="png")
    plt.close(drawn.figure_)
    return path
