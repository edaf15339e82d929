#include "optimal/search.hpp"

#include <algorithm>
#include <mutex>
#include <optional>

#include "common/threads.hpp"

namespace dm::optimal {
namespace {

// Intervals tried between two looks at the best tree. Not the number of threads: what is found must
// not depend on them.
constexpr int64_t kBatch = 8;

}  // namespace

Search::Search(const Problem& problem, const Kernels& kernels, int32_t depth, int64_t leaves,
               double limit)
    : problem_(problem),
      kernels_(kernels),
      depth_(depth),
      leaves_(leaves),
      limit_(limit),
      bound_(problem.penalty) {
    make_root(problem_, root_);
}

void Search::take(Solved&& solved) {
    if (solved.value < best_.value) {
        best_.value = solved.value;
        best_.tree = solved.tree;
    }
}

// Trees of two levels, or of few leaves, are found in one piece.
bool Search::run_small(Stop& stop) {
    Solver solver(problem_, kernels_, stop);
    take(solver.leaf(root_, limit()));
    try {
        Solved solved = solver.solve(root_, depth_, leaves_, limit(), nullptr, nullptr);
        solver.complete(root_, leaves_, solved);
        take(std::move(solved));
    } catch (const TimeIsUp&) {
        return false;
    }
    bound_ = limit();
    return true;
}

void Search::batch(Stop& stop, int64_t n_threads) {
    std::vector<Interval> taken;
    while (!heap_.empty() && static_cast<int64_t>(taken.size()) < kBatch) {
        std::pop_heap(heap_.begin(), heap_.end());
        if (heap_.back().bound >= limit() - problem_.slack) {
            for (const Interval& interval : heap_) done_ = std::min(done_, interval.bound);
            heap_.clear();
            break;
        }
        taken.push_back(std::move(heap_.back()));
        heap_.pop_back();
    }
    const int64_t n = static_cast<int64_t>(taken.size());
    if (n == 0) return;
    std::vector<std::optional<Solver::Tried>> found(n);
    const double below = limit();
    std::mutex guard;
    std::vector<Solver*> idle;
    while (static_cast<int64_t>(solvers_.size()) < std::min(n_threads, n))
        solvers_.push_back(std::make_unique<Solver>(problem_, kernels_, stop));
    for (const auto& solver : solvers_) idle.push_back(solver.get());
    common::share(n, n_threads, [&](auto next) {
        Solver* solver;
        {
            const std::lock_guard<std::mutex> lock(guard);
            solver = idle.back();
            idle.pop_back();
        }
        try {
            for (int64_t i = next(); i >= 0; i = next())
                found[i] = solver->attempt(root_, depth_, taken[i], below);
        } catch (const TimeIsUp&) {
        }
    });
    for (int64_t i = 0; i < n; ++i) {
        if (!found[i]) {
            heap_.push_back(std::move(taken[i]));
            std::push_heap(heap_.begin(), heap_.end());
            continue;
        }
        ++n_cuts_;
        done_ = std::min(done_, found[i]->solved.bound);
        take(std::move(found[i]->solved));
        for (Interval& part : found[i]->left) {
            heap_.push_back(std::move(part));
            std::push_heap(heap_.begin(), heap_.end());
        }
    }
}

bool Search::run(Stop::Clock::time_point end, int64_t n_threads,
                 const std::function<void(Progress)>& told) {
    Stop stop(end);
    if (depth_ <= 2 || leaves_ <= 3) return run_small(stop);
    solvers_.clear();
    Solver solver(problem_, kernels_, stop);
    if (!is_started_) {
        take(solver.leaf(root_, limit()));
        heap_ = solver.all_cuts(root_, depth_, leaves_, nullptr);
        std::make_heap(heap_.begin(), heap_.end());
        is_started_ = true;
    }
    bool is_up = false;
    while (!heap_.empty() && !is_up) {
        batch(stop, n_threads);
        // What is done reached the best value of its time, so it bounds the best of all.
        const double open = heap_.empty() ? kInfinite : heap_.front().bound;
        bound_ = std::max(bound_, std::min({open, done_, limit()}));
        told(progress());
        is_up = Stop::Clock::now() >= end;
    }
    if (heap_.empty()) bound_ = limit();
    return heap_.empty();
}

}  // namespace dm::optimal
