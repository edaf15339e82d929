// The top of a deep tree as a tree of its own, done by selects before rows go on alone.
#pragma once

#include <functional>

#include "engine/plan/plan.hpp"

namespace dm::engine {

// The tests of one tree with the most leaves below them, as a tree of its own.
struct TopTree {
    std::vector<int32_t> tests;     // of the machine, in preorder
    std::vector<int32_t> children;  // (n_tests, 2), a test or ~leaf
    std::vector<int32_t> size;      // leaves of the whole tree below each test
    std::vector<int32_t> exits;     // what its leaves are in the machine: a test, or ~leaf
};

TopTree find_top(const Machine::Trees& trees, int64_t tree, const std::vector<int32_t>& size,
                 int64_t n_tests);

// The selects of a top. `place` says where a test (>= 0) or leaf (~leaf) of the machine stands,
// where rows go on.
Top make_top(const TopTree& top, const std::vector<Coded>& coded,
             const std::function<uint32_t(int32_t)>& place);

}  // namespace dm::engine
