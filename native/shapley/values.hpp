// Shapley values of rows by paths, tile after tile.
#pragma once

#include <cstdint>
#include <string>

#include "shapley/plan.hpp"
#include "shapley/tables.hpp"

namespace dm::shapley {

const Kernels* find_kernels(const std::string& target);

// Where values are added to: out[row, features[slot], output] and, if wanted, pairs[row, f, g,
// output].
template <typename T>
struct Values {
    const int32_t* features;  // (n_slots,)
    int64_t n_features;
    double factor;  // of every value
    T* out;         // (rows, n_features, n_outputs)
    T* pairs;       // (rows, n_features, n_features, n_outputs) or null
};

// z: (rows, n_columns). Rows go through all trees in one order, whatever the threads and tiles.
template <typename T>
void add_values(const Plan<T>& plan, const TypedKernels<T>& kernels, const T* z, int64_t n_rows,
                int64_t n_threads, const Values<T>& values);

template <typename T>
void add_tables(const Tables<T>& tables, const TypedKernels<T>& kernels, const T* z, int64_t n_rows,
                int64_t n_threads, const Values<T>& values);

}  // namespace dm::shapley
