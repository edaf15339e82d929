// The nodes of trees, numbered anyhow, put into the order of a machine.
// Tests of one tree are consecutive, the root first and every parent before its children; leaves
// are consecutive too, counted left to right.
#pragma once

#include <cstdint>
#include <vector>

namespace dm::structure {

// What is wrong with a tree handed to `layout`; `ok` when nothing is.
enum class Fault : int { ok = 0, out_of_range = 1, visited_twice = 2, half_leaf = 3 };

struct Layout {
    std::vector<int64_t> tests;       // (J,) node of each test, every tree in preorder
    std::vector<int64_t> leaves;      // (L,) node of each leaf, left to right
    std::vector<int32_t> children;    // (J, 2)
    std::vector<int64_t> test_start;  // (T + 1,)
    Fault fault = Fault::ok;
    int64_t fault_tree = 0;
    int64_t fault_node = 0;  // counted within its tree
};

// Put the nodes of arbitrary numbered trees into the order of a machine.
// Node ids in left / right are counted within the tree; a leaf has left < 0 and right < 0.
Layout layout(const int64_t* left,        // (N,)
              const int64_t* right,       // (N,)
              const int64_t* node_start,  // (T + 1,)
              int64_t n_trees);

}  // namespace dm::structure
