"""Our own file, `.dm`; `machine.schema` says what it holds. Reading it runs no code of the file's.

Everything is checked before it is used: the container, the names, dtypes and shapes of the arrays,
the types and ranges of all else, and at last the machine's own invariants.
"""

from __future__ import annotations

import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np
import scipy.sparse as sp

from ...errors import InvariantError, ModelFormatError, UnsupportedModelError
from ...machine import (
    Accepted,
    Assembly,
    CategorySets,
    Columns,
    Cover,
    DecisionMachine,
    LinearLeaves,
    Output,
    Trees,
    schema,
)
from ...machine.look_ups import LookUps
from ...machine.schema import label_from_json, number_from_json, parameter_from_json
from ..document import Document
from ..fields import unknown_field
from .safetensors import read_container, strict_json

if TYPE_CHECKING:
    from collections.abc import Callable

P = TypeVar("P")
LOOK_UPS = "columns.look_ups."


def looks_like_dm(data: bytes) -> bool:
    """Whether the bytes begin with a safetensors header that names our format."""
    if data[8:9] != b"{":
        return False
    size = int.from_bytes(data[:8], "little")
    return data.find(b'"' + schema.FORMAT.encode() + b'"', 8, 8 + size) >= 0


def read_dm_bytes(data: bytes, source: str = "a machine's file") -> DecisionMachine:
    """The machine in the content of a `.dm` file."""
    doing = f"reading the machine {source}"
    metadata, arrays = read_container(bytes(data), doing)
    version = metadata.get("version", "")
    if metadata.get("format") != schema.FORMAT or not re.fullmatch("[1-9][0-9]{0,5}", version):
        _broken(doing, "it does not name its format and a version")
    if int(version) > schema.VERSION:
        raise UnsupportedModelError(
            doing,
            f"it is of version {version}; this library reads up to {schema.VERSION}",
            "install a newer decision-machines, or save the machine again with this one",
        )
    for key in metadata.keys() - {"format", "version", "machine"}:
        raise unknown_field(doing, f"__metadata__.{key[:60]}")
    texts = strict_json(metadata.get("machine", ""), doing, "the machine's text")
    for old in range(int(version), schema.VERSION):
        texts, arrays = schema.UPGRADES[old](texts, arrays)
    try:
        document = Document(texts, doing)
        machine = _whole(document, arrays)
        document.refuse_unread()
        return machine  # type: ignore[return-value]
    except InvariantError as error:
        _broken(doing, error.found)


def _whole(document: Document, arrays: dict[str, np.ndarray]) -> DecisionMachine | Assembly:
    """The machine, or the assembly, that the file holds."""
    if "assembly" not in document:
        return _machine(document, arrays)
    about = document.child("assembly")
    numbers, classes_array = {}, None
    held: dict[int, dict[str, np.ndarray]] = {}
    texts = about.objects("members")
    for name, array in arrays.items():
        of_member = re.fullmatch(re.escape(schema.MEMBERS) + r"([0-9]{1,6})\.(.+)", name)
        if of_member is not None and int(of_member[1]) < len(texts):
            held.setdefault(int(of_member[1]), {})[of_member[2]] = array
        elif name.startswith(schema.NUMBERS):
            numbers[name.removeprefix(schema.NUMBERS)] = array
        elif name == f"{schema.CLASSES}0":
            classes_array = array
        else:
            raise document.fault(f"an array {name[:60]!r} that no assembly has")
    words: dict[str, tuple[str, ...]] = {}
    for entry in _list(about, "words"):
        fits = isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], list)
        if not fits or not all(isinstance(text, str) for text in [entry[0], *entry[1]]):
            raise about.fault(f"{about.name('words')} holds what is not text")
        words[entry[0]] = tuple(entry[1])
    classes = None
    if about.raw("classes") is not None:
        classes = _labels_of_group(about.child("classes"), classes_array)
    return Assembly(
        about.text("rule"),
        tuple(
            _member(Document(one, document.doing, f"{about.name('members')}[{i}]"), held.get(i, {}))
            for i, one in enumerate(texts)
        ),
        numbers,
        words,
        classes,
        document.text("source"),
    )


def _member(document: Document, arrays: dict[str, np.ndarray]) -> DecisionMachine | Assembly:
    member = _whole(document, arrays)
    document.refuse_unread()
    return member


