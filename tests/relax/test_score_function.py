"""Sampled attention: the score function's gradient is that of the expected loss."""

import numpy as np
import pytest
import torch
from relax_forests import make_forest, make_rows

import decision_machines as dm
from decision_machines.relax.score_function import ScoreFunction, score_function_loss


def expected_loss(machine, x, target):
    """Σ over the leaves of one tree of their probability times the loss of their value."""
    soft = machine.soften("softmax", query="relu", learn=("t",), output="margin")
    probability = soft(x, return_weights=True)[1]
    losses = (torch.tensor(machine.V[:, 0]) - target).square()
    return soft, (probability * losses).sum(-1).mean()


def machine_of_one_tree():
    from dataclasses import replace

    machine = make_forest([7], seed=3, n_outputs=1)
    return replace(machine, output=dm.Output(np.zeros(1)))


@pytest.mark.parametrize("baseline", [0.0, 3.0])
def test_over_all_draws_the_gradient_is_that_of_the_expected_loss(baseline):
    machine, x, target = machine_of_one_tree(), make_rows(1), 0.3
    soft, expected = expected_loss(machine, x, target)
    (exact,) = torch.autograd.grad(expected, soft.t)
    probability = soft(x, return_weights=True)[1][0]
    losses = (torch.tensor(machine.V[:, 0]) - target).square()
    total = torch.zeros_like(exact)
    for leaf in range(7):
        one = score_function_loss(
            losses[leaf : leaf + 1], probability[leaf : leaf + 1].log(), baseline
        )
        (grad,) = torch.autograd.grad(one, soft.t, retain_graph=True)
        total += probability[leaf].detach() * grad
    torch.testing.assert_close(total, exact)


def test_the_mean_gradient_of_many_draws_is_near_and_a_baseline_steadies_it():
    machine, target = machine_of_one_tree(), 40.0  # far away: losses are large and alike
    x = make_rows(1).expand(20_000, -1)
    soft, expected = expected_loss(machine, x[:1], target)
    (exact,) = torch.autograd.grad(expected, soft.t)
    mean = float(expected.detach())
    spread = []
    for baseline in (0.0, mean):
        net = machine.soften("sampled", learn=("t",), seed=1, output="margin")
        answer, log_prob = net.sample(x)
        losses = (answer[:, 0] - target).square()
        (grad,) = torch.autograd.grad(score_function_loss(losses, log_prob, baseline), net.t)
        scale = float((losses.detach() - baseline).square().mean().sqrt())
        assert float((grad - exact).abs().max()) < 5 * scale / 20_000**0.5
        spread.append(scale)
    assert spread[1] < 0.2 * spread[0]


def test_log_prob_is_that_of_what_was_drawn_in_trees_that_count():
    machine, X = make_forest([6, 1, 9], seed=1), make_rows(30)
    net = machine.soften("sampled", seed=5).mask([2])
    again = machine.soften("sampled", seed=5).mask([2])
    answer, log_prob = net.sample(X)
    drawn = again(X, return_weights=True)
    assert torch.equal(drawn[0], answer)
    soft = machine.soften("softmax", query="relu")(X, return_weights=True)[1]
    first = (drawn[1] * soft)[:, :6].sum(-1)  # the second has one leaf, the third is masked
    torch.testing.assert_close(log_prob, first.log())
    shaped = machine.soften("sampled", seed=5).sample(X.reshape(5, 6, 4))
    assert shaped[0].shape == (5, 6, 2)
    assert shaped[1].shape == (5, 6)


def test_it_learns_which_leaf_to_draw():
    machine = dm.figure_one()
    X = torch.from_numpy(np.random.default_rng(0).uniform(0, 7, (400, 4)))
    target = torch.where(X[:, 0] > 3, 4.0, 1.0)
    net = machine.soften("sampled", learn=("t",), seed=0, tau=0.5)
    learn, losses = ScoreFunction(), []
    optimiser = torch.optim.Adam(net.parameters(), lr=0.05)
    for _ in range(120):
        optimiser.zero_grad()
        answer, log_prob = net.sample(X)
        loss = learn((answer[:, 0] - target).square(), log_prob)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert np.mean(losses[-10:]) < 0.85 * np.mean(losses[:10])
    before = np.mean((machine.predict(X.numpy()) - target.numpy()) ** 2)
    after = np.mean((net.harden().predict(X.numpy()) - target.numpy()) ** 2)
    assert after < before


def test_the_baseline_is_a_running_mean_that_is_saved():
    learn, log_prob = ScoreFunction(decay=0.5), torch.zeros(2)
    for value, mean in ((4.0, 4.0), (2.0, 3.0), (1.0, 2.0)):
        assert learn(torch.full((2,), value), log_prob).item() == value
        assert learn.baseline.item() == mean
    fresh = ScoreFunction(decay=0.5)
    fresh.load_state_dict(learn.state_dict())
    assert fresh.baseline.item() == 2.0


def test_bad_calls_are_refused_in_three_parts():
    with pytest.raises(dm.InputError, match="one loss for each row"):
        score_function_loss(torch.zeros(2, 3), torch.zeros(2))
    with pytest.raises(dm.InputError, match="decay=1"):
        ScoreFunction(decay=1)
    with pytest.raises(dm.InputError, match="draw no leaf"):
        dm.figure_one().soften("softmax").sample(torch.zeros(1, 4))
