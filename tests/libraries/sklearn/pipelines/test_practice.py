"""Models that practitioners build on one table: each is read exactly, or refused by name."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn import ensemble, preprocessing
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.tree import DecisionTreeClassifier

import decision_machines as dm

sys.path.insert(0, str(Path(__file__).parent))
from people import LABELS, NUMBERS, agree_or_both_refuse, bins, odd_rows, people

X, Y = people(240)


def forest(**more):
    return ensemble.RandomForestClassifier(4, max_depth=5, random_state=0, n_jobs=1, **more)


def boosted(**more):
    return ensemble.HistGradientBoostingClassifier(
        max_iter=4, max_leaf_nodes=6, random_state=0, **more
    )


def one_hot(**more):
    return preprocessing.OneHotEncoder(**{"handle_unknown": "ignore", **more})


def ordinal(**more):
    how = {"handle_unknown": "use_encoded_value", "unknown_value": -1, **more}
    return preprocessing.OrdinalEncoder(**how)


def table(numbers, labels, **more):
    return ColumnTransformer([("n", numbers, NUMBERS), ("l", labels, LABELS)], **more)


def scaled(step):
    return make_pipeline(SimpleImputer(strategy="median"), step)


FILLED = make_pipeline(SimpleImputer(strategy="most_frequent"), one_hot())
USUAL = table(scaled(preprocessing.StandardScaler()), FILLED)

MODELS = {
    "impute, scale, one-hot, forest": make_pipeline(USUAL, forest()),
    "indicators": make_pipeline(
        table(SimpleImputer(add_indicator=True), one_hot(drop="if_binary")), forest()
    ),
    "most frequent everywhere": make_pipeline(
        ColumnTransformer([("f", SimpleImputer(strategy="most_frequent"), [*NUMBERS])]), forest()
    ),
    "ordinal, boosted": make_pipeline(table("passthrough", ordinal()), boosted()),
    "ordinal as categories, boosted": make_pipeline(
        table("passthrough", ordinal(encoded_missing_value=-2)), boosted(categorical_features=[4])
    ),
    "infrequent labels": make_pipeline(
        table(SimpleImputer(), one_hot(handle_unknown="infrequent_if_exist", min_frequency=0.05)),
        forest(),
    ),
    "unknown labels are errors": make_pipeline(
        table(SimpleImputer(), preprocessing.OneHotEncoder()), forest()
    ),
    "ordinal errors": make_pipeline(
        table(SimpleImputer(), preprocessing.OrdinalEncoder()), forest()
    ),
    "target encoding": make_pipeline(
        table(SimpleImputer(), preprocessing.TargetEncoder(random_state=0)), forest()
    ),
    "min-max": make_pipeline(
        table(scaled(preprocessing.MinMaxScaler(clip=True)), FILLED), forest()
    ),
    "max-abs": make_pipeline(table(scaled(preprocessing.MaxAbsScaler()), FILLED), forest()),
    "robust": make_pipeline(table(scaled(preprocessing.RobustScaler()), ordinal()), boosted()),
    "quantiles": make_pipeline(
        table(scaled(preprocessing.QuantileTransformer(n_quantiles=40)), ordinal()), boosted()
    ),
    "normal quantiles": make_pipeline(
        table(
            preprocessing.QuantileTransformer(n_quantiles=40, output_distribution="normal"),
            ordinal(),
        ),
        boosted(),
    ),
    "powers": make_pipeline(table(scaled(preprocessing.PowerTransformer()), ordinal()), boosted()),
    "Box-Cox": make_pipeline(
        ColumnTransformer([("p", preprocessing.PowerTransformer("box-cox"), ["income"])]), forest()
    ),
    "bins": make_pipeline(
        table(
            scaled(bins(5, "ordinal")),
            ordinal(),
        ),
        forest(),
    ),
    "one-hot bins": make_pipeline(
        table(scaled(bins(4)), ordinal()),
        forest(),
    ),
    "binarizer": make_pipeline(
        table(scaled(preprocessing.Binarizer(threshold=20.0)), ordinal()), boosted()
    ),
    "logarithm": make_pipeline(
        ColumnTransformer(
            [("l", preprocessing.FunctionTransformer(np.log1p), ["income", "children"])],
            remainder="drop",
        ),
        boosted(),
    ),
    "one-hot of whole numbers": make_pipeline(
        ColumnTransformer([("c", one_hot(), ["children"])], remainder="drop"), forest()
    ),
    "two readings of one column": make_pipeline(
        ColumnTransformer(
            [("s", preprocessing.StandardScaler(), ["children"]), ("c", one_hot(), ["children"])]
        ),
        forest(),
    ),
    "selection": make_pipeline(USUAL, SelectKBest(k=5), forest()),
    "variance": make_pipeline(table(SimpleImputer(), ordinal()), VarianceThreshold(0.1), forest()),
    "union": make_pipeline(
        ColumnTransformer([("n", SimpleImputer(), NUMBERS)]),
        make_union(preprocessing.StandardScaler(), preprocessing.MinMaxScaler()),
        forest(),
    ),
    "weighted union": make_pipeline(
        ColumnTransformer([("n", SimpleImputer(), NUMBERS)]),
        FeatureUnion(
            [("s", preprocessing.StandardScaler()), ("m", preprocessing.MaxAbsScaler())],
            transformer_weights={"s": -2.0},
        ),
        forest(),
    ),
    "search": GridSearchCV(
        make_pipeline(USUAL, forest()), {"randomforestclassifier__max_depth": [3, 4]}, cv=2
    ),
    "boosting": make_pipeline(
        USUAL, ensemble.GradientBoostingClassifier(n_estimators=4, random_state=0)
    ),
    "AdaBoost": make_pipeline(
        USUAL, ensemble.AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=4)
    ),
    "calibrated by a sigmoid": CalibratedClassifierCV(make_pipeline(USUAL, forest()), cv=2),
    "calibrated isotonically": make_pipeline(
        USUAL, CalibratedClassifierCV(forest(), method="isotonic", cv=2)
    ),
    "soft vote": make_pipeline(
        USUAL,
        ensemble.VotingClassifier(
            [("f", forest()), ("b", ensemble.ExtraTreesClassifier(3, max_depth=4))],
            voting="soft",
            weights=[1, 2],
        ),
    ),
    "hard vote of pipelines": ensemble.VotingClassifier(
        [
            ("f", make_pipeline(USUAL, forest())),
            ("b", make_pipeline(table("passthrough", ordinal()), boosted())),
            ("t", make_pipeline(USUAL, DecisionTreeClassifier(max_depth=3))),
        ]
    ),
    "stack": ensemble.StackingClassifier(
        [
            ("f", make_pipeline(USUAL, forest())),
            ("b", make_pipeline(table("passthrough", ordinal()), boosted())),
        ],
        LogisticRegression(),
        cv=2,
    ),
    "one against the rest": make_pipeline(USUAL, OneVsRestClassifier(forest())),
    "one against one": make_pipeline(USUAL, OneVsOneClassifier(forest())),
    "bag of boosters": make_pipeline(
        table("passthrough", ordinal()),
        ensemble.BaggingClassifier(boosted(), n_estimators=2, random_state=0),
    ),
}
"""What people build → a model of it."""

REFUSED = {
    "PCA": make_pipeline(USUAL, PCA(2), forest()),
    "KNNImputer": make_pipeline(table(KNNImputer(), ordinal()), forest()),
    "PolynomialFeatures": make_pipeline(
        table(scaled(preprocessing.PolynomialFeatures()), ordinal()), forest()
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_what_people_build_is_read_exactly(name, tmp_path):
    model = MODELS[name].fit(X, Y)
    machine = dm.convert(model)
    answers = ["predict", "predict_proba"]
    if not hasattr(model, "predict_proba"):
        answers.remove("predict_proba")
    for answer in answers:
        assert np.array_equal(getattr(machine, answer)(X), getattr(model, answer)(X)), answer
    rows = odd_rows(X)
    agree_or_both_refuse(machine, model, rows[:12], answers[-1:])
    machine.save(tmp_path / "m.dm")
    again = dm.load(tmp_path / "m.dm")
    assert np.array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("name", REFUSED)
def test_what_mixes_columns_is_refused_by_name(name):
    model = REFUSED[name].fit(X, Y)
    with pytest.raises(dm.UnsupportedModelError, match=name):
        dm.convert(model)


def test_a_target_that_is_transformed_comes_back():
    y = X["income"].to_numpy()
    for how in (
        {"func": np.log1p, "inverse_func": np.expm1},
        {"transformer": preprocessing.StandardScaler()},
        {"transformer": preprocessing.MinMaxScaler()},
    ):
        inner = make_pipeline(USUAL, ensemble.RandomForestRegressor(3, max_depth=4, random_state=0))
        model = TransformedTargetRegressor(inner, **how).fit(X, y)
        assert np.array_equal(dm.convert(model).predict(X), model.predict(X))
    unknown = TransformedTargetRegressor(inner, transformer=preprocessing.PowerTransformer())
    with pytest.raises(dm.UnsupportedModelError, match="PowerTransformer"):
        dm.convert(unknown.fit(X, y))
