"""What of a folder is finished: one small record for each file, kept beside the folder.

Beside it, not in it: readers of a folder of Parquet files fail where it holds anything else. A
record is written after its file has its final name, so a record without its file, or of another
size, or of an input that changed since, counts for nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import secrets
from dataclasses import asdict, dataclass, field
from typing import IO, TYPE_CHECKING, Any

from ..errors import InputError
from ..files.atomic import UNFINISHED, write_atomically, writing
from .work import Done, score_part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from .parts import Part
    from .work import Scorer

VERSION = 1
RUN, LOCK, OWNER = "run.json", "lock", "owner"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Records:
    """The records of one folder of answers."""

    folder: str
    """Where the answers go."""
    run: str = field(default_factory=lambda: secrets.token_hex(8))
    """The run's own name: two runs never have the same, whatever they ask for."""

    @property
    def home(self) -> str:
        parent, name = os.path.split(os.path.abspath(self.folder))
        return os.path.join(parent, f".{name}.dm-run")

    def begin(self, run: Mapping[str, Any], fresh: bool) -> None:
        """Start a run, or go on with one that asked for the same.

        Raises
        ------
        InputError
            Where the folder holds anything else, unless `fresh` says to clear it.
        """
        run = {"version": VERSION, **run}
        self._take_over()
        known = self._read(RUN)
        if fresh:
            self._clear(known)
            known = None
        doing = f"writing into {self.folder}"
        if known is None and os.path.isdir(self.folder) and self._visible():
            raise InputError(
                doing,
                f"it holds files already, such as {self._visible()[0]!r}, and no record says that "
                "they are of this run",
                "give another folder, or empty this one",
            )
        if known is not None and known != run:
            differing = [key for key in run if known.get(key) != run[key]]
            raise InputError(
                doing,
                f"it holds answers of another run, with another {', '.join(differing)}",
                "give another folder, or --fresh (fresh=True) to start again",
            )
        with writing(self.folder):
            os.makedirs(self.folder, exist_ok=True)
            self._remove_unfinished()
        self._write(RUN, run)

    def _take_over(self) -> None:
        """From now on this run alone puts files in their place."""
        with writing(self.home):
            os.makedirs(self.home, exist_ok=True)
            with self._owner() as file:
                file.seek(0)
                file.truncate()
                file.write(self.run)
                file.flush()
                os.fsync(file.fileno())

    @contextlib.contextmanager
    def in_charge(self) -> Iterator[None]:
        """Hold the folder while a file takes its place; refused to a run that is not the last.

        A worker may go on after its run was killed. Its answers were asked for by another run than
        the one that writes now, so it must neither replace a file nor record one.
        """
        with writing(self.home), self._owner() as file:
            owner = file.read()
            if owner != self.run:
                logger.warning("a worker of an older run was refused a file in %s", self.folder)
                raise InputError(
                    f"writing into {self.folder}",
                    "a newer run writes there; this one was given up",
                    "leave it to the newer run",
                )
            yield

    @contextlib.contextmanager
    def _owner(self) -> Iterator[IO[str]]:
        """The file with the name of the run that is in charge, held against all others."""
        with open(os.path.join(self.home, OWNER), "a+") as file:
            try:
                import fcntl

                fcntl.flock(file.fileno(), fcntl.LOCK_EX)
            except (ImportError, OSError):
                pass  # where nothing can be held, looking at the name must do
            file.seek(0)
            yield file

    def finished(self, part: Part, output: str) -> Done | None:
        """The record of a part whose answers are there, and are those to the file as it is now."""
        record = self._read(_key(output))
        if record is None or record["input"] != part.identity():
            return None
        done = Done(**record["done"])
        path = os.path.join(self.folder, output)
        return done if os.path.isfile(path) and os.path.getsize(path) == done.bytes else None

    def complete(
        self,
        scorer: Scorer,
        part: Part,
        output: str,
        kind: str,
        progress: Callable[[int, float], None] | None = None,
    ) -> Done:
        """Score a part into its file, and record that its answers are complete."""
        path = os.path.join(self.folder, output)
        done = score_part(scorer, part, path, kind, progress=progress, replacing=self.in_charge)
        record = {"output": output, "input": part.identity(), "done": asdict(done)}
        with self.in_charge():
            self._write(_key(output), record)
        return done

    def check_other_answers(self, outputs: set[str]) -> None:
        """Refuse answers to files that are no longer among the data: they would be read along."""
        for name in self._visible():
            if name not in outputs:
                raise InputError(
                    f"writing into {self.folder}",
                    f"it holds {name!r}, which answers none of the files of this data",
                    "give another folder, or remove this file, or start again with --fresh",
                )

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the folder against another run; the system lets go when the process ends."""
        try:
            import fcntl
        except ImportError:
            yield
            return
        with writing(self.folder):
            os.makedirs(self.home, exist_ok=True)
            lock = os.open(os.path.join(self.home, LOCK), os.O_RDWR | os.O_CREAT, 0o666)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InputError(
                    f"writing into {self.folder}", "another run writes there", "wait for its end"
                ) from None
            yield
        finally:
            os.close(lock)

    def _visible(self) -> list[str]:
        found = []
        for root, _, files in os.walk(self.folder):
            names = (os.path.relpath(os.path.join(root, name), self.folder) for name in files)
            found += [name.replace(os.sep, "/") for name in names if not _is_unfinished(name)]
        return sorted(found)

    def _clear(self, known: Any) -> None:
        """Remove the files that the records name, and the records; nothing else."""
        if known is None:
            return
        for name in set(os.listdir(self.home)) - {LOCK, OWNER}:
            record = self._read(name) if name != RUN else None
            if record is not None:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(os.path.join(self.folder, record["output"]))
            os.remove(os.path.join(self.home, name))

    def _unfinished(self) -> list[str]:
        return [
            os.path.join(root, name)
            for root, _, files in os.walk(self.folder)
            for name in files
            if _is_unfinished(name)
        ]

    def sizes(self) -> dict[str, int]:
        """The unfinished files and how far they have grown."""
        found = {}
        for path in self._unfinished():
            with contextlib.suppress(OSError):
                found[path] = os.path.getsize(path)
        return found

    def _remove_unfinished(self) -> None:
        for path in self._unfinished():
            os.remove(path)

    def _read(self, name: str) -> Any:
        try:
            with open(os.path.join(self.home, name)) as file:
                return json.load(file)
        except (OSError, ValueError):
            return None

    def _write(self, name: str, record: Any) -> None:
        # The home may hold a record for each of many thousand files: it is not swept each time.
        path = os.path.join(self.home, name)
        write_atomically(path, [json.dumps(record).encode()], sweep=False)


def _is_unfinished(path: str) -> bool:
    name = os.path.basename(path)
    return name.startswith(".") and name.endswith(UNFINISHED)


def _key(output: str) -> str:
    return hashlib.sha256(output.encode()).hexdigest()[:24] + ".json"
