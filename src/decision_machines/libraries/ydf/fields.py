"""Every field of YDF's messages by its number: read, or idle and why."""

from __future__ import annotations

from .wire import Message

# Idle fields: counts and distributions of training rows (for importances and descriptions), logs,
# and what describes the label of a task where only features are read.

_VOCABULARY = Message("VocabValue", {1: ("index", "int")}, {2: "count"})
CATEGORICAL = Message(
    "CategoricalSpec",
    {
        1: ("most_frequent_value", "int"),
        2: ("number_of_unique_values", "int"),
        5: ("is_already_integerized", "bool"),
        7: ("items", [Message("ItemsEntry", {1: ("key", "bytes"), 2: ("value", _VOCABULARY)})]),
        8: ("offset_value_by_one_during_training", "bool"),
    },
    {3: "min_value_count", 4: "max_number_of_unique_values"},
)
COLUMN = Message(
    "Column",
    {
        1: ("type", "int"),
        2: ("name", "text"),
        5: (
            "numerical",
            Message(
                "NumericalSpec",
                {1: ("mean", "double")},
                {2: "min_value", 3: "max_value", 4: "standard_deviation"},
            ),
        ),
        6: ("categorical", CATEGORICAL),
        8: (
            "discretized_numerical",
            Message(
                "DiscretizedNumericalSpec",
                {1: ("boundaries", "floats")},
                {2: "original_num_unique_values", 3: "maximum_num_bins", 4: "min_obs_in_bins"},
            ),
        ),
        9: (
            "boolean",
            Message("BooleanSpec", {1: ("count_true", "int"), 2: ("count_false", "int")}),
        ),
        11: ("is_unstacked", "bool"),
        12: ("dtype", "int"),
    },
    {
        3: "is_manual_type",
        4: "tokenizer",  # of sets of words, which are refused
        7: "count_nas",
        10: "multi_values",
        13: "numerical_vector_sequence",  # refused by the type
    },
)
DATA_SPEC = Message(
    "DataSpecification",
    {1: ("columns", [COLUMN])},
    {2: "created_num_rows", 3: "unstackeds"},  # columns made of a vector say so themselves
)
HEADER = Message(
    "AbstractModel",
    {
        1: ("name", "text"),
        2: ("task", "int"),
        3: ("label_col_idx", "int"),
        5: ("input_features", "ints"),
        8: ("classification_outputs_probabilities", "bool"),
    },
    {
        4: "weights",
        6: "ranking_group_col_idx",
        7: "precomputed_variable_importances",
        9: "uplift_treatment_col_idx",  # tasks of uplift are refused
        10: "metadata",
        11: "hyperparameter_optimizer_logs",
        12: "is_pure_model",
        13: "feature_selection_logs",
        14: "label_entry_age_col_idx",  # so is survival analysis
        15: "label_event_observed_col_idx",
    },
)
GRADIENT_BOOSTED_TREES = Message(
    "gradient_boosted_trees.Header",
    {
        1: ("num_node_shards", "int"),
        2: ("num_trees", "int"),
        3: ("loss", "int"),
        4: ("initial_predictions", "floats"),
        5: ("num_trees_per_iter", "int"),
        7: ("node_format", "text"),
        9: ("output_logits", "bool"),
    },
    {6: "validation_loss", 8: "training_logs", 10: "loss_configuration"},
)
RANDOM_FOREST = Message(
    "random_forest.Header",
    {
        1: ("num_node_shards", "int"),
        2: ("num_trees", "int"),
        3: ("winner_take_all_inference", "bool"),
        7: ("node_format", "text"),
    },
    {
        4: "out_of_bag_evaluations",
        5: "mean_decrease_in_accuracy",
        6: "mean_increase_in_rmse",
        8: "num_pruned_nodes",
    },
)
ISOLATION_FOREST = Message(
    "isolation_forest.Header",
    {
        1: ("num_node_shards", "int"),
        2: ("num_trees", "int"),
        3: ("node_format", "text"),
        4: ("num_examples_per_trees", "int"),
        5: ("isolation_forest", Message("IsolationForestAnomalityScore", {})),
    },
)

_EMPTY = Message("Condition.NA", {})
CONDITION = Message(
    "Condition",
    {
        1: ("na", _EMPTY),
        2: ("higher", Message("Condition.Higher", {1: ("threshold", "float")})),
        3: ("true_value", Message("Condition.TrueValue", {})),
        4: ("contains", Message("Condition.ContainsVector", {1: ("elements", "ints")})),
        5: ("bitmap", Message("Condition.ContainsBitmap", {1: ("elements_bitmap", "bytes")})),
        6: ("discretized", Message("Condition.DiscretizedHigher", {1: ("threshold", "int")})),
        7: ("oblique", Message("Condition.Oblique", {}, dict.fromkeys(range(1, 5), "refused"))),
        8: ("sequence", Message("Condition.NumericalVectorSequence", {}, {1: "refused", 2: ""})),
    },
)
NODE = Message(
    "Node",
    {
        1: (
            "classifier",
            Message(
                "NodeClassifierOutput",
                {
                    1: ("top_value", "int"),
                    2: (
                        "distribution",
                        Message(
                            "IntegerDistributionDouble",
                            {1: ("counts", "doubles"), 2: ("sum", "double")},
                        ),
                    ),
                },
            ),
        ),
        2: (
            "regressor",
            Message(
                "NodeRegressorOutput",
                {1: ("top_value", "float")},
                {2: "distribution", 3: "sum_gradients", 4: "sum_hessians", 5: "sum_weights"},
            ),
        ),
        3: (
            "condition",
            Message(
                "NodeCondition",
                {1: ("na_value", "bool"), 2: ("attribute", "int"), 3: ("condition", CONDITION)},
                {
                    4: "num_training_examples_without_weight",
                    5: "num_training_examples_with_weight",
                    6: "split_score",
                    7: "num_pos_training_examples_without_weight",
                    8: "num_pos_training_examples_with_weight",
                },
            ),
        ),
        4: ("examples", "int"),
        6: (
            "anomaly_detection",
            Message("NodeAnomalyDetectionOutput", {1: ("num_examples_without_weight", "int")}),
        ),
    },
    {5: "uplift"},  # tasks of uplift are refused
)
SERIALIZED = Message(
    "SerializedModel",
    {
        1: ("abstract_model", HEADER),
        1001: (
            "gradient_boosted_trees",
            Message("GradientBoostedTreesSerializedModel", {1: ("header", GRADIENT_BOOSTED_TREES)}),
        ),
        1002: (
            "random_forest",
            Message("RandomForestSerializedModel", {1: ("header", RANDOM_FOREST)}),
        ),
        1003: (
            "isolation_forest",
            Message("IsolationForestSerializedModel", {1: ("header", ISOLATION_FOREST)}),
        ),
    },
)
