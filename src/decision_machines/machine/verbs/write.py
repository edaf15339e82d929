"""Writing a machine out: our own file, and back into other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import lightgbm
    import onnx
    import sklearn.base
    import treelite
    import xgboost

    from ..machine import DecisionMachine


class WriteVerbs:
    """Writing a machine out: our own file, and back into other libraries."""

    def save(self: DecisionMachine, path: str | os.PathLike[str]) -> None:
        """Write the machine to a file, which `dm.load` reads back equal in every bit.

        The file is a safetensors container with a numbered schema (`machine.schema`) in its
        header: reading it runs no code. It appears whole or not at all.

        Parameters
        ----------
        path
            By custom ends in `.dm`.
        """
        from ...libraries.own.write import save

        save(self, path)

    def to_onnx(
        self: DecisionMachine,
        *,
        operator: str = "v3",
        margins: bool = False,
        labels: str = "text",
    ) -> onnx.ModelProto:
        """The machine as an `onnx.ModelProto` (extra `onnx`).

        It has one input X of rows × features; where features are given as labels, an input of
        rows × 1 for each feature, named like it, which the graph itself turns into codes.

        Labels and probabilities come out where the machine decides on labels, else its response.
        With one thread ONNX Runtime gives what the machine gives, to the bit, where no link is
        applied and the operator has the machine's types; where not, an `InexactWarning` names
        the cause. (With several threads ONNX Runtime adds partial sums, in other bits.)

        Parameters
        ----------
        operator
            "v3": TreeEnsembleRegressor or TreeEnsembleClassifier, of ai.onnx.ml 3 and ai.onnx
            17, which give float32. "v5": TreeEnsemble of ai.onnx.ml 5 and ai.onnx 21,
            which gives float64 where the machine does.
        margins
            Whether to leave link and labels out and give `margin`.
        labels
            Of features: "text" takes labels as they are, texts as strings and numbers as floats;
            no label at all is the empty text (or NaN). A label that the model does not know is
            read as the machine reads it; where the machine refuses it (XGBoost), as no label.
            "codes" takes X of numbers, as ``machine.features(table)`` gives them, and needs no
            labels: the way for CatBoost, whose labels are matched by a hash.

        Raises
        ------
        UnsupportedModelError
            Where ONNX cannot say what the machine does; it names the field, the tree, the node.
        """
        from ...libraries.onnx.write import to_onnx

        model: onnx.ModelProto = to_onnx(self, operator=operator, margins=margins, labels=labels)
        return model

    def to_c(
        self: DecisionMachine,
        path: str | os.PathLike[str],
        *,
        margins: bool = False,
        integers: bool = False,
        prefix: str = "dm",
    ) -> Path:
        """Write the machine as one C99 header that needs libm alone, and give its path.

        The header holds tables and one small kernel: `dm_margin(const double *x, double *out)`,
        `dm_predict`, `dm_predict_proba` (where there are classes), `dm_apply` and
        `dm_margin_batch`, with the sizes `DM_N_FEATURES`, `DM_N_OUTPUTS`, … Data are `static
        const`. Margins and exit leaves are the machine's to the bit; responses call the C
        library's exponential.

        A row is numbers, NaN where missing. A feature given as labels is its code, which
        `dm_label(feature, text, &code)` or
        `dm_label_number` looks up. A label that is a text is predicted by its
        position in `dm_classes`.

        Parameters
        ----------
        path
            By custom ends in `.h`.
        margins
            Whether to leave link and labels out: `dm_predict` gives margins.
        integers
            Whether to compute in whole numbers alone, for processors without floating point:
            rows become codes (`dm_code_integers` of whole numbers; `dm_code_numbers` of others,
            left out where `DM_INTEGER_ONLY` is defined), and margins are whole numbers over
            2^`DM_SHIFT`. Exit leaves are the machine's. Margins have no error where `DM_EXACT` is
            1; otherwise each tree's value is rounded to that many bits. No link, no labels.
        prefix
            What names begin with, instead of `dm`; two models in one program need two.

        Raises
        ------
        UnsupportedModelError
            Where the header cannot say what the machine does.

        Examples
        --------
        >>> import decision_machines as dm
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = dm.figure_one().to_c(f"{folder}/model.h")
        ...     "int dm_margin(const double *x, double *out)" in path.read_text()
        True
        """
        from ...libraries.c.write import to_c

        return to_c(self, path, margins=margins, integers=integers, prefix=prefix)

    def to_javascript(
        self: DecisionMachine, path: str | os.PathLike[str], *, margins: bool = False
    ) -> Path:
        """Write the machine as one ES module without dependencies, and give its path.

        It runs in browsers and in node, and exports `margin(row)`, `predict(row)`,
        `predictProba(row)`, `response(row)`, `apply(row)`, `features` and `classes`. A row is an
        array of numbers in the order of the features, or an object by feature name; NaN, null and
        undefined are missing. Features given as labels take labels; in an array, a number is the
        label's code unless the model's arrays hold labels. Margins are the machine's, to the bit;
        what a link makes of them may differ in the last place, with the engine's exponential.

        Parameters
        ----------
        path
            By custom ends in `.mjs`.
        margins
            Whether to leave link and labels out: `predict` gives margins.

        Raises
        ------
        UnsupportedModelError
            Where the module cannot say what the machine does.

        Examples
        --------
        >>> import decision_machines as dm
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = dm.figure_one().to_javascript(f"{folder}/model.mjs")
        ...     "export const margin" in path.read_text()
        True
        """
        from ...libraries.javascript.write import to_javascript

        return to_javascript(self, path, margins=margins)

    def to_sql(
        self: DecisionMachine,
        dialect: str = "duckdb",
        *,
        table: str = "rows",
        columns: Sequence[str] | Mapping[str, str] | None = None,
        outputs: str = "margin",
        keep: Sequence[str] = (),
    ) -> str:
        """The text of one SELECT that scores a table (extra `sql`).

        Its columns are the kept ones, and then the outputs. Margins are the machine's to the bit in
        DuckDB and PostgreSQL; other databases are written for and not run in the tests. NULL and
        NaN are missing; labels are compared as they are. Where the machine refuses a row, the
        outputs are NULL.

        Parameters
        ----------
        dialect
            "duckdb", "postgres", "sqlite", "bigquery" or "snowflake".
        table
            The table, or view, of rows; dots separate a schema from it.
        columns
            The column of each feature, in their order, or feature → column where names differ.
            By default features have the names of their columns.
        outputs
            "margin", "response", "predict_proba" or "predict".
        keep
            Columns of the table to give as well, such as a key.

        Raises
        ------
        UnsupportedModelError
            Where SQL cannot say what the machine does, or the database does not compute so.

        Examples
        --------
        >>> import decision_machines as dm
        >>> text = dm.figure_one().to_sql(table="people", columns=["a", "b", "c", "d"], keep=["id"])
        >>> text.splitlines()[-3:]
        ['SELECT k0 AS "id",', '  m0 AS "margin"', 'FROM done']
        """
        from ...libraries.sql.write import to_sql

        return to_sql(self, dialect, table=table, columns=columns, outputs=outputs, keep=keep)

    def to_xgboost(
        self: DecisionMachine, *, margins: bool = False
    ) -> xgboost.Booster | xgboost.XGBClassifier:
        """The machine as an `xgboost.Booster` (extra `xgboost`), or refused; never approximated.

        A machine that decides on the labels 0, 1 … becomes an `xgboost.XGBClassifier`. Only
        machines that cast x to float32 and sum in float32 can be XGBoost's. An entry absent from
        a sparse row is missing to XGBoost, even if `columns.absent` says 0.

        Parameters
        ----------
        margins
            Whether to leave link and labels out and give `margin`.
        """
        from ...libraries.xgboost.write import to_xgboost

        model: xgboost.Booster | xgboost.XGBClassifier = to_xgboost(self, margins=margins)
        return model

    def to_lightgbm(self: DecisionMachine, *, margins: bool = False) -> lightgbm.Booster:
        """The machine as a `lightgbm.Booster` (extra `lightgbm`), or refused; never approximated.

        It predicts `response`; a Booster knows no labels. Sums must be of float64. An entry absent
        from a sparse row is 0 to LightGBM, and integers of an array pass through float32, even if
        `columns` says something else.

        Parameters
        ----------
        margins
            Whether to leave the link out and give `margin`.
        """
        from ...libraries.lightgbm.write import to_lightgbm

        model: lightgbm.Booster = to_lightgbm(self, margins=margins)
        return model

    def to_sklearn(self: DecisionMachine, *, margins: bool = False) -> sklearn.base.BaseEstimator:
        """The machine as a fitted scikit-learn model (extra `sklearn`), or refused.

        One tree is a DecisionTree, an average a RandomForest, a sum a GradientBoosting (which
        takes no NaN) or a HistGradientBoosting. Never approximated.

        Parameters
        ----------
        margins
            Whether to leave link and labels out and give `margin`.
        """
        from ...libraries.sklearn.write import to_sklearn

        model: sklearn.base.BaseEstimator = to_sklearn(self, margins=margins)
        return model

    def to_treelite(self: DecisionMachine, *, margins: bool = False) -> treelite.Model:
        """The machine as a `treelite.Model` (extra `treelite`); its margins are equal to the bit.

        Give it data of `output.dtype`. A link is Treelite's own, and an `InexactWarning` says so.

        Parameters
        ----------
        margins
            Whether to leave the link out and give `margin`.
        """
        from ...libraries.treelite.write import to_treelite

        model: treelite.Model = to_treelite(self, margins=margins)
        return model

    def to_shap(self: DecisionMachine, X: Any = None) -> dict[str, Any]:
        """What `shap.TreeExplainer` takes: a dictionary of the trees, whose output is `margin`.

        With background rows, ``TreeExplainer(machine.to_shap(), rows)``, the values are those of
        the source model, within rounding. Without them SHAP weighs the sides of a test by the
        training weight that went there: the machine's covers, or, where X is given, counts of its
        rows. Values by counts differ from the source's where that stores something else: XGBoost
        stores sums of hessians. `shap_values` gives the values by covers, and far faster.

        Parameters
        ----------
        X
            Rows to count at each node instead of the machine's covers; needed where it has none
            and SHAP is given no background rows.
        """
        from ...libraries.shap.write import to_shap

        return to_shap(self, X)
