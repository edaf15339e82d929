"""skops files: scikit-learn models as a zip of arrays and a schema, read without running code.

skops itself builds no type that is not trusted. We trust some beyond its own list. `Tree` and
`TreePredictor`, which scikit-learn would walk unchecked, and the function that HistGradientBoosting
keeps beside its encoder: we only look at the arrays that they hold, and check every index. What
pipelines and models made of models keep beside their arrays, plain holders of values: none of them
does anything when it is built. Folding a pipeline calls the `transform` of scikit-learn's own
steps; a function inside a step is called only where it is one of NumPy's that we know.
Older releases of skops also ask about the losses and links of boosting, which hold a few numbers.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from typing import Any

import numpy as np

from ...errors import MissingLibraryError, UnsupportedModelError
from ..formats import broken
from .read_trees import MOST_FEATURES
from .releases import noting_releases

LOSSES = (
    *("HalfSquaredError", "AbsoluteError", "PinballLoss", "HuberLoss", "HalfPoissonLoss"),
    *("HalfGammaLoss", "HalfBinomialLoss", "HalfMultinomialLoss", "ExponentialLoss"),
)
LINKS = ("Interval", "IdentityLink", "LogLink", "LogitLink", "HalfLogitLink", "MultinomialLogit")
TRUSTED = (
    "sklearn.tree._tree.Tree",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
    "sklearn.compose._column_transformer._RemainderColsList",
    "functools.partial",
    "sklearn.utils.validation.check_array",
    "numpy.dtype",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.calibration._TemperatureScaling",
    "sklearn.feature_selection._univariate_selection.chi2",
    "sklearn.feature_selection._univariate_selection.f_classif",
    "sklearn.feature_selection._univariate_selection.f_regression",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.utils._bunch.Bunch",
    *(f"sklearn._loss.loss.{name}" for name in LOSSES),
    # scikit-learn 1.6 and newer name the module of their compiled losses differently.
    *(f"{module}.Cy{name}" for module in ("_loss", "sklearn._loss._loss") for name in LOSSES),
    *(f"sklearn._loss.link.{name}" for name in LINKS),
)
UNPACKED_AT_MOST = 200
"""How many times its size a file may unpack to; arrays of trees reach a tenth of it."""


SIZES = ("__reduce__", "pool_size")
"""Where a schema holds what constructors are given: those of trees, and of random generators."""


def looks_like_skops(data: bytes) -> bool:
    """Whether the bytes are a zip archive, the only kind of zip that we read."""
    return data.startswith(b"PK\x03\x04")


def read_skops_bytes(data: bytes, source: str) -> Any:
    """The scikit-learn model in a skops file."""
    _check_archive(data, source)
    try:
        import skops.io
    except ImportError:
        raise MissingLibraryError(
            f"reading {source}",
            "it is a skops file, and skops is not installed",
            "pip install decision-machines[sklearn]",
        ) from None
    try:
        unknown = sorted(set(skops.io.get_untrusted_types(data=data)) - set(TRUSTED))
    except MemoryError:
        raise
    except Exception as error:
        raise broken(source, f"its schema cannot be read ({error})") from error
    if unknown:
        raise UnsupportedModelError(
            f"reading {source}",
            f"it holds types that we do not trust: {', '.join(unknown)}",
            "look at them; if they are yours, skops.io.load(path, trusted=[...]) and pass the "
            "model to dm.convert",
        )
    try:
        with noting_releases(f"reading {source}"):
            return skops.io.loads(data, trusted=list(TRUSTED))
    except MemoryError:
        raise
    except Exception as error:
        raise broken(source, f"its content does not fit its schema ({error})") from error


def _check_archive(data: bytes, source: str) -> None:
    """Refuse what skops would unpack or allocate without asking."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except MemoryError:
        raise
    except Exception as error:
        raise broken(source, f"the zip archive cannot be opened ({error})") from error
    with archive:
        names = archive.namelist()
        if "schema.json" not in names:
            raise broken(source, "a zip archive without a schema.json, so no skops file")
        if sum(i.file_size for i in archive.infolist()) > UNPACKED_AT_MOST * len(data):
            raise broken(source, f"it would unpack to over {UNPACKED_AT_MOST} times its size")
        for name in names:
            if name.endswith(".npy"):
                try:
                    _check_array(archive, name)
                except MemoryError:
                    raise
                except Exception as error:
                    raise broken(source, f"the array {name} cannot be read ({error})") from error
            elif name != "schema.json":
                raise broken(source, f"an entry that no tree model has, {name!r}")
        try:
            schema = json.loads(archive.read("schema.json"))
        except MemoryError:
            raise
        except Exception as error:
            raise broken(source, f"its schema cannot be read ({error})") from error
    _check_sizes(schema, source)


def _check_sizes(schema: Any, source: str) -> None:
    """Refuse an object whose constructor would allocate for more than any model that we read has.

    A node that is named again by its number is built once, so every text of a number counts.
    """
    texts: dict[Any, set[str]] = {}
    asked: set[Any] = set()
    nodes = [(schema, False)]
    while nodes:
        node, is_asked = nodes.pop()
        for key, below in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(below, (dict, list)):
                nodes.append((below, is_asked or key in SIZES))
        if isinstance(node, dict) and isinstance(node.get("content"), str):
            number = repr(node.get("__id__"))
            texts.setdefault(number, set()).add(node["content"])
            if is_asked:
                asked.add(number)
    for number in asked:
        for text in texts[number]:
            if re.fullmatch(r"-\d+|\d{9,}", text) or (text.isdigit() and int(text) > MOST_FEATURES):
                raise broken(source, f"an object is to be made with the size {text[:20]}")


def _check_array(archive: zipfile.ZipFile, name: str) -> None:
    """An array's header must ask for as many bytes as the archive has for it."""
    with archive.open(name) as file:
        version = np.lib.format.read_magic(file)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, _, dtype = read(file)
        size = dtype.itemsize
        for n in shape:
            size *= n
        if dtype.hasobject or min(shape, default=0) < 0 or size < 0:
            raise ValueError(f"shape {shape} of {dtype}")
        if file.tell() + size != archive.getinfo(name).file_size:
            raise ValueError(f"shape {shape} of {dtype} in {archive.getinfo(name).file_size} bytes")
