// The whole search: cuts of the root in the order of their bounds, shared among threads.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "optimal/solver.hpp"

namespace dm::optimal {

struct Progress {
    double value;  // of the best tree; infinite where there is none
    double bound;  // no tree has less
};

class Search {
public:
    // `limit`: trees of this value or more are not looked for.
    Search(const Problem& problem, const Kernels& kernels, int32_t depth, int64_t leaves,
           double limit);

    // Until all is proven or the time is up; true where it is proven. `told` hears of progress, on
    // this thread.
    bool run(Stop::Clock::time_point end, int64_t n_threads,
             const std::function<void(Progress)>& told);

    Progress progress() const { return {best_.value, bound_}; }
    const Tree& tree() const { return best_.tree; }
    int64_t n_cuts() const { return n_cuts_; }  // of the root that were tried

private:
    bool run_small(Stop& stop);
    void batch(Stop& stop, int64_t n_threads);
    void take(Solved&& solved);
    double limit() const { return std::min(limit_, best_.value); }

    const Problem problem_;
    const Kernels& kernels_;
    const int32_t depth_;
    const int64_t leaves_;
    const double limit_;
    Node root_;
    Solved best_;
    double bound_;
    double done_ = kInfinite;  // least bound of what needs no further look
    int64_t n_cuts_ = 0;
    bool is_started_ = false;
    std::vector<Interval> heap_;
    std::vector<std::unique_ptr<Solver>> solvers_;
};

}  // namespace dm::optimal
