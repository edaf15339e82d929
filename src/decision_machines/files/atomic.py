"""Files that are there whole or not at all.

Everything that this package writes is written here: under a hidden name beside the file, which
becomes the file when all is on disk. The hidden file is held (`flock`) while it is written, so that
what a killed process left can be told from what another process is writing, and removed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from typing import TYPE_CHECKING, BinaryIO, cast

from ..errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

UNFINISHED = ".unfinished"
"""How the hidden name of a file ends while it is written."""


def write_atomically(
    path: str | os.PathLike[str], parts: Iterable[bytes | memoryview], *, sweep: bool = True
) -> None:
    """Write the parts one after the other; the file appears at `path` when all are on disk.

    See `whole_file` for what holds until then.
    """
    with whole_file(path, sweep=sweep) as file:
        for part in parts:
            rest = memoryview(part).cast("B")
            while rest:  # an unbuffered file may take less than it is given
                rest = rest[file.write(rest) :]


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str], *, sweep: bool = True) -> Iterator[BinaryIO]:
    """A new binary file that becomes `path` where all goes well.

    Until then, and whatever goes wrong, the file that stood at `path` stays as it was. The new one
    has its permissions. A process killed in the middle leaves a hidden file whose name ends in
    `.unfinished`; whoever writes the same file next removes it.

    Parameters
    ----------
    sweep
        Whether to look for such a hidden file; that reads the names of the whole folder.

    Raises
    ------
    InputError
        Where the file cannot be written, with the system's reason.
    """
    path = os.path.realpath(os.fspath(path))
    with writing(path):
        with _unfinished(path, sweep) as file:
            yield file
        sync_folder(os.path.dirname(path))


@contextlib.contextmanager
def writing(path: str) -> Iterator[None]:
    """Say of an error in writing a file what is left of it: nothing."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"writing {path}",
            f"it cannot be written ({error.strerror or error})",
            "check the folder, its permissions and the space left on its disk, and run again: "
            "what stood there before is unchanged, what is finished stays, and no unfinished file "
            "is left",
        ) from error


@contextlib.contextmanager
def _unfinished(path: str, sweep: bool) -> Iterator[BinaryIO]:
    folder, name = os.path.split(path)
    if sweep:
        _sweep(folder, name)
    while True:
        hidden = os.path.join(folder, f".{name}.{secrets.token_hex(4)}{UNFINISHED}")
        try:
            # Unbuffered: closing after a failed write must have nothing left to fail on.
            with open(hidden, "xb", buffering=0, opener=_new) as file:
                if _is_swept(file.fileno()):
                    continue
                yield cast("BinaryIO", file)
                os.fsync(file.fileno())
                with contextlib.suppress(FileNotFoundError):
                    os.chmod(hidden, stat.S_IMODE(os.stat(path).st_mode))
                if os.name != "nt":
                    os.replace(hidden, path)  # while it is held: closed, it could be swept away
            if os.name == "nt":
                os.replace(hidden, path)  # no open file can be renamed, and none is swept away
            return
        except BaseException:
            with contextlib.suppress(OSError):
                os.remove(hidden)
            raise


def _new(path: str, flags: int) -> int:
    return os.open(path, flags, 0o666)


def sync_folder(folder: str) -> None:
    """Have the new name on disk too, where the system lets folders be opened."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _hold(descriptor: int) -> None:
    """Mark a file as being written, until it is closed; BlockingIOError where another has it."""
    try:
        import fcntl
    except ImportError as error:
        raise OSError("files cannot be marked on this system") from error
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_swept(descriptor: int) -> bool:
    """Hold a file that was just created, unless a sweep that came in between has it."""
    try:
        _hold(descriptor)
    except BlockingIOError:
        return True
    except OSError:
        return False  # where no file can be held, none is swept away
    return os.fstat(descriptor).st_nlink == 0


def _sweep(folder: str, name: str) -> None:
    """Remove what a killed process left of a file: nobody holds it any more."""
    for left in os.listdir(folder):
        if left.startswith(f".{name}.") and left.endswith(UNFINISHED):
            path = os.path.join(folder, left)
            with contextlib.suppress(OSError), open(path, "rb") as file:
                _hold(file.fileno())
                os.remove(path)
