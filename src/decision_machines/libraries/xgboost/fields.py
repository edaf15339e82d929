"""Every field of XGBoost's model documents, from release 1.0 on: read, or idle and why."""

from __future__ import annotations

from ..fields import Fields, fields

TRAINING = "a setting of training; predictions come from the trees"
STATISTIC = "a statistic of training, for importances"
REPEATED = "said again elsewhere, where it is read"

TREE = fields(
    "id",
    "left_children",
    "right_children",
    "split_indices",
    "split_conditions",
    "default_left",
    "split_type",
    "categories",
    "categories_nodes",
    "categories_segments",
    "categories_sizes",
    "base_weights",
    "leaf_weights",
    tree_param=fields(
        "size_leaf_vector",
        idle={
            "num_nodes": "the arrays have as many entries",
            "num_feature": REPEATED,
            "num_deleted": "deleted nodes are reached by no child",
        },
    ),
    idle={
        "parents": "follows from the children",
        "loss_changes": STATISTIC,
        "sum_hessian": STATISTIC,
        "leaf_child_counts": STATISTIC,
    },
)
MODEL = fields(
    "tree_info",
    "iteration_indptr",
    "weight_drop",
    gbtree_model_param=fields(
        "num_trees",
        "num_parallel_tree",
        idle={"size_leaf_vector": "each tree has its own"},
    ),
    trees=TREE,
    cats=fields(
        enc=fields("offsets", "type", "values"),
        idle={
            "feature_segments": "follows from the categories of each feature",
            "sorted_idx": "an index for look-ups",
        },
    ),
)
GBTREE = fields("name", "weight_drop", model=MODEL)
OBJECTIVE = fields(
    "name",
    idle=dict.fromkeys(
        (
            "aft_loss_param",
            "expectile_loss_param",
            "lambda_rank_param",
            "lambdarank_param",
            "poisson_regression_param",
            "pseudo_huber_param",
            "quantile_loss_param",
            "reg_loss_param",
            "softmax_multiclass_param",
            "ti+",
            "tj-",
            "tweedie_regression_param",
        ),
        TRAINING,
    ),
)
DOCUMENT = fields(
    "version",
    learner=fields(
        "feature_names",
        attributes=Fields(any_key=True),
        gradient_booster=Fields({**GBTREE.read, "gbtree": GBTREE}),
        learner_model_param=fields(
            "base_score", "boost_from_average", "num_class", "num_feature", "num_target"
        ),
        objective=OBJECTIVE,
        idle={"feature_types": "each test says itself whether it asks for a category"},
    ),
    idle={"config": "settings of training, in a model saved with its state"},
)
"""What a document may hold; `attributes` are what users, and XGBoost's wrappers, keep there."""
