"""Every field of CatBoost's files, .json and .cbm: read, or idle and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...errors import UnsupportedModelError
from ..fields import Fields, fields, unknown_field

if TYPE_CHECKING:
    from .flatbuffer import Table

REPEATED = "said again elsewhere, where it is read"

# ---------------------------------------------------------------------- .json

SPLIT = fields(
    "split_index",
    "split_type",
    "border",
    "float_feature_index",
    "cat_feature_index",
    "value",
    idle={"ctr_target_border_idx": REPEATED},
)
NODE = fields("left", "right", "value", "weight", split=SPLIT)
"""A node of a tree of any shape; its sides are nodes again."""
CTR = fields(
    "borders",
    "ctr_type",
    "identifier",
    "prior_denomerator",
    "prior_numerator",
    "scale",
    "shift",
    "target_border_classifier_idx",
    "target_border_idx",
    elements=fields(
        "border", "cat_feature_index", "combination_element", "float_feature_index", "value"
    ),
)
CTR_TABLE = fields("counter_denominator", "hash_map", "hash_stride")
OTHER_FEATURE = Fields(any_key=True)
"""A text or embedding feature, which is refused whatever it holds."""
INFO = Fields(
    {
        "class_params": fields(
            "class_label_type", "class_names", "class_to_label", "classes_count"
        ),
        "multiclass_params": fields(
            "class_label_type", "class_names", "class_to_label", "classes_count"
        ),
    },
    any_key=True,
)
"""Notes: CatBoost's own on training, and whatever users keep in `model.get_metadata()`."""
DOCUMENT = fields(
    "scale_and_bias",
    "trees",
    "model_info",
    features_info=fields(
        float_features=fields(
            "borders",
            "feature_id",
            "feature_index",
            "feature_name",
            "flat_feature_index",
            "has_nans",
            "nan_value_treatment",
        ),
        categorical_features=fields(
            "feature_id", "feature_index", "feature_name", "flat_feature_index", "values"
        ),
        ctrs=CTR,
        cat_features_hash=fields("hash", "value"),
        text_features=OTHER_FEATURE,
        embedding_features=OTHER_FEATURE,
    ),
    oblivious_trees=fields("leaf_values", "leaf_weights", splits=SPLIT),
    ctr_data=Fields(any_key=True),
)
"""What a .json file may hold; nodes of `trees` and tables of `ctr_data` are checked as they are
read."""

# ---------------------------------------------------------------------- .cbm


@dataclass(frozen=True)
class Slots:
    """The slots of one table of a FlatBuffer, by the names that CatBoost's schema has for them."""

    name: str
    read: Mapping[int, str]
    below: Mapping[int, Slots] = field(default_factory=dict)
    """Slots that hold a vector of tables, or a table, with slots of their own."""
    idle: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    """Slots that change no prediction: the name, and the reason."""

    def check(self, table: Table, path: str = "") -> None:
        """Refuse the first slot that is filled and neither read nor idle."""
        path = path or self.name
        for slot in table.slots():
            if slot in self.below:
                name = self.read[slot]
                inner = self.below[slot]
                for i, item in enumerate(table.tables(slot)):
                    inner.check(item, f"{path}.{name}[{i}]")
            elif slot not in self.read and slot not in self.idle:
                raise unknown_field(table.doing, f"{path}, slot {slot}")


FEATURE = {0: "Index", 1: "FlatIndex", 2: "FeatureId"}
USED = {3: ("UsedInModel", "tests say themselves what they use")}
TREES = Slots(
    "ModelTrees",
    {
        0: "ApproxDimension",
        1: "TreeSplits",
        2: "TreeSizes",
        4: "CatFeatures",
        5: "FloatFeatures",
        6: "OneHotFeatures",
        7: "CtrFeatures",
        8: "LeafValues",
        9: "LeafWeights",
        10: "NonSymmetricStepNodes",
        11: "NonSymmetricNodeIdToLeafId",
        12: "TextFeatures",
        14: "Scale",
        15: "Bias",
        16: "MultiBias",
        18: "EmbeddingFeatures",
    },
    below={
        4: Slots("TCatFeature", FEATURE, idle=USED),
        5: Slots(
            "TFloatFeature",
            {
                0: "HasNans",
                1: "Index",
                2: "FlatIndex",
                3: "Borders",
                4: "FeatureId",
                5: "NanValueTreatment",
            },
        ),
        6: Slots(
            "TOneHotFeature",
            {0: "Index", 1: "Values"},
            idle={2: ("StringValues", "labels are matched by their hash")},
        ),
        7: Slots("TCtrFeature", {0: "Ctr", 1: "Borders"}),
    },
    idle={
        3: ("TreeStartOffsets", "follows from TreeSizes"),
        13: ("EstimatedFeatures", "of text and embedding features, which are refused"),
        17: ("RepackedBins", "TreeSplits in the form that CatBoost's evaluator wants"),
    },
)
MODEL_CTR = Slots(
    "TModelCtr",
    {0: "Base", 1: "TargetBorderIdx", 2: "PriorNum", 3: "PriorDenom", 4: "Shift", 5: "Scale"},
)
CTR_BASE = Slots(
    "TModelCtrBase", {0: "FeatureCombination", 1: "CtrType", 2: "TargetBorderClassifierIdx"}
)
COMBINATION = Slots("TFeatureCombination", {0: "CatFeatures", 1: "FloatSplits", 2: "OneHotSplits"})
CTR_VALUES = Slots(
    "TCtrValueTable",
    {
        0: "ModelCtrBase",
        1: "IndexHashRaw",
        2: "CTRBlob",
        3: "CounterDenominator",
        4: "TargetClassesCount",
    },
)
CORE = Slots("ModelCore", {0: "FormatVersion", 1: "ModelTrees", 2: "InfoMap", 3: "ModelPartIds"})
PARTS = {
    "static_provider_v1": "the tables of CTRs, which are read",
    "text_process_v1": "of text features, which are refused",
    "text_process_v2": "of text features, which are refused",
    "embed_process_1": "of embedding features, which are refused",
}
"""What may follow the core of a .cbm file, and what becomes of it."""


def check_cbm(core: Table) -> None:
    """Refuse what a .cbm file has beyond the fields that we know."""
    CORE.check(core)
    trees = core.table(1)
    if trees is not None:
        TREES.check(trees)
    for part in core.texts(3):
        if part.rstrip("\0") not in PARTS:
            raise UnsupportedModelError(
                core.doing,
                f"ModelCore.ModelPartIds names a part {part[:60]!r} that this version of "
                "decision-machines does not know; it may change predictions",
                "update decision-machines",
            )
