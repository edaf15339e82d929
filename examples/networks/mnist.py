"""A small convolutional network with one tree on top: trained, hardened, exported, explained.

    python examples/networks/mnist.py FOLDER --seeds 0 1 2 --output mnist_tree

FOLDER holds MNIST's four files (train-images-idx3-ubyte.gz, …). For each seed 5 000 training images
are held out, the network is trained on the rest, and of the states after the last epochs the one
whose *hard* tree is right most often on the held-out images is kept. Its score on the test images
is then printed once. The first seed's network is written to OUTPUT.onnx with its hard tree, and the
picture of what its leaves mean to OUTPUT.svg.
"""

from __future__ import annotations

import argparse
import copy
import gzip
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

import decision_machines as dm

HELD_OUT = 5000
KEPT = 3
"""States of the last epochs that the held-out images choose among."""


class Images(NamedTuple):
    """Images (m, 1, 28, 28) with pixels from 0 to 1, and their digits."""

    x: torch.Tensor
    y: torch.Tensor

    def __len__(self) -> int:
        return len(self.y)


def read(folder: Path, part: str) -> Images:
    """MNIST's images and labels of "train" or "t10k"."""
    pixels = gzip.decompress((folder / f"{part}-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((folder / f"{part}-labels-idx1-ubyte.gz").read_bytes())[8:]
    x = torch.frombuffer(bytearray(pixels), dtype=torch.uint8).reshape(-1, 1, 28, 28)
    y = torch.frombuffer(bytearray(labels), dtype=torch.uint8).long()
    return Images(x / 255.0, y)


def body(side: int = 28, features: int = 32) -> nn.Sequential:
    """Convolutions that make features of square images with one channel."""
    half = (side + 1) // 2

    def block(*layers: nn.Module, channels: int) -> list[nn.Module]:
        return [*layers, nn.BatchNorm2d(channels), nn.ReLU()]

    return nn.Sequential(
        *block(nn.Conv2d(1, 16, 5, 2, 2), channels=16),
        *block(nn.Conv2d(16, 32, 3, 1, 1), channels=32),
        nn.MaxPool2d(2),
        *block(nn.Conv2d(32, 64, 3, 1, 1), channels=64),
        nn.Flatten(),
        nn.Linear(64 * (half // 2) ** 2, features),
    ).to(memory_format=torch.channels_last)


class LinearHead(nn.Module):
    """What most networks end in, to compare with: probabilities by a softmax."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.norm, self.linear = nn.BatchNorm1d(features), nn.Linear(features, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.norm(x)).softmax(-1)

    hard = forward


def shifted(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    """Images moved by -1, 0 or 1 pixel in both directions; `by` (m,) from 0 to 8."""
    side = x.shape[-1]
    padded = nn.functional.pad(x, (1, 1, 1, 1))
    out = torch.empty_like(x)
    for way in range(9):
        row, column = divmod(way, 3)
        chosen = by == way
        out[chosen] = padded[chosen, :, row : row + side, column : column + side]
    return out


def train(
    data: Images, held: Images, *, depth: int, epochs: int, seed: int, head: str = "tree"
) -> tuple[nn.Sequential, list[tuple[float, float]]]:
    """The network whose hard tree is best on the held-out images, and soft and hard shares."""
    torch.manual_seed(seed)
    below = body(data.x.shape[-1])
    top = (
        dm.nn.TreeLayer(32, 10, depth=depth, trees=1, leaves="probabilities")
        if head == "tree"
        else LinearHead(32)
    )
    net = nn.Sequential(below, top)
    optimiser = torch.optim.AdamW(net.parameters(), weight_decay=0.02)
    size = min(128, len(data))
    steps = len(data) // size
    rate = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, 4e-3, total_steps=epochs * steps, pct_start=0.2
    )
    scores, states = [], []
    for epoch in range(epochs):
        net.train()
        for rows in torch.randperm(len(data))[: steps * size].split(size):
            x = shifted(data.x[rows], torch.randint(9, (size,)))
            likelihood = net(x.contiguous(memory_format=torch.channels_last))
            loss = nn.functional.nll_loss((likelihood + 1e-9).log(), data.y[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            rate.step()
        if epoch + KEPT >= epochs:
            scores.append(shares(net, held))
            states.append(copy.deepcopy(net.state_dict()))
    net.load_state_dict(states[int(np.argmax([hard for _, hard in scores]))])
    return net.eval(), scores


@torch.no_grad()
def shares(net: nn.Sequential, data: Images) -> tuple[float, float]:
    """The share of images whose digit is right, by the soft and by the hard tree."""
    net.eval()
    right = np.zeros(2)
    for x, y in zip(data.x.split(500), data.y.split(500), strict=True):
        features = net[0](x.contiguous(memory_format=torch.channels_last))
        for at, answer in enumerate((net[1](features), net[1].hard(features))):
            right[at] += int((answer.argmax(-1) == y).sum())
    soft, hard = right / len(data)
    return soft, hard


@torch.no_grad()
def features_of(net: nn.Sequential, x: torch.Tensor) -> np.ndarray:
    """What the tree reads."""
    return torch.cat([net[0](part) for part in x.split(500)]).numpy()


def harden(net: nn.Sequential) -> tuple[nn.Sequential, dm.DecisionMachine]:
    """The network with its tree hard, of operations that ONNX has, and the tree as a machine."""
    machine = net[1].harden()
    hard = machine.soften("logical", output="margin", dtype=torch.float32, learn=())
    below = copy.deepcopy(net[0]).to(memory_format=torch.contiguous_format)
    return nn.Sequential(below, hard).eval(), machine


def export(net: nn.Sequential, path: Path, side: int = 28) -> None:
    """The network as an ONNX file that takes any number of images."""
    example = torch.zeros(2, 1, side, side)
    torch.onnx.export(
        net,
        (example,),
        str(path),
        input_names=["images"],
        output_names=["probabilities"],
        dynamic_shapes=({0: torch.export.Dim("m", min=1)},),
        dynamo=True,
        verbose=False,
    )


def leaf_table(machine: dm.DecisionMachine, features: np.ndarray, y: np.ndarray) -> list[str]:
    """A line for each leaf that images reach: its digit, how many reach it, how many are that."""
    leaf = machine.apply(features)[:, 0]
    lines = []
    for at in range(machine.n_leaves):
        own = y[leaf == at]
        if len(own):
            digit = int(machine.V[at].argmax())
            share = float((own == digit).mean())
            lines.append(f"leaf {at:2}: {digit}, {len(own):5} images, {share:.1%} of them are")
    return lines


def picture(machine: dm.DecisionMachine, features: np.ndarray, data: Images, path: Path) -> None:
    """The tree with an average image at each test and leaf, of the images that come there."""
    import matplotlib.pyplot as plt

    leaf = machine.apply(features)[:, 0]
    depth = int(machine.structure.depth.max(initial=0)) + 1
    width = 2**depth
    reached = [np.flatnonzero(leaf == at) for at in range(machine.n_leaves)]
    figure, axes = plt.subplots(depth + 1, width, figsize=(0.62 * width, 0.85 * (depth + 1)))
    for axis in axes.flat:
        axis.axis("off")
    for level in range(depth + 1):
        span = width // 2**level
        for at in range(2**level):
            rows = np.concatenate(reached[at * span : (at + 1) * span])
            axis = axes[level, at * span + (span - 1) // 2]
            if not len(rows):
                continue
            axis.imshow(data.x[rows].mean(0)[0], cmap="Greys", vmin=0, vmax=1)
            if level == depth:
                digit = int(machine.V[at].argmax())
                axis.set_title(f"{digit}\n{len(rows)}", fontsize=7, pad=2)
    figure.subplots_adjust(0.01, 0.01, 0.99, 0.93, 0.05, 0.25)
    figure.savefig(path)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where MNIST's four files are")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="networks to train")
    parser.add_argument("--depth", type=int, default=5, help="of the tree")
    parser.add_argument("--epochs", type=int, default=9, help="of training")
    parser.add_argument("--head", choices=["tree", "linear"], default="tree", help="on top")
    parser.add_argument("--output", type=Path, help="write OUTPUT.onnx and OUTPUT.svg")
    given = parser.parse_args()
    whole, test = (read(given.folder, part) for part in ("train", "t10k"))
    for seed in given.seeds:
        order = torch.randperm(len(whole), generator=torch.Generator().manual_seed(seed))
        held, data = (
            Images(whole.x[rows], whole.y[rows]) for rows in (order[:HELD_OUT], order[HELD_OUT:])
        )
        started = time.process_time()
        net, scores = train(
            data, held, depth=given.depth, epochs=given.epochs, seed=seed, head=given.head
        )
        seconds = time.process_time() - started
        soft, hard = shares(net, test)
        tried = ", ".join(f"{value:.2%}" for _, value in scores)
        print(
            f"seed {seed}: test soft {soft:.2%}, hard {hard:.2%}; held out hard {tried}; "
            f"{seconds:.0f} s of processor time",
            flush=True,
        )
        if given.head == "tree" and given.output and seed == given.seeds[0]:
            show(net, data, test, given.output)


def show(net: nn.Sequential, data: Images, test: Images, output: Path) -> None:
    """Write the network and the picture, and print what its leaves mean."""
    hard, machine = harden(net)
    export(hard, output.with_suffix(".onnx"))
    features = features_of(net, test.x)
    print("\n".join(leaf_table(machine, features, test.y.numpy())))
    picture(machine, features, test, output.with_suffix(".svg"))


if __name__ == "__main__":
    main()