def _machine(document: Document, arrays: dict[str, np.ndarray]) -> DecisionMachine:
    doing = document.doing
    _check_arrays(arrays, doing)
    _check_starts(arrays, doing)
    columns = _columns(document.child("columns"), arrays)
    output = _output(document.child("output"), arrays)
    if arrays["t"].dtype != columns.dtype or arrays["output.base"].dtype != output.dtype:
        _broken(doing, "thresholds or base scores of another dtype than the file says")
    linear = None
    if "linear.start" in arrays:
        linear = LinearLeaves(
            *(arrays[f"linear.{name}"] for name in ("intercept", "start", "feature", "coefficient"))
        )
    return DecisionMachine(
        columns=columns,
        selection=_selection(arrays, len(columns), doing),
        t=arrays["t"],
        missing=arrays["missing"],
        children=arrays["children"],
        V=arrays["V"],
        trees=Trees(
            arrays["trees.test_start"],
            arrays["trees.feeds"],
            arrays.get("trees.test_ids"),
            arrays.get("trees.leaf_ids"),
        ),
        output=output,
        linear=linear,
        source=document.text("source"),
        cover=Cover(arrays["cover.tests"], arrays["cover.leaves"])
        if "cover.tests" in arrays
        else None,
    )


# ---------------------------------------------------------------------- arrays


def _check_arrays(arrays: dict[str, np.ndarray], doing: str) -> None:
    """Names, dtypes and shapes as the schema has them; a letter has one size throughout."""
    sizes: dict[str, int] = {}
    for name, array in arrays.items():
        if name.startswith(schema.CLASSES):
            continue
        known = schema.ARRAYS.get(name)
        if known is None:
            raise unknown_field(doing, f"the array {name[:60]!r}")
        if schema.NAMES[array.dtype.newbyteorder("<")] not in known.dtypes:
            _broken(doing, f"{name} is of {array.dtype}, not of {' or '.join(known.dtypes)}")
        letters = known.shape.split()
        if array.ndim != len(letters):
            _broken(doing, f"{name} has {array.ndim} dimensions, not {len(letters)}")
        for letter, size in zip(letters, array.shape, strict=True):
            letter, _, more = letter.partition("+")
            wanted = (
                int(letter) if letter.isdecimal() else sizes.setdefault(letter, size - bool(more))
            )
            if size - bool(more) != wanted or wanted < 0:
                _broken(doing, f"{name} of shape {array.shape}, which does not fit the others")
    missing = [name for name, a in schema.ARRAYS.items() if a.needed and name not in arrays]
    for prefix in schema.TOGETHER:
        group = [name for name in schema.ARRAYS if name.startswith(prefix)]
        if any(name in arrays for name in group):
            missing += [name for name in group if name not in arrays]
    if missing:
        _broken(doing, f"the array {missing[0]} is missing")
    if ("selection" in arrays) == ("selection.data" in arrays):
        _broken(doing, "not one selection of columns")
    if sizes["L"] != sizes["J"] + sizes["T"]:
        _broken(doing, f"{sizes['L']} leaves for {sizes['J']} tests in {sizes['T']} trees")


def _check_starts(arrays: dict[str, np.ndarray], doing: str) -> None:
    """Starts ascend from 0 to the size of what they divide: only then are differences sizes."""
    for name, of in (
        ("trees.test_start", "t"),
        ("columns.sets.start", "columns.sets.members"),
        ("columns.look_ups.term_start", "columns.look_ups.term_feature"),
        ("columns.look_ups.label_start", "columns.look_ups.label_adds"),
        ("columns.look_ups.key_start", "columns.look_ups.keys"),
        ("selection.indptr", "selection.indices"),
        ("linear.start", "linear.feature"),
    ):
        start = arrays.get(name)
        if start is None:
            continue
        size = len(arrays[of])
        if np.any((start < 0) | (start > size)) or start[0] != 0 or start[-1] != size:
            _broken(doing, f"{name} does not reach from 0 to {size}")
        if np.any(np.diff(start) < 0):
            _broken(doing, f"{name} does not ascend")


def _selection(arrays: dict[str, np.ndarray], n_columns: int, doing: str) -> Any:
    if "selection" in arrays:
        return arrays["selection"]
    data, indices, indptr = (arrays[f"selection.{name}"] for name in ("data", "indices", "indptr"))
    if data.dtype != arrays["t"].dtype:
        _broken(doing, "weights of another dtype than the thresholds")
    if np.any((indices < 0) | (indices >= n_columns)):
        _broken(doing, f"a weight for a column outside 0..{n_columns - 1}")
    return sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_columns))


# ---------------------------------------------------------------------- columns


