"""C++ kernels of decision_machines."""

from collections.abc import Callable, Iterable, Sequence
import enum
from typing import Annotated, Any, overload

import numpy
import numpy.typing
from numpy.typing import NDArray


@overload
def libm(function: str, x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def libm(function: str, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

def layout(left: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], right: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], node_start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], int, int, int]:
    """
    Nodes of tests and of leaves, children, where the tests of trees start; fault, tree, node.
    """

def check(children: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], test_start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], depth: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], first_leaf: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], n_leaves: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], leaf_depth: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')]) -> tuple[int, int, int]:
    """
    Measure trees; the rule that they break (0: none), the test and the side.
    """

def templates(children: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], test_start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], first: int, last: int, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], data: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Templates of some trees, as CSR rows."""

def template_product(children: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], h: Annotated[NDArray[numpy.int8], dict(shape=(None, None), order='C', device='cpu', writable=False)], p: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """The product of one tree's templates with h."""

class LabelPositions:
    """Labels of a feature as positions, each distinct one looked up once."""

    def __init__(self, known: dict, ask: Callable, only_text: bool) -> None: ...

    def of(self, label: object) -> float: ...

    def objects(self, values: object, out: object) -> None:
        """Positions of an array of objects into `out`, float64."""

    def text(self, data: object | None, offsets: object, wide: bool, valid: object | None, first: int, out: object) -> None:
        """The same of Arrow text, from row `first` of its buffers on."""

def column_ranks(X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], rank: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')]) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
    """
    Ranks of the values of every column, -1 where one is missing, into `rank`; the values of all ranks, and where each column's start.
    """

def distinct_rows(X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
    """
    Rows of (X, y) in an order that their content decides, equal ones side by side, and the places in it where another row starts.
    """

class RowReader:
    """One row by names or in order, as an array."""

    def __init__(self, names: Iterable[str] | None, labels: list[LabelPositions | None], single: bool, labels_in_lists: bool) -> None: ...

    def read(self, row: object) -> numpy.typing.NDArray[Any] | None:
        """An array of one row, or None where it takes more than this to read."""

def targets() -> list[str]:
    """Targets that this processor runs, from the plainest to the fastest."""

class Kind(enum.Enum):
    """A way to evaluate trees."""

    auto = 0
    """For each tree the cheapest one of select, record, twig and deep."""

    select = 1
    """All tests of a tree as bitmaps, then selects between them."""

    record = 2
    """Records of 32 tests, the top of large trees by selects."""

    twig = 3
    """The top by selects, then walks over nodes of 4 bytes."""

    deep = 4
    """A walk over coded columns, the top of large trees by selects."""

    pack = 5
    """One row at a time, 64 tests to a register of bytes."""

    raw = 6
    """One row at a time, a walk over the columns themselves."""

    oblique = 7
    """Tests that weigh several columns, a level at a time."""

class Machine:
    """
    A machine's arrays as the engine reads them: checked and held, not copied.
    """

    def __init__(self, *, columns: Machine.Columns, sets: Machine.Sets | None = None, trees: Machine.Trees, tests: Machine.Tests, output: Machine.Output, linear: Machine.Linear | None = None) -> None: ...

    class Aggregate(enum.Enum):
        """What becomes of the values of all trees."""

        sum = 0

        min = 1

        max = 2

    class Columns:
        """How raw features become the columns z."""

        def __init__(self, *, n_features: int, feature: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], rule: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], single: bool, integers_single: bool, missing_value: float, absent: float) -> None: ...

    class Sets:
        """Sets of categories, one for each column of members."""

        def __init__(self, *, start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], members: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], answers: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], outside: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], negative_fractions: bool, whole: bool) -> None: ...

    class Trees:
        """The structure of the trees."""

        def __init__(self, *, children: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], test_start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], feeds: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    class Weights:
        """The terms of oblique tests, by column."""

        def __init__(self, *, start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], column: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    class Tests:
        """Thresholds, and what is compared with them."""

        def __init__(self, *, t: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], missing: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], selection: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, weights: Machine.Weights | None = None) -> None: ...

    class Output:
        """Leaf values, and how they become margins."""

        def __init__(self, *, V: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)] | Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], narrow: bool, base: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], base_first: bool, divisor: float, scale: float, aggregate: Machine.Aggregate) -> None: ...

    class Linear:
        """Leaves that are linear functions of x."""

        def __init__(self, *, start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], feature: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], intercept: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], coefficient: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], constant: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], single: bool) -> None: ...

