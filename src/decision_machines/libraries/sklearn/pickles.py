"""Pickle and joblib files, which run code when they are read.

They are told apart by their first bytes, through the compressions that joblib writes, without
unpickling anything.
"""

from __future__ import annotations

import bz2
import io
import lzma
import pickle
import re
import zlib
from typing import TYPE_CHECKING, Any

from ...errors import DecisionMachinesError, InputError, MissingLibraryError, ModelFormatError
from .releases import noting_releases

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD = 64
"""How many unpacked bytes are enough to know a pickle."""

COMPRESSIONS: tuple[tuple[bytes, Callable[[bytes], bytes]], ...] = (
    (b"\x1f\x8b", lambda data: zlib.decompressobj(47).decompress(data[:65536], HEAD)),
    (b"x", lambda data: zlib.decompressobj().decompress(data[:65536], HEAD)),
    # A block of bzip2 unpacks whole or not at all, and holds up to 900 kB.
    (b"BZh", lambda data: bz2.BZ2Decompressor().decompress(data[: 1 << 20], HEAD)),
    (b"\xfd7zXZ\x00", lambda data: lzma.LZMADecompressor().decompress(data[:65536], HEAD)),
    (b"]\x00\x00", lambda data: lzma.LZMADecompressor().decompress(data[:65536], HEAD)),
)
"""How a compressed file begins, and how its first bytes are unpacked."""


def looks_like_pickle(data: bytes) -> bool:
    """Whether the bytes are a pickle, plain or compressed as joblib does."""
    if data.startswith((b"ZF0x", b'\x04"M\x18')):  # joblib's old and LZ4 files
        return True
    for mark, unpack in COMPRESSIONS:
        if data.startswith(mark):
            try:
                return _is_pickle(unpack(data))
            except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError):
                return False
    return _is_pickle(data)


def _is_pickle(data: bytes) -> bool:
    is_binary = len(data) > 2 and data[0] == 0x80 and 2 <= data[1] <= pickle.HIGHEST_PROTOCOL
    return is_binary or re.match(rb"c[\w.]+\n[\w.]+\n", data) is not None


def refuse_pickle(data: bytes, source: str) -> Any:
    raise InputError(
        f"reading {source}",
        "it is a pickle or joblib file, which runs the code in it when it is read",
        "if you trust its writer, use dm.load(path, trust=True) (or --trust); safer, save "
        "scikit-learn models with skops and others in their own format",
    )


def read_pickle(data: bytes, source: str) -> Any:
    """The object in a pickle. Runs the code in it."""
    doing = f"reading {source}"
    try:
        with noting_releases(doing):
            try:
                import joblib
            except ImportError:
                return pickle.loads(data)
            return joblib.load(io.BytesIO(data))
    except (DecisionMachinesError, MemoryError):
        raise
    except ImportError as error:
        raise MissingLibraryError(
            doing,
            f"the pickle needs {error.name or error}, which is not here",
            "install the library, in the version that wrote the file",
        ) from error
    except Exception as error:
        raise ModelFormatError(
            doing,
            f"the pickle cannot be read ({type(error).__name__}: {error})",
            "check that the file is whole, and that the library's version is the one that wrote it",
        ) from error
