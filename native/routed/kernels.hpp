// Networks with one hidden layer over chosen rows, and products of a test with a row.
//
// Plain structs and raw pointers only, as in engine/kernels/kernels.hpp.
#pragma once

#include <cstdint>

#include "common/every_target.hpp"

namespace dm::routed {

constexpr int64_t kLine = 16;  // floats of the widest vector: weights are padded to it

inline constexpr int64_t padded(int64_t n) { return (n + kLine - 1) / kLine * kLine; }

// n -> h -> k; hidden units and outputs beyond h and k have weights of 0.
struct Network {
    int64_t n, h, k;
    const float* first;        // (n, padded(h))
    const float* first_bias;   // (padded(h),)
    const float* second;       // (h, padded(k))
    const float* second_bias;  // (padded(k),)
};

constexpr int64_t kRowsAtOnce = 8;

struct Kernels {
    const char* name;
    float (*dot)(const float* a, const float* b, int64_t n);
    // Answers of x[row[0]], x[row[1]], ... into out (count, padded(k)); hidden is scratch of
    // (kRowsAtOnce, padded(h)).
    void (*answer)(const Network& network, const float* x, const int32_t* row, int64_t count,
                   float* hidden, float* out);
};

DM_ON_EVERY_TARGET(Kernels, kernels)

}  // namespace dm::routed