class PlanDescription:
    """How an engine runs its machine."""

    @property
    def target(self) -> str: ...

    @property
    def kernels(self) -> list[str]:
        """Names of kinds, by tree."""

    @property
    def groups(self) -> list[tuple[int, int]]:
        """First tree and the one after the last."""

    @property
    def n_sections(self) -> int:
        """Codings of the columns."""

    @property
    def n_distinct_tests(self) -> int: ...

    @property
    def n_selects(self) -> int: ...

    @property
    def n_bytes(self) -> int: ...

    @property
    def n_few_bytes(self) -> int:
        """Of the plan for few rows, if made."""

class Engine:
    """A machine compiled for one target."""

    def __init__(self, machine: Machine, target: str = 'auto', kind: Kind = Kind.auto) -> None: ...

    def array(self, X: object, out: object, wants_leaves: bool, n_threads: int) -> bool:
        """
        Margins or leaves of a two-dimensional array into `out`; False where it is not read.
        """

    def features(self, columns: Sequence[object], n_rows: int, out: object, wants_leaves: bool, n_threads: int) -> bool:
        """
        The same of one-dimensional arrays, one for each feature, or tuples: an array, positions of the labels that it counts, a mask of missing rows, bits of rows that are not missing and the first row's among them; None for what there is not.
        """

    def sparse(self, data: object, indices: object, indptr: object, out: object, wants_leaves: bool, n_threads: int) -> bool:
        """The same of compressed sparse rows, without duplicates."""

    def row(self, X: object) -> numpy.typing.NDArray[Any] | None:
        """Margins of one row, or None where X is not a NumPy array of one row."""

    def describe(self) -> PlanDescription: ...

class OneRow:
    """One row by names or in order, read and answered."""

    def __init__(self, reader: RowReader, engine: Engine) -> None: ...

    def margins(self, row: object) -> numpy.typing.NDArray[Any] | None:
        """Margins of one row, or None where it takes more than this to read it."""

    def pair(self, row: object, sigmoid: object, slope: float, least: float) -> numpy.typing.NDArray[Any] | None:
        """Probabilities of two classes by a function that overwrites an array."""

class LookUpTables:
    """Tables of statistics, ready to be looked up."""

    def read(self, x: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], z: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], n_threads: int) -> None:
        """
        Statistics of each row: x holds a row for each input, z one for each column.
        """

def look_up_tables(n_inputs: int, column_table: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], column_statistic: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], term_start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], input: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], kind: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], number: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], missing: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], adds: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], label_start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], label_adds: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], key_start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], keys: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_statistics: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> LookUpTables:
    """The tables of a machine's look-up columns."""

class SoftPlan:
    """Trees whose gates are soft; their structure alone."""

    def __init__(self, children: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], test_start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], selection: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], missing: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], feeds: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_columns: int, n_outputs: int) -> None: ...

    @property
    def n_outputs(self) -> int: ...

    @property
    def n_columns(self) -> int: ...

    def forward32(self, target: str, z: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu', writable=False)], t: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], nudge: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], slope: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], V: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], skip: float, n_threads: int, out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], mixes: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]] | None = None) -> None:
        """The sum over all trees into `out`."""

    def backward32(self, target: str, z: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu', writable=False)], t: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], nudge: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], slope: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], V: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], skip: float, n_threads: int, G: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], dt: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], dslope: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], dV: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], dz: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu')] | None, mixes: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]] | None = None, dmix: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')] | None = None) -> None:
        """Gradients into dt, dslope, dV and dz, from that of out."""

    def forward64(self, target: str, z: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], t: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], nudge: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], slope: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], V: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], skip: float, n_threads: int, out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], mixes: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]] | None = None) -> None:
        """The sum over all trees into `out`."""

    def backward64(self, target: str, z: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], t: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], nudge: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], slope: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], V: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], skip: float, n_threads: int, G: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], dt: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], dslope: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], dV: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], dz: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu')] | None, mixes: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]] | None = None, dmix: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> None:
        """Gradients into dt, dslope, dV and dz, from that of out."""

