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

from ..errors import InexactWarning, InputError
from ..machine import ALL_OUTPUTS, Rule
from .limits import Limits, margins_only, require
from .onnx_nodes import LEAF, graph_of, joined
from .onnx_operators import operator_3, operator_5

if TYPE_CHECKING:
    from ..machine import DecisionMachine
    from .onnx_nodes import Graph

OPSETS = {"v3": (17, 3, 8), "v5": (21, 5, 10)}
"""The versions of ai.onnx and ai.onnx.ml that each choice states, and of the file's own format."""

STEPS = (
    "single", "double", "logistic", "softmax", "softmax_zero", "probit", "complement", "opposite",
    "beside_zero", "normalize", "add", "subtract", "subtract_from", "multiply", "divide",
    "divide_into", "negate", "exp", "sigmoid",
)  # fmt: skip
"""The steps of the link `onnx`, by their numbers."""
TRANSFORMS = ("logistic", "softmax", "softmax_zero", "probit")
PAIRS = ("complement", "opposite", "beside_zero")
LINKS = {
    **dict.fromkeys(("sigmoid", "expit", "xgboost_sigmoid"), "sigmoid"),
    **dict.fromkeys(
        ("softmax", "xgboost_softmax", "lightgbm_softmax", "catboost_softmax"), "softmax"
    ),
    **dict.fromkeys(("exp", "xgboost_exp", "lightgbm_exp", "catboost_exp"), "exp"),
}
"""Links of other libraries that ONNX Runtime computes in its own way."""


