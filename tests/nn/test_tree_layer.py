"""`TreeLayer`: sums by paths, gradients, scales, hardening and the way back."""

from __future__ import annotations

import copy
import io
import itertools
import pickle
import threading

import numpy as np
import pytest
import torch

import decision_machines as dm
from decision_machines.errors import InputError
from decision_machines.nn import TreeLayer

BOTH = pytest.mark.parametrize("form", ["oblique", "axis"])


def layer_of(form, *, n=5, k=3, depth=3, trees=4, dtype=torch.float64, rows=200, **options):
    layer = TreeLayer(n, k, depth, trees, form=form, dtype=dtype, **options)
    layer(torch.randn(rows, n, dtype=dtype) * 3 + 1)  # something seen, for `eval`
    return layer.eval()


def by_templates(layer, x):
    """The same sum from the templates B of the hardened structure: Π σ(±q) along each path."""
    machine = layer.harden(axis_aligned=False)
    B = torch.from_numpy(machine.B.toarray()).to(x.dtype)
    z = layer.inputs(x)
    g = z @ layer.selection().t()
    if layer.form == "oblique":
        g = layer.gates(g)
    q = (g - layer.t) * layer.slopes()
    terms = torch.nn.functional.logsigmoid(B[None] * q[:, None])
    p = torch.where(B != 0, terms, 0.0).sum(-1).exp()
    return p @ layer.values(), p


@BOTH
@pytest.mark.parametrize("leaves", ["values", "probabilities"])
def test_the_answer_is_the_product_of_gates_along_templates(form, leaves):
    layer, x = layer_of(form, leaves=leaves), torch.randn(50, 5, dtype=torch.float64)
    expected, p = by_templates(layer, x)
    assert torch.allclose(layer(x), expected, atol=1e-12)
    assert torch.allclose(layer.weights(x).flatten(1), p, atol=1e-12)
    if leaves == "probabilities":
        assert torch.allclose(layer(x).sum(-1), torch.ones(50, dtype=torch.float64))


@BOTH
@pytest.mark.parametrize("is_training", [False, True])
def test_gradients_are_those_of_finite_differences(form, is_training):
    layer = layer_of(form, depth=2, trees=2, k=2).train(is_training)
    names = [name for name, _ in layer.named_parameters()]
    x = torch.randn(6, 5, dtype=torch.float64, requires_grad=True)
    state = copy.deepcopy(layer.state_dict())

    def answer(x, *parts):
        layer.load_state_dict(state)
        return torch.func.functional_call(layer, dict(zip(names, parts, strict=True)), (x,))

    parts = [part.detach().clone().requires_grad_() for part in layer.parameters()]
    assert torch.autograd.gradcheck(answer, (x, *parts))


@BOTH
def test_the_kernel_and_plain_torch_agree(form):
    layer, x = layer_of(form, dtype=torch.float32), torch.randn(70, 5)
    native = layer(x)
    plain = torch.func.functional_call(layer, {}, (x,))
    by_map = torch.func.vmap(lambda row: layer(row[None])[0])(x)
    assert torch.allclose(native, plain, atol=1e-5)
    assert torch.allclose(native, by_map, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("rows", "columns"), [(0, 3), (1, 1), (15, 2), (16, 33), (17, 7), (100, 40)]
)
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e3, 1e30])
def test_native_entmax_is_torchs_row_by_row(dtype, rows, columns, scale):
    from decision_machines import _native
    from decision_machines.relax.sparse import entmax15

    logits = torch.randn(rows, columns, dtype=dtype) * scale
    bits = "32" if dtype == torch.float32 else "64"
    start, column, weight = getattr(_native, f"entmax15_{bits}")(logits.numpy())
    found = np.zeros((rows, columns))
    found[np.repeat(np.arange(rows), np.diff(start)), column] = weight
    close = 1e-5 if dtype == torch.float32 else 1e-12
    assert np.allclose(found, entmax15(logits).numpy(), atol=close)
    # A row is the same whatever rows stand beside it.
    for i in range(min(rows, 20)):
        own = getattr(_native, f"entmax15_{bits}")(logits[i : i + 1].numpy())
        assert np.allclose(own[2], weight[start[i] : start[i + 1]], atol=close)