def entmax15_32(logits: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> tuple:
    """1.5-entmax by row: starts, columns and weights of what is not 0."""

def entmax15_gradient_32(start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], column: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], dw: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], dlogits: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """The logits' gradient from that of the weights."""

def soft_exp32(target: str, x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """The kernels' own exponential."""

def soft_gates32(target: str, q: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], left: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], right: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """The kernels' own logistic gates."""

def entmax15_64(logits: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> tuple:
    """1.5-entmax by row: starts, columns and weights of what is not 0."""

def entmax15_gradient_64(start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], column: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], dw: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], dlogits: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """The logits' gradient from that of the weights."""

def soft_exp64(target: str, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """The kernels' own exponential."""

def soft_gates64(target: str, q: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], left: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], right: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """The kernels' own logistic gates."""

class ClassTrees:
    """The training step of soft trees that classify."""

    def __init__(self, target: str, n_trees: int, depth: int, n_features: int, n_classes: int) -> None: ...

    def gradient(self, X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], target: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], beta: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], least: float, parameters: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> float:
        """Write the gradient; the mean loss."""

    def update(self, gradient: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], parameters: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], first: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], second: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], rate: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], decay: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], is_unit: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], keep_first: float, keep_second: float) -> None:
        """
        One step of Adam, then decay, soft thresholds and lengths of the tests' weights.
        """

class RoutedPlan:
    """A tree of experts, laid out for inference."""

    def __init__(self, target: str, tests: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], thresholds: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], experts: tuple[Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)]], dense: tuple[Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)]] | None, certainty: float, is_classes: bool) -> None: ...

    def run(self, x: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None))]:
        """Answers of (m, n) rows."""

    def route(self, x: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> tuple:
        """The expert of each row, and whether it was deferred."""

class TreeSearches:
    """Local searches for axis-aligned trees over the same rows."""

    def __init__(self, rank: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order='C', device='cpu', writable=False)], n_ranks: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], label: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, y: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int) -> None: ...

    def add(self, seed: int, max_leaves: int, max_depth: int, least: int, temperature: float, n_moves: int, objective: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], leaf_cost: float = 0.0, feature_cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, monotone: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None:
        """
        One more search; `objective` is gini, entropy, error, ridge, the loss of numbers (0 squared, 1 Poisson, 2 quantile) and the quantile.
        """

    def adopt(self, i: int, left: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], right: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], feature: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], cut: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], missing_left: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Search i goes on from this tree, by node in preorder."""

    def drop(self, i: int) -> None:
        """Free the memory of search i, which has ended."""

    def out_of_bag(self, n_trees: int, least: int, n_tried: int, seed: int, n_threads: int) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))]]:
        """Sums (m k,) over a forest's trees that left a row out, counts (m,)."""

    def polish(self, i: int) -> None:
        """Every test of search i's best tree, again."""

    def grow(self, i: int, in_bins: bool = False) -> None:
        """
        Search i starts from the greedy tree; with `in_bins` at most 255 cuts a feature.
        """

    def advance(self, moves: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> None:
        """Search i does moves[i] moves."""

    def aim(self, i: int, objective: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Another objective from now on."""

    def loss(self, i: int) -> float:
        """Of search i's best tree."""

    def tree(self, i: int, least: numpy.typing.NDArray[numpy.float64], largest: numpy.typing.NDArray[numpy.float64], start: numpy.typing.NDArray[numpy.int64]) -> dict[str, numpy.typing.NDArray[Any]]:
        """
        Search i's best tree, by node; least, largest (of each rank), start (of features).
        """

    def best_test(self, ids: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], lean: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, least: int, objective: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[float, int, int, bool]:
        """
        Loss, feature, cut, missing_left of the best test for rows `ids`; with `lean`, of the one they prefer.
        """

    def best_two_levels(self, ids: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], least: int, objective: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[float, Annotated[NDArray[numpy.int32], dict(shape=(None,))]]:
        """
        Loss up to a constant, and (feature, cut) of the best first test for rows `ids` and of those on its left and right; −1 for none.
        """

def exit_nodes(left: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], right: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], feature: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], t: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], missing_left: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
    """The node where each row of X leaves a tree."""

