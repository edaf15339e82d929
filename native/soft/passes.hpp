// The soft tree over many rows and trees: rows laid out in tiles, threads, sums in a fixed order.
#pragma once

#include <cstdint>
#include <string>

#include "soft/kernels.hpp"
#include "soft/plan.hpp"

namespace dm::soft {

template <typename T>
struct Call {
    const TypedKernels<T>* kernels;
    const T* z;  // (m, n_columns), in any strides
    int64_t z_row, z_column;
    const T* t;      // (J,)
    const T* nudge;  // (J,)
    const T* slope;  // (J,)
    const T* V;      // (L, width)
    int64_t m;
    T skip;
    int64_t n_threads;
    const int64_t* mix_start = nullptr;  // (J + 1,): tests weigh several columns
    const int32_t* mix_column = nullptr;
    const T* mix_weight = nullptr;
};

// Where to write gradients; dz may be null. The answer depends on no thread count.
template <typename T>
struct Gradients {
    T* dt;      // (J,)
    T* dslope;  // (J,)
    T* dV;      // (L, width)
    T* dmix;    // by weight, or null where tests weigh no columns
    T* dz;      // (m, n_columns) or null, in any strides
    int64_t dz_row, dz_column;
};

template <typename T>
void forward(const Plan& plan, const Call<T>& call, T* out);  // (m, n_outputs)

template <typename T>
void backward(const Plan& plan, const Call<T>& call, const T* G,  // (m, n_outputs)
              const Gradients<T>& gradients);

// By name, or the fastest for "" and "auto"; null where this processor runs none of that name.
const Kernels* find_kernels(const std::string& target);

}  // namespace dm::soft
