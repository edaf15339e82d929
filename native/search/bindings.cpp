// Python's door to the search for axis-aligned trees: check shapes, release the GIL, call.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "common/arrays.hpp"
#include "common/interruptible.hpp"
#include "common/require.hpp"
#include "common/threads.hpp"
#include "search/coarse_ranks.hpp"
#include "search/exit_nodes.hpp"
#include "search/local_search.hpp"
#include "search/monotone.hpp"
#include "search/out_of_bag.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dm::search {
namespace {

using common::Array;
using common::give;
using common::In;
using common::interruptible;
using common::require;

template <typename A>
auto copied(const A& array) {
    return std::vector<std::decay_t<decltype(*array.data())>>(array.data(),
                                                              array.data() + array.size());
}

Objective objective_of(In<double, 1> mixture) {
    require(mixture.shape(0) == 6,
            "an objective is gini, entropy, error, ridge, the kind of numbers' loss, quantile");
    for (size_t i = 0; i < 6; ++i) require(mixture(i) >= 0.0, "an objective's weight is negative");
    require(mixture(4) == 0.0 || mixture(4) == 1.0 || mixture(4) == 2.0, "no such loss");
    require(mixture(5) < 1.0, "a quantile is below 1");
    return {mixture(0), mixture(1), mixture(2), mixture(3), static_cast<NumberLoss>(mixture(4)),
            mixture(5)};
}

// Rows of our own, and the searches over them.
class Searches {
public:
    Searches(const Searches&) = delete;  // searches point at the rows
    Searches(In<uint16_t, 2> rank, In<int32_t, 1> n_ranks, std::optional<In<int32_t, 1>> label,
             std::optional<In<double, 2>> y, In<double, 1> w, int64_t k)
        : rank_(copied(rank)), n_ranks_(copied(n_ranks)), w_(copied(w)) {
        const int64_t n = static_cast<int64_t>(rank.shape(0)),
                      m = static_cast<int64_t>(rank.shape(1));
        require(m >= 1 && m < (int64_t{1} << 31), "rows: 1 to 2**31");
        require(static_cast<int64_t>(n_ranks_.size()) == n && static_cast<int64_t>(w_.size()) == m,
                "n_ranks must be (n,), w (m,)");
        require(label.has_value() != y.has_value(), "either labels or numbers");
        require(k >= 1, "no output");
        for (int64_t f = 0; f < n; ++f) {
            require(n_ranks_[f] >= 0 && n_ranks_[f] <= 65535, "up to 65535 ranks");
            for (int64_t i = 0; i < m; ++i) {
                const uint16_t r = rank_[f * m + i];
                require(r == kMissing || r < n_ranks_[f], "a rank beyond n_ranks");
            }
        }
        if (label) {
            label_ = copied(*label);
            require(static_cast<int64_t>(label_.size()) == m, "label must be (m,)");
            for (const int32_t c : label_) require(c >= 0 && c < k, "a label outside 0..k-1");
        } else {
            y_ = copied(*y);
            require(
                static_cast<int64_t>(y->shape(0)) == m && static_cast<int64_t>(y->shape(1)) == k,
                "y must be (m, k)");
        }
        by_row_.resize(rank_.size());
        for (int64_t f = 0; f < n; ++f)
            for (int64_t i = 0; i < m; ++i) by_row_[i * n + f] = rank_[f * m + i];
        bins_ = bins_of(rank_, n_ranks_, m);
        rows_.m = m, rows_.n = static_cast<int32_t>(n), rows_.k = static_cast<int32_t>(k);
        rows_.rank = rank_.data(), rows_.n_ranks = n_ranks_.data();
        if (label)
            rows_.label = label_.data();
        else
            rows_.y = y_.data();
        rows_.w = w_.data();
        if (std::all_of(w_.begin(), w_.end(), [&](double own) { return own == w_[0]; }))
            rows_.each = w_[0];
        binned_rows_ = rows_;
        binned_rows_.bin = bins_.bin.data(), binned_rows_.upper = bins_.upper.data();
        binned_rows_.n_ranks = bins_.n_bins.data();
    }