def _columns(document: Document, arrays: dict[str, np.ndarray]) -> Columns:
    n_features = document.integer("n_features")
    if not 0 <= n_features < 2**31:
        raise document.fault(f"{document.name('n_features')} is {n_features}")
    told = document.raw("sets")
    if (told is None) != ("columns.sets.start" not in arrays):
        raise document.fault("category sets are said to be there and are not, or are not said")
    sets = None
    if told is not None:
        about = document.child("sets")
        sets = CategorySets(
            arrays["columns.sets.start"],
            arrays["columns.sets.members"],
            arrays["columns.sets.answer"],
            arrays["columns.sets.outside"],
            negative_fractions=_truth(about, "negative_fractions"),
            whole=_truth(about, "whole"),
        )
    tables = document.raw("table_categories")
    return Columns(
        n_features,
        _dtype(document, "dtype"),
        feature=arrays["columns.feature"],
        rule=arrays["columns.rule"],
        names=None if document.raw("names") is None else tuple(document.texts("names")),
        sets=sets,
        categories=_categories(document, n_features),
        absent=_number(document, "absent"),
        missing_value=_number(document, "missing_value"),
        integers_as=_dtype(document, "integers_as"),
        table_categories=None
        if tables is None
        else tuple(_labels(labels, document) for labels in _list(document, "table_categories")),
        encodes_arrays=_truth(document, "encodes_arrays"),
        label_hash=document.text("label_hash"),
        refuses_new_labels=_truth(document, "refuses_new_labels"),
        edges=_edges(document, n_features),
        accepted=_accepted(document, n_features),
        look_ups=_look_ups(arrays),
    )


def _look_ups(arrays: dict[str, np.ndarray]) -> LookUps | None:
    names = [field.name for field in fields(LookUps)]
    if f"{LOOK_UPS}{names[0]}" not in arrays:
        return None
    return LookUps(**{name: arrays[f"{LOOK_UPS}{name}"] for name in names})


def _edges(document: Document, n_features: int) -> dict[int, tuple[float, ...]]:
    found: dict[int, tuple[float, ...]] = {}
    for feature, bounds in _by_feature(document, "edges", n_features):
        numbers = [number_from_json(bound) for bound in bounds]
        if any(number is None or number != number for number in numbers):
            raise document.fault(f"{document.name('edges')} holds what is not a number")
        found[feature] = tuple(number for number in numbers if number is not None)
    return found


def _accepted(document: Document, n_features: int) -> Accepted | None:
    if "accepted" not in document or document.raw("accepted") is None:
        return None
    about = document.child("accepted")
    blocks = []
    for entry in _list(about, "blocks"):
        fits = isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], list)
        if not fits or not isinstance(entry[1], str) or not _are_whole(entry[0]):
            raise about.fault(f"{about.name('blocks')} does not name features and a dtype")
        blocks.append((tuple(entry[0]), entry[1]))
    refused = {}
    for feature, codes in _by_feature(about, "refused", n_features):
        if not _are_whole(codes):
            raise about.fault(f"{about.name('refused')} holds what is not a code")
        refused[feature] = tuple(codes)
    plain = _list(about, "plain")
    if not _are_whole(plain):
        raise about.fault(f"{about.name('plain')} holds what is not a feature")
    return Accepted(
        _numbers_of(about, "low"),
        _numbers_of(about, "high"),
        _truths(about, "missing"),
        _truths(about, "needed"),
        refused,
        _truth(about, "ignores_further"),
        tuple(blocks),
        tuple(plain),
    )


def _by_feature(document: Document, key: str, n_features: int) -> list[tuple[int, list[Any]]]:
    """Entries of a feature and a list, each feature once; nothing where the key is not there."""
    found: dict[int, list[Any]] = {}
    for entry in _list(document, key) if key in document else []:
        fits = isinstance(entry, list) and len(entry) == 2 and type(entry[0]) is int
        if not fits or not 0 <= entry[0] < n_features or entry[0] in found:
            raise document.fault(f"{document.name(key)} names a feature wrongly")
        if not isinstance(entry[1], list):
            raise document.fault(f"{document.name(key)} has no list for feature {entry[0]}")
        found[entry[0]] = entry[1]
    return list(found.items())


def _are_whole(values: list[Any]) -> bool:
    return all(type(value) is int and -(2**31) < value < 2**31 for value in values)


def _numbers_of(document: Document, key: str) -> np.ndarray:
    found = [number_from_json(value) for value in _list(document, key)]
    if any(number is None for number in found):
        raise document.fault(f"{document.name(key)} holds what is not a number")
    return np.array(found, np.float64)


def _truths(document: Document, key: str) -> np.ndarray:
    found = _list(document, key)
    if not all(isinstance(value, bool) for value in found):
        raise document.fault(f"{document.name(key)} holds what is neither true nor false")
    return np.array(found, np.bool_)


def _categories(document: Document, n_features: int) -> dict[int, tuple[Any, ...]]:
    entries = _by_feature(document, "categories", n_features)
    return {feature: _labels(labels, document) for feature, labels in entries}


