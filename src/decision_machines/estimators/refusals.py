"""What scikit-learn finds wrong with rows, labels and weights, in our three parts."""

from __future__ import annotations

from typing import Any

from ..errors import InputError


class EntryTypeError(InputError, TypeError):
    """An entry of X is neither number nor text: a TypeError by scikit-learn's contract."""


MOST_SHOWN = 300
"""Characters of what was found: scikit-learn quotes whole arrays."""


def refuse_no_rows(X: Any, doing: str) -> None:
    """Refuse an array, a list or a table without rows, before anything is computed from it.

    What has no features either is left to those who say that.
    """
    shape = getattr(X, "shape", None)
    if shape is None and isinstance(X, (list, tuple)):
        shape = (len(X),)
    if isinstance(shape, tuple) and shape[:1] == (0,) and shape[1:] != (0,):
        raise InputError(
            doing,
            f"X has 0 sample(s) (shape={shape}), while a minimum of 1 is required",
            "pass at least one row",
        )


def refused(doing: str, error: Exception) -> InputError:
    """What is wrong with X."""
    found = shortened(error)
    if isinstance(error, TypeError):
        return EntryTypeError(doing, found, "pass numbers, or columns of text in a table")
    if "infinity" in found:
        remedy = "replace infinities and numbers beyond float64, for example by NaN or a bound"
        if "NaN" in found:
            remedy = "fill missing values (SimpleImputer) and replace infinities"
    elif "NaN" in found:
        # What follows recommends other libraries' estimators.
        found = found.split(". ")[0]
        remedy = (
            "fill missing values first, for example with SimpleImputer in a pipeline, or use "
            "DecisionMachineClassifier or DecisionMachineRegressor, which take them"
        )
    elif "could not convert" in found:
        remedy = "encode text as numbers, or pass a table whose text columns are then categories"
    elif "feature names should match" in found:
        remedy = "pass the columns of feature_names_in_, in that order"
    elif "Complex" in found:
        remedy = "pass real numbers, for example X.real and X.imag side by side"
    else:
        remedy = "pass rows × features of numbers, as in the training data"
    return InputError(doing, found, remedy)


def refused_labels(doing: str, error: Exception) -> InputError:
    """What is wrong with the labels of a classifier."""
    remedy = "give one label for each row; for numbers to predict, use the regressor"
    if "bytes" in str(error):
        remedy = "make text of bytes, for example y.astype(str)"
    return InputError(doing, shortened(error), remedy)


def refused_weights(doing: str, error: Exception) -> InputError:
    """What is wrong with `sample_weight`."""
    found = shortened(error).rstrip("!")
    if "sample_weight" not in found:
        found = f"sample_weight: {found}"
    return InputError(
        doing, found, "pass one finite weight of at least 0 for each row, some above 0"
    )


def shortened(error: Exception) -> str:
    """The error on one line; arrays that it quotes are left out."""
    found = " ".join(str(error).split()).rstrip(".")
    if len(found) <= MOST_SHOWN:
        return found
    if found.startswith("Complex data not supported"):
        return "Complex data not supported"
    if "array=[" in found:
        start, _, rest = found.partition("array=[")
        return f"{start.rstrip(': ')}. {rest.rpartition(']. ')[2]}"
    return f"{found[: MOST_SHOWN // 3].rstrip()} …"
