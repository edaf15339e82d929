"""Routed feed-forward layers on MNIST, beside dense networks, a cascade and `fastfeedforward`.

    python benchmarks/routed.py FOLDER [--epochs 10] [--seed 0] [--save MODELS] [--load MODELS]
        [--out benchmarks/results/routed.json]

FOLDER holds MNIST's four files. Every model reads 784 pixels, scaled alike, and is trained for as
many epochs in all, on the same images with the same shifts: a routed layer a quarter of them as a
mixture and the rest on its experts' own rows, taught by the dense network of width 128. Models that
defer join two that were trained so. 5 000 training images are held out, and choose the certainty
below which rows are deferred: the smallest that is right there as often as the dense network of
width 64. Then the test images are asked once. Times are of whole models on one thread, the best of
many interleaved turns, after the answers were compared with torch's. `--save` and `--load` keep
trained models, so that times can be taken on a quiet computer. `fastfeedforward` is measured where
it is installed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import pickle
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

from decision_machines.nn import RoutedFeedForward, fit_routed

CERTAINTIES = tuple(np.linspace(0, 0.9, 19)) + tuple(np.linspace(0.91, 0.99, 9))
BATCHES = (1, 1024)
MEAN, SPREAD = 0.13, 0.31
"""Of all pixels of the training images."""
OWN = 3
"""Epochs on experts' own rows for each epoch of the mixture."""


