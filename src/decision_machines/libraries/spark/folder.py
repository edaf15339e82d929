"""The folder that Spark saves a model, or a stage of a pipeline, in.

`metadata/part-*` holds one line of JSON; `data/` holds tables in Parquet, in one or more files, and
`treesMetadata/` those of an ensemble's weights.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import InputError, ModelFormatError, UnsupportedModelError
from ..document import WHOLE, read_json
from ..limits import require

if TYPE_CHECKING:
    from ..fields import Fields

PACKAGE = "org.apache.spark.ml."
MOST_METADATA = 1 << 28


@dataclass(frozen=True)
class Stage:
    """A model or a stage: its folder and its metadata."""

    folder: Path
    metadata: dict[str, Any]
    doing: str

    @property
    def kind(self) -> str:
        """The class, without its package."""
        return str(self.metadata["class"]).rpartition(".")[2]

    def fault(self, found: str) -> ModelFormatError:
        return ModelFormatError(self.doing, found, WHOLE)

    def refuse(self, found: str, remedy: str) -> UnsupportedModelError:
        return UnsupportedModelError(self.doing, found, remedy)

    def check(self, known: Fields) -> None:
        """Refuse a field or parameter that is not known."""
        known.check(self.metadata, self.doing, self.kind)

    def param(self, name: str, default: Any = None) -> Any:
        """A parameter as it was set, or its default in that release of Spark."""
        for held in ("paramMap", "defaultParamMap"):
            found = self.metadata.get(held, {})
            if isinstance(found, dict) and name in found:
                return found[name]
        return default

    def text(self, name: str) -> str:
        """A parameter that must be a text."""
        found = self.param(name)
        if not isinstance(found, str):
            raise self.fault(f"{self.kind}.{name} is {found!r:.40}, not text")
        return found

    def texts(self, name: str) -> list[str]:
        """A parameter that must be a list of texts."""
        found = self.param(name)
        if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
            raise self.fault(f"{self.kind}.{name} is {found!r:.40}, not a list of texts")
        return found

    def count(self, name: str) -> int:
        """A number of the metadata that must be a whole one above 0."""
        found = self.metadata.get(name)
        if type(found) is not int or not 0 < found < 1 << 31:
            raise self.fault(f"{name} is {found!r:.40}, not a whole number above 0")
        return found

    def table(self, name: str) -> Any:
        """All rows of one of the folder's tables, as an Arrow table."""
        require("pyarrow", self.doing, "data")
        import pyarrow as pa
        import pyarrow.parquet

        files = sorted((self.folder / name).glob("*.parquet"))
        if not files:
            raise self.fault(f"{name}/ holds no Parquet file")
        try:
            return pa.concat_tables([pa.parquet.read_table(file) for file in files])
        except (pa.ArrowException, OSError) as error:
            raise self.fault(f"{name}/ cannot be read ({str(error)[:200]})") from None


def looks_like_folder(folder: Path) -> bool:
    """Whether a folder holds something of `spark.ml`, whatever it is."""
    try:
        line = _line(folder)
    except OSError:
        return False
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and str(found.get("class")).startswith(PACKAGE)


def stage_of(folder: Path, doing: str) -> Stage:
    """The model or stage in a folder."""
    try:
        line = _line(folder)
    except OSError as error:
        raise InputError(
            doing, f"its metadata cannot be read ({error})", "give the folder that Spark saved"
        ) from None
    found = read_json(line, doing)
    if not isinstance(found, dict) or not str(found.get("class")).startswith(PACKAGE):
        raise ModelFormatError(doing, "its metadata names no class of spark.ml", WHOLE)
    return Stage(folder, found, doing)


def _line(folder: Path) -> bytes:
    """The metadata: the one line of the one part that is not empty."""
    parts = sorted((folder / "metadata").glob("part-*"))
    if sum(part.stat().st_size for part in parts) > MOST_METADATA:
        raise OSError("it is too long")
    lines = [line for part in parts for line in part.read_bytes().splitlines() if line.strip()]
    if len(lines) != 1:
        raise OSError(f"{len(lines)} lines in metadata/part-*, where Spark writes one")
    return lines[0]
