// Walks over the structure of trees: laying out, measuring, templates.
//
// A tree of J tests has J + 1 leaves. `children` is (J, 2): a test >= 0 or ~leaf.
// Tests of one tree are consecutive, the root first and every parent before its children;
// leaves are consecutive too, counted left to right.
#pragma once

#include <cstddef>
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

// Fill the ternary templates of trees [first, last) as CSR rows, columns ascending.
// Rows and columns count from the first leaf and the first test of tree `first`.
void templates(const int32_t* children, const int64_t* test_start, int64_t first, int64_t last,
               const int64_t* indptr,  // (rows + 1,)
               int32_t* indices,       // (nnz,)  out
               int8_t* data);          // (nnz,)  out

// B h of one tree, factored along its paths: each leaf's sum of +-h over its tests.
void template_product(const int32_t* children,  // (J, 2), test and leaf numbers of this tree alone
                      int64_t n_tests,
                      const int8_t* h,  // (m, J)
                      int64_t n_rows,
                      int32_t* p);  // (m, J + 1)  out

}  // namespace dm::structure