@BOTH
@pytest.mark.parametrize("depth", [1, 4, 12])
@pytest.mark.parametrize("width", [1, 7, 4096])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_losses_and_gradients_are_finite_from_random_starts(form, depth, width, scale):
    if depth == 12 and width == 4096:
        width = 600  # the same code; 4 095 tests × 4 096 weights take seconds
    layer = TreeLayer(width, 2, depth, 1, form=form)
    x = (torch.randn(16, width) + 1) * scale
    loss = (layer(x) ** 2).mean()
    loss.backward()
    assert torch.isfinite(loss)
    for name, part in layer.named_parameters():
        assert torch.isfinite(part.grad).all(), name
    moved = layer.W if form == "oblique" else layer.t
    assert (moved.grad != 0).any()
    assert torch.isfinite(layer.eval()(x * 1e3)).all()


def test_constant_columns_single_rows_and_gaps_are_no_nan():
    layer = TreeLayer(3, 1, 2, 2)
    x = torch.randn(8, 3)
    x[:, 1] = 1e6
    x[0, 0] = float("nan")
    assert torch.isfinite(layer(x)).all()
    assert torch.isfinite(layer(x[:1])).all()  # in training: one row has no spread
    assert torch.isfinite(layer.eval()(x)).all()
    assert layer(x[:0]).shape == (0, 1)


@BOTH
@pytest.mark.parametrize("leaves", ["values", "probabilities"])
def test_the_machine_answers_as_the_hard_layer_on_every_row(form, leaves):
    layer = layer_of(form, leaves=leaves)
    x = torch.randn(500, 5, dtype=torch.float64) * 3 + 1
    machine = layer.harden()
    assert machine.is_oblique == (form == "oblique")
    assert np.array_equal(machine.apply(x.numpy()), layer.exit_leaves(x).numpy())
    assert np.allclose(machine.margin(x.numpy()), layer.hard(x).detach().numpy(), atol=1e-14)
    if leaves == "probabilities":
        assert np.array_equal(machine.predict(x.numpy()), layer.hard(x).argmax(-1).numpy())


def test_gaps_go_where_the_mean_goes_in_the_axis_aligned_machine():
    layer = layer_of("axis")
    x = torch.randn(300, 5, dtype=torch.float64)
    x[torch.rand(x.shape) < 0.3] = float("nan")
    assert np.array_equal(layer.harden().apply(x.numpy()), layer.exit_leaves(x).numpy())


@BOTH
def test_a_small_temperature_is_the_hard_layer(form):
    layer = layer_of(form)
    x = torch.randn(300, 5, dtype=torch.float64)
    machine = layer.harden(axis_aligned=False)
    layer.tau = 1e-7
    assert layer.tau == pytest.approx(1e-7)
    assert np.abs(layer(x).detach().numpy() - machine.margin(x.numpy())).max() < 1e-6


@BOTH
def test_soften_is_the_way_back(form):
    layer = layer_of(form)
    machine = layer.harden()
    x = np.random.default_rng(0).normal(1, 3, (400, 5))
    for data in (None, x):
        again = TreeLayer.soften(machine, data=data, dtype=torch.float64)
        rows = torch.from_numpy(x)
        assert np.array_equal(again.exit_leaves(rows).numpy(), machine.apply(x))
        assert np.allclose(again.hard(rows).detach().numpy(), machine.margin(x))
        assert np.array_equal(again.harden().apply(x), machine.apply(x))


def test_any_tree_becomes_a_layer_filled_up_to_a_complete_one():
    from sklearn.datasets import load_iris
    from sklearn.ensemble import RandomForestRegressor

    X, y = load_iris(return_X_y=True)
    forest = RandomForestRegressor(5, max_depth=6, random_state=0).fit(X, y)
    machine = dm.convert(forest)
    layer = TreeLayer.soften(machine, data=X, slope=1e4, dtype=torch.float64)
    rows = torch.from_numpy(X)
    assert np.allclose(layer.hard(rows).detach().numpy()[:, 0], forest.predict(X))
    assert np.allclose(layer.harden().predict(X), forest.predict(X))


@BOTH
def test_training_learns_and_seeds_reproduce(form):
    def trained():
        torch.manual_seed(3)
        x = torch.randn(300, 4)
        y = ((x[:, 0] > 0) ^ (x[:, 1] > 0.5)).long()
        layer = TreeLayer(4, 2, 3, 4, form=form, leaves="probabilities")
        optimiser = torch.optim.Adam(layer.parameters(), 0.1)
        for _ in range(60):
            loss = torch.nn.functional.nll_loss(layer(x).log(), y)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        hard = (layer.eval().hard(x).argmax(-1) == y).float().mean()
        return loss.item(), hard.item()

    first = trained()
    assert first[0] < 0.3
    assert first[1] > 0.9
    assert trained() == first


# ---------------------------------------------------------------- leaves in closed form


