"""Progress is a bar where one can be drawn, a plain line where not, and nothing where unwanted."""

from __future__ import annotations

import io
import logging
import os
import pty
import subprocess
import sys
import textwrap

import pytest

from decision_machines.progress import Progress, Watch, displays
from decision_machines.progress.displays import Lines, display_for

WORK = """
from decision_machines.progress import Progress, displays
displays.LINE_SECONDS = 0.0
with Progress("counting <all>", 3, {verbose}) as progress:
    for i in range(3):
        progress.update(i + 1, loss=1 / (i + 1))
print("done")
"""


def lines(seconds, updates, total=1.0, tells_end=True):
    """What is written, where the clock shows these seconds one after the other."""
    clock = iter(seconds)
    display = Lines(tells_end=tells_end, clock=lambda: next(clock))
    display.start("working", total)
    for done, numbers in updates:
        display.update(done, numbers)
    display.stop()


def test_a_line_comes_now_and_then_and_never_more_often_than_every_ten_seconds(capsys):
    seconds = [0.5 * i for i in range(8000)]
    lines([*seconds, 4000.0], [((i + 1) / 8000, "") for i in range(7999)])
    said = capsys.readouterr().err.splitlines()
    assert 10 < len(said) < 40
    assert said[0] == "working: 0 %, 10 s so far, about 66 min left"
    assert all(line.startswith("working: ") for line in said)
    assert said[-1] == "working: ended after 67 min"


def test_short_work_is_told_only_where_it_was_asked_for(capsys):
    lines([0.0, 1.0, 2.0], [(1.0, "loss 0.5")], tells_end=False)
    assert capsys.readouterr().err == ""
    lines([0.0, 1.0, 2.0], [(1.0, "loss 0.5")], tells_end=True)
    assert capsys.readouterr().err == "working: ended after 2 s, loss 0.5\n"


def test_work_of_unknown_size_counts_steps(capsys):
    lines([0.0, 20.0, 21.0], [(7, "")], total=None)
    assert capsys.readouterr().err.splitlines()[0] == "working: 7 steps, 20 s so far"


@pytest.mark.parametrize("verbose", [False, 0])
def test_nothing_is_shown_where_nothing_is_wanted(verbose, capfd):
    with Watch("working", 2, verbose) as watch:
        watch.step(loss=1.0)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("number", "said"),
    [(0.123456, "0.1235"), (9999, "9999"), (25_000, "25 k"), (3_210_000, "3.21 M"), (4e9, "4 G")],
)
def test_numbers_are_short(number, said, capsys, monkeypatch):
    monkeypatch.setattr(displays, "LINE_SECONDS", 0.0)
    with Progress("working", 1, True) as progress:
        progress.update(1, rows=number)
    assert f"rows {said}," in capsys.readouterr().err


def test_in_a_pipe_lines_are_plain():
    done = subprocess.run(
        [sys.executable, "-c", WORK.format(verbose=None)],
        capture_output=True,
        text=True,
        check=True,
    )
    said = done.stderr.splitlines()
    assert said[0].startswith("counting <all>: 33 %, loss 1,")
    assert "\r" not in done.stderr
    assert "\x1b" not in done.stderr
    assert done.stdout == "done\n"


def test_on_a_terminal_there_is_a_bar():
    parent, child = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", WORK.format(verbose=None)],
        stdout=subprocess.PIPE,
        stderr=child,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"},
        check=True,
    )
    os.close(child)
    seen = b""
    try:
        while part := os.read(parent, 65536):
            seen += part
    except OSError:
        pass  # the other end is closed
    os.close(parent)
    assert b"\x1b[" in seen
    assert b"so far" not in seen
    assert done.stdout == b"done\n"


def test_in_a_notebook_there_is_a_bar_without_further_packages():
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    code = """
    import sys, IPython.display as shown
    sys.modules["ipywidgets"] = sys.modules["tqdm"] = None   # an import of them would fail
    from decision_machines.progress import Progress, displays
    displays.DRAW_SECONDS = 0.0
    drawn = []
    kept = displays.NotebookBar._drawn
    displays.NotebookBar._drawn = lambda self, *given: drawn.append(kept(self, *given)) or drawn[-1]
    with Progress("counting <all>", 3, None) as progress:
        for i in range(3):
            progress.update(i + 1, loss=1 / (i + 1))
    print(drawn[-1]["text/html"])
    """
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(textwrap.dedent(code))])
    nbclient.NotebookClient(notebook, timeout=None, kernel_name="python3").execute()
    outputs = notebook.cells[0].outputs
    printed = "".join(o.text for o in outputs if o.output_type == "stream" and o.name == "stdout")
    assert 'counting &lt;all&gt; <progress value="3" max="3"></progress> 100 %' in printed
    assert not any(o.output_type == "stream" and o.name == "stderr" for o in outputs)
    kinds = [o.output_type for o in outputs]
    assert "display_data" in kinds
    assert "error" not in kinds


def test_where_nobody_looks_there_are_lines():
    assert isinstance(display_for(None), Lines) or sys.stderr.isatty()


def test_an_interruption_ends_the_work_unless_the_best_is_to_be_kept(caplog):
    watch = Watch("training", 3, False)
    with pytest.raises(KeyboardInterrupt), watch:
        raise KeyboardInterrupt
    assert not watch.interrupted
    watch = Watch("training", 3, False, keep_best=True)
    with caplog.at_level(logging.WARNING, "decision_machines"), watch:
        watch.step(loss=1.0)
        raise KeyboardInterrupt
    assert watch.interrupted
    assert "training was interrupted after 1 steps; the best so far is kept" in caplog.text


def test_other_errors_are_raised_also_where_the_best_is_kept():
    with pytest.raises(ZeroDivisionError), Watch("training", 3, False, keep_best=True):
        raise ZeroDivisionError


def test_the_package_is_silent_without_a_handler_of_the_users():
    code = (
        "import logging, decision_machines\n"
        "logging.getLogger('decision_machines.train').warning('heard by nobody')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_a_bar_is_taken_away_when_the_work_fails(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    progress = Progress("working", 2, None)
    with pytest.raises(ZeroDivisionError), progress:
        raise ZeroDivisionError
    assert isinstance(progress.display, displays.TerminalBar)
    assert progress.display.bar.live.is_started is False


def test_a_terminal_without_rich_gets_lines(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert isinstance(display_for(None), displays.TerminalBar)
    monkeypatch.setitem(sys.modules, "rich", None)
    assert isinstance(display_for(None), Lines)
    assert isinstance(display_for(0), displays.Nowhere)
