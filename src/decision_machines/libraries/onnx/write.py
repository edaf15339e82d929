"""A machine as an ONNX model: trees, the steps of its link, and the choice of a label.

The operators are those of `ai.onnx.ml`, version 3 (TreeEnsembleRegressor, TreeEnsembleClassifier,
which answer in float32) or 5 (TreeEnsemble, which answers in the type it computes in). A machine of
float32 columns that sums in float64 casts its input to float64 after the cast to float32.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InexactWarning, InputError
from ...machine import Rule
from ...machine.coded import coded
from ...machine.steps import Step
from ..limits import Limits, margins_only, require
from .operators import operator_3, operator_5
from .steps import ARITHMETIC, CASTS, FUNCTIONS, NORMALIZE, TRANSFORMS
from .write_labels import LABELS, has_labels, label_inputs
from .write_links import steps_of
from .write_nodes import graph_of, joined
from .write_weights import end_weights, weights_3, weights_5, with_unreachable_leaf

if TYPE_CHECKING:
    from ...machine import DecisionMachine
    from .write_links import Chooser
    from .write_nodes import Graph
    from .write_weights import Weight

OPSETS = {"v3": (17, 3, 8), "v5": (21, 5, 10)}
"""The versions of ai.onnx and ai.onnx.ml that each choice states, and of the file's own format."""


def to_onnx(
    machine: DecisionMachine, *, operator: str = "v3", margins: bool = False, labels: str = "text"
) -> Any:
    """An `onnx.ModelProto`; see `DecisionMachine.to_onnx`."""
    if operator not in OPSETS:
        raise InputError(
            "writing a machine as an ONNX model", f"operator={operator!r}", "use 'v3' or 'v5'"
        )
    if labels not in LABELS:
        raise InputError(
            "writing a machine as an ONNX model", f"labels={labels!r}", "use 'text' or 'codes'"
        )
    machine = coded(machine) if labels == "codes" else machine
    machine = margins_only(machine) if margins else machine
    limits = Limits(machine, "an ONNX model")
    require("onnx", limits.doing)
    limits.columns(tuple(rule for rule in Rule if rule != Rule.LOOK_UP))
    limits.constant_leaves()
    if machine.output.aggregate == "median":
        limits.refuse(
            "output.aggregate is 'median', which ONNX's trees do not have",
            "keep the machine in our own file, machine.save(path)",
        )
    if not np.all(np.isfinite(machine.V)) or not np.all(np.isfinite(machine.output.base)):
        limits.refuse("V or output.base is not finite", "keep the machine with machine.save")
    plan = _Plan(machine, limits, operator)
    model = plan.model()
    if plan.causes:
        warnings.warn(
            "The ONNX model may differ from the machine in the last digits: "
            + "; ".join(plan.causes)
            + ".",
            InexactWarning,
            stacklevel=3,
        )
    return model