def to_onnx(machine: DecisionMachine, *, operator: str = "v3", margins: bool = False) -> Any:
    """An `onnx.ModelProto`; see `DecisionMachine.to_onnx`."""
    if operator not in OPSETS:
        raise InputError(
            "writing a machine as an ONNX model", f"operator={operator!r}", "use 'v3' or 'v5'"
        )
    machine = margins_only(machine) if margins else machine
    limits = Limits(machine, "an ONNX model")
    require("onnx", limits.doing)
    limits.columns((Rule.VALUE, Rule.NAN_AS_ZERO, Rule.MEMBER))
    limits.no_labels()
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
        self, operator: str, *constants: np.ndarray, first: bool = False, **attributes
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
        steps, classifier = self._steps()
        outputs = self._trees(steps, classifier)
        for name, params in steps:
            self._apply(name, params)
        return self._model(outputs or self._outputs(self.machine.output))

    def _model(self, outputs: list[tuple[str, str, Any, list]]) -> Any:
        """The graph with these outputs: what they are called in it, their name, type and shape."""
        from onnx import TensorProto, checker, helper

        columns = self.machine.columns
        kind = TensorProto.DOUBLE if columns.dtype == np.float64 else TensorProto.FLOAT
        given = helper.make_tensor_value_info("X", kind, [None, columns.n_features])
        made = []
        for inside, name, element, shape in outputs:
            if inside != name:
                self.nodes.append(helper.make_node("Identity", [inside], [name]))
            made.append(helper.make_tensor_value_info(name, element, shape))
        graph = helper.make_graph(self.nodes, "decision_machine", [given], made, self.constants)
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

    def _trees(self, steps: list, classifier: dict[str, Any] | None) -> list:
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
            for row in _end_weights(values_, n_ends)
        ]
        transform = "NONE"
        if steps and steps[0][0] in TRANSFORMS:
            transform = steps.pop(0)[0].upper()
        if self.operator == "v5":
            if transform in ("SOFTMAX", "LOGISTIC"):
                limits.refuse(
                    f"the transform {transform} of version 5, which ONNX Runtime and the "
                    "specification number differently",
                    "use operator='v3', or margins=True",
                )
            graph, weights = self._weights_5(graph, values, ends)
            node = operator_5(
                graph, weights, k, computes, aggregate=aggregate, transform=transform,
                given=self.last,
            )  # fmt: skip
            self.nodes.append(node)
            self.last = "sums"
            return []
        weights = self._weights_3(graph, values, ends)
        if classifier is None:
            node = operator_3(
                graph, weights, k, computes, aggregate=aggregate, transform=transform, base=base,
                given=self.last,
            )  # fmt: skip
            self.nodes.append(node)
            self.last, self.dtype = "sums", np.float32
            if computes == np.float64:
                self._rounds(steps)
            elif steps and steps[0][0] == "single":
                steps.pop(0)
            return []
        return self._classifier(graph, weights, computes, transform, base, steps, classifier)

    @property
    def n_ends(self) -> int:
        """How many trees of one leaf hold the base scores: a leaf of version 5 has one weight."""
        return 1 if self.operator == "v3" else self.machine.n_outputs

    def _rounds(self, steps: list) -> None:
        """Version 3 answers in float32, which a machine may ask for."""
        if steps and steps[0][0] == "single":
            steps.pop(0)
        else:
            self.causes.append(
                "sums of float64 are rounded to float32, in which the operators of version 3 "
                "answer (operator='v5' answers in float64)"
            )

    def _base(self, steps: list):
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
        own: list[tuple[str, Any]] = []
        if output.divisor != 1 and not averages:
            own.append(("divide", [output.divisor]))
        if output.scale != 1:
            own.append(("multiply", [output.scale]))
        after = values = None
        if has_base and before is None:
            # ONNX Runtime adds no base value to an output that no leaf has a weight for.
            is_fed = not machine.is_narrow or len(np.unique(machine.trees.feeds)) == len(base)
            if self.operator == "v3" and not own and is_fed:
                values = base
            elif is_sum and not own and not averages:
                after = base
            else:
                own.append(("add", base.tolist()))
        if own and steps and steps[0][0] in TRANSFORMS:
            self.limits.refuse(
                f"the link {output.link!r} of sums that are divided, multiplied or added to",
                "write the margins alone, with margins=True",
            )
        steps[:0] = own
        aggregate = {"min": "MIN", "max": "MAX"}.get(output.aggregate, "SUM")
        return ("AVERAGE" if averages else aggregate), before, after, values

    def _weights_3(self, graph: Graph, values: np.ndarray, ends: list) -> list:
        """(node, output, weight): every leaf has one for each output that its tree feeds."""
        machine = self.machine
        feeds = machine.trees.feeds[machine.trees.of_leaf] if machine.n_leaves else []
        found = []
        for node in np.flatnonzero(graph.mode == LEAF).tolist():
            leaf = int(graph.leaf[node])
            if leaf >= machine.n_leaves:
                found += [(node, o, w) for o, w in enumerate(ends[leaf - machine.n_leaves])]
            elif feeds[leaf] == ALL_OUTPUTS:
                found += [(node, o, w) for o, w in enumerate(values[leaf].tolist())]
            else:
                found.append((node, int(feeds[leaf]), float(values[leaf, 0])))
        return found

    def _weights_5(self, graph: Graph, values: np.ndarray, ends: list) -> tuple[Graph, list]:
        """The same where a leaf has one weight: a tree for each output that it feeds."""
        machine = self.machine
        k = machine.n_outputs
        feeds = machine.trees.feeds[machine.trees.of_leaf] if machine.n_leaves else []
        if machine.is_narrow or k == 1:
            found = []
            for node in np.flatnonzero(graph.mode == LEAF).tolist():
                leaf = int(graph.leaf[node])
                if leaf >= machine.n_leaves:
                    end = leaf - machine.n_leaves
                    found.append((node, end % k, ends[end][0]))
                else:
                    found.append((node, max(int(feeds[leaf]), 0), float(values[leaf, 0])))
            return graph, found
        # The trees of base scores stand at the ends and are there once for each output already.
        is_end = graph.leaf >= machine.n_leaves
        n_before = int(np.argmin(is_end)) if not np.all(is_end) else len(is_end)
        return _copied(graph, values, ends, n_before, machine.n_leaves, k)

    # ------------------------------------------------------------------ answers

    def _steps(self) -> tuple[list[tuple[str, Any]], dict[str, Any] | None]:
        """The steps from sums to the response, and how a classifier's operator chooses labels."""
        output, limits = self.machine.output, self.limits
        labels = None if output.classes is None else output.classes[0]
        decides = output.decision not in ("response", "margin")
        if len(output.groups) > 2 or (output.decision == "margin" and output.link != "identity"):
            limits.unknown_link()
        if labels is not None and decides and labels.dtype.kind not in "biufU":
            limits.refuse(
                f"output.classes of dtype {labels.dtype}, which ONNX does not have",
                "write the margins alone, with margins=True, and choose the labels yourself",
            )
        if output.link == "onnx":
            return self._program(output, labels)
        if output.link == "averaged identity" and not decides:
            return [("divide", [output.link_params[0]])], None
        if output.link != "identity" and output.link not in LINKS:
            limits.unknown_link()
        link = LINKS.get(output.link, "identity")
        if link == "sigmoid" and output.link_params not in ((), (1.0,)):
            limits.unknown_link()
        if decides and output.decision not in (
            "argmax", "argmax_margin", "above", "margin_above", "margin_at_least"
        ):  # fmt: skip
            limits.unknown_link()
        if link != "identity":
            self.causes.append(f"the link {output.link!r} is ONNX Runtime's, in float32")
        k = len(output)
        if decides and k == 1:
            return self._binary(link, labels)
        if link == "softmax":
            return [("softmax", [])], None
        if link == "identity":
            return [], None
        return [("single", []), (link, [])], None

    def _binary(self, link: str, labels: Any):
        """Two labels of one margin: what TreeEnsembleClassifier does, with a threshold of 0."""
        output, limits = self.machine.output, self.limits
        threshold = (output.decision_params or (0.0,))[0]
        fits = (
            output.decision == "above" and output.decision_params in ((), (0.5,))
        ) or threshold == 0
        is_number = labels is not None and labels.dtype.kind in "biu"
        if (
            link != "sigmoid"
            or self.operator != "v3"
            or not fits
            or labels is None
            or len(labels) != 2
            or not (is_number or labels.dtype.kind == "U")
        ):
            limits.refuse(
                f"the decision {output.decision!r}{output.decision_params} between two labels of "
                f"{getattr(labels, 'dtype', None)} by one margin, with operator={self.operator!r}",
                "use operator='v3' for a classifier that decides at a margin of 0, or write the "
                "margins alone, with margins=True",
            )
        if output.decision == "margin_at_least":
            self.causes.append("a margin of exactly 0 gives the first label, the machine's second")
        return [("logistic", [])], {"labels": labels, "pair": "opposite", "output": 0}

    def _program(self, output: Any, labels: Any):
        """The steps of a machine that was read from an ONNX model."""
        limits = self.limits
        steps, at, params = [], 0, output.link_params
        while at < len(params):
            n = int(params[at + 1])
            steps.append((STEPS[int(params[at])], list(params[at + 2 : at + 2 + n])))
            at += 2 + n
        pair = steps[0][0] if steps and steps[0][0] in PAIRS else None
        if pair is None and output.decision in ("response", "margin", "argmax"):
            return steps, None
        names = [name for name, _ in steps]
        if self.operator != "v3" or names[-1:] != ["single"]:
            limits.refuse(
                "it chooses labels as TreeEnsembleClassifier does, which version 5 has not",
                "use operator='v3', or margins=True",
            )
        at_most_one = [n for n in names[:-1] if n not in PAIRS]
        if len(at_most_one) > 1 or set(at_most_one) - set(TRANSFORMS):
            limits.unknown_link()
        return [(n, []) for n in at_most_one], {
            "labels": labels,
            "pair": pair,
            "output": 1 if pair == "beside_zero" else None if pair is None else 0,
        }

    def _classifier(self, graph, weights, computes, transform, base, steps, how) -> list:
        """TreeEnsembleClassifier, which makes labels and scores."""
        from onnx import TensorProto

        labels = how["labels"]
        if steps:
            self.limits.refuse(
                "sums that are divided, multiplied or added to before labels are chosen",
                "write the margins alone, with margins=True",
            )
        if how["output"] is not None:
            weights = [(node, how["output"], w) for node, _, w in weights]
        if how["pair"] == "opposite" and all(w >= 0 for _, _, w in weights):
            # Where no weight is negative ONNX Runtime takes scores for probabilities and decides
            # at 0.5, so a leaf that nothing reaches has one that is.
            graph, node = _with_unreachable_leaf(graph)
            weights = [*weights, (node - 1, how["output"], 0.0), (node, how["output"], -1.0)]
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

    def _apply(self, name: str, params: list[float]) -> None:
        """Add the operator of a step."""
        constant = np.array(params, self.dtype)
        arithmetic = {
            "add": ("Add", False),
            "subtract": ("Sub", False),
            "subtract_from": ("Sub", True),
            "multiply": ("Mul", False),
            "divide": ("Div", False),
            "divide_into": ("Div", True),
        }
        if name in ("single", "double"):
            self.cast(np.float32 if name == "single" else np.float64)
        elif name in arithmetic:
            operator, first = arithmetic[name]
            self.step(operator, constant, first=first)
        elif name in ("negate", "exp", "sigmoid"):
            self.step({"negate": "Neg", "exp": "Exp", "sigmoid": "Sigmoid"}[name])
        elif name == "normalize":
            self.step("Normalizer", norm="L1")
        else:
            self.limits.unknown_link()

    def _outputs(self, output: Any) -> list:
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


