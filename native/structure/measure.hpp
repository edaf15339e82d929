// A machine's trees checked and measured.
//
// A tree of J tests has J + 1 leaves. `children` is (J, 2): a test >= 0 or ~leaf.
// Tests of one tree are consecutive, the root first and every parent before its children;
// leaves are consecutive too, counted left to right.
#pragma once

#include <cstdint>

namespace dm::structure {

// The first place where children and test_start break a rule of a machine's trees.
enum class Rule : int { ok = 0, after_parent = 1, one_parent = 2, left_to_right = 3 };

struct Breach {
    Rule rule = Rule::ok;
    int64_t test = 0;  // the test whose child it is (a node without a parent: the node itself)
    int side = 0;      // 0 left, 1 right; -1 a test without a parent, -2 a leaf without one
};

// Check that every tree is one binary tree, parents before children, leaves left to right.
// On success depth, first_leaf, n_leaves and leaf_depth are filled as by `measure`.
Breach check(const int32_t* children,    // (J, 2)
             const int64_t* test_start,  // (T + 1,)
             int64_t n_trees, int32_t* depth, int32_t* first_leaf, int32_t* n_leaves,
             int32_t* leaf_depth);

// Depth of every test and the leaves below it, in two passes over parents-first tests.
void measure(const int32_t* children,    // (J, 2)
             const int64_t* test_start,  // (T + 1,)
             int64_t n_trees,
             int32_t* depth,       // (J,)  out
             int32_t* first_leaf,  // (J,)  out
             int32_t* n_leaves);   // (J,)  out

// Depth of every leaf: how many tests its template asks for.
void leaf_depths(const int32_t* children, const int64_t* test_start, int64_t n_trees,
                 const int32_t* depth,  // (J,)
                 int32_t* leaf_depth);  // (L,)  out

}  // namespace dm::structure
