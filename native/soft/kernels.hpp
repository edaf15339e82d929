// The soft tree's kernels: views of one tree and of some rows, and the table of entry points.
//
// Rows stand in the lanes of a vector. A tree is walked once from its root with the weight P that
// reaches each node, and once back with U = P * (expected value), so memory is linear in the tree:
//   P_left = P (1 - g),  P_right = P g,  g = sigmoid(slope (z - t - nudge))
//   U_leaf = P_leaf * value,  U = U_left + U_right,  dL/dq = (1 - g) U_right - g U_left
// which is P g (1 - g) (E_right - E_left) without a division.
//
// Plain structs and raw pointers only, as in engine/kernels/kernels.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/every_target.hpp"

namespace dm::soft {

constexpr int64_t kTile = 256;        // rows laid out together, one column after another
constexpr int64_t kStripBytes = 256;  // one node's weights of the rows that descend together
constexpr int64_t kVectorBytes = 64;  // the widest vector of any target

// One tree in its own numbering. A slot is a test, or n_tests + leaf.
template <typename T>
struct Tree {
    int64_t n_tests;
    const int32_t* children;  // (n_tests, 2) slots
    const int32_t* column;    // (n_tests,)
    const int8_t* missing;    // (n_tests,) -1 or +1
    const uint8_t* wild;      // (n_tests,) whether t or slope is huge
    const T* t;               // (n_tests,)
    const T* nudge;           // (n_tests,) what t lacks of the middle of two neighbouring numbers
    const T* slope;           // (n_tests,)
    const T* values;          // (n_leaves, width); where paths are cut n_tests rows of means follow
    const int64_t* mix_start;   // (n_tests + 1,) or null; if not, tests weigh several columns
    const int32_t* mix_column;  // of each weight
    const T* mix_weight;
    int64_t width;   // outputs of this tree
    int64_t output;  // the first of them
};

// A tile of rows: arrays of kTile values, one after another; rows beyond the last are zeros.
template <typename T>
struct Rows {
    int64_t n;            // rows in use
    const T* z;           // (columns, kTile)
    const uint8_t* wild;  // (columns,) whether a value is NaN or huge
    T* out;               // (outputs, kTile), added to
    const T* G;           // (outputs, kTile): gradient of the loss by `out`
    T* dz;                // (columns, kTile), added to, or null
};

// Sums over rows, added to.
template <typename T>
struct Sums {
    T* dq;       // (n_tests,) of dL/dq
    T* dq_z;     // (n_tests,) of dL/dq * (z - t - nudge)
    T* dvalues;  // as Tree::values
    T* dmix;     // by the tree's weights, from its first; null without
};

// Whether the values' gradients are summed lane by lane through a tile: always with one output,
// else while that stays in the second-level cache.
inline constexpr bool has_lane_sums(int64_t n_tests, int64_t width) {
    return width == 1 || (2 * n_tests + 1) * width * kVectorBytes <= (int64_t{1} << 20);
}

// Scratch for trees of up to n_tests tests, aligned to 64 bytes, zeroed by no one.
inline constexpr int64_t scratch_bytes(int64_t n_tests, int64_t width, int64_t n_mixed) {
    return (4 * n_tests + 1) * kStripBytes  // slots, and both gates of each test
           + (n_mixed ? n_tests * kStripBytes + n_mixed * kVectorBytes : 0) +
           (2 * n_tests) * kVectorBytes  // sums by lane
           + (has_lane_sums(n_tests, width) ? (2 * n_tests + 1) * width : 0) * kVectorBytes +
           (2 * n_tests + 2) * 4 + 2 * n_tests + 1 +
           9 * 64;  // slots where descents end, and visited
}

template <typename T>
struct TypedKernels {
    void (*forward)(const Tree<T>& tree, const Rows<T>& rows, T skip, void* scratch);
    void (*backward)(const Tree<T>& tree, const Rows<T>& rows, T skip, const Sums<T>& sums,
                     void* scratch);
    // exp and both gates of n values; exp is held at its value where |x| = soft_limit.
    void (*exp)(const T* x, int64_t n, T* out);
    void (*gates)(const T* q, int64_t n, T* left, T* right);
};

struct Kernels {
    const char* name;
    TypedKernels<float> floats;
    TypedKernels<double> doubles;
};

DM_ON_EVERY_TARGET(Kernels, kernels)

}  // namespace dm::soft
