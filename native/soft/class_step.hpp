// A training step of soft oblique trees that classify: the gradient, and what Adam does with it.
//
// Tests are in level order, the children of test j being nodes 2j + 1 and 2j + 2, the leaves last:
//   g = sigmoid(beta (W x - t)),  P_right = P g,  P_left = P - P_right,  answer = p . softmax(V)
//   G = -target / answer / m,  E_leaf = softmax(V) G,  E = E_left + g (E_right - E_left)
//   dL/dq = P (E_right - E_left) g (1 - g) beta
// Rows go through in tiles, as lanes of vectors, so that all that a tree knows of a tile stays in
// the second-level cache. Trees are done one after the other, and none sees its neighbours.
//
// Plain structs and raw pointers only, as in engine/kernels/kernels.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/every_target.hpp"

namespace dm::soft {

constexpr int64_t kClassTile = 64;  // rows of a tile; 32 take a fifth longer, 128 as long
constexpr int64_t kClassLine = 16;  // floats of a cache line, and of the widest vector

struct ClassSizes {
    int64_t n_trees, depth, n_features, n_classes, n_rows;  // rows of the step

    int64_t n_tests() const { return (int64_t{1} << depth) - 1; }
    int64_t n_leaves() const { return int64_t{1} << depth; }
    int64_t n_tiles() const { return (n_rows + kClassTile - 1) / kClassTile; }
    // Padded to whole vectors. An odd number of lines: rows of a power of two of bytes would all
    // want the same places of the cache.
    int64_t wide_features() const { return odd_lines(n_features); }
    int64_t wide_classes() const { return odd_lines(n_classes); }

private:
    static int64_t odd_lines(int64_t n) {
        return ((n + kClassLine - 1) / kClassLine | 1) * kClassLine;
    }
};

struct ClassStep {
    ClassSizes sizes;
    const float* X;       // (M, n_features)
    const float* target;  // (M, n_classes), each row's summing to its weight
    const int64_t* rows;  // (n_rows,) the step's, in 0..M
    const float* W;       // (n_trees, n_tests, n_features + 1), minus the threshold last
    const float* V;       // (n_trees, n_leaves, n_classes)
    const float* beta;    // (n_trees,)
    float least;          // added to probabilities under a logarithm
    float* dW;            // as W
    float* dV;            // as V
    float* scratch;       // as `ClassKernels::scratch` says, aligned to cache lines
};

// Adam's, over all parameters, tests' weights first; then what holds those weights small.
struct ClassUpdate {
    ClassSizes sizes;
    float* parameters;  // W, then V
    const float* gradient;
    float *first, *second;                  // Adam's memory
    const float *rate, *decay, *threshold;  // (n_trees,) of this step
    const uint8_t* is_unit;                 // (n_trees,) whether weights of a test have length 1
    float keep_first, keep_second;
};

struct ClassKernels {
    const char* name;
    int64_t (*scratch)(const ClassSizes& sizes);  // floats that a step needs
    double (*gradient)(const ClassStep& step);    // returns the sum of all rows' and trees' losses
    void (*update)(const ClassUpdate& update);
};

// By name, or the fastest for "" and "auto"; null where there is none of that name.
const ClassKernels* find_class_kernels(const std::string& name);

DM_ON_EVERY_TARGET(ClassKernels, class_kernels)

}  // namespace dm::soft
