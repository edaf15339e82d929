"""Build the wheels: `python tools/wheels/build.py [--machine aarch64] [--out dist]`.

One wheel for Python 3.11 and one, of the stable ABI, for 3.12 and newer. PyPI's ziglang compiles
against glibc 2.17, whatever this computer has, and for other processors; auditwheel proves the tag
manylinux_2_17, abi3audit that the stable ABI is kept.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from pythons import environment, find_python, install  # noqa: E402

BUILT_WITH = ("3.11", "3.12")
GLIBC = "2.17"


def tools(python: Path) -> Path:
    """The interpreter of an environment with the tools, made where it is missing or out of date."""
    release = subprocess.run(
        [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    folder, wanted = (
        ROOT / "build" / f"wheel-tools-{release}",
        ROOT / "tools/wheels/requirements.txt",
    )
    stamp = folder / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != wanted.read_text():
        install(environment(python, folder), "-r", str(wanted))
        shutil.copy(wanted, stamp)
    return folder / "bin" / "python"


def compilers(python: Path, machine: str) -> dict[str, Path]:
    """Programs c++, ar and ranlib that run ziglang for this machine and glibc."""
    folder = ROOT / "build" / "zig" / machine
    folder.mkdir(parents=True, exist_ok=True)
    programs = {}
    target = f"{machine}-linux-gnu.{GLIBC}"
    commands = {
        "c++": f'"{ROOT}/tools/zig-c++" "{python}" {target}',
        "ar": f'"{python}" -m ziglang ar',
        "ranlib": f'"{python}" -m ziglang ranlib',
    }
    for name, command in commands.items():
        programs[name] = folder / name
        text = f'#!/bin/sh\nexec {command} "$@"\n'
        # Written only where it changed: ccache looks at the compiler's time.
        if not programs[name].exists() or programs[name].read_text() != text:
            programs[name].write_text(text)
        programs[name].chmod(0o755)
    return programs


def build(release: str, machine: str, out: Path) -> Path:
    """The repaired and audited wheel of this release of Python, in the folder `out`."""
    python = find_python(release)
    if python is None:
        raise SystemExit(
            f"building the wheel of Python {release}: no such Python is here; "
            f"install it, or name its path in PYTHONS"
        )
    python = tools(python)
    programs = compilers(tools(Path(sys.executable)), machine)
    soabi = f"cpython-{release.replace('.', '')}-{machine}-linux-gnu"
    settings = os.environ | {
        "CXX": str(programs["c++"]),
        "CMAKE_ARGS": f"-DCMAKE_AR={programs['ar']} -DCMAKE_RANLIB={programs['ranlib']}",
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
    }
    if shutil.which("ccache"):
        settings["CMAKE_CXX_COMPILER_LAUNCHER"] = "ccache"
    if machine != platform.machine():
        settings["CMAKE_ARGS"] += f" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR={machine}"
        settings["_PYTHON_HOST_PLATFORM"] = f"linux-{machine}"  # the wheel's tag
        settings["SETUPTOOLS_EXT_SUFFIX"] = f".{soabi}.so"  # the module's name
    with tempfile.TemporaryDirectory() as folder:
        command = [python, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT]
        command.append(f"-Cbuild-dir={ROOT}/build/wheel-{release}-{machine}")
        told = subprocess.run(command, env=settings, capture_output=True, text=True)
        if told.returncode:
            raise SystemExit(f"building the wheel of Python {release}:\n{told.stdout[-4000:]}")
        (raw,) = Path(folder).glob("*.whl")
        tag = f"manylinux_{GLIBC.replace('.', '_')}_{machine}"
        repaired = Path(folder) / "repaired"
        # auditwheel takes no tag of another processor by name, but finds it from the wheel.
        asked = tag if machine == platform.machine() else "auto"
        subprocess.run(
            [python, "-m", "auditwheel", "repair", "--plat", asked, "-w", repaired, raw],
            check=True,
            env=settings,
        )
        (wheel,) = repaired.glob("*.whl")
        if tag not in wheel.name:
            raise SystemExit(f"auditing the wheel of Python {release}: {wheel.name} is not {tag}")
        if "abi3" in wheel.name:
            subprocess.run([python, "-m", "abi3audit", "--strict", "--summary", wheel], check=True)
        out.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(wheel, out))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machine", default=platform.machine(), choices=["x86_64", "aarch64"])
    parser.add_argument("--python", nargs="+", default=BUILT_WITH, help="releases to build with")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    given = parser.parse_args()
    for release in given.python:
        wheel = build(release, given.machine, given.out)
        print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