    void add(uint64_t seed, int64_t max_leaves, int64_t max_depth, int64_t least,
             double temperature, int64_t n_moves, In<double, 1> mixture, double leaf_cost,
             std::optional<In<double, 1>> feature_cost, std::optional<In<int8_t, 1>> monotone) {
        require(max_leaves >= 1 && max_leaves < (1 << 28) && max_depth >= 0 && least >= 1 &&
                    n_moves >= 1 && temperature >= 0.0 && leaf_cost >= 0.0,
                "a setting is out of range");
        SearchSettings settings{max_leaves, max_depth, least, temperature, n_moves,
                                seed,       leaf_cost, {},    {},          objective_of(mixture)};
        if (feature_cost) settings.feature_cost = copied(*feature_cost);
        if (monotone) settings.monotone = copied(*monotone);
        const size_t n = n_ranks_.size();
        require(!feature_cost || feature_cost->shape(0) == n, "a cost for each feature");
        require(!monotone || (monotone->shape(0) == n && (y_.size() || rows_.k == 2)),
                "a direction for each feature, and numbers or two classes");
        interruptible([&] {
            searches_.push_back(
                std::make_unique<LocalSearch>(rows_, binned_rows_, by_row_.data(), settings));
        });
    }

    // Search i does moves(i) moves.
    void advance(In<int64_t, 1> moves, int64_t n_threads) {
        require(moves.shape(0) == searches_.size(), "moves for each search");
        const std::vector<int64_t> n_moves = copied(moves);
        interruptible([&] {
            common::share(static_cast<int64_t>(searches_.size()), n_threads, [&](auto next) {
                for (int64_t i = next(); i >= 0; i = next())
                    if (n_moves[i] > 0) at(i).advance(n_moves[i]);
            });
        });
    }

    LocalSearch& at(int64_t i) const {
        require(0 <= i && i < static_cast<int64_t>(searches_.size()) && searches_[i],
                "no such search");
        return *searches_[i];
    }

    void grow(int64_t i, bool in_bins) {
        interruptible([&] { at(i).grow(in_bins); });
    }

    void aim(int64_t i, In<double, 1> mixture) { at(i).aim(objective_of(mixture)); }

    // `least`, `largest` (of each rank) and `start` (of each feature) as Places has them.
    nb::dict tree(int64_t i, In<double, 1> least, In<double, 1> largest,
                  In<int64_t, 1> start) const {
        require(start.shape(0) == n_ranks_.size() + 1, "start for each feature and the total");
        for (size_t f = 0; f < n_ranks_.size(); ++f)
            require(start(f + 1) - start(f) == n_ranks_[f], "start does not fit the ranks");
        const size_t total = static_cast<size_t>(start(n_ranks_.size()));
        require(start(0) == 0 && least.shape(0) == total && largest.shape(0) == total,
                "a place for each rank");
        const Places places{least.data(), largest.data(), start.data()};
        TreeArrays found;
        {
            nb::gil_scoped_release release;
            found = at(i).tree(&places);
        }
        nb::dict out;
        out["left"] = give(std::move(found.left));
        out["right"] = give(std::move(found.right));
        out["feature"] = give(std::move(found.feature));
        out["cut"] = give(std::move(found.cut));
        out["below"] = give(std::move(found.below));
        out["above"] = give(std::move(found.above));
        out["missing_left"] = give(std::move(found.missing_left));
        out["totals"] = give(std::move(found.totals));
        out["weight"] = give(std::move(found.weight));
        out["count"] = give(std::move(found.count));
        return out;
    }

    // The best test for the rows `ids`; with `lean`, the one they prefer.
    std::tuple<double, int32_t, int32_t, bool> best_test(In<int32_t, 1> ids,
                                                         std::optional<In<double, 1>> lean,
                                                         int64_t least,
                                                         In<double, 1> mixture) const {
        for (size_t i = 0; i < ids.shape(0); ++i)
            require(ids(i) >= 0 && ids(i) < rows_.m, "no such row");
        require(!lean || lean->shape(0) == ids.shape(0), "lean for each row");
        SplitSearch search(rows_);
        Split best;
        search.enter(ids.data(), static_cast<int64_t>(ids.shape(0)), lean ? lean->data() : nullptr);
        for (int32_t f = 0; f < rows_.n; ++f) {
            if (lean) {
                search.preferred(f, least, best);
            } else {
                search.purest(objective_of(mixture), f, least, best);
            }
        }
        return {best.loss, best.feature, best.cut, best.missing_left};
    }