@dataclass
class _Plan:
    """The graph as it is put together."""

    machine: DecisionMachine
    limits: Limits
    operator: str
    causes: list[str] = field(default_factory=list)
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    last: str = "X"
    """The name of the tensor made last."""
    dtype: Any = np.float32
    """Of that tensor."""

    # ------------------------------------------------------------------ parts of the graph

    def step(
        self, operator: str, *constants: np.ndarray, first: bool = False, **attributes: Any
    ) -> None:
        """Add an operator on the last tensor and constants."""
        from onnx import helper, numpy_helper

        names = []
        for array in constants:
            names.append(f"constant{len(self.constants)}")
            self.constants.append(numpy_helper.from_array(array, names[-1]))
        made = f"step{len(self.nodes)}"
        inputs = [*names, self.last] if first else [self.last, *names]
        domain = "ai.onnx.ml" if operator == "Normalizer" else ""
        self.nodes.append(helper.make_node(operator, inputs, [made], domain=domain, **attributes))
        self.last = made

    def cast(self, dtype: Any) -> None:
        from onnx import TensorProto

        if self.dtype != dtype:
            to = TensorProto.DOUBLE if dtype == np.float64 else TensorProto.FLOAT
            self.step("Cast", to=to)
            self.dtype = dtype

    def model(self) -> Any:
        steps, classifier = steps_of(self.limits, self.operator, self.causes)
        outputs = self._trees(steps, classifier)
        for step in steps:
            self._apply(step)
        return self._model(outputs or self._outputs(self.machine.output))

    def _model(self, outputs: list[tuple[str, str, Any, list[Any]]]) -> Any:
        """The graph with these outputs: what they are called in it, their name, type and shape."""
        from onnx import TensorProto, checker, helper

        columns = self.machine.columns
        if has_labels(columns):
            inputs, encoders, constants = label_inputs(columns, self.limits)
            self.nodes[:0], self.constants = encoders, [*constants, *self.constants]
        else:
            kind = TensorProto.DOUBLE if columns.dtype == np.float64 else TensorProto.FLOAT
            inputs = [helper.make_tensor_value_info("X", kind, [None, columns.n_features])]
        made = []
        for inside, name, element, shape in outputs:
            if inside != name:
                self.nodes.append(helper.make_node("Identity", [inside], [name]))
            made.append(helper.make_tensor_value_info(name, element, shape))
        graph = helper.make_graph(self.nodes, "decision_machine", inputs, made, self.constants)
        plain, trees, version = OPSETS[self.operator]
        model = helper.make_model(
            graph,
            opset_imports=[
                helper.make_opsetid("", plain),
                helper.make_opsetid("ai.onnx.ml", trees),
            ],
            ir_version=version,
            producer_name="decision-machines",
        )
        checker.check_model(model)
        return model

    # ------------------------------------------------------------------ trees

    def _trees(self, steps: list[Step], classifier: Chooser | None) -> list[Any]:
        """Add the tree operator; the outputs, where it makes the labels itself."""
        machine, output, limits = self.machine, self.machine.output, self.limits
        k = machine.n_outputs
        self.dtype = machine.columns.dtype.type
        if output.dtype == np.float64:
            self.cast(np.float64)
        elif self.dtype == np.float64:
            self.causes.append("sums are taken in float64, the machine's in float32")
        computes = self.dtype
        graph = graph_of(machine, limits, has_sets=self.operator == "v5")
        values = machine.V.astype(output.dtype).astype(np.float64)
        aggregate, before, after, base = self._base(steps)
        # The leaves of the trees that hold base scores are numbered after the machine's.
        n_ends = self.n_ends
        graph = joined(
            n_ends * (before is not None), graph, n_ends * (after is not None), machine.n_leaves
        )
        if not len(graph.tree):
            graph, before = joined(n_ends, graph, 0, machine.n_leaves), np.zeros(k)
        ends = [
            row
            for values_ in (before, after)
            if values_ is not None
            for row in end_weights(values_, n_ends)
        ]
        transform = "NONE"
        if steps and steps[0].name in TRANSFORMS:
            transform = TRANSFORMS[steps.pop(0).name]
        if self.operator == "v5":
            if transform in ("SOFTMAX", "LOGISTIC"):
                limits.refuse(
                    f"the transform {transform} of version 5, which ONNX Runtime and the "
                    "specification number differently",
                    "use operator='v3', or margins=True",
                )
            graph, weights = weights_5(machine, graph, values, ends)
            node = operator_5(
                graph, weights, k, computes, aggregate=aggregate, transform=transform,
                given=self.last,
            )  # fmt: skip
            self.nodes.append(node)
            self.last = "sums"
            return []
        weights = weights_3(machine, graph, values, ends)
        if classifier is None:
            node = operator_3(
                graph, weights, k, computes, aggregate=aggregate, transform=transform, base=base,
                given=self.last,
            )  # fmt: skip
            self.nodes.append(node)
            self.last, self.dtype = "sums", np.float32
            if computes == np.float64:
                self._rounds(steps)
            elif steps and steps[0].name == "single":
                steps.pop(0)
            return []
        return self._classifier(graph, weights, computes, transform, base, steps, classifier)

    @property
    def n_ends(self) -> int:
        """How many trees of one leaf hold the base scores: a leaf of version 5 has one weight."""
        return 1 if self.operator == "v3" else self.machine.n_outputs

    def _rounds(self, steps: list[Step]) -> None:
        """Version 3 answers in float32, which a machine may ask for."""
        if steps and steps[0].name == "single":
            steps.pop(0)
        else:
            self.causes.append(
                "sums of float64 are rounded to float32, in which the operators of version 3 "
                "answer (operator='v5' answers in float64)"
            )

    def _base(
        self, steps: list[Step]
    ) -> tuple[str, np.ndarray | None, np.ndarray | None, np.ndarray | None]:
        """The aggregate, the constants added by trees before and after, and base values.

        What the operator itself cannot do is put in front of the steps.
        """
        machine, output = self.machine, self.machine.output
        base = output.base.astype(np.float64)
        has_base = bool(np.any(base))
        is_sum = output.aggregate == "sum"
        before = base if has_base and is_sum and output.base_first else None
        n_trees = machine.n_trees
        if not machine.is_narrow and self.operator == "v5":
            n_trees *= machine.n_outputs
        n_trees += self.n_ends * (before is not None)
        averages = is_sum and output.divisor != 1 and output.divisor == n_trees
        own: list[Step] = []
        if output.divisor != 1 and not averages:
            own.append(Step("divide", (output.divisor,)))
        if output.scale != 1:
            own.append(Step("multiply", (output.scale,)))
        after = values = None
        if has_base and before is None:
            # ONNX Runtime adds no base value to an output that no leaf has a weight for.
            is_fed = not machine.is_narrow or len(np.unique(machine.trees.feeds)) == len(base)
            if self.operator == "v3" and not own and is_fed:
                values = base
            elif is_sum and not own and not averages:
                after = base
            else:
                own.append(Step("add", tuple(base.tolist())))
        if own and steps and steps[0].name in TRANSFORMS:
            self.limits.refuse(
                f"the link {output.link!r} of sums that are divided, multiplied or added to",
                "write the margins alone, with margins=True",
            )
        steps[:0] = own
        aggregate = {"min": "MIN", "max": "MAX"}.get(output.aggregate, "SUM")
        return ("AVERAGE" if averages else aggregate), before, after, values

    # ------------------------------------------------------------------ answers

    def _classifier(
        self,
        graph: Graph,
        weights: list[Weight],
        computes: Any,
        transform: str,
        base: np.ndarray | None,
        steps: list[Step],
        how: Chooser,
    ) -> list[Any]:
        """TreeEnsembleClassifier, which makes labels and scores."""
        from onnx import TensorProto

        labels = how.labels
        if steps:
            self.limits.refuse(
                "sums that are divided, multiplied or added to before labels are chosen",
                "write the margins alone, with margins=True",
            )
        if how.output is not None:
            weights = [(node, how.output, w) for node, _, w in weights]
        if how.pair == "opposite" and all(w >= 0 for _, _, w in weights):
            assert how.output is not None, "two classes share one sum"
            # Where no weight is negative ONNX Runtime takes scores for probabilities and decides
            # at 0.5, so a leaf that nothing reaches has one that is.
            graph, node = with_unreachable_leaf(graph)
            weights = [*weights, (node - 1, how.output, 0.0), (node, how.output, -1.0)]
        node = operator_3(
            graph, weights, len(labels), computes, transform=transform, base=base, labels=labels,
            given=self.last, made=("label", "probabilities"),
        )  # fmt: skip
        self.nodes.append(node)
        if computes == np.float64 and not self.causes:
            self.causes.append("scores of float64 are rounded to float32")
        kind = TensorProto.STRING if labels.dtype.kind == "U" else TensorProto.INT64
        return [
            ("label", "label", kind, [None]),
            ("probabilities", "probabilities", TensorProto.FLOAT, [None, len(labels)]),
        ]

    def _apply(self, step: Step) -> None:
        """Add the operator of a step."""
        if step.name in CASTS:
            self.cast(CASTS[step.name])
        elif step.name in ARITHMETIC:
            how = ARITHMETIC[step.name]
            constant = np.array(step.constants, self.dtype)
            self.step(how.name, constant, first=how.constant_first)
        elif step.name in FUNCTIONS:
            self.step(FUNCTIONS[step.name])
        elif step.name == NORMALIZE:
            self.step("Normalizer", norm="L1")
        else:
            self.limits.unknown_link()

    def _outputs(self, output: Any) -> list[Any]:
        """Scores alone, or labels and scores."""
        from onnx import TensorProto, helper

        element = TensorProto.DOUBLE if self.dtype == np.float64 else TensorProto.FLOAT
        k = len(output)
        scores = self.last
        if output.decision in ("response", "margin"):
            return [(scores, "scores", element, [None, k])]
        self.step("ArgMax", axis=1, keepdims=0)
        labels = output.classes[0]
        if len(labels) != k:
            self.limits.unknown_link()
        text = labels.dtype.kind == "U"
        self.step("Gather", labels.astype(object) if text else labels, first=True, axis=0)
        kind = TensorProto.STRING if text else helper.np_dtype_to_tensor_dtype(labels.dtype)
        return [
            (self.last, "label", kind, [None]),
            (scores, "probabilities", element, [None, k]),
        ]


def onnx_content(
    machine: DecisionMachine,
    suffix: str,
    *,
    operator: str = "v3",
    margins: bool = False,
    labels: str = "text",
) -> bytes:
    """The bytes of an ONNX file."""
    model = to_onnx(machine, operator=operator, margins=margins, labels=labels)
    found: bytes = model.SerializeToString()
    return found
