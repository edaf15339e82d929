"""Modules among modules: compiled, exported, saved, cast, batched."""

import copy
import io
from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
import torch
from relax_forests import exit_weights, make_forest, make_rows
from strategies import make_machine

import decision_machines as dm
from decision_machines.relax import sparse
from decision_machines.relax.forms import FORMS
from decision_machines.relax.module import SoftMachine
from decision_machines.relax.temperature import Annealing

UNROLLED = {"entmax", "fusedmax", "oscarmax"}
"""Forms whose rounds are unrolled, 50 of them in entmax, which takes seconds to compile."""
ALIKE = {"sigsoftmax", "weighted_softmax", "gumbel", "sampled", "sparsegen", "sparsehourglass"}
"""Forms that add a line to one of the others."""
QUICK = [form for form in FORMS if form not in UNROLLED | ALIKE]
OPTIONS = [
    *({"form": form} for form in FORMS),
    {"form": "soft_tree", "selection": "oblique", "learn": ("S", "t")},
    {"form": "soft_tree", "selection": "sparse", "learn": ("S", "t")},
    {"form": "soft_tree", "selection": "hard", "learn": ("S", "t")},
    {"form": "softmax", "learn": ("keys", "V")},
    {"form": "linear", "feature_map": "random", "n_random": 4},
]


def name_of(options):
    return "-".join(str(value) for value in options.values())


def categorical_machine():
    return make_machine([5, 1, 3], np.random.default_rng(5), n_outputs=2, dtype=np.float32)


def categorical_rows(m, seed=0):
    X = np.random.default_rng(seed).integers(-2, 12, (m, 3)).astype(np.float32)
    X[0, 0], X[-1, 1] = np.nan, np.nan
    return torch.from_numpy(X)


@pytest.mark.parametrize("form", QUICK)
def test_compiled_modules_answer_and_learn_alike(form):
    torch._dynamo.reset()
    net, X = categorical_machine().soften(form).eval(), categorical_rows(6)
    compiled = torch.compile(net, fullgraph=True, backend="aot_eager")
    answer = compiled(X)
    torch.testing.assert_close(answer, net(X))
    answer.square().sum().backward()
    grads = {
        name: part.grad.clone() for name, part in net.named_parameters() if part.grad is not None
    }
    net.zero_grad()
    net(X).square().sum().backward()
    for name, grad in grads.items():
        torch.testing.assert_close(grad, net.get_parameter(name).grad)


@pytest.mark.slow
def test_modules_compile_to_native_code():
    torch._dynamo.reset()
    net, X = dm.figure_one().soften("soft_tree"), make_rows(6)
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(net, fullgraph=True)(X), net(X))


