"""Every attribute of the scikit-learn objects that we read: read, or idle and why.

scikit-learn keeps constructor parameters under plain names and what it has learned under names that
begin or end with an underscore. One of these that is not listed here is refused by its name. Other
plain names are the user's own notes, and so is what a subclass outside scikit-learn has learned:
its answering methods must be scikit-learn's (see `read_trees.overrides`).

A search (GridSearchCV and the like) hands every question on to its `best_estimator_`, which is
checked in its place. A step of a pipeline is not checked: it is folded by asking its own
`transform`, which uses whatever the step holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..fields import Fields, unknown_field

TRAINING = "a setting of training; predictions come from the trees"
STATISTIC = "a statistic of training"
RUNNING = "how work is shared, watched or routed, not what it gives"
REPEATED = "said again elsewhere, where it is read"

_RUNNING = (
    "n_jobs verbose _sklearn_output_config _metadata_request _transform_methods_to_wrap "
    "_doc_link_module"
)
_TREE_TRAINING = (
    "ccp_alpha class_weight criterion max_depth max_features max_features_ max_leaf_nodes "
    "min_impurity_decrease min_impurity_split min_samples_leaf min_samples_split "
    "min_weight_fraction_leaf monotonic_cst random_state splitter"
)
_ENSEMBLE_TRAINING = (
    "base_estimator base_estimator_ bootstrap bootstrap_features estimator estimator_ "
    "estimator_params max_samples oob_score warm_start _n_samples _n_samples_bootstrap _seeds "
    "_sample_weight"
)
_OUT_OF_BAG = "oob_decision_function_ oob_prediction_ oob_score_ oob_scores_ oob_improvement_"


def _known(read: str, *, training: str = "", statistics: str = "", repeated: str = "") -> Fields:
    idle: dict[str, str] = {}
    for names, reason in (
        (training, TRAINING),
        (statistics, STATISTIC),
        (repeated, REPEATED),
        (_RUNNING, RUNNING),
    ):
        idle |= dict.fromkeys(names.split(), reason)
    return Fields(dict.fromkeys(f"{read} n_features_in_ feature_names_in_".split()), idle)


TREE = _known("tree_ classes_ n_classes_ n_outputs_", training=_TREE_TRAINING)
FOREST = _known(
    "estimators_ classes_ n_classes_ n_outputs_",
    training=f"{_TREE_TRAINING} {_ENSEMBLE_TRAINING} n_estimators",
    statistics=_OUT_OF_BAG,
)
GRADIENT_BOOSTING = _known(
    "estimators_ init_ learning_rate loss _loss classes_",
    training=f"{_TREE_TRAINING} {_ENSEMBLE_TRAINING} alpha init n_estimators n_iter_no_change "
    "subsample tol validation_fraction _rng",
    statistics=f"{_OUT_OF_BAG} train_score_",
    repeated="n_classes_ n_estimators_ n_trees_per_iteration_ _n_classes",
)
HIST = _known(
    "_predictors _baseline_prediction _preprocessor _bin_mapper is_categorical_ loss _loss "
    "classes_",
    training=f"{_TREE_TRAINING} categorical_features early_stopping interaction_cst "
    "l2_regularization learning_rate max_bins max_iter n_iter_no_change quantile scoring tol "
    "validation_fraction warm_start _feature_subsample_rng _random_seed _scorer "
    "_use_validation_data do_early_stopping_ _label_encoder _fitted_with_sw _in_fit",
    statistics="train_score_ validation_score_",
    repeated="_is_categorical_remapped _n_features n_trees_per_iteration_",
)
ADABOOST = _known(
    "estimators_ estimator_weights_ classes_ algorithm",
    training=f"{_ENSEMBLE_TRAINING} learning_rate loss n_estimators random_state",
    statistics="estimator_errors_",
    repeated="n_classes_",
)
BAGGING = _known(
    "estimators_ estimators_features_ n_estimators classes_",
    training=f"{_ENSEMBLE_TRAINING} max_features random_state _max_features _max_samples",
    statistics=_OUT_OF_BAG,
    repeated="n_classes_",
)
ISOLATION = _known(
    "estimators_ estimators_features_ offset_ _max_samples _max_features _decision_path_lengths "
    "_average_path_length_per_tree",
    training=f"{_ENSEMBLE_TRAINING} contamination max_features n_estimators random_state",
    repeated="max_samples_",
)
ATTRIBUTES: Mapping[str, Fields] = {
    "DecisionTreeClassifier": TREE,
    "DecisionTreeRegressor": TREE,
    "RandomForestClassifier": FOREST,
    "RandomForestRegressor": FOREST,
    "ExtraTreesClassifier": FOREST,
    "ExtraTreesRegressor": FOREST,
    "GradientBoostingClassifier": GRADIENT_BOOSTING,
    "GradientBoostingRegressor": GRADIENT_BOOSTING,
    "HistGradientBoostingClassifier": HIST,
    "HistGradientBoostingRegressor": HIST,
    "AdaBoostClassifier": ADABOOST,
    "AdaBoostRegressor": ADABOOST,
    "BaggingClassifier": BAGGING,
    "BaggingRegressor": BAGGING,
    "IsolationForest": ISOLATION,
    "DummyClassifier": _known(
        "strategy constant class_prior_ classes_ n_classes_ n_outputs_ _strategy",
        training="random_state",
        repeated="sparse_output_",
    ),
    "DummyRegressor": _known("strategy constant constant_ quantile n_outputs_"),
    "OrdinalEncoder": _known(
        "categories_ handle_unknown unknown_value encoded_missing_value _infrequent_enabled",
        training="categories dtype max_categories min_frequency",
        repeated="_missing_indices",
    ),
    "_BinMapper": _known(
        "is_categorical_ bin_thresholds_",
        training="is_categorical known_categories n_bins n_threads random_state subsample",
        repeated="missing_values_bin_idx_ n_bins_non_missing_",
    ),
    "TreePredictor": _known("nodes raw_left_cat_bitsets", repeated="binned_left_cat_bitsets"),
    "BaseLoss": _known(
        "link",
        training="approx_hessian class_indexing_offsets closs constant_hessian device "
        "interval_y_pred interval_y_true quantile xp y_true_int y_true_one_hot",
        repeated="n_classes",
    ),
    # Models made of models; their members are checked as models of their own.
    "VotingClassifier": _known(
        "estimators_ voting weights classes_ le_ estimators",
        training="flatten_transform",
        repeated="named_estimators_",
    ),
    "VotingRegressor": _known("estimators_ weights estimators", repeated="named_estimators_"),
    "StackingClassifier": _known(
        "estimators_ final_estimator_ passthrough stack_method_ classes_ _label_encoder "
        "_n_feature_outs",
        training="cv estimators final_estimator stack_method",
        repeated="named_estimators_",
    ),
    "StackingRegressor": _known(
        "estimators_ final_estimator_ passthrough stack_method_ _n_feature_outs",
        training="cv estimators final_estimator stack_method",
        repeated="named_estimators_",
    ),
    "CalibratedClassifierCV": _known(
        "calibrated_classifiers_ classes_", training="cv ensemble estimator method"
    ),
    "_CalibratedClassifier": _known("estimator calibrators classes method"),
    "_SigmoidCalibration": _known("a_ b_"),
    "_TemperatureScaling": _known("beta_"),
    "IsotonicRegression": _known(
        "X_thresholds_ y_thresholds_ X_min_ X_max_ out_of_bounds",
        training="increasing increasing_ y_max y_min",
        repeated="f_",
    ),
    "FixedThresholdClassifier": _known(
        "estimator_ threshold pos_label response_method", training="estimator"
    ),
    "TunedThresholdClassifierCV": _known(
        "estimator_ best_threshold_ response_method",
        training="cv estimator random_state refit scoring store_cv_results thresholds "
        "_curve_scorer",
        statistics="best_score_ cv_results_",
    ),
    "OneVsRestClassifier": _known(
        "estimators_ label_binarizer_", training="estimator", repeated="classes_"
    ),
    "OneVsOneClassifier": _known("estimators_ classes_ pairwise_indices_", training="estimator"),
    "MultiOutputClassifier": _known("estimators_ classes_", training="estimator"),
    "MultiOutputRegressor": _known("estimators_", training="estimator"),
    "TransformedTargetRegressor": _known(
        "regressor_ transformer_ _training_dim",
        training="regressor transformer func inverse_func check_inverse",
    ),
    "FrozenEstimator": _known("estimator"),
    "ClassifierChain": _known(
        "estimators_ order_ chain_method chain_method_ classes_",
        training="base_estimator cv estimator order random_state",
    ),
    "RegressorChain": _known(
        "estimators_ order_", training="base_estimator cv estimator order random_state"
    ),
    "Pipeline": _known("steps", training="memory transform_input"),
}
"""The class of an object, or the nearest class that it inherits from → its attributes."""

NODE_STATISTICS = dict.fromkeys(
    ("impurity", "n_node_samples", "weighted_n_node_samples"), STATISTIC
)
NODES = Fields(
    dict.fromkeys(("left_child", "right_child", "feature", "threshold", "missing_go_to_left")),
    NODE_STATISTICS,
)
"""The fields of a node of `Tree`."""
HIST_NODES = Fields(
    dict.fromkeys(
        (
            "value",
            "feature_idx",
            "num_threshold",
            "missing_go_to_left",
            "left",
            "right",
            "is_leaf",
            "is_categorical",
            "bitset_idx",
        )
    ),
    {
        "count": STATISTIC,
        "gain": STATISTIC,
        "depth": STATISTIC,
        "bin_threshold": "the threshold among the bins of training",
    },
)
"""The fields of a node of `TreePredictor`."""


def check_known(model: Any, cls: Any, known: Fields, doing: str, path: str = "") -> None:
    """Refuse an attribute that we do not know, of a class that builds on scikit-learn.

    Parameters
    ----------
    cls
        The library's own class: what it learns is refused in plain objects of it, what it can be
        told is refused in those of subclasses, too.
    """
    parameters, is_theirs = cls._get_param_names(), type(model) is cls
    for name in vars(model):
        is_learned = name.startswith("_") or name.endswith("_")
        if name in known.read or name in known.idle:
            continue
        if name in parameters or (is_theirs and is_learned):
            raise unknown_field(doing, path + name)


def check_attributes(model: Any, doing: str, path: str = "") -> None:
    """Refuse an attribute of scikit-learn's own that we do not know, and a replaced method."""
    cls = next(
        (
            cls
            for cls in type(model).__mro__
            if cls.__module__.split(".")[0] == "sklearn" and cls.__name__ in ATTRIBUTES
        ),
        None,
    )
    if cls is None:
        return
    known = ATTRIBUTES[cls.__name__]
    # imbalanced-learn's pipeline is scikit-learn's, with steps for training alone.
    module = type(model).__module__
    is_theirs = module.split(".")[0] == "sklearn" or module == "imblearn.pipeline"
    parameters_of = getattr(cls, "_get_param_names", None)  # which only estimators have
    parameters = set(parameters_of()) if parameters_of else set()
    for name, value in vars(model).items():
        method = getattr(type(model), name, None)
        if callable(method) and getattr(value, "__func__", None) is method:
            continue  # HistGradientBoosting leaves its own method behind after a warm start.
        if name in known.read or name in known.idle:
            continue
        is_learned = name.startswith("_") or name.endswith("_") or not parameters_of
        if callable(method) or name in parameters or (is_theirs and is_learned):
            raise unknown_field(doing, f"{path}.{name}" if path else name)