    // The best two levels of tests for the rows `ids`: loss up to a constant, (feature, cut) of the
    // first test and of those on its left and right, −1 where there is none.
    std::pair<double, Array<int32_t, 1>> best_two_levels(In<int32_t, 1> ids, int64_t least,
                                                         In<double, 1> mixture) const {
        for (size_t i = 0; i < ids.shape(0); ++i)
            require(ids(i) >= 0 && ids(i) < rows_.m, "no such row");
        std::vector<int32_t> features(rows_.n), tests;
        for (int32_t f = 0; f < rows_.n; ++f) features[f] = f;
        const Objective objective = objective_of(mixture);
        require(rows_.classify() || !objective.is_quantile(), "a loss of sums");
        const TwoLevels found =
            PairSearch(binned_rows_)
                .best(objective, ids.data(), static_cast<int64_t>(ids.shape(0)), features, least);
        for (const Split& test : {found.top, found.left, found.right})
            tests.push_back(test.feature), tests.push_back(test.cut);
        return {found.loss, give(std::move(tests))};
    }

    // Search i goes on from this tree, by node.
    void adopt(int64_t i, In<int64_t, 1> left, In<int64_t, 1> right, In<int32_t, 1> feature,
               In<int32_t, 1> cut, In<uint8_t, 1> missing_left) {
        const int64_t n_nodes = static_cast<int64_t>(left.shape(0));
        require(n_nodes >= 1 && n_nodes <= at(i).places(), "a tree too large");
        require(right.shape(0) == left.shape(0) && feature.shape(0) == left.shape(0) &&
                    cut.shape(0) == left.shape(0) && missing_left.shape(0) == left.shape(0),
                "arrays of a tree differ in length");
        for (int64_t j = 0; j < n_nodes; ++j)
            require(left(j) < 0 || (left(j) > j && left(j) < n_nodes && right(j) > j &&
                                    right(j) < n_nodes && feature(j) >= 0 && feature(j) < rows_.n),
                    "not a tree in preorder");
        TreeArrays found;
        found.left = copied(left), found.right = copied(right), found.feature = copied(feature);
        found.cut = copied(cut), found.missing_left = copied(missing_left);
        interruptible([&] { at(i).adopt(found); });
    }

    // Free the memory of search i.
    void drop(int64_t i) {
        at(i);
        searches_[i].reset();
    }

    std::pair<Array<double, 1>, Array<int32_t, 1>> out_of_bag(int64_t n_trees, int64_t least,
                                                              int64_t n_tried, uint64_t seed,
                                                              int64_t n_threads) const {
        require(least >= 1 && n_tried >= 1, "a setting is out of range");
        OutOfBag found = interruptible([&] {
            return search::out_of_bag(binned_rows_, n_trees, least, n_tried, seed, n_threads);
        });
        return {give(std::move(found.sum)), give(std::move(found.count))};
    }

    void polish(int64_t i) {
        interruptible([&] { at(i).polish(); });
    }

private:
    std::vector<uint16_t> rank_, by_row_;
    std::vector<int32_t> n_ranks_, label_;
    std::vector<double> w_, y_;
    Bins bins_;
    Rows rows_, binned_rows_;
    std::vector<std::unique_ptr<LocalSearch>> searches_;
};

// n features
NodeArrays checked(In<int64_t, 1> left, In<int64_t, 1> right, In<int32_t, 1> feature,
                   In<double, 1> t, In<uint8_t, 1> missing_left, int64_t n) {
    const int64_t n_nodes = static_cast<int64_t>(left.shape(0));
    require(n_nodes >= 1 && right.shape(0) == left.shape(0) && feature.shape(0) == left.shape(0) &&
                t.shape(0) == left.shape(0) && missing_left.shape(0) == left.shape(0),
            "arrays of a tree differ in length");
    for (int64_t i = 0; i < n_nodes; ++i)
        require(left(i) < 0 || (left(i) > i && left(i) < n_nodes && right(i) > i &&
                                right(i) < n_nodes && feature(i) >= 0 && feature(i) < n),
                "not a tree in preorder");
    return {left.data(), right.data(), feature.data(), t.data(), missing_left.data()};
}

// (m,)
Array<int64_t, 1> py_exit_nodes(In<int64_t, 1> left, In<int64_t, 1> right, In<int32_t, 1> feature,
                                In<double, 1> t, In<uint8_t, 1> missing_left, In<double, 2> X) {
    const int64_t m = static_cast<int64_t>(X.shape(0)), n = static_cast<int64_t>(X.shape(1));
    const NodeArrays tree = checked(left, right, feature, t, missing_left, n);
    std::vector<int64_t> out(static_cast<size_t>(m));
    {
        nb::gil_scoped_release release;
        exit_nodes(tree, X.data(), m, n, out.data());
    }
    return give(std::move(out));
}

// (n_nodes,)
Array<double, 1> py_monotone_values(In<int64_t, 1> left, In<int64_t, 1> right,
                                    In<int32_t, 1> feature, In<double, 1> t,
                                    In<uint8_t, 1> missing_left, In<int8_t, 1> sign,
                                    In<double, 1> value) {
    const NodeArrays tree =
        checked(left, right, feature, t, missing_left, static_cast<int64_t>(sign.shape(0)));
    require(value.shape(0) == left.shape(0), "a value for each node");
    std::vector<double> out = copied(value);
    make_monotone(tree, static_cast<int64_t>(out.size()), sign.data(), out.data());
    return give(std::move(out));
}

}  // namespace