# ---------------------------------------------------------------------- output


def _output(document: Document, arrays: dict[str, np.ndarray]) -> Output:
    groups = _list(document, "groups")
    k = len(arrays["output.base"])
    if len(groups) < 2 or not all(type(g) is int and 0 <= g <= k for g in groups):
        raise document.fault(f"{document.name('groups')} does not divide {k} outputs")
    return Output(
        arrays["output.base"],
        _dtype(document, "dtype"),
        base_first=_truth(document, "base_first"),
        divisor=_number(document, "divisor"),
        scale=_number(document, "scale"),
        aggregate=document.text("aggregate"),
        weights=arrays.get("output.weights"),
        link=document.text("link"),
        link_params=_parameters(document, "link_params", parameter_from_json),
        decision=document.text("decision"),
        decision_params=_parameters(document, "decision_params", number_from_json),
        classes=_classes(document, arrays, len(groups) - 1),
        groups=tuple(groups),
        squeeze=_truth(document, "squeeze"),
    )


def _parameters(
    document: Document, key: str, from_json: Callable[[Any], P | None]
) -> tuple[P, ...]:
    found = []
    for value in _list(document, key):
        parameter = from_json(value)
        if parameter is None:
            raise document.fault(f"{document.name(key)} has {str(value)[:80]}, which is unknown")
        found.append(parameter)
    return tuple(found)


def _classes(
    document: Document, arrays: dict[str, np.ndarray], n_groups: int
) -> tuple[np.ndarray, ...] | None:
    stored = {name for name in arrays if name.startswith(schema.CLASSES)}
    found = None
    if document.raw("classes") is not None:
        entries = document.objects("classes")
        if len(entries) != n_groups:
            raise document.fault(f"labels for {len(entries)} of {n_groups} groups of outputs")
        found = tuple(
            _labels_of_group(
                Document(entry, document.doing, f"{document.name('classes')}[{i}]"),
                arrays.get(f"{schema.CLASSES}{i}"),
            )
            for i, entry in enumerate(entries)
        )
        stored -= {f"{schema.CLASSES}{i}" for i in range(n_groups)}
    if stored:
        raise unknown_field(document.doing, f"the array {min(stored)[:60]!r}")
    return found


def _labels_of_group(entry: Document, array: np.ndarray | None) -> np.ndarray:
    text = entry.text("dtype")
    entry.asked.add("labels")
    entry.refuse_unread()
    if array is not None:
        if array.ndim != 1 or "labels" in entry or text[1:] != array.dtype.str[1:]:
            raise entry.fault(f"{entry.path} are not the labels that the file says they are")
        return array.astype(text)
    labels = list(_labels(entry.raw("labels"), entry))
    if text == "|O":
        found = np.empty(len(labels), object)
        found[:] = labels
        return found
    match = re.fullmatch("[<>]U([0-9]{1,9})", text)
    if match is None or not all(isinstance(label, str) for label in labels):
        raise entry.fault(f"{entry.name('dtype')} is {text[:40]!r}, which its labels are not")
    width = int(match[1])
    if len(labels) * width > schema.TEXT_LIMIT or any(len(label) > width for label in labels):
        raise entry.fault(f"{entry.path} are not {width} characters wide")
    return np.array(labels, text)


# ---------------------------------------------------------------------- values of JSON


def _labels(labels: Any, document: Document) -> tuple[Any, ...]:
    if isinstance(labels, list):
        try:
            return tuple(label_from_json(label) for label in labels)
        except TypeError as error:
            raise document.fault(f"a label in {document.path} is {error}") from None
    raise document.fault(f"labels in {document.path} are not a list")


def _list(document: Document, key: str) -> list[Any]:
    value = document.raw(key)
    if not isinstance(value, list):
        raise document.fault(f"{document.name(key)} is not a list")
    return value


def _truth(document: Document, key: str) -> bool:
    value = document.raw(key)
    if not isinstance(value, bool):
        raise document.fault(f"{document.name(key)} is neither true nor false")
    return value


def _number(document: Document, key: str) -> float:
    value = number_from_json(document.raw(key))
    if value is None:
        raise document.fault(f"{document.name(key)} is not a number")
    return value


def _dtype(document: Document, key: str) -> np.dtype:
    name = document.text(key)
    if name not in ("float32", "float64"):
        raise document.fault(f"{document.name(key)} is {name[:40]!r}, not float32 or float64")
    return np.dtype(name)


def _broken(doing: str, found: str) -> NoReturn:
    raise ModelFormatError(doing, found, "check that the file is whole and unedited")
