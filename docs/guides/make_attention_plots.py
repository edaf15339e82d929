"""The plots of the guide "From a tree to an attention head".

    python docs/guides/make_attention_plots.py

Weights over the leaves of the paper's Fig. 1: of the worked example as τ falls, and of many rows at
a few temperatures.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import torch

import decision_machines as dm

HERE = Path(__file__).parent / "images"
EXIT, WRONG, QUIET = "#1f5fbf", "#c8531b", "#9aa3ad"
LEAVES = ["v1", "v2", "v3", "v4", "v5", "v6"]
FORMS = {
    "ReLU keys, softmax": {"form": "softmax", "query": "relu"},
    "ReLU keys, sparsemax": {"form": "sparsemax", "query": "relu"},
    "soft tree": {"form": "soft_tree"},
    "affine query, softmax\n(not the tree)": {"form": "softmax"},
}


def weights(X: torch.Tensor, tau: float, **options) -> np.ndarray:
    """(m, 6) weights over the leaves of Fig. 1."""
    net = dm.figure_one().soften(tau=tau, **options)
    with torch.no_grad():
        return net(X, return_weights=True)[1].numpy()


def plot_falling_temperature(path: Path) -> None:
    """The worked example x = (2, 1, 2, 2): every leaf's weight against τ, form by form."""
    x = torch.tensor([[2.0, 1.0, 2.0, 2.0]])
    taus = np.geomspace(10, 0.05, 120)
    fig, axes = plt.subplots(1, 4, figsize=(12, 3.4), sharey=True, layout="constrained")
    for ax, (title, options) in zip(axes, FORMS.items(), strict=True):
        curves = np.array([weights(x, tau, **options)[0] for tau in taus])
        winner = int(curves[-1].argmax())
        colours = dict.fromkeys(range(6), QUIET) | {winner: WRONG, 4: EXIT}
        for leaf in np.argsort(curves[-1]):
            is_shown = colours[leaf] != QUIET
            ax.plot(taus, curves[:, leaf], color=colours[leaf], lw=2.4 if is_shown else 1.2)
            if is_shown:
                end = curves[-1, leaf]
                name = f"{LEAVES[leaf]} (exit)" if leaf == 4 else LEAVES[leaf]
                height = end + 0.05 if end < 0.5 else end - 0.1
                ax.text(0.055, height, name, color=colours[leaf], ha="right", fontweight="bold")
        ax.set(xscale="log", xlim=(10, 0.05), ylim=(-0.03, 1.05), title=title)
        ax.set_xticks([10, 1, 0.1], ["10", "1", "0.1"])
        ax.minorticks_off()
        ax.set_xlabel("temperature τ, falling")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("weight of a leaf")
    fig.savefig(path, dpi=150)
    plt.close(fig)


def plot_attention_maps(path: Path) -> None:
    """Ten rows for each exit leaf: the weights harden into the tree's own answers."""
    drawn = np.random.default_rng(0).uniform(0, 7, (5000, 4))
    exits = dm.figure_one().apply(drawn)[:, 0]
    rows = np.concatenate([np.flatnonzero(exits == leaf)[:10] for leaf in range(6)])
    X, exits = torch.from_numpy(drawn[rows]), exits[rows]
    maps = [
        (f"τ = {tau:g}", weights(X, tau, form="softmax", query="relu")) for tau in (3, 1, 0.3, 0.1)
    ]
    maps.append(("the tree", np.eye(6)[exits]))
    fig, axes = plt.subplots(1, 5, figsize=(12, 4.4), sharey=True, layout="constrained")
    for ax, (title, w) in zip(axes, maps, strict=True):
        image = ax.imshow(w, aspect="auto", cmap="Blues", vmin=0, vmax=1, interpolation="none")
        ax.set_xticks(range(6), LEAVES)
        ax.set_title(title)
        ax.tick_params(length=0)
        for cut in np.flatnonzero(np.diff(exits)):
            ax.axhline(cut + 0.5, color="white", lw=0.8)
            ax.axhline(cut + 0.5, color=QUIET, lw=0.5)
    axes[0].set_ylabel("60 rows, ten for each exit leaf")
    axes[0].set_yticks([])
    fig.colorbar(image, ax=axes, label="weight", shrink=0.8)
    fig.savefig(path, dpi=150)
    plt.close(fig)


def main(folder: Path = HERE) -> list[Path]:
    """Draw both plots into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "falling-temperature.png", folder / "attention-maps.png"]
    plot_falling_temperature(paths[0])
    plot_attention_maps(paths[1])
    return paths


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
