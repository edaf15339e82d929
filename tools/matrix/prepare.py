"""The environments of the matrix, and the wheels that are installed into them."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from pythons import environment, find_python, install

from matrix.sets import ROOT, Environment

SOURCES = ("CMakeLists.txt", "pyproject.toml", "README.md", "LICENSE", "native", "src")
"""What the wheel is made from."""


def prepare(given: Environment, folder: Path, dist: Path | None) -> Path:
    """The interpreter of the set's environment, with the wheel as it is now.

    An environment is made once; it is made again where what it should hold has changed. `dist`
    holds wheels that are already built; without it they are built, once for each kind.
    """
    python = find_python(given.python)
    if python is None:
        raise LookupError(f"Python {given.python} is not here")
    own, stamp = folder / given.name, folder / given.name / "requirements.txt"
    wanted = "\n".join(given.requirements())
    if stamp.exists() and stamp.read_text() == wanted:
        inside = own / "bin" / "python"
    else:
        inside = environment(python, own)
        # Python compiles what is imported by itself: most of it never is.
        install(inside, "--no-compile", "--prefer-binary", *_without_cuda(given, inside))
        stamp.write_text(wanted)
    alone = ("--no-deps", "--force-reinstall", "--no-index")
    found = dist or built(given, inside, folder / "dist")
    install(inside, *alone, "--find-links", str(found), "decision-machines")
    return inside


def built(given: Environment, inside: Path, folder: Path) -> Path:
    """The folder of the wheel for this Python, built from the sources as they are now.

    One wheel serves 3.12 and newer.
    """
    kind = "cp311" if given.python == "3.11" else "abi3"
    own = folder / f"{kind}-{fingerprint()}"
    if not list(own.glob("*.whl")):
        pip = [inside, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "-w", str(own), str(ROOT)], check=True)
    return own


def fingerprint() -> str:
    """Sixteen digits that change with the sources of the wheel."""
    digest = hashlib.sha256()
    for name in SOURCES:
        start = ROOT / name
        for path in sorted(start.rglob("*")) if start.is_dir() else [start]:
            if path.is_file() and path.suffix in (
                "",
                ".md",
                ".txt",
                ".toml",
                ".py",
                ".cpp",
                ".hpp",
            ):
                digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _without_cuda(given: Environment, inside: Path) -> list[str]:
    """The requirements, without those that are installed here apart from what they ask for."""
    heavy = [one for one in given.requirements() if one.startswith("xgboost==")]
    for one in heavy:  # asks for CUDA's communication library, which no test needs
        install(inside, "--no-deps", one)
    return [one for one in given.requirements() if one not in heavy]
