"""Relaxing a machine into a torch module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    import torch
    from jaxtyping import Float

    from ...relax.mlp import ForestNetwork
    from ...relax.module import SoftMachine
    from ..machine import DecisionMachine


class RelaxVerbs:
    """Relaxing a machine into a torch module."""

    def soften(
        self: DecisionMachine,
        form: str | None = "soft_tree",
        *,
        query: str | None = None,
        keys: str | None = None,
        weights: str | None = None,
        tau: float = 1.0,
        alpha: float | None = None,
        strength: float | None = None,
        budget: float | Float[Any, "L"] | None = None,
        prior: str | float | Float[Any, "L"] | None = None,
        k: int | None = None,
        sample_tau: float | None = None,
        slope: float | Float[Any, "J"] = 1.0,
        learn: Iterable[str] = ("t", "slope", "V"),
        selection: str | None = None,
        gap: float | None = None,
        output: str = "response",
        dtype: torch.dtype | None = None,
        mask: Iterable[int] = (),
        feature_map: str = "elu",
        n_random: int = 64,
        seed: int = 0,
        data: Any = None,
    ) -> SoftMachine:
        """The machine as a `torch.nn.Module` (extra `torch`); its `harden()` is a machine again.

        Every form is weights(keys(B) · query(slope (S z - t) / τ)) · V, normalised within each
        tree. What each form has in common with the tree is written in
        `decision_machines.relax.forms`: *Exact: yes*, *in the limit* (as τ → 0) or *no*.

        Parameters
        ----------
        form
            "soft_tree", "straight_through", "logical", "delta", "relu", "softmax", "sparsemax",
            "entmax15", "entmax", "positive_part", "sigsoftmax", "weighted_softmax", "gumbel",
            "gumbel_hard", "sampled", "top_k", "sparsegen", "sparsehourglass", "fusedmax",
            "oscarmax", "constrained_sparsemax", "linear" or "multi_head"; or None, where the three
            axes are given. From "sigsoftmax" on their query is "relu".
        query, keys, weights
            Another choice on an axis of the form. Queries: "affine", "sign", "tanh", "relu",
            "log_sigmoid". Keys: "templates" (B), "normalised" (B over each leaf's depth). Weights:
            "argmax", "exp", "kernel" (of "linear"), and the forms' own names from "delta" on,
            without "relu".
        tau
            Temperature above 0: the smaller, the sharper. `net.tau` sets it again.
        alpha
            Of "entmax" (1 < α ≤ 2) and "positive_part" (0 < α ≤ 1).
        strength
            λ of "sparsegen" (below 1), "fusedmax" and "oscarmax" (at least 0); q of
            "sparsehourglass" (above 0).
        budget
            Of "constrained_sparsemax": the most that a leaf may get, one number (raised where a
            tree has too few leaves for it) or one for each leaf.
        prior
            Of "weighted_softmax": a positive number for each leaf, or "cover", the share of the
            training rows that reached it.
        k
            Of "top_k": how many leaves share the weight.
        sample_tau
            Of "gumbel" and "gumbel_hard": the smaller, the nearer a draw is to one leaf.
        slope
            How steep each test is: a positive number, or one for each test.
        learn
            The parts to train, of "S", "t", "slope", "keys", "V", "tau" (and "W_Q", "W_K",
            "W_V", "W_O" in "multi_head", "prior" in "weighted_softmax", "alpha", one for each tree,
            in "entmax"). The others are there, frozen.
        selection
            How S is kept: "fixed"; "sparse" (1.5-entmax over columns); "hard" (one column,
            gradients as if sparse); "oblique" (any weights).
        gap
            How far a column's logit starts above the others ("sparse" and "hard").
        output
            "response", through the machine's own link, or "margin".
        dtype
            Of the parameters, and so of the answers. By default the one in which the machine is
            reproduced exactly: float64 where it sums in float64. The dtype of what is passed in
            does not change it, because the features of such a machine may well be float32 (those
            of scikit-learn's forests are) while its answers are not. In a float32 network give
            ``dtype=torch.float32``, or cast the network as a whole: ``.float()``, ``.to(...)``
            cast the module with it, thresholds between their values as before.
        mask
            Trees (heads) to leave out.
        feature_map, n_random
            Of "linear": "elu", "relu", "exp", or "random", with `n_random` features.
        seed
            Of random features, and of the draws of "gumbel", "gumbel_hard" and "sampled".
        data
            Rows (as `predict` takes them) by which soft thresholds are centred: each stands in
            the middle between the values of its column on its two sides. Without rows it stands
            between the two neighbouring numbers that the column can hold, zero tests (LightGBM's
            ±1e-35) a little off 0. `harden` gives back the machine's own thresholds either way.

        Notes
        -----
        What "exact in the limit" means as τ → 0:

        - with `data`, every row of it reaches the machine's own leaves. In the soft tree the exit
          leaf's weight misses 1 by at most Σ σ(-slope · gap / 2τ) over its path, each gap being
          that between the neighbouring values of the data. A new row with a value inside a gap,
          between the machine's threshold and the middle, may take the other side.
        - without, every row that the columns' dtype can hold does, zeros, integers and flags
          included; but a value nearer to 0 than 2⁻²³ of the column's smallest other threshold
          counts as 0 in a test at 0. A gap may be as narrow as one unit in the last place
          (XGBoost puts t there), and then τ must be far below it: pass `data`.

        Examples
        --------
        >>> import decision_machines as dm, torch
        >>> net = dm.figure_one().soften("soft_tree", tau=0.1)
        >>> x = torch.tensor([[2.0, 1.0, 2.0, 2.0]])
        >>> round(net(x).item(), 3)
        5.0
        >>> net.harden().predict(x.numpy())
        array([5.])
        """
        from ...relax import soften

        return soften(
            self,
            form,
            query=query,
            keys=keys,
            weights=weights,
            tau=tau,
            alpha=alpha,
            strength=strength,
            budget=budget,
            prior=prior,
            k=k,
            sample_tau=sample_tau,
            slope=slope,
            learn=learn,
            selection=selection,
            gap=gap,
            output=output,
            dtype=dtype,
            mask=mask,
            feature_map=feature_map,
            n_random=n_random,
            seed=seed,
            data=data,
        )

    def to_mlp(
        self: DecisionMachine,
        *,
        activation: str = "tanh",
        connections: str = "paths",
        slope: float | tuple[float, float] = (10.0, 2.0),
        learn: Iterable[str] = ("S", "t", "B", "V"),
        output: str = "response",
        dtype: torch.dtype | None = None,
        data: Any = None,
    ) -> ForestNetwork:
        """The machine as a plain network of two hidden layers (extra `torch`), to be trained on.

        One unit for each test, one for each leaf: a `torch.nn.Sequential` whose layers are named
        `columns`, `tests`, `signs`, `templates`, `fires`, `values` and `answer`. Its `harden()`
        gives a machine again, where it still is one. The layer of templates is dense, leaves ×
        tests: for forests of up to some thousand leaves. `soften` forms no such layer.

        Parameters
        ----------
        activation
            "tanh"; "sign", which is exact and learns V alone; or "straight_through", which answers
            as "sign" and learns as "tanh".
        connections
            The weights there are: "paths", those of the forest; "trees", any column to any test and
            any test to any leaf of its tree; "all", layers that are full.
        slope
            Of tanh in the two hidden layers: the steeper, the nearer to the machine.
        learn
            The layers to train: "S" and "t" (weights and thresholds of tests), "B", "V". With
            ("t", "V") it hardens to trees of straight tests.
        output, dtype, data
            As in `soften`. `data` puts the thresholds of "tanh" between the values of rows.

        Examples
        --------
        >>> import decision_machines as dm, torch
        >>> net = dm.figure_one().to_mlp(activation="sign")
        >>> net(torch.tensor([[2.0, 1.0, 2.0, 2.0]])).item()
        5.0
        >>> net.templates
        MaskedLinear(in_features=5, out_features=6, bias=True)
        >>> net.harden().equals(dm.figure_one())
        True
        """
        from ...relax import to_mlp

        return to_mlp(
            self,
            activation=activation,
            connections=connections,
            slope=slope,
            learn=learn,
            output=output,
            dtype=dtype,
            data=data,
        )
