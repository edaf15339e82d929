// Python's door to optimal trees: check shapes, release the GIL, call.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <chrono>
#include <optional>
#include <tuple>

#include "common/arrays.hpp"
#include "common/interruptible.hpp"
#include "common/require.hpp"
#include "common/targets.hpp"
#include "optimal/search.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dm::optimal {
namespace {

using common::Array;
using common::give;
using common::In;
using common::interruptible;
using common::require;

const Kernels& kernels_of(const std::string& target) {
    const Kernels* found = common::find_kernels<Kernels>(DM_OF_EVERY_TARGET(kernels), target);
    require(found != nullptr, "no such target here");
    return *found;
}

template <typename A>
auto copied(const A& array) {
    return std::vector<std::decay_t<decltype(*array.data())>>(array.data(),
                                                              array.data() + array.size());
}

// Rows of our own, and the search over them.
class OptimalSearch {
public:
    OptimalSearch(const OptimalSearch&) = delete;  // the search points at the rows
    OptimalSearch(In<int32_t, 2> rank, std::optional<In<int32_t, 1>> label,
                  std::optional<In<double, 2>> y, In<double, 1> w, int64_t k,
                  const std::string& loss, int64_t depth, int64_t leaves, int64_t least,
                  double penalty, double slack, bool is_whole, double limit,
                  const std::string& target)
        : rank_(copied(rank)), w_(copied(w)) {
        const int64_t n = static_cast<int64_t>(rank.shape(0)),
                      m = static_cast<int64_t>(rank.shape(1));
        require(m >= 1 && m < (int64_t{1} << 30), "rows: 1 to 2**30");
        require(static_cast<int64_t>(w_.size()) == m, "w must be (m,)");
        require(k >= 1 && k < (1 << 20), "no output");
        require(label.has_value() != y.has_value(), "either labels or numbers");
        require(label.has_value() == (loss == "error"), "labels are for loss 'error'");
        require(loss == "error" || loss == "squared" || loss == "absolute", "no such loss");
        require(0 <= depth && depth <= kDeepest && leaves >= 1 && least >= 1 && penalty >= 0.0 &&
                    slack >= 0.0,
                "a setting is out of range");
        for (const int32_t r : rank_) require(r >= 0 && r < m, "a rank beyond the rows");
        for (const double weight : w_) require(weight > 0.0, "a weight that is not above 0");
        if (label) {
            label_ = copied(*label);
            require(static_cast<int64_t>(label_.size()) == m, "label must be (m,)");
            for (const int32_t c : label_) require(c >= 0 && c < k, "a label outside 0..k-1");
        } else {
            y_ = copied(*y);
            require(
                static_cast<int64_t>(y->shape(0)) == k && static_cast<int64_t>(y->shape(1)) == m,
                "y must be (k, m)");
        }
        const Loss kind = loss == "error"     ? Loss::error
                          : loss == "squared" ? Loss::squared
                                              : Loss::absolute;
        const Problem problem{m,
                              static_cast<int32_t>(n),
                              kind,
                              static_cast<int32_t>(k),
                              rank_.data(),
                              label ? label_.data() : nullptr,
                              label ? nullptr : y_.data(),
                              w_.data(),
                              is_whole,
                              least,
                              penalty,
                              slack};
        const Kernels& kernels = kernels_of(target);
        interruptible([&] {
            search_ = std::make_unique<Search>(problem, kernels, static_cast<int32_t>(depth),
                                               leaves, limit);
        });
    }

    bool run(double seconds, int64_t n_threads, nb::callable told) {
        const auto now = Stop::Clock::now();
        // Beyond a century the clock would wrap.
        const auto end = now + std::chrono::duration_cast<Stop::Clock::duration>(
                                   std::chrono::duration<double>(std::min(seconds, 3e9)));
        return interruptible([&] {
            return search_->run(end, n_threads, [&](Progress progress) {
                nb::gil_scoped_acquire acquire;
                told(progress.value, progress.bound);
            });
        });
    }

    std::tuple<double, double, int64_t> state() const {
        const Progress progress = search_->progress();
        return {progress.value, progress.bound, search_->n_cuts()};
    }

    // (nodes, 3) flat: feature or -1, below, above.
    Array<int32_t, 1> tree() const {
        std::vector<int32_t> out;
        for (const Test& test : search_->tree().tests)
            out.insert(out.end(), {test.feature, test.below, test.above});
        return give(std::move(out));
    }

private:
    std::vector<int32_t> rank_, label_;
    std::vector<double> w_, y_;
    std::unique_ptr<Search> search_;
};

}  // namespace

void bind(nb::module_& m) {
    nb::class_<OptimalSearch>(m, "OptimalSearch", "Branch and bound for the best small tree.")
        .def(nb::init<In<int32_t, 2>, std::optional<In<int32_t, 1>>, std::optional<In<double, 2>>,
                      In<double, 1>, int64_t, const std::string&, int64_t, int64_t, int64_t, double,
                      double, bool, double, const std::string&>(),
             "rank"_a, "label"_a.none(), "y"_a.none(), "w"_a, "k"_a, "loss"_a, "depth"_a,
             "leaves"_a, "least"_a, "penalty"_a, "slack"_a, "is_whole"_a, "limit"_a, "target"_a)
        .def("run", &OptimalSearch::run, "seconds"_a, "n_threads"_a, "told"_a,
             "Search until all is proven (True) or the time is up (False); told(value, bound).")
        .def("state", &OptimalSearch::state,
             "Value of the best tree found, bound of all trees, cuts of the root tried.")
        .def("tree", &OptimalSearch::tree,
             "Feature (-1: a leaf), rank below and above the cut of each node of a complete tree.");
}

}  // namespace dm::optimal
