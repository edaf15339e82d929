"""The plots of the guides "From a tree to an attention head" and "Which weights to choose".

    python docs/guides/make_attention_plots.py

Weights over the leaves of the paper's Fig. 1: of the worked example as τ falls, of many rows at a
few temperatures, and by every choice of weights as one feature crosses a threshold.
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
WEIGHTS = {
    "softmax": {"form": "softmax", "query": "relu"},
    "sigsoftmax": {"form": "sigsoftmax"},
    "weighted_softmax\nprior 8 for v1": {"form": "weighted_softmax", "prior": [8, 1, 1, 1, 1, 1]},
    "top_k, k=2": {"form": "top_k", "k": 2},
    "gumbel, sample_tau=0.5\n(one draw)": {"form": "gumbel", "sample_tau": 0.5, "seed": 3},
    "sampled\n(mean of 60 draws)": {"form": "sampled"},
    "entmax, alpha=1.5": {"form": "entmax", "query": "relu", "alpha": 1.5},
    "sparsegen, strength=0.6": {"form": "sparsegen", "strength": 0.6},
    "sparsehourglass\nstrength=0.3": {"form": "sparsehourglass", "strength": 0.3},
    "fusedmax, strength=0.3": {"form": "fusedmax", "strength": 0.3},
    "oscarmax, strength=0.1": {"form": "oscarmax", "strength": 0.1},
    "constrained_sparsemax\nbudget=0.6": {"form": "constrained_sparsemax", "budget": 0.6},
}
COLOURS = ["#1f5fbf", "#5aa7d8", "#2a9d5c", "#e0a526", "#c8531b", "#8454a4"]


def crossing() -> tuple[np.ndarray, torch.Tensor]:
    """Where x1 stands, and the worked example with x1 there."""
    at = np.linspace(-1.0, 4.0, 201)
    return at, torch.from_numpy(np.column_stack([at, *np.full((3, len(at)), [[1.0], [2], [2]])]))


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


def plot_weights(path: Path) -> None:
    """Every leaf's weight as x1 crosses the threshold of the first test, choice by choice."""
    at, X = crossing()
    fig, axes = plt.subplots(
        3, 4, figsize=(12, 7.6), sharex=True, sharey=True, layout="constrained"
    )
    for ax, (title, options) in zip(axes.flat, WEIGHTS.items(), strict=True):
        net = dm.figure_one().soften(tau=1.0, **options)
        n_draws = 60 if options["form"] == "sampled" else 1
        with torch.no_grad():
            draws = [net(X, return_weights=True)[1].numpy() for _ in range(n_draws)]
        found = np.mean(draws, axis=0)
        ax.axvline(1.0, color=QUIET, lw=0.8, ls=":")
        is_draw = "draw" in title
        for leaf in range(6):
            style = {"lw": 0, "marker": ".", "ms": 3} if is_draw else {"lw": 2}
            # Leaves of the same weight stand side by side, or the last would hide the others.
            shown = found[:, leaf] + (0 if is_draw else 0.006 * (leaf - 2.5))
            ax.plot(at, shown, color=COLOURS[leaf], label=LEAVES[leaf], **style)
        ax.set_title(title, fontsize=11)
        ax.spines[["top", "right"]].set_visible(False)
    for ax in axes[-1]:
        ax.set_xlabel("x1; the first test asks x1 ≤ 1")
    for ax in axes[:, 0]:
        ax.set_ylabel("weight of a leaf")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside upper center", ncols=6, frameon=False)
    fig.savefig(path, dpi=130)
    plt.close(fig)


PLOTS = {
    "falling-temperature.png": plot_falling_temperature,
    "attention-maps.png": plot_attention_maps,
    "weights.png": plot_weights,
}


def main(folder: Path = HERE) -> list[Path]:
    """Draw all plots into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, plot in PLOTS.items():
        plot(folder / name)
    return [folder / name for name in PLOTS]


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