def monotone_values(left: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], right: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], feature: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], t: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], missing_left: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], sign: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], value: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """
    Values by node, those of leaves changed until they never fall (sign +1) or rise (−1).
    """

class OptimalSearch:
    """Branch and bound for the best small tree."""

    def __init__(self, rank: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], label: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, y: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, loss: str, depth: int, leaves: int, least: int, penalty: float, slack: float, is_whole: bool, limit: float, target: str) -> None: ...

    def run(self, seconds: float, n_threads: int, told: Callable) -> bool:
        """
        Search until all is proven (True) or the time is up (False); told(value, bound).
        """

    def state(self) -> tuple[float, float, int]:
        """
        Value of the best tree found, bound of all trees, cuts of the root tried.
        """

    def tree(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]:
        """
        Feature (-1: a leaf), rank below and above the cut of each node of a complete tree.
        """

class ShapleyForest:
    """A machine's trees, checked and held."""

    def __init__(self, children: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], test_start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], column: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], slot: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], t: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], missing: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], share: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], feeds: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_columns: int, n_slots: int, n_outputs: int) -> None: ...

class ShapleyPlan64:
    """Trees prepared for Shapley values by paths."""

    def __init__(self, forest: ShapleyForest, pairs: bool, point: float | None = None) -> None: ...

    @property
    def n_bytes(self) -> int: ...

    def values(self, target: str, z: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], features: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], factor: float, n_threads: int, out: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu')], pairs: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None, None), order='C', device='cpu')] | None) -> None:
        """Values of rows are added to `out`, interactions to `pairs`."""

class ShapleyTables64:
    """Symmetric trees whose Shapley values are looked up."""

    def __init__(self, start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], column: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], t: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], missing: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], place_start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], places: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], table: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_columns: int, n_slots: int, n_outputs: int) -> None: ...

    def values(self, target: str, z: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], features: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], factor: float, n_threads: int, out: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu')]) -> None:
        """Values of rows are added to `out`."""

class ShapleyPlan32:
    """Trees prepared for Shapley values by paths."""

    def __init__(self, forest: ShapleyForest, pairs: bool, point: float | None = None) -> None: ...

    @property
    def n_bytes(self) -> int: ...

    def values(self, target: str, z: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], features: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], factor: float, n_threads: int, out: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu')], pairs: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu')] | None) -> None:
        """Values of rows are added to `out`, interactions to `pairs`."""

class ShapleyTables32:
    """Symmetric trees whose Shapley values are looked up."""

    def __init__(self, start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], column: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], t: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], missing: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], place_start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], places: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], table: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_columns: int, n_slots: int, n_outputs: int) -> None: ...

    def values(self, target: str, z: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], features: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], factor: float, n_threads: int, out: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu')]) -> None:
        """Values of rows are added to `out`."""

class ShapleyBackground:
    """Trees prepared for Shapley values against a background of rows."""

    def __init__(self, forest: ShapleyForest, z: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

    @property
    def n_bytes(self) -> int: ...

    @property
    def n_deep(self) -> int: ...

    def values(self, target: str, z: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], features: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], factor: float, n_threads: int, out: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu')], pairs: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None, None), order='C', device='cpu')] | None) -> None:
        """
        Values of rows are added to `out`, and interactions, off the diagonal, to `pairs`.
        """
