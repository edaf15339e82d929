// The soft tree over many rows and trees: rows laid out in tiles, threads, sums in a fixed order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "soft_kernels.hpp"

namespace dm {

// Trees, one after another, whose columns are laid out together.
struct SoftGroup {
    int64_t first, last;        // trees
    std::vector<int32_t> used;  // columns of z that they read, ascending
};

// Trees whose structure is fixed while t, slope and V are trained.
struct SoftPlan {
    int64_t n_columns;  // of z
    int64_t n_outputs;
    bool narrow;  // V has one value per leaf, for the output that its tree feeds
    std::vector<int64_t> test_start;  // (T + 1,)
    std::vector<int32_t> children;    // (J, 2) as slots of each tree
    std::vector<int32_t> column;      // (J,) place in `used` of the tree's group
    std::vector<SoftGroup> groups;
    std::vector<int8_t> missing;      // (J,)
    std::vector<int32_t> feeds;       // (T,)
    std::vector<int32_t> n_below;     // (J,) leaves below each test
    int64_t most_tests, most_used;  // of a tree, of a group

    int64_t n_trees() const { return static_cast<int64_t>(test_start.size()) - 1; }
    int64_t n_tests() const { return test_start.back(); }
    int64_t n_leaves() const { return n_tests() + n_trees(); }
    int64_t width() const { return narrow ? 1 : n_outputs; }

    // children: (J, 2), a test or ~leaf, numbered over all trees, parents first. Throws
    // std::invalid_argument where that is not so.
    SoftPlan(const int32_t* children, const int64_t* test_start, int64_t n_trees,
             const int32_t* selection, const int8_t* missing, const int32_t* feeds,
             int64_t n_columns, int64_t n_outputs);

private:
    void make_groups(const int32_t* selection);
};

template <typename T>
struct SoftCall {
    const SoftKernels* kernels;
    const T* z;      // (m, n_columns), in any strides
    int64_t z_row, z_column;
    const T* t;      // (J,)
    const T* slope;  // (J,)
    const T* V;      // (L, width)
    int64_t m;
    T skip;
    int64_t n_threads;
};

// Where to write gradients; dz may be null. The answer depends on no thread count.
template <typename T>
struct SoftGradients {
    T* dt;      // (J,)
    T* dslope;  // (J,)
    T* dV;      // (L, width)
    T* dz;      // (m, n_columns) or null, in any strides
    int64_t dz_row, dz_column;
};

template <typename T>
void soft_forward(const SoftPlan& plan, const SoftCall<T>& call, T* out);  // (m, n_outputs)

template <typename T>
void soft_backward(const SoftPlan& plan, const SoftCall<T>& call, const T* G,  // (m, n_outputs)
                   const SoftGradients<T>& gradients);

// By name, or the fastest for "" and "auto"; null where there is none of that name.
const SoftKernels* find_soft_kernels(const std::string& name);

}  // namespace dm
