"""What the explorer page writes, by running its modules with node."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import decision_machines
from decision_machines.libraries.javascript.modules import MODULES

PACKAGE = Path(decision_machines.__file__).parent
EVALUATOR = PACKAGE / "libraries" / "javascript"
PAGE = PACKAGE / "show" / "page"


def run_module(code, data):
    """What an ES module prints as JSON; `page("words")` imports a module of the page."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed, so JavaScript cannot be run")
    head = f"""
    const evaluator = {json.dumps(MODULES)}.map((name) => [name, {json.dumps(EVALUATOR.as_uri())}]);
    const folder = (name) => new Map(evaluator).get(name) ?? {json.dumps(PAGE.as_uri())};
    const page = (name) => import(`${{folder(name)}}/${{name}}.js`);
    const data = JSON.parse(await new Promise((done) => {{
      let text = "";
      process.stdin.setEncoding("utf8").on("data", (part) => (text += part));
      process.stdin.on("end", () => done(text));
    }}));
    """
    done = subprocess.run(
        [node, "--input-type=module", "--eval", head + code],
        input=json.dumps(data),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def syntax_errors(code):
    """What node has to say of a module that is not run."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed, so JavaScript cannot be read")
    done = subprocess.run(
        [node, "--check", "--input-type=module", "-"], input=code, capture_output=True, text=True
    )
    return done.stderr if done.returncode else ""
