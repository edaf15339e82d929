"""What the folder of a library offers: read its models, ask them, open and write its files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from ..errors import InputError, UnsupportedModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from ..machine import Assembly, DecisionMachine
    from .oracles import Oracle
    from .releases import Releases

MARKED, RECOGNISED, UNMARKED = range(3)
"""How surely a format is told apart: by its first bytes, by its content, by nothing better."""


class Format(NamedTuple):
    """A kind of model file."""

    name: str
    looks_like: Callable[[bytes], bool]
    read: Callable[[bytes, str], Any]
    """From bytes, and what to call them in errors, to a machine, or to a model of the library."""
    certainty: int = RECOGNISED


class Folder(NamedTuple):
    """A kind of model that is a folder of files."""

    name: str
    looks_like: Callable[[Path], bool]
    read: Callable[[Path, str], Any]
    """From the folder, and what to call it in errors, to a machine."""


class Target(NamedTuple):
    """A kind of model file that a machine can be written as."""

    name: str
    suffixes: tuple[str, ...]
    content: Callable[..., bytes]
    """From a machine, the file's suffix and the options to the bytes of the file."""
    options: tuple[str, ...] = ()
    """The names of the options that `content` takes."""


class Library:
    """One library; its folder holds a subclass with what this library has.

    A method imports what it needs when it is called: making the registry loads no reader.
    """

    name: ClassVar[str]
    """The folder's name, and that of the extra that installs the library."""
    package: ClassVar[str | None] = None
    """The package that the classes of its models come from; None where it has no models."""
    releases: ClassVar[Releases | None] = None
    """The releases that the tests run against; None where it has no models."""
    engine: ClassVar[str | None] = None
    """The package that predicts, where it is not `package`."""
    opens_its_files: ClassVar[bool] = True
    """Whether the package has an object of its own for a model file, to compare a machine with."""

    def formats(self) -> tuple[Format, ...]:
        """The model files that it reads."""
        return ()

    def folders(self) -> tuple[Folder, ...]:
        """The folders of model files that it reads."""
        return ()

    def targets(self) -> tuple[Target, ...]:
        """The model files that it writes."""
        return ()

    def read(self, model: Any) -> DecisionMachine | Assembly:
        """The machine that answers as a model of this library does."""
        raise self._lacks(f"reading a {type(model).__name__}")

    def read_with(
        self, model: Any, X: Any, monotone: Collection[Any]
    ) -> DecisionMachine | Assembly:
        """The machine of a model with steps before it, and what is said of these steps."""
        raise InputError(
            "converting a model",
            f"X or monotone given with a {type(model).__name__}, which has no steps before it",
            "give them with a scikit-learn Pipeline, or leave them out",
        )

    def open(self, package: Any, data: bytes) -> Any:
        """The library's own object of the content of a model file.

        Parameters
        ----------
        package
            The library, imported.
        """
        raise self._lacks("opening a model file")

    def open_folder(self, package: Any, folder: Path) -> Any:
        """The library's own object of a folder of model files."""
        raise self._lacks("opening a model's folder")

    def oracle(self, model: Any, machine: DecisionMachine) -> Oracle:
        """Who asks a model for its own leaves and margins."""
        raise self._lacks(f"asking a {type(model).__name__} for its own answers")

    def members(self, model: Any) -> list[Any]:
        """The models that a model made of models asks, in the order of an assembly's members."""
        raise self._lacks(f"asking a {type(model).__name__} for its members")

    def answers(self, model: Any) -> dict[str, Callable[[Any], Any]]:
        """What the verbs of an assembly should answer: the model's own functions, by the verb."""
        found = {"predict": model.predict}
        if hasattr(model, "predict_proba"):
            found["predict_proba"] = model.predict_proba
        return found

    def predictor(self, model: Any) -> Callable[[Any, int], Any]:
        """A model's `predict` as its users call it: a function of rows and a number of threads."""
        raise self._lacks(f"predicting with a {type(model).__name__}")

    def _lacks(self, doing: str) -> UnsupportedModelError:
        return UnsupportedModelError(
            doing, f"{self.name} is only written, never read", "use the model it was made from"
        )
