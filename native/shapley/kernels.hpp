// The kernels of Shapley values by paths: views of one tree and of a tile of rows, and the table of
// entry points.
//
// Rows stand in the lanes of a vector. A tree is a program of steps, from the root down and back.
// With y the points of a Gauss-Legendre rule, c the share of a test's cover that goes left, o
// whether the row goes left, delta = o - c and a = c + delta * u:
//   down:  P_left = a P,  P_right = P - P_left;  P = the rule's weights at the root
//   up:    D = H_left - H_right,  H = H_right + a D;  H = value at a leaf
//   phi of the test's feature += delta * sum over points of P b D
// u = y and b = 1, unless the feature was tested above on the path: with z the share of the cover
// that those tests leave, u = y / (z (1 - y) + y) and b = z / (z (1 - y) + y)^2, and delta = 0
// where the row does not take the path at one of them.
// Interactions: with t = delta P b D, by point, and z the share that the tests of a feature above
// leave on this side,
//   twice the interaction with that feature += sum over points of t g
// where g = (1 - z) / (z + (1 - z) y) if the row takes the path at those tests, else -1 / (1 - y).
//
// Plain structs and raw pointers only, as in engine/kernels/kernels.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/every_target.hpp"

namespace dm::shapley {

constexpr int64_t kVectorBytes = 256;  // of four vectors, the widest of any target

// What a step does. Names say which children are leaves.
enum class Op : int32_t {
    down,          // both children are tests, or the left one: P for the left
    down_right,    // the left child is a leaf: P for the right
    turn,          // the left side is done: P for the right
    up,            // both children are tests
    up_left,       // the right child is a leaf
    up_right,      // the left child is a leaf
    two_leaves,    // all of a test whose children are leaves
    bottom_both,   // all of a test whose children are tests of leaves, by moments of P
    bottom_left,   // the right child is a leaf
    bottom_right,  // the left child is a leaf
    low_both,      // the same three by points, where a feature was tested above
    low_left,
    low_right,
};

struct Step {
    Op op;
    int32_t level;  // how many tests stand above
    int32_t test;   // in the tree's own numbering
    int32_t to;  // the slot that takes H: the parent's level + 1 on the left of two tests, else 0
};

template <typename T>
struct Test {
    T t;                  // left where z is at most this
    T c;                  // share of the cover that goes left
    int32_t read;         // what is compared with t
    int32_t slot;         // of the feature among those that are tested
    int32_t prior;        // level of the last test of this feature above, or -1
    int32_t table;        // u, and after it b, where there is a prior
    int32_t left, right;  // a test, or ~leaf, in the tree's own numbering
    int32_t gain;         // n_points of g where the row takes the path, for each side
    int8_t is_prior;      // whether a test below, or an interaction, asks which way a row went here
};

// What stands above a test, for interactions: a feature, by its last test above.
struct Above {
    int32_t level;
    int32_t pair;         // see pair_of
    int32_t left, right;  // the same of the tests of leaves below that are done in the same step
};

constexpr int64_t kMostLanes = 16;  // of any target; points may be read so far behind the last

template <typename T>
struct Tree {
    int64_t n_points;
    const T* y;       // (n_points,), and as many ones: u and b of a feature's first test
    const T* weight;  // (n_points,)
    const T* loss;    // (n_points,) -1 / (1 - y)
    const Step* steps;
    int64_t n_steps;
    const Test<T>* tests;
    const T* tables;             // u and b of tests with a prior
    const T* values;             // (leaves, width)
    int64_t width;               // outputs of this tree
    int64_t output;              // the first of them
    int64_t depth;               // most tests on a path
    const int32_t* above_start;  // (tests + 1,) or null: no interactions
    const Above* above;
    const T* gains;
};

// Where the interaction of two slots stands among those of all pairs. Behind the last stands what
// is of no pair.
inline constexpr int64_t pair_of(int64_t a, int64_t b) {
    return a < b ? b * (b - 1) / 2 + a : a * (a - 1) / 2 + b;
}

// A test by itself: left where what it reads is at most t.
template <typename T>
struct Asked {
    T t;
    int32_t read;
};

// One answer that a bit asks for: of this test, the left (0) or the right (-1).
struct Term {
    int32_t test;
    int32_t side;
};

// A part of a tree whose values depend on a few bits of a row: a table by their pattern.
template <typename T>
struct Cell {
    int32_t first_bit, n_bits;  // bits stand in a list of the tree's
    int32_t n_values;
    const int32_t* places;  // (n_values,) output * slots + slot
    const T* table;         // (2^n_bits, n_values)
};

constexpr int64_t kMostLeafBits = 13;

// A leaf whose values depend on the features that a row has, of those that the leaf asks for
// answers: a feature that the row has gains gain[o] - without[o but it], others lose loss[o].
template <typename T>
struct LeafCell {
    int32_t first_bit, n_bits;
    int32_t n_outputs;
    const int32_t* places;  // (n_bits, n_outputs) output * slots + slot
    const T* values;        // (n_outputs,)
    const T* table;         // (3, 2^n_bits) gain, loss, without
};

// A bit is set where a row gives every answer that its terms ask for.
template <typename T>
struct Cells {
    const Asked<T>* tests;
    int64_t n_tests;
    const Cell<T>* cells;
    int64_t n_cells;
    const LeafCell<T>* leaves;
    int64_t n_leaves;
    const int32_t* term_start;  // by bit, and the end of the last
    const Term* terms;
    bool is_symmetric;  // one cell, a bit for each test
};

// How many vectors of rows go through a step together.
constexpr int64_t kGroup = 4, kPairGroup = 2;

// A tile of rows, in the lanes of vectors. Vectors stand in groups, and those that are left, fewer
// than a group, one by one: groups of one.
template <typename T>
struct Rows {
    int64_t n_vectors;
    int64_t n_reads, n_slots, n_outputs, n_pairs;
    const T* z;  // (groups, reads, vectors of a group, lanes)
    T* phi;      // (groups, outputs, slots, vectors of a group, lanes), added to
    T* pairs;    // (groups, outputs, pairs, vectors of a group, lanes), added to; or null
};

// Scratch, aligned to 64 bytes: P, H and g by level, with a delta and masks; t of three tests.
inline constexpr int64_t scratch_bytes(int64_t depth, int64_t n_points) {
    return ((depth + 2) * (3 * n_points + 4) + 3 * n_points) * kVectorBytes;
}

template <typename T>
struct TypedKernels {
    int64_t lanes;
    void (*add_tree)(const Tree<T>& tree, const Rows<T>& rows, void* scratch);
    // One row, with lanes of one.
    void (*add_row)(const Tree<T>& tree, const Rows<T>& row, void* scratch);
    // Scratch has room for a vector for each test.
    void (*add_cells)(const Cells<T>& cells, const Rows<T>& rows, void* scratch);
};

// The values of a leaf against a background, by the pattern of a row.
struct LeafGame {
    int64_t n_bits;  // features that the leaf asks for answers
    const double*
        missed;        // (2^n_bits,) the share of background rows, by the features that they miss
    int64_t n_points;  // of a rule that is exact for degree n_bits - 1
    const double* y;
    const double* weight;
};

struct Kernels {
    const char* name;
    TypedKernels<double> doubles;
    TypedKernels<float> floats;
    // (n_bits, 2^n_bits) values of each feature for a leaf of value 1, into `out`; scratch has room
    // for 2 * 2^n_bits.
    void (*leaf_table)(const LeafGame& game, double* scratch, double* out);
    // (3, 2^n_bits) gain, loss and without of a leaf, see LeafCell; scratch has room for 2^n_bits.
    void (*leaf_sums)(const LeafGame& game, double* scratch, double* out);
};

DM_ON_EVERY_TARGET(Kernels, kernels)

}  // namespace dm::shapley
