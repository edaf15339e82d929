"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from typing import TYPE_CHECKING

from ..errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable


def write_atomically(path: str | os.PathLike, parts: Iterable[bytes | memoryview]) -> None:
    """Write the parts, one after the other, under another name, and rename when all is on disk.

    Until then, and whatever goes wrong, the file that stood at `path` stays as it was. The new one
    has its permissions. A process killed in the middle leaves a file beside it whose name ends in
    `.part`.
    """
    path = os.path.realpath(os.fspath(path))
    folder, name = os.path.split(path)
    part = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.part")
    try:
        _write(part, parts)
        with contextlib.suppress(FileNotFoundError):
            os.chmod(part, stat.S_IMODE(os.stat(path).st_mode))
        os.replace(part, path)
    except OSError as error:
        _remove(part)
        raise InputError(
            f"writing {path}",
            f"it cannot be written ({error.strerror or error})",
            "check the folder, its permissions and the space left on its disk; "
            "what stood there before is unchanged",
        ) from error
    except BaseException:
        _remove(part)
        raise
    sync_folder(folder)


def _write(path: str, parts: Iterable[bytes | memoryview]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    with open(descriptor, "wb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.remove(path)


def sync_folder(folder: str) -> None:
    """Have the new name on disk too, where the system lets folders be opened."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