void bind(nb::module_& m) {
    nb::class_<Searches>(m, "TreeSearches",
                         "Local searches for axis-aligned trees over the same rows.")
        .def(nb::init<In<uint16_t, 2>, In<int32_t, 1>, std::optional<In<int32_t, 1>>,
                      std::optional<In<double, 2>>, In<double, 1>, int64_t>(),
             "rank"_a, "n_ranks"_a, "label"_a.none(), "y"_a.none(), "w"_a, "k"_a)
        .def("add", &Searches::add, "seed"_a, "max_leaves"_a, "max_depth"_a, "least"_a,
             "temperature"_a, "n_moves"_a, "objective"_a, "leaf_cost"_a = 0.0,
             "feature_cost"_a.none() = nb::none(), "monotone"_a.none() = nb::none(),
             "One more search; `objective` is gini, entropy, error, ridge, the loss of numbers (0 "
             "squared, 1 Poisson, 2 quantile) and the quantile.")
        .def("adopt", &Searches::adopt, "i"_a, "left"_a, "right"_a, "feature"_a, "cut"_a,
             "missing_left"_a, "Search i goes on from this tree, by node in preorder.")
        .def("drop", &Searches::drop, "i"_a, "Free the memory of search i, which has ended.")
        .def("out_of_bag", &Searches::out_of_bag, "n_trees"_a, "least"_a, "n_tried"_a, "seed"_a,
             "n_threads"_a, "Sums (m k,) over a forest's trees that left a row out, counts (m,).")
        .def("polish", &Searches::polish, "i"_a, "Every test of search i's best tree, again.")
        .def("grow", &Searches::grow, "i"_a, "in_bins"_a = false,
             "Search i starts from the greedy tree; with `in_bins` at most 255 cuts a feature.")
        .def("advance", &Searches::advance, "moves"_a, "n_threads"_a,
             "Search i does moves[i] moves.")
        .def("aim", &Searches::aim, "i"_a, "objective"_a, "Another objective from now on.")
        .def(
            "loss", [](const Searches& s, int64_t i) { return s.at(i).loss(); }, "i"_a,
            "Of search i's best tree.")
        .def("tree", &Searches::tree, "i"_a, "least"_a, "largest"_a, "start"_a,
             nb::sig("def tree(self, i: int, least: numpy.typing.NDArray[numpy.float64], "
                     "largest: numpy.typing.NDArray[numpy.float64], "
                     "start: numpy.typing.NDArray[numpy.int64]) "
                     "-> dict[str, numpy.typing.NDArray[typing.Any]]"),
             "Search i's best tree, by node; least, largest (of each rank), start (of features).")
        .def(
            "best_test", &Searches::best_test, "ids"_a, "lean"_a.none(), "least"_a, "objective"_a,
            "Loss, feature, cut, missing_left of the best test for rows `ids`; with `lean`, of the "
            "one they prefer.")
        .def("best_two_levels", &Searches::best_two_levels, "ids"_a, "least"_a, "objective"_a,
             "Loss up to a constant, and (feature, cut) of the best first test for rows `ids` and "
             "of those on its left and right; −1 for none.");
    m.def("exit_nodes", &py_exit_nodes, "left"_a, "right"_a, "feature"_a, "t"_a, "missing_left"_a,
          "X"_a, "The node where each row of X leaves a tree.");
    m.def("monotone_values", &py_monotone_values, "left"_a, "right"_a, "feature"_a, "t"_a,
          "missing_left"_a, "sign"_a, "value"_a,
          "Values by node, those of leaves changed until they never fall (sign +1) or rise (−1).");
}

}  // namespace dm::search
