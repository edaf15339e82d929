"""Every field of the metadata and of the tables that Spark saves: read, or idle and why."""

from __future__ import annotations

from ..fields import Fields, fields

_TRAINING = dict.fromkeys(
    (
        "bootstrap",
        "cacheNodeIds",
        "checkpointInterval",
        "featureSubsetStrategy",
        "impurity",
        "labelCol",
        "maxBins",
        "maxDepth",
        "maxIter",
        "maxMemoryInMB",
        "minInfoGain",
        "minInstancesPerNode",
        "minWeightFractionPerNode",
        "numTrees",  # the metadata itself says how many there are
        "pruneTree",
        "seed",
        "stepSize",  # the weights of the trees hold it
        "subsamplingRate",
        "validationIndicatorCol",
        "validationTol",
        "weightCol",
    ),
    "used in training alone",
)
_COLUMNS = dict.fromkeys(
    ("leafCol", "predictionCol", "probabilityCol", "rawPredictionCol"),
    "what a column of answers is called",
)


def _metadata(params: Fields, *more: str) -> Fields:
    return fields(
        "class",
        "sparkVersion",
        "uid",
        *more,
        idle={"timestamp": "when it was saved"},
        paramMap=params,
        defaultParamMap=params,
    )


MODEL = _metadata(
    fields("featuresCol", "lossType", "thresholds", idle=_TRAINING | _COLUMNS),
    "numFeatures",
    "numClasses",
    "numTrees",
)
PIPELINE = _metadata(fields("stageUids"))
STRING_INDEXER = _metadata(
    fields(
        "handleInvalid",
        "inputCol",
        "inputCols",
        "outputCol",
        "outputCols",
        idle={"stringOrderType": "the labels are saved in their order"},
    )
)
VECTOR_ASSEMBLER = _metadata(fields("handleInvalid", "inputCols", "outputCol"))
INDEX_TO_STRING = _metadata(fields("inputCol", "outputCol", "labels"))
NODE = fields(
    "id",
    "prediction",
    "impurityStats",
    "leftChild",
    "rightChild",
    idle={
        "impurity": "used in training alone",
        "rawCount": "rows before they are weighted",
        "gain": "used by importances alone",
    },
    split=fields("featureIndex", "leftCategoriesOrThreshold", "numCategories"),
)