def read(folder: Path, part: str) -> tuple[torch.Tensor, torch.Tensor]:
    pixels = gzip.decompress((folder / f"{part}-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((folder / f"{part}-labels-idx1-ubyte.gz").read_bytes())[8:]
    x = torch.frombuffer(bytearray(pixels), dtype=torch.uint8).reshape(-1, 784) / 255.0
    x = (x - MEAN) / SPREAD
    return x, torch.frombuffer(bytearray(labels), dtype=torch.uint8).long()


def shifted(x: torch.Tensor) -> torch.Tensor:
    """A batch in nine parts, each moved by its own -1, 0 or 1 pixel in both directions."""
    padded = nn.functional.pad(x.reshape(-1, 28, 28), (1, 1, 1, 1), value=-MEAN / SPREAD)
    parts = padded.tensor_split(9)
    ways = torch.randperm(9).tolist()
    moved = [
        part[:, way // 3 : way // 3 + 28, way % 3 : way % 3 + 28].reshape(len(part), 784)
        for part, way in zip(parts, ways, strict=True)
    ]
    return torch.cat(moved)


def trained(layer: RoutedFeedForward, x, y, epochs: int, seed: int, teacher=None):
    """A layer of one expert is a plain network: it is trained all the time at once."""
    each = ((1 + OWN) * epochs, 0) if layer.depth == 0 else (epochs, OWN * epochs)
    started = time.process_time()
    fit_routed(
        layer,
        x,
        y,
        epochs=each[0],
        own_epochs=each[1],
        teacher=teacher,
        augment=shifted,
        seed=seed,
    )
    return layer, time.process_time() - started


def fast_feed_forward(x, y, epochs: int, seed: int):
    """The package's own layer of the same sizes, with its entropy loss; None where it is absent."""
    try:
        from fastfeedforward import FFF
    except ImportError:
        return None
    torch.manual_seed(seed)
    net = FFF(784, 16, 10, 4)
    optimiser = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-2)
    steps = (1 + OWN) * epochs * (len(x) // 256)
    cycle = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=steps)
    for _ in range((1 + OWN) * epochs):
        for at in torch.randperm(len(x))[: len(x) // 256 * 256].split(256):
            answer, entropies = net(shifted(x[at]), return_entropies=True)
            loss = nn.functional.cross_entropy(answer, y[at]) + 3.0 * entropies.mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            cycle.step()
    return net.eval()


def deferring(layer: RoutedFeedForward, big: RoutedFeedForward) -> RoutedFeedForward:
    """The layer, with a dense network for rows of which it is not certain."""
    joined = RoutedFeedForward(784, 10, layer.depth, layer.hidden, defer=big.hidden)
    dense = {
        "dense.0.weight": big.first[0],
        "dense.0.bias": big.first_bias[0],
        "dense.2.weight": big.second[0],
        "dense.2.bias": big.second_bias[0],
    }
    joined.load_state_dict({**layer.state_dict(), **dense})
    return joined.eval()


def share(answer, y: torch.Tensor) -> float:
    return float((torch.as_tensor(answer).argmax(-1) == y).float().mean())


def train_all(train, held, epochs: int, seed: int, save: Path | None) -> dict:
    """Every model by name, trained; of those that defer, the certainty is chosen later."""
    x, y = train
    models, seconds = {}, {}
    found = {"models": models, "seconds": seconds}

    def keep() -> None:
        if save:
            save.write_bytes(pickle.dumps(found))

    def add(name: str, *sizes: int, teacher=None, **options) -> RoutedFeedForward:
        torch.manual_seed(seed)
        layer = RoutedFeedForward(784, 10, *sizes, **options)
        models[name], seconds[name] = trained(layer, x, y, epochs, seed, teacher)
        print(f"{name}: held out {share(layer(held[0]), held[1]):.2%}, ", end="")
        print(f"{seconds[name]:.0f} s", flush=True)
        keep()
        return layer

    dense = {width: add(f"dense {width}", 0, width) for width in (16, 32, 48, 64, 128)}
    big = dense[128].eval()
    for hidden in (16, 8):
        own = add(f"routed 16 × {hidden}", 4, hidden, teacher=big)
        models[f"routed 16 × {hidden}, deferring to 128"] = deferring(own, big)
    for width in (16, 32):
        models[f"cascade {width}, 128"] = deferring(dense[width], big)
    keep()
    started = time.process_time()
    rival = fast_feed_forward(x, y, epochs, seed)
    if rival is not None:
        models["fastfeedforward 16 × 16"] = rival
        seconds["fastfeedforward 16 × 16"] = time.process_time() - started
        keep()
    return found


def choose(layer: RoutedFeedForward, held, least: float) -> None:
    """The smallest certainty with which the held-out images are right as often as asked for."""
    for layer.certainty in CERTAINTIES:
        if share(layer.harden()(held[0]), held[1]) >= least:
            return


def times(runs: dict, x: torch.Tensor, turns: int) -> dict:
    """The best seconds of each model for each batch, by turns."""
    best = {(name, m): np.inf for name in runs for m in BATCHES}
    single = [x[i : i + 1].contiguous() for i in range(100)]
    with torch.inference_mode():
        for turn in range(turns):
            for name, run in runs.items():
                started = time.perf_counter()
                for row in single:
                    run(row)
                spent = (time.perf_counter() - started) / len(single)
                best[name, 1] = min(best[name, 1], spent)
                if name.startswith("fast") and turn > 2:
                    continue
                rows = x[1024 * (turn % 8) : 1024 * (turn % 8 + 1)].contiguous()
                started = time.perf_counter()
                run(rows)
                best[name, 1024] = min(best[name, 1024], time.perf_counter() - started)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epochs", type=int, default=10, help="of the mixture; a quarter of all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, help="keep trained models here, and take no times")
    parser.add_argument("--load", type=Path, help="take trained models from here")
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    (x, y), test = read(given.folder, "train"), read(given.folder, "t10k")
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(given.seed))
    held, train = ((x[rows], y[rows]) for rows in (order[:5000], order[5000:]))
    if given.load:
        found = pickle.loads(given.load.read_bytes())
    else:
        found = train_all(train, held, given.epochs, given.seed, given.save)
    if given.save:
        return
    lines = measure(found, held, test, given.turns)
    print(json.dumps(lines, indent=1))
    if given.out:
        given.out.write_text(json.dumps({"seed": given.seed, "rows": lines}, indent=1) + "\n")


def measure(found: dict, held, test, turns: int) -> list[dict]:
    """Accuracy, multiply-adds and times of every model; equality before times."""
    runs, lines = {}, {}
    least = share(found["models"]["dense 64"].harden()(held[0]), held[1])
    for name, model in found["models"].items():
        if name.startswith("fast"):
            runs[name], adds = model, 4 * 784 + 784 * 16 + 16 * 10
            with torch.inference_mode():
                right = share(model(test[0]), test[1])
        else:
            if model.dense is not None:
                choose(model, held, least)
            fast = model.eval().harden()
            with torch.inference_mode():
                gap = (fast(test[0]) - model(test[0])).abs().max(-1).values
            # A row within rounding of a threshold or of the certainty may go another way.
            assert float((gap > 1e-3).float().mean()) < 1e-3, name
            runs[name], adds = fast, fast.multiply_adds(test[0])
            right = share(fast(test[0]), test[1])
            if model.depth == 0 and model.dense is None:
                parts = nn.Linear(784, model.hidden), nn.ReLU(), nn.Linear(model.hidden, 10)
                plain = nn.Sequential(*parts).eval()
                plain[0].weight.data, plain[0].bias.data = model.first[0], model.first_bias[0]
                plain[2].weight.data, plain[2].bias.data = model.second[0], model.second_bias[0]
                runs[name + ", torch"] = plain
                lines[name + ", torch"] = {"accuracy": right, "multiply_adds": adds}
        lines[name] = {"accuracy": right, "multiply_adds": adds}
        if getattr(model, "dense", None) is not None:
            lines[name] |= {
                "certainty": model.certainty,
                "deferred": float(runs[name].route(test[0])[1].mean()),
            }
    best = times(runs, test[0], turns)
    return [
        {"model": name, **about, **{f"seconds_{m}": best[name, m] for m in BATCHES}}
        for name, about in lines.items()
    ]


if __name__ == "__main__":
    main()
