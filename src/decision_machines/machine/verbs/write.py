"""Writing a machine out: our own file, and back into other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os

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
        rows, whose values differ from the source's where that stores something else, as XGBoost
        does with sums of hessians. `shap_values` gives the values by covers, and far faster.

        Parameters
        ----------
        X
            Rows to count at each node instead of the machine's covers; needed where it has none
            and SHAP is given no background rows.
        """
        from ...libraries.shap.write import to_shap

        return to_shap(self, X)
