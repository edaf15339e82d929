"""Which columns of the data are the machine's features."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        Columns that are only carried.
    chosen
        The user's own choice, in the order of the features.
    """
    if chosen is None:
        chosen = _by_name(columns.names, found) if columns.names else None
    if chosen is None:
        chosen = [name for name in found if name not in set(keep)]
        if len(chosen) != columns.n_features:
            raise InputError(
                DOING,
                f"the model knows no names for its {columns.n_features} features, and the data "
                f"has {len(chosen)} columns besides the kept ones: {_some(chosen)}",
                "say which columns are the features, in their order: columns=[...], or "
                "--column for each; or --keep those that are none",
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
            f"the data has no {_some(missing)}",
            f"its columns are {_some(list(found))}: rename them, or choose among them",
        )
    return list(chosen)


def _by_name(names: Sequence[str], found: Sequence[str]) -> list[str]:
    """Each feature's column; LightGBM writes the spaces in names as underscores."""
    spelled = {name.replace(" ", "_"): name for name in found} | {name: name for name in found}
    return [spelled.get(name, name) for name in names]


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:8])
    return shown + (f" and {len(names) - 8} more" if len(names) > 8 else "")
