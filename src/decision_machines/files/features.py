"""Which columns of a table are the machine's features, and which are passed over."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..machine import Rule
from ..machine.feature_names import columns_of_features, known_as, listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..machine import Columns

DOING = "matching columns to the model's features"


def feature_columns(
    columns: Columns,
    found: Sequence[str],
    *,
    keep: Sequence[str] = (),
    chosen: Sequence[str] | None = None,
) -> list[str]:
    """The data's column for each feature, in the order of the features.

    By name where the model has names; else all columns but the kept ones, in their order.

    Parameters
    ----------
    found
        The names of the data's columns.
    keep
        Columns that are not features: carried along, or the target.
    chosen
        The user's own choice, in the order of the features.

    Raises
    ------
    InputError
        Where a feature has no column, or one that is given twice; it names them.
    """
    if chosen is None:
        chosen = columns_of_features(columns.names, found) if columns.names else None
    if chosen is None:
        chosen = [name for name in found if name not in set(keep)]
        if len(chosen) != columns.n_features:
            raise InputError(
                DOING,
                f"the model knows no names for its {columns.n_features} features, and the data "
                f"has {len(chosen)} columns besides the kept ones: {listed(chosen)}",
                "say which columns are the features, in their order: columns=[...], or "
                "--column for each; or --keep those that are not features",
            )
    if len(chosen) != columns.n_features:
        raise InputError(
            DOING,
            f"{len(chosen)} columns are chosen; the model reads {columns.n_features} features",
            "choose a column for each feature, in the order of the training data",
        )
    missing = [name for name in [*chosen, *keep] if name not in set(found)]
    if missing:
        raise InputError(
            DOING,
            f"the data has no column {listed(missing)}",
            f"its columns are {listed(found)}: rename them, or choose among them",
        )
    check_distinct(found, DOING, [*chosen, *keep])
    return list(chosen)


def check_distinct(found: Sequence[str], doing: str, used: Iterable[str] | None = None) -> None:
    """Refuse columns of the same name, of all or of those that are used: which one is meant?"""
    times = Counter(found)
    twice = [name for name in dict.fromkeys(found if used is None else used) if times[name] > 1]
    if twice:
        raise InputError(
            doing,
            f"several columns are named {listed(twice)}",
            "give every column a name of its own",
        )


def ignored_columns(
    found: Sequence[str], features: Sequence[str], keep: Sequence[str] = ()
) -> tuple[str, ...]:
    """The data's columns that nobody asked for."""
    used = {*features, *keep}
    return tuple(name for name in found if name not in used)


def feature_table(rows: Any, found: Sequence[str], columns: Columns) -> Any:
    """An Arrow table of the features, named as the machine names them.

    Parameters
    ----------
    rows
        A table or record batch.
    found
        Its column for each feature; one column may be two features.
    """
    import pyarrow as pa

    names = list(columns.names or found)
    if len(set(names)) < len(names):
        names = [f"{i}" for i in range(len(names))]
    arrays = [rows.column(rows.schema.get_field_index(name)) for name in found]
    return pa.Table.from_arrays(_as_labels(arrays, columns), names=names)


def _as_labels(arrays: list[Any], columns: Columns) -> list[Any]:
    """The columns, numbers turned into labels where the model was trained on labels of numbers.

    Such a model (LightGBM, from pandas) knows its labels by the order of the table's columns of
    labels. A file of text, or one that other programs wrote, says of numbers no more than that.
    """
    import pyarrow as pa

    if columns.table_categories is None:
        return arrays
    looked_up = set(columns.feature[columns.rule == Rule.MEMBER].tolist())
    kinds = (pa.types.is_dictionary, pa.types.is_string, pa.types.is_large_string)
    labels = {i for i, array in enumerate(arrays) if any(kind(array.type) for kind in kinds)}
    if len(labels | looked_up) != len(columns.table_categories):
        return arrays
    # A column of nothing but gaps has no kind, of which there are no labels.
    known = [a.cast(pa.string()) if pa.types.is_null(a.type) else a for a in arrays]
    turned = looked_up - labels
    return [a.dictionary_encode() if i in turned else a for i, a in enumerate(known)]


def position_of_feature(name: str, position: Mapping[str, int]) -> int | None:
    """The feature of a column's name; LightGBM writes the spaces in names as underscores.

    Examples
    --------
    >>> position_of_feature("hours per week", {"age": 0, "hours_per_week": 1})
    1
    """
    return position.get(known_as(name, position))
