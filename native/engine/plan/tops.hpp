// The top of a deep tree as a tree of its own, done by selects before rows go on alone.
#pragma once

#include <functional>
#include <vector>

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

// Puts tops of trees that follow each other together: they share tests, and loads of columns.
class TopsWriter {
public:
    TopsWriter(const std::vector<Coded>& coded, Plan& plan) : coded_(coded), plan_(plan) {}
    ~TopsWriter() { end(); }

    // `place` says where a test (>= 0) or leaf (~leaf) of the machine stands, where rows go on.
    void add(int64_t tree, TopTree top, const std::function<uint32_t(int32_t)>& place);
    // What was added is together; as it is where a section ends.
    void end();

private:
    const std::vector<Coded>& coded_;
    Plan& plan_;
    Tops tops_;  // those that are being put together, and their trees
    std::vector<TopTree> trees_;
    size_t n_tests_ = 0;
};

}  // namespace dm::engine