@pytest.mark.parametrize("form", QUICK)
def test_exported_programs_answer_alike_for_any_number_of_rows(form):
    net = categorical_machine().soften(form).eval()
    rows = torch.export.Dim("rows", min=2)
    program = torch.export.export(net, (categorical_rows(6),), dynamic_shapes=({0: rows},))
    torch.testing.assert_close(
        program.module()(categorical_rows(9, seed=1)), net(categorical_rows(9, 1))
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("options", OPTIONS, ids=name_of)
def test_onnx_runtime_answers_alike(options):
    net = categorical_machine().soften(dtype=torch.float32, **options).eval()
    file = io.BytesIO()
    torch.onnx.export(
        net,
        (categorical_rows(6),),
        file,
        dynamo=False,
        opset_version=18,
        input_names=["X"],
        dynamic_axes={"X": {0: "rows"}},
    )
    session = onnxruntime.InferenceSession(file.getvalue())
    X = categorical_rows(40, seed=2)
    np.testing.assert_allclose(
        session.run(None, {"X": X.numpy()})[0], net(X).detach(), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("form", FORMS)
def test_state_survives_saving(form):
    machine, X = make_forest([5, 1, 9], seed=1), make_rows(8)
    net = machine.soften(form, learn=("t", "slope", "V", "tau"))
    with torch.no_grad():
        for part in net.parameters():
            part.add_(0.1)
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    fresh = machine.soften(form)
    fresh.load_state_dict(torch.load(file))
    assert torch.equal(fresh(X), net(X))
    assert torch.equal(copy.deepcopy(net)(X), net(X))


@pytest.mark.parametrize("form", FORMS)
def test_leading_dimensions_are_kept(form):
    machine, X = make_forest([5, 1, 9], seed=1), make_rows(24)
    net = machine.soften(form).eval()
    answer, weights = net(X, return_weights=True)
    for lead in ((2, 3, 4), (24, 1), (1, 24)):
        shaped, shaped_weights = net(X.reshape(*lead, 4), return_weights=True)
        torch.testing.assert_close(shaped, answer.reshape(*lead, -1))
        torch.testing.assert_close(shaped_weights, weights.reshape(*lead, -1))
    torch.testing.assert_close(net(X[0]), answer[0])
    assert net(X[:0]).shape == (0, machine.n_outputs)


@pytest.mark.parametrize("form", FORMS)
def test_every_float_and_autocast(form):
    machine, X = make_forest([5, 1, 9], seed=1), make_rows(50)
    exact = machine.soften(form, tau=0.5).eval()(X).detach()
    single = machine.soften(form, tau=0.5, dtype=torch.float32).eval()
    assert single(X.float()).dtype == torch.float32
    torch.testing.assert_close(single(X.float()).double(), exact, atol=1e-4, rtol=1e-4)
    assert single.double()(X).dtype == torch.float64
    single = single.float()
    with torch.autocast("cpu", torch.bfloat16):
        answer = single(X.float())
        answer.float().square().mean().backward()
    assert torch.isfinite(answer).all()
    torch.testing.assert_close(answer.double().detach(), exact, atol=0.1, rtol=0.1)
    assert torch.isfinite(single.leaves.V.grad).all()


@pytest.mark.parametrize("form", FORMS)
def test_no_tensor_is_made_on_another_device(form):
    machine = categorical_machine()
    net = machine.soften(form).to("meta")
    assert isinstance(net, SoftMachine)
    answer = net(torch.empty(6, 3, device="meta"))
    assert answer.device.type == "meta"
    assert answer.shape == (6, 2)


def test_vmap_and_second_inputs_work():
    net, X = make_forest([5, 1, 9], seed=1).soften("soft_tree"), make_rows(8)
    torch.testing.assert_close(torch.func.vmap(net)(X), net(X))


@pytest.mark.parametrize("alpha", [1.2, 1.5, 2.0])
def test_sparse_weights_and_gradients_are_the_entmax_package_s(alpha):
    import entmax

    ours = {1.5: sparse.entmax15, 2.0: sparse.sparsemax}.get(
        alpha, lambda p: sparse.entmax(p, alpha)
    )
    theirs = {1.5: entmax.entmax15, 2.0: entmax.sparsemax}.get(
        alpha, lambda p, dim: entmax.entmax_bisect(p, alpha, dim=dim)
    )
    p = make_rows(20, 7).reshape(5, 4, 7).requires_grad_()
    side = make_rows(20, 7, seed=1).reshape(5, 4, 7)
    found = []
    for w in (ours(p), theirs(p, dim=-1)):
        found.append((w.detach(), torch.autograd.grad((w * side).sum(), p)[0]))
    assert torch.equal(found[0][0], found[1][0])
    torch.testing.assert_close(found[0][1], found[1][1])


def test_annealing_ends_at_its_end_and_resumes():
    net = dm.figure_one().soften("soft_tree")
    anneal = Annealing(net, start=2.0, end=0.02, steps=4)
    assert net.tau == pytest.approx(2.0)
    for _ in range(2):
        anneal.step()
    assert net.tau == pytest.approx(0.2)
    other = Annealing(dm.figure_one().soften("soft_tree"), start=1.0, end=0.5, steps=1)
    other.load_state_dict(anneal.state_dict())
    assert other.net.tau == pytest.approx(net.tau)
    for _ in range(9):
        anneal.step()
    assert net.tau == pytest.approx(0.02)


def test_a_module_trains_inside_a_network():
    torch.manual_seed(0)
    machine = make_forest([8, 8, 8], seed=1, n_features=3, n_outputs=1)
    net = torch.nn.Sequential(
        torch.nn.Linear(5, 3),
        machine.soften("soft_tree", dtype=torch.float32),
        torch.nn.Linear(1, 1),
    )
    X = torch.randn(200, 5)
    y = X[:, :1] * X[:, 1:2]
    optimiser = torch.optim.Adam(net.parameters(), lr=0.02)
    losses = []
    for _ in range(60):
        optimiser.zero_grad()
        loss = (net(X) - y).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    assert all(part.grad is None or torch.isfinite(part.grad).all() for part in net.parameters())


def test_a_network_cast_to_float32_keeps_every_threshold_on_its_side():
    machine = make_forest([12, 9], seed=1)
    t = np.nextafter(machine.t.astype(np.float32).astype(np.float64), np.inf)  # just above float32
    machine = replace(machine, t=t)
    net = machine.soften("straight_through", output="margin").float()
    assert net.t.dtype == torch.float32
    rows = np.repeat(np.unique(machine.t.astype(np.float32)), 4).reshape(-1, 4)
    exits = net(torch.from_numpy(rows), return_weights=True)[1]
    assert torch.all(exit_weights(machine, exits, torch.from_numpy(rows)) == 1)
    assert net.harden().equals(machine)


def test_the_dtype_is_the_machines_own_until_the_network_is_cast():
    """float32 features of a machine that sums in float64 are answered in float64, exactly."""
    from sklearn.datasets import load_iris
    from sklearn.ensemble import RandomForestClassifier

    X, y = load_iris(return_X_y=True)
    machine = dm.convert(RandomForestClassifier(5, random_state=0).fit(X, y))
    rows = torch.from_numpy(machine.features(X))
    assert rows.dtype == torch.float32
    exact = machine.soften("logical", output="margin")(rows)
    assert np.array_equal(exact.detach().numpy(), machine.margin(X))
    assert exact.dtype == torch.float64

    def network(**options):
        head = machine.soften("soft_tree", tau=0.1, data=X, output="margin", **options)
        return torch.nn.Sequential(torch.nn.Linear(4, 4), head, torch.nn.Linear(3, 2))

    with pytest.raises(RuntimeError, match="dtype"):
        network()(rows)
    for net in (network(dtype=torch.float32), network().float(), network().to(torch.float32)):
        answer = net(rows)
        assert answer.dtype == torch.float32
        answer.sum().backward()
        assert all(p.dtype == torch.float32 for p in net.parameters())
        assert net[1].t.grad.dtype == torch.float32
        assert net[1].t.grad.abs().sum() > 0
    assert network().double()(rows.double()).dtype == torch.float64
