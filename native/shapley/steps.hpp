// A tree's program, step by step: for many rows (walk.hpp) and for one (one_row.hpp).
//
// Compiled once for each target, within the kernels.
#pragma once

#include "shapley/kernels.hpp"

namespace dm::shapley {
namespace DM_TARGET {
namespace {

// The walker has a function for each step; test_at(i) is H in slot i, leaf(child) that of a leaf.
template <typename T, typename Walker>
inline void take_steps(const Tree<T>& tree, Walker& walker) {
    for (const Step *step = tree.steps, *end = step + tree.n_steps; step < end; ++step) {
        const Test<T>& test = tree.tests[step->test];
        const int64_t level = step->level;
        switch (step->op) {
            case Op::down: walker.down(test, level); break;
            case Op::down_right: walker.down_right(test, level); break;
            case Op::turn: walker.turn(test, level); break;
            case Op::up:
                walker.up(*step, test, walker.test_at(level + 1), walker.test_at(0));
                break;
            case Op::up_left:
                walker.up(*step, test, walker.test_at(0), walker.leaf(test.right));
                break;
            case Op::up_right:
                walker.up(*step, test, walker.leaf(test.left), walker.test_at(0));
                break;
            case Op::two_leaves: walker.two_leaves(*step, test); break;
            case Op::bottom_both: walker.template bottom<true, true>(*step, test); break;
            case Op::bottom_left: walker.template bottom<true, false>(*step, test); break;
            case Op::bottom_right: walker.template bottom<false, true>(*step, test); break;
            case Op::low_both: walker.template low_tests<true, true>(*step, test); break;
            case Op::low_left: walker.template low_tests<true, false>(*step, test); break;
            case Op::low_right: walker.template low_tests<false, true>(*step, test); break;
        }
    }
}

}  // namespace
}  // namespace DM_TARGET
}  // namespace dm::shapley
