"""What the environments of the matrix hold: read from sets.toml and pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).parent / "results"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SETS = tomllib.loads((Path(__file__).parent / "sets.toml").read_text())
# XGBoost without CUDA's gigabytes; the first release of this name is 3.0.
CPU_ALONE = {"xgboost": "xgboost-cpu"}


@dataclass(frozen=True)
class Environment:
    """A Python and the releases that are installed into it."""

    name: str
    python: str
    releases: str
    instead: dict[str, str]
    extras: tuple[str, ...]
    tools: tuple[str, ...]

    @property
    def is_newest(self) -> bool:
        return self.releases == "newest"

    def requirements(self) -> list[str]:
        """What pip is asked for: lower bounds as they stand, or the newest."""
        wanted = [*declared(self.extras).items(), *map(_parts, self.tools)]
        return [self._requirement(name, lowest) for name, lowest in wanted]

    def _requirement(self, name: str, lowest: str) -> str:
        if self.is_newest or name in map(_name, self.tools):  # tools are not declared
            return f"{CPU_ALONE.get(name, name)}>={lowest}"
        return f"{name}=={self.instead.get(name, lowest)}"


def environments() -> list[Environment]:
    """The sets of sets.toml, in their order."""
    tests = tuple(SETS["libraries"]["tests"])
    return [
        Environment(
            one["name"],
            one["python"],
            one["releases"],
            one.get("instead", {}),
            (*SETS["libraries"]["extras"], *one.get("extras", ())),
            tests,
        )
        for one in SETS["set"]
    ]


def all_extras() -> list[str]:
    """Every extra that some set holds."""
    return list(dict.fromkeys(extra for one in environments() for extra in one.extras))


def fast_environment(python: str) -> Environment:
    """What the fast part runs in: the newest releases of what its tests need."""
    fast = SETS["fast"]
    held = (tuple(fast["extras"]), tuple(fast["tests"]))
    return Environment(f"fast-{python}", python, "newest", {}, *held)


def declared(extras: Iterable[str]) -> dict[str, str]:
    """Lower bounds of the dependencies and of these extras, as pyproject.toml has them.

    A name keeps what is asked for with it: `dask[dataframe]`.
    """
    listed = [*PROJECT["dependencies"]]
    for extra in extras:
        listed += PROJECT["optional-dependencies"][extra]
    return dict(map(_parts, listed))


def left_to_others(room: str) -> list[str]:
    """Tests in the room's folders that are another room's."""
    rooms: dict[str, list[str]] = SETS["rooms"]
    return [
        path
        for other, paths in rooms.items()
        for path in paths
        if other != room and any(Path(own) in Path(path).parents for own in rooms[room])
    ]


def _name(requirement: str) -> str:
    return _parts(requirement)[0]


def _parts(requirement: str) -> tuple[str, str]:
    """Name and lower bound; where it is needed, which a marker says, is not the matrix's matter."""
    bound = requirement.split(";")[0].strip()
    found = re.fullmatch(r"([A-Za-z0-9._-]+(?:\[\w+\])?)>=([0-9.]+)", bound)
    if found is None:
        raise SystemExit(f"reading requirements: {requirement!r} has no lower bound name>=release")
    return found[1], found[2]
