"""Explaining a machine: rules, boxes, counterfactuals, bounds, neighbours, polynomials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import scipy.sparse as sp

    from ...explain import (
        Boxes,
        CodeMargin,
        Counterfactual,
        DecisionRules,
        Importance,
        Monotonicity,
        Neighbours,
        OutputBounds,
        PartialDependence,
        Polynomial,
    )
    from ..machine import DecisionMachine

    Feature = int | str
    """Its number, or its name."""


class ExplainVerbs:
    """Explaining a machine: rules, boxes, counterfactuals, bounds, neighbours, polynomials."""

    def rules(
        self: DecisionMachine,
        X: Any = None,
        *,
        trees: int | Iterable[int] | None = None,
        integers: Any = (),
    ) -> DecisionRules:
        """Decision paths as rules that people read: tests merged to intervals and sets.

        Parameters
        ----------
        X
            Rows: then the path of each row through the trees. By default every leaf's path.
        trees
            A tree's number, or several; all by default.
        integers
            Features that are known to be whole numbers, by name or number: bounds on them are
            whole too.

        Returns
        -------
        DecisionRules
            A sequence of rules, each with its `conditions`, `value` and `text`, made as they are
            looked at. Printed by `print` and by rich. What is printed is true of every value
            that the columns' dtype can hold, in as few digits as that takes: XGBoost's x < 30 is
            printed so, though it is stored as x ≤ 29.999998.

        Examples
        --------
        >>> import decision_machines as dm
        >>> print(dm.figure_one().rules([[2, 1, 2, 2]]))
        row 0, tree 0:
          if (x[1] > 1 or missing) and x[3] ≤ 3 then 5
        """
        from ...explain.paths.rules import rules

        return rules(self, X, trees=trees, integers=integers)

    def boxes(self: DecisionMachine, trees: int | Iterable[int] | None = None) -> Boxes:
        """The box of every leaf: for each column that its path tests, lower < z ≤ upper, or NaN.

        Exact: a row lies in the boxes of its exit leaves and in no others. Sparse, so that big
        forests fit; leaves whose tests contradict each other are marked not `reachable`.

        Parameters
        ----------
        trees
            A tree's number, or several; all by default.

        Examples
        --------
        >>> import decision_machines as dm
        >>> found = dm.figure_one().boxes()
        >>> found[1]  # leaf v2: column → (lower, upper, whether NaN passes)
        {0: (-inf, 1.0, False), 1: (2.0, 4.0, False), 3: (-inf, 5.0, False)}
        >>> found.contains([[2, 1, 2, 2]]).tolist()
        [[False, False, False, False, True, False]]
        """
        from ...explain.space.boxes import boxes

        return boxes(self, trees)

    def counterfactual(
        self: DecisionMachine,
        x: Any,
        target: Any = None,
        *,
        metric: str = "linf",
        fixed: Iterable[Feature] = (),
        ranges: Mapping[Feature, Any] | None = None,
        integers: Iterable[Feature] | None = None,
        scale: float | Iterable[Any] | Mapping[Feature, Any] | None = None,
        missing_distance: float = np.inf,
        budget: int = 4000,
        data: Any = None,
    ) -> Counterfactual:
        """The nearest input with another prediction, confirmed by `predict`.

        One tree: exact, over all inputs that the columns' dtype can hold. Forests: an input
        found, and a certified lower bound on the distance of any; `exact` says whether they meet.

        Parameters
        ----------
        x
            One input: a vector, names → values, a row of a table (`df.iloc[i]`), or one row of
            what `predict` takes.
        target
            None for any other prediction, a label, or (low, high) for a machine that predicts
            values.
        metric
            "linf": the largest change of a feature. "count": the fewest features changed, and
            among those the smallest largest change.
        fixed
            Features, by name or number, that must keep their values.
        ranges
            Feature → (low, high) for values that it may change to, or → the labels.
        integers
            Features that may change to whole numbers only; by default those that `x` (a row of a
            table) or `data` has as integers.
        scale
            What counts as 1 in each feature: one number, one each, or feature → number. A change
            of a categorical feature counts 1 over its scale, for any two categories.
        missing_distance
            What it counts when a number becomes missing or the reverse; by default never done.
        budget
            How many boxes of inputs the search in a forest may look at, about.
        data
            Rows that tell labels, such as the training table. CatBoost keeps only hashes of
            labels: a feature changes to those whose texts `x`, `ranges` or `data` tell, or to
            one that the model does not know. The result's `new_values` are what to write into
            the row.

        Examples
        --------
        >>> import decision_machines as dm
        >>> print(dm.figure_one().counterfactual([2, 1, 2, 2]))
        5.0 → 1.0 if
          x[1]: 2 → 1
        distance 1, 1 feature changed, proven nearest
        """
        from ...explain.change.counterfactual import counterfactual

        return counterfactual(
            self,
            x,
            target,
            metric=metric,
            fixed=fixed,
            ranges=ranges,
            integers=integers,
            scale=scale,
            missing_distance=missing_distance,
            budget=budget,
            data=data,
        )

    def code_margin(self: DecisionMachine, x: Any, target: Any = None) -> CodeMargin:
        """How many tests must flip to change the prediction: the protection that the code gives.

        A leaf's template is a code word and h the word received. `flips` counts in code space;
        for one tree `reachable` and `whole` count among codes that some input has.

        Parameters
        ----------
        x
            One input: a vector, names → values, a row of a table (`df.iloc[i]`), or one row of
            what `predict` takes.
        target
            None for any other prediction, a label, or (low, high) for values.

        Examples
        --------
        >>> import decision_machines as dm
        >>> print(dm.figure_one().code_margin([0, 1, 2, 2], (2.5, 4.5)))
        1.0: 1 test must flip; 1 on the way of an input, 2 in all its code
        """
        from ...explain.paths.code_distance import code_margin

        return code_margin(self, x, target)

    def bounds(
        self: DecisionMachine,
        lower: Iterable[Any] | Mapping[Feature, Any] | None = None,
        upper: Iterable[Any] | Mapping[Feature, Any] | None = None,
        *,
        missing: bool | Iterable[Feature] = (),
        budget: int = 2000,
    ) -> OutputBounds:
        """Certified least and greatest margins over all inputs with lower ≤ x ≤ upper.

        Exact for one tree; for forests tightened by splitting the box, and `exact` says whether
        inputs were found that attain them. In the machine's own arithmetic, to the bit.

        Parameters
        ----------
        lower, upper
            A number for each feature, or feature → number; features left out are free. A label, or
            several, in either holds the feature there. NaN in both: the feature is missing.
        missing
            Features that may be missing besides, or True for all.
        budget
            How many parts of the box may be looked at.

        Examples
        --------
        >>> import decision_machines as dm
        >>> dm.figure_one().bounds({"x[1]": 0}, {"x[1]": 1, "x[2]": 3})
        OutputBounds([1, 3], exact)
        """
        from ...explain.space.bounds import bounds

        return bounds(self, lower, upper, missing=missing, budget=budget)

    def is_monotone(
        self: DecisionMachine,
        feature: Feature,
        direction: str = "increasing",
        *,
        output: int | str | None = None,
        budget: int = 200_000,
    ) -> Monotonicity:
        """Whether a margin never falls ("decreasing": never rises) as one feature grows.

        Truthy where proven; else `verdict` is "refuted", with a pair of inputs `X` that the
        machine itself gives these margins, or "unknown" where the budget was spent.

        Parameters
        ----------
        feature
            Its name or number.
        direction
            "increasing" or "decreasing".
        output
            Which margin, where there are several: its number, or the label of its class.
        budget
            How many pairs of leaves may be looked at.

        Examples
        --------
        >>> import decision_machines as dm
        >>> dm.figure_one().is_monotone("x[3]")
        Monotonicity(proven: increasing in x[3])
        >>> dm.figure_one().is_monotone("x[3]", "decreasing")
        Monotonicity(refuted: decreasing in x[3]; 3 → 6 takes the margin from 5 to 6)
        """
        from ...explain.space.monotone import is_monotone

        return is_monotone(self, feature, direction, output=output, budget=budget)

    def simplify(self: DecisionMachine) -> DecisionMachine:
        """The machine with less in it; every prediction stays the same, bit for bit.

        Removed are tests whose result the path above them decides, leaves that no input reaches,
        tests with equal subtrees on both sides, and columns that nothing reads.

        Examples
        --------
        >>> import decision_machines as dm
        >>> from dataclasses import replace
        >>> machine = dm.figure_one()
        >>> replace(machine, V=machine.V.clip(4)).simplify()
        DecisionMachine(1 tree, 3 leaves, depth 2, 4 features; the paper's Fig. 1)
        """
        from ...explain.identity.simplify import simplify

        return simplify(self)

    def fingerprint(self: DecisionMachine) -> str:
        """A hash of all that decides predictions, the same in every process and on every computer.

        Equal for machines that differ only in how tests and columns are numbered, in columns
        that no test reads, in feature names, in `source` and in the source's own numbers of
        nodes. SHA-256 over the columns read, thresholds, missing sides, children, values and
        output, tests in preorder; "dm1:" names this order.

        Examples
        --------
        >>> import decision_machines as dm
        >>> dm.figure_one().fingerprint()[:12]
        'dm1:7751007b'
        """
        from ...explain.identity.canonical import fingerprint

        return fingerprint(self)

    def partial_dependence(
        self: DecisionMachine,
        X: Any,
        features: Feature | tuple[Feature, Feature],
        *,
        grid: Any = None,
        n_grid: int = 100,
        percentiles: tuple[float, float] = (0.05, 0.95),
        output: str = "response",
        individual: bool = False,
        sample_weight: Any = None,
        n_threads: int | None = None,
    ) -> PartialDependence:
        """The mean response over the rows of X with one or two features set to values of a grid.

        As scikit-learn's `partial_dependence(method="brute")`, up to the order of sums, by delta
        scoring: only trees that test the features are redone, once for each code that the grid
        has in them.

        Parameters
        ----------
        X
            Rows, as `predict` takes them.
        features
            One feature or two, by name or number.
        grid
            Values of the feature (of each of two). By default all its labels, or its distinct
            values; where these are `n_grid` or more, `n_grid` numbers at equal steps.
        n_grid, percentiles
            How many steps there are, and which shares of the rows, from 0 to 1, lie below the
            first and the last of them.
        output
            "response" or "margin".
        individual
            Whether to keep every row's own curve too.
        sample_weight
            (m,) weights of the rows in the mean.

        Returns
        -------
        PartialDependence
            `grid`, `average` of shape (responses, grid, ...) and `individual`.

        Examples
        --------
        >>> import decision_machines as dm
        >>> found = dm.figure_one().partial_dependence([[2, 1, 2, 2], [0, 1, 2, 2]], 2, grid=[1, 9])
        >>> found.average.tolist()
        [[3.0, 3.5]]
        """
        from ...explain.effects.inspection import partial_dependence

        return partial_dependence(
            self,
            X,
            features,
            grid=grid,
            n_grid=n_grid,
            percentiles=percentiles,
            output=output,
            individual=individual,
            sample_weight=sample_weight,
            n_threads=n_threads,
        )

    def ice(
        self: DecisionMachine,
        X: Any,
        feature: Feature,
        *,
        grid: Any = None,
        n_grid: int = 100,
        percentiles: tuple[float, float] = (0.05, 0.95),
        output: str = "response",
        n_threads: int | None = None,
    ) -> PartialDependence:
        """Each row's own curve as one feature moves (individual conditional expectation).

        As `partial_dependence` with `individual=True`, whose other parameters it has: curves are
        (responses, m, grid).

        Parameters
        ----------
        X
            Rows, as `predict` takes them.
        feature
            Its name or number.

        Examples
        --------
        >>> import decision_machines as dm
        >>> dm.figure_one().ice([[2, 1, 2, 2], [0, 1, 2, 2]], "x[3]", grid=[1, 9]).individual
        array([[[5., 6.],
                [1., 1.]]])
        """
        from ...explain.effects.inspection import ice

        return ice(
            self,
            X,
            feature,
            grid=grid,
            n_grid=n_grid,
            percentiles=percentiles,
            output=output,
            n_threads=n_threads,
        )

    def importance(
        self: DecisionMachine,
        X: Any = None,
        y: Any = None,
        *,
        n_repeats: int = 5,
        seed: int = 0,
        metric: Callable[[Any, Any], float] | None = None,
        n_threads: int | None = None,
        verbose: bool | int | None = False,
    ) -> Importance:
        """How often each feature is tested, what it adds to margins, what shuffling it costs.

        Parameters
        ----------
        X, y
            Rows and their true labels or values. With rows there is the mean of ``|φ|``, Shapley
            values by paths, where the machine has covers; with both, the cost of shuffling.
        n_repeats, seed
            Of the shuffles, which are those of scikit-learn's `permutation_importance`.
        metric
            metric(y, predictions), the larger the better; by default accuracy for labels and R²
            for values.
        verbose
            Whether to show progress; None shows it, too, but not for quick work in a pipe.

        Examples
        --------
        >>> import decision_machines as dm
        >>> dm.figure_one().importance().splits.tolist()
        [1, 2, 1, 1]
        """
        from ...explain.effects.importance import importance

        return importance(
            self,
            X,
            y,
            n_repeats=n_repeats,
            seed=seed,
            metric=metric,
            n_threads=n_threads,
            verbose=verbose,
        )

    def proximity(
        self: DecisionMachine,
        X: Any,
        Y: Any = None,
        *,
        by: str = "leaf",
        n_threads: int | None = None,
    ) -> sp.csr_array:
        """(m, n) how alike rows are to the machine, as a sparse matrix; 1 for a row and itself.

        Paper: the kernel estimate of a leaf's value. A product of one-hot matrices of leaves.

        Parameters
        ----------
        Y
            Rows to compare with; X itself by default.
        by
            "leaf": the share of trees in which both rows reach one leaf. "code": in which *all*
            tests send both to the same side, as the paper's δ(‖h, hᵢ‖_B) asks. "value": as "leaf",
            leaves weighed by the size of their values (for boosted trees, whose first trees say
            most).

        Examples
        --------
        >>> import decision_machines as dm
        >>> rows = [[2, 1, 2, 2], [2, 9, 2, 2], [0, 1, 2, 2]]
        >>> dm.figure_one().proximity(rows).toarray()[0]
        array([1., 1., 0.])
        >>> dm.figure_one().proximity(rows, by="code").toarray()[0]
        array([1., 0., 0.])
        """
        from ...explain.effects.kernel import proximity

        return proximity(self, X, Y, by=by, n_threads=n_threads)

    def nearest(
        self: DecisionMachine,
        X: Any,
        X_train: Any,
        y_train: Any = None,
        *,
        counts: Any = None,
        by: str = "auto",
        n_threads: int | None = None,
    ) -> Neighbours:
        """The training rows behind each prediction, with weights.

        A forest that averages leaves, whose values are means of the training rows in them, is a
        weighted mean of training targets: these are the weights. With `y_train`, `residual` says
        what they leave unexplained and `reproduces` whether that is rounding alone.

        Parameters
        ----------
        X, X_train, y_train
            Rows to explain; rows and targets of training.
        counts
            (training rows, trees) how often each tree was given each row, where it was trained on
            a bootstrap sample. By default once.
        by
            "mean": the rows of a leaf share it equally. "value": leaves weigh by the size of their
            values; a similarity, for boosted trees, which are not a mean of training targets.
            "auto": by what the machine is.

        Examples
        --------
        >>> import decision_machines as dm
        >>> rows, answers = [[2, 1, 2, 2], [2, 9, 2, 2], [0, 1, 2, 2]], [5, 5, 1]
        >>> found = dm.figure_one().nearest([[3, 3, 3, 3]], rows, answers)
        >>> found
        Neighbours(1 row, 3 training rows, weights by mean, reproduces the margins)
        >>> found.top(0)
        (array([0, 1]...), array([0.5, 0.5]))
        """
        from ...explain.effects.kernel import nearest

        return nearest(self, X, X_train, y_train, counts=counts, by=by, n_threads=n_threads)

    def polynomial(self: DecisionMachine, *, max_products: int = 1_000_000) -> Polynomial:
        """The machine as a sum of products of step functions, equal products merged.

        Paper: the remarks on MARS and MonoForest. Exact: its `margin` is the machine's, within
        the rounding of a sum in another order.

        Parameters
        ----------
        max_products
            Refuse machines with more products before merging: a leaf has up to
            2^(features left of a test) of them.

        Examples
        --------
        >>> import decision_machines as dm
        >>> print(dm.figure_one().subtree(2).polynomial())
        Polynomial(2 monomials of 1 steps, degree 1; from 2 leaves of 1 tree)
          5
          1 · [x[3] > 3 or missing]
        """
        from ...explain.paths.polynomial import polynomial

        return polynomial(self, max_products=max_products)
