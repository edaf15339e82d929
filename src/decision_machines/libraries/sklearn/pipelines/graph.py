"""The stages of a pipeline: what each step does to which columns, dispatched by a table."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import UnsupportedModelError
from ..read_trees import is_active
from . import encoders, imputers, numbers
from .stage import Raw, Scale, Select, Stack, Transform

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from .handlers import Handler

HANDLERS: dict[str, Handler] = {**numbers.HANDLERS, **imputers.HANDLERS, **encoders.HANDLERS}
"""The class of a step, or the nearest class of scikit-learn that it inherits from."""
FUNCTION, PASSED = numbers.Function(), numbers.Passed()

MIXES = {
    "PCA", "IncrementalPCA", "KernelPCA", "SparsePCA", "TruncatedSVD", "FastICA", "NMF",
    "PolynomialFeatures", "KNNImputer", "IterativeImputer", "Normalizer", "RandomTreesEmbedding",
    "LinearDiscriminantAnalysis", "Nystroem", "RBFSampler", "GaussianRandomProjection",
    "SparseRandomProjection", "FeatureAgglomeration", "KMeans", "KernelCenterer",
}  # fmt: skip
"""Steps that make one column of several."""
READS_TEXT = {"CountVectorizer", "TfidfVectorizer", "HashingVectorizer", "TfidfTransformer"}


@dataclass
class Graph:
    """The stages from raw features to the columns that a model reads."""

    raw: Raw
    last: Any
    declared: Collection[Any] = ()
    transforms: list[Transform] = field(default_factory=list)
    """Every step, those before it first."""
    ignores_further: bool = False
    needed: set[int] = field(default_factory=set)
    """Features that some step reads."""

    def then(self, steps: list[tuple[str, Any]]) -> Graph:
        """The graph with further steps after the last."""
        grown = Graph(
            self.raw, self.last, self.declared, list(self.transforms), self.ignores_further,
            set(self.needed),
        )  # fmt: skip
        for at, (name, step) in enumerate(steps):
            if isinstance(grown.last, Raw) and type(step).__name__ == "ColumnTransformer":
                grown.ignores_further = self.raw.names is not None
                grown.needed = set()
            elif isinstance(grown.last, Raw):
                grown.needed = set(range(self.raw.n_features))
            grown.last = grown._after(grown.last, step, name, f"pipe[{at + 1}:]")
        return grown

    def _after(self, parent: Any, step: Any, name: str, rest: str) -> Any:
        """The stage of a step on a stage."""
        if not is_active(step):
            return parent
        build = BUILDERS.get(type(step).__name__)
        if build is not None:
            return build(self, parent, step, rest)
        handler = self._handler(step, name, rest)
        _check_fitted(step, name)
        return self._add(parent, step, handler)

    def _add(self, parent: Any, step: Any, handler: Handler) -> Transform:
        """The stage of a single step."""
        sources = handler.sources(step, len(parent.origin))
        self.raw.steps.append(type(step).__name__)
        stage = Transform(parent, step, handler, sources)
        for i, feature in enumerate(parent.origin):
            known = handler.labels(step, i)
            if known is not None:
                labels = self.raw.labels.setdefault(feature, {})
                labels.update(dict.fromkeys(v for v in known if v is not None and v == v))
        if handler is FUNCTION:
            self.raw.functions.update(parent.origin)
        self.transforms.append(stage)
        return stage

    def _handler(self, step: Any, name: str, rest: str) -> Handler:
        cls = type(step).__name__
        is_declared = _is_declared(step, name, self.declared)
        if cls == "FunctionTransformer" and not is_declared:
            if step.func is None:
                return PASSED
            if _is_known(step):
                return FUNCTION
            shown = getattr(step.func, "__name__", repr(step.func))
            raise UnsupportedModelError(
                "folding a pipeline",
                f"the step {name!r} is a FunctionTransformer of {shown}, which we do not know",
                "if it takes every column by itself and never falls (or never rises), say so: "
                f"dm.convert(pipeline, monotone=[{name!r}])",
            )
        if is_declared:
            return FUNCTION
        for base in type(step).__mro__:
            if base.__module__.split(".")[0] != "sklearn":
                if "transform" in vars(base):
                    break
                continue
            if base.__name__ in HANDLERS:
                return HANDLERS[base.__name__]
        why = "which we do not know"
        if cls in MIXES:
            why = "which makes columns of several others"
        elif cls in READS_TEXT:
            why = "which reads text word by word"
        raise UnsupportedModelError(
            "folding a pipeline",
            f"the step {name!r} is a {cls}, {why}",
            f"run the fitted steps up to it yourself and convert the rest: machine = "
            f"dm.convert({rest}), machine.predict(the columns that they give)"
            + (
                ""
                if cls in MIXES or cls in READS_TEXT
                else "; or, if it takes every column by itself and never falls (or never rises), "
                f"say so: dm.convert(pipeline, monotone=[{name!r}])"
            ),
        )


def graph_of(
    n_features: int,
    names: tuple[str, ...] | None,
    declared: Collection[Any] = (),
) -> Graph:
    """A graph without steps."""
    raw = Raw(n_features, names, {})
    return Graph(raw, raw, declared)


def _check_fitted(step: Any, name: str) -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(step)
    except NotFittedError:
        raise UnsupportedModelError(
            "folding a pipeline", f"the step {name!r} is not fitted", "call fit first"
        ) from None


def _is_declared(step: Any, name: str, declared: Collection[Any]) -> bool:
    func = getattr(step, "func", None)
    return any(
        name == one if isinstance(one, str) else one in (type(step), step, func) for one in declared
    )


def _is_known(step: Any) -> bool:
    try:
        return step.func in numbers.KNOWN and not step.kw_args
    except TypeError:  # a function that cannot be hashed
        return False


# ---------------------------------------------------------------------- steps made of steps


def _pipeline(graph: Graph, parent: Any, step: Any, rest: str) -> Any:
    for name, one in step.steps:
        parent = graph._after(parent, one, name, rest)
    return parent


def _columns(graph: Graph, parent: Any, step: Any, rest: str) -> Any:
    parts = []
    weights = step.transformer_weights or {}
    at = step._transformer_to_input_indices
    for name, one, _ in step.transformers_:
        which = [int(i) for i in at.get(name, [])]
        if not which or (isinstance(one, str) and one == "drop"):
            continue
        # A function given for columns was resolved when the transformer was fitted.
        part = graph._after(Select(parent, which), one, name, rest)
        if isinstance(parent, Raw):
            graph.needed.update(which)
        parts.append(Scale(part, weights[name]) if name in weights else part)
    return Stack(parts, bool(getattr(step, "sparse_output_", False)))


def _union(graph: Graph, parent: Any, step: Any, rest: str) -> Any:
    parts = []
    weights = step.transformer_weights or {}
    for name, one in step.transformer_list:
        if isinstance(one, str) and one == "drop":
            continue
        part = graph._after(parent, one, name, rest)
        parts.append(Scale(part, weights[name]) if name in weights else part)
    return Stack(parts, any(gives_sparse(part) for part in parts))


def gives_sparse(stage: Any) -> bool:
    """Whether a stage gives what follows it a sparse matrix."""
    if isinstance(stage, Scale):
        return gives_sparse(stage.parent)
    if isinstance(stage, Stack):
        return stage.is_sparse
    step = getattr(stage, "step", None)
    encode = getattr(step, "encode", None)
    return bool(getattr(step, "sparse_output", False)) or encode == "onehot"


def _frozen(graph: Graph, parent: Any, step: Any, rest: str) -> Any:
    return graph._after(parent, step.estimator, "estimator", rest)


def _power(graph: Graph, parent: Any, step: Any, rest: str) -> Any:
    """The power alone, then the scaler inside the step, which refuses what the power overflows."""
    alone = copy.copy(step)
    alone.standardize = False
    stage = graph._add(parent, alone, HANDLERS["PowerTransformer"])
    if not step.standardize:
        return stage
    scaled = Transform(
        stage, step._scaler, HANDLERS["StandardScaler"], list(range(len(stage.origin)))
    )
    graph.transforms.append(scaled)
    return scaled


BUILDERS: dict[str, Callable[[Graph, Any, Any, str], Any]] = {
    "Pipeline": _pipeline,
    "ColumnTransformer": _columns,
    "FeatureUnion": _union,
    "FrozenEstimator": _frozen,
    "PowerTransformer": _power,
}


def blocks_of(graph: Graph) -> list[tuple[int, ...]]:
    """Features that a step reads as one array and computes with: their common dtype counts."""
    found = []
    for stage in graph.transforms:
        if not _is_first(stage.parent):
            continue
        block = tuple(sorted({f for f in stage.parent.origin if f not in graph.raw.labels}))
        below = [t for t in graph.transforms if t is stage or _comes_from(t, stage)]
        if block and any(t.handler.computes for t in below):
            found.append(block)
    return sorted(set(found))


def _is_first(parent: Any) -> bool:
    return isinstance(parent, Raw) or (isinstance(parent, Select) and _is_first(parent.parent))


def _comes_from(stage: Any, other: Any) -> bool:
    if stage is other:
        return True
    parents = stage.parents if isinstance(stage, Stack) else [getattr(stage, "parent", None)]
    return any(parent is not None and _comes_from(parent, other) for parent in parents)


def origins(stage: Any) -> np.ndarray:
    """The raw feature of every column of a stage."""
    return np.array(stage.origin, np.int64)
