// The way of rows through a tree that was found.
#pragma once

#include <cstdint>

namespace dm::search {

// Nodes in preorder, the root first.
struct NodeArrays {
    const int64_t* left;  // (n_nodes,) -1 at a leaf
    const int64_t* right;
    const int32_t* feature;
    const double* t;  // a row goes left where x <= t
    const uint8_t* missing_left;
};

// The node where each row leaves the tree.
void exit_nodes(const NodeArrays& tree, const double* X, int64_t m, int64_t n,  // (m, n)
                int64_t* out);                                                  // (m,)

}  // namespace dm::search