def test_class_leaves_raise_the_likelihood_of_every_tree_at_each_step():
    layer = layer_of("oblique", leaves="probabilities", trees=3)
    x = torch.randn(300, 5, dtype=torch.float64)
    y = (x[:, 0] * 2).round().clamp(0, 2).long()

    def likelihoods():
        p, share = layer.weights(x), layer.V.softmax(-1).reshape(3, 8, 3)
        return (p * share[:, :, y].permute(2, 0, 1)).sum(-1).log().mean(0).detach()

    seen = [likelihoods()]
    for _ in range(4):
        layer.update_leaves([(x[:100], y[:100]), (x[100:], y[100:])], steps=1)
        seen.append(likelihoods())
    for before, after in itertools.pairwise(seen):
        assert (after >= before - 1e-9).all()
    assert (seen[-1] > seen[0] + 0.05).all()


def test_value_leaves_are_least_squares():
    layer = layer_of("oblique", k=2, trees=2, depth=2)
    x, y = (torch.randn(100, size, dtype=torch.float64) for size in (5, 2))
    layer.update_leaves([(x, y)], ridge=1e-12)
    p = layer.weights(x).flatten(1).detach().numpy()
    best = p @ np.linalg.lstsq(p, y.numpy(), rcond=None)[0]
    assert np.allclose(layer(x).detach().numpy(), best, atol=1e-4)


# ---------------------------------------------------------------- an ordinary module


@BOTH
def test_copies_pickles_and_states_answer_alike(form):
    layer, x = layer_of(form), torch.randn(20, 5, dtype=torch.float64)
    expected = layer(x)
    other = TreeLayer(5, 3, 3, 4, form=form, dtype=torch.float64).eval()
    assert not torch.allclose(other(x), expected)
    other.load_state_dict(layer.state_dict())
    stored = io.BytesIO()
    torch.save(layer, stored)
    stored.seek(0)
    for twin in (
        other,
        copy.deepcopy(layer),
        pickle.loads(pickle.dumps(layer)),
        torch.load(stored, weights_only=False),
    ):
        assert torch.equal(twin(x), expected)


@BOTH
def test_threads_share_a_layer(form):
    layer = layer_of(form)
    batches = [torch.randn(300, 5, dtype=torch.float64) for _ in range(4)]
    expected, found = [layer(x) for x in batches], [None] * 4
    fresh = copy.deepcopy(layer)

    def work(i):
        found[i] = fresh(batches[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))


@BOTH
def test_compiled_and_leading_dimensions(form):
    layer, x = layer_of(form), torch.randn(2, 3, 5, dtype=torch.float64)
    assert layer(x).shape == (2, 3, 3)
    assert torch.equal(layer(x[1]), layer(x)[1])
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    assert torch.allclose(compiled(x), layer(x))


def test_half_precision_and_autocast_run():
    layer = layer_of("oblique", dtype=torch.float32)
    x = torch.randn(9, 5)
    expected = layer(x)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.allclose(layer(x).float(), expected, atol=0.1)
    assert layer.to(torch.bfloat16)(x.bfloat16()).dtype == torch.bfloat16


def test_on_another_device_nothing_is_asked_of_the_cpu():
    layer = TreeLayer(4, 2, 3, 2, device="meta")
    assert layer(torch.randn(3, 4, device="meta")).device.type == "meta"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"in_features": 0}, "in_features=0"),
        ({"in_features": 2.5}, "in_features=2.5"),
        ({"out_features": -1}, "out_features=-1"),
        ({"depth": 0}, "depth=0"),
        ({"depth": 40}, "at most 16"),
        ({"trees": True}, "trees=True"),
        ({"form": "straight"}, "oblique, axis"),
        ({"leaves": "x"}, "values, probabilities"),
        ({"norm": None}, "batch, fixed"),
        ({"tau": 0}, "tau=0"),
    ],
)
def test_bad_sizes_are_named(arguments, words):
    with pytest.raises(InputError, match=words):
        TreeLayer(**{"in_features": 3, "out_features": 2, "depth": 2, "trees": 2, **arguments})


def test_bad_inputs_are_named():
    layer = TreeLayer(3, 2, 2, 2)
    for x, words in (
        (np.zeros((2, 3)), "not a tensor"),
        (torch.zeros(2, 4), "takes 3 features"),
        (torch.zeros(2, 3, dtype=torch.long), "dtype"),
        (torch.zeros(2, 3, device="meta"), "meta"),
    ):
        with pytest.raises(InputError, match=words):
            layer(x)
    with pytest.raises(InputError, match="no rows"):
        layer.update_leaves([])
    with pytest.raises(InputError, match="oblique tests"):
        layer.harden(axis_aligned=True)