def _end_weights(values: np.ndarray, n_ends: int) -> list[list[float]]:
    """The weights of the trees of base scores: one tree of all outputs, or one for each."""
    return [values.tolist()] if n_ends == 1 else [[v] for v in values.tolist()]


def _copied(
    graph: Graph, values: np.ndarray, ends: list, n_before: int, n_leaves: int, k: int
) -> tuple[Graph, list]:
    """The graph with every tree but those of base scores once for each output."""
    is_end = graph.leaf >= n_leaves
    parts, weights, at, tree = [], [], 0, 0
    middle = ~is_end

    def add(which: np.ndarray, output_of) -> None:
        nonlocal at, tree
        place = np.full(len(graph.tree), -1)
        place[which] = at + np.arange(len(which))
        trees = graph.tree[which]
        part = {
            name: getattr(graph, name)[which]
            for name in ("mode", "feature", "value", "nan_is_yes", "leaf")
        }
        for name in ("yes", "no"):
            side = getattr(graph, name)[which]
            part[name] = np.where(side >= 0, place[np.maximum(side, 0)], -1)
        part["tree"] = tree + trees - trees[0]
        part["members"] = {int(place[n]): m for n, m in graph.members.items() if place[n] >= 0}
        for node in which[graph.mode[which] == LEAF].tolist():
            weights.append((int(place[node]), *output_of(int(graph.leaf[node]))))
        parts.append(part)
        at += len(which)
        tree = int(part["tree"][-1]) + 1

    def of_end(leaf: int) -> tuple[int, float]:
        return (leaf - n_leaves) % k, ends[leaf - n_leaves][0]

    first = np.arange(n_before)
    if len(first):
        add(first, of_end)
    which = np.flatnonzero(middle)
    for o in range(k):
        if len(which):
            add(which, lambda leaf, o=o: (o, float(values[leaf, o])))
    last = np.flatnonzero(is_end & (np.arange(len(is_end)) >= n_before))
    if len(last):
        add(last, of_end)
    names = ("tree", "mode", "feature", "value", "yes", "no", "nan_is_yes", "leaf")
    members = {n: m for part in parts for n, m in part["members"].items()}
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in names}
    return type(graph)(**arrays, members=members), weights


def _with_unreachable_leaf(graph: Graph) -> tuple[Graph, int]:
    """The graph with one more tree: a test that every x passes, and its two leaves."""
    n = len(graph.tree)
    tree = int(graph.tree[-1]) + 1 if n else 0
    more = {
        "tree": [tree] * 3,
        "mode": [0, LEAF, LEAF],
        "feature": [0, 0, 0],
        "value": [np.inf, 0.0, 0.0],
        "yes": [n + 1, -1, -1],
        "no": [n + 2, -1, -1],
        "nan_is_yes": [True, False, False],
        "leaf": [-1, -1, -1],
    }
    arrays = {name: np.concatenate([getattr(graph, name), more[name]]) for name in more}
    arrays["nan_is_yes"] = arrays["nan_is_yes"].astype(bool)
    return type(graph)(**arrays, members=graph.members), n + 2
