// What becomes of exit leaves: their values, and the sum's beginning and end.
#pragma once

#include <cstdint>
#include <limits>

#include "engine/feature_places.hpp"
#include "engine/plan/machine.hpp"

namespace dm::engine {

// The kernels of one type of sums, or of z.
template <typename T>
const TypedKernels<T>& typed(const Kernels& kernels);
template <>
inline const TypedKernels<float>& typed(const Kernels& kernels) {
    return kernels.floats;
}
template <>
inline const TypedKernels<double>& typed(const Kernels& kernels) {
    return kernels.doubles;
}

// The leaf's linear function of x, or its constant where an x is NaN.
template <typename T>
double linear_value_of(const Machine& machine, int64_t leaf, int64_t output, const double* x,
                       int64_t stride, const FeaturePlaces& feature_at) {
    const Machine::Linear& linear = machine.linear;
    const int64_t width = machine.output.width();
    T total = static_cast<T>(linear.intercept[leaf * width + output]);
    for (int64_t i = linear.start[leaf]; i < linear.start[leaf + 1]; ++i) {
        const T value = static_cast<T>(x[feature_at[linear.feature[i]] * stride]);
        if (value != value) return static_cast<T>(linear.constant[leaf * width + output]);
        const T term = static_cast<T>(linear.coefficient[i * width + output]) * value;
        total = total + term;
    }
    return static_cast<double>(total);
}

inline double linear_value(const Machine& machine, int64_t leaf, int64_t output, const double* x,
                           int64_t stride, const FeaturePlaces& feature_at) {
    return machine.linear.single
               ? linear_value_of<float>(machine, leaf, output, x, stride, feature_at)
               : linear_value_of<double>(machine, leaf, output, x, stride, feature_at);
}

template <typename Sum>
inline void include(Aggregate aggregate, Sum value, Sum& sum) {
    if (aggregate == Aggregate::sum)
        sum += value;
    else if (aggregate == Aggregate::min)
        sum = sum < value || sum != sum ? sum : value;
    else
        sum = sum > value || sum != sum ? sum : value;
}

// What a sum starts from.
template <typename Sum>
inline Sum first_sum(const Machine& machine, int64_t output) {
    const Machine::Output& about = machine.output;
    if (about.aggregate != Aggregate::sum && machine.trees.n)
        return about.aggregate == Aggregate::min ? std::numeric_limits<Sum>::infinity()
                                                 : -std::numeric_limits<Sum>::infinity();
    if (about.aggregate == Aggregate::sum && about.base_first)
        return Sum(0) + static_cast<Sum>(about.base[output]);
    return Sum(0);
}

// What a sum over all trees becomes.
template <typename Sum>
inline Sum last_sum(const Machine& machine, int64_t output, Sum sum) {
    const Machine::Output& about = machine.output;
    if (about.divisor != 1.0) sum = sum / static_cast<Sum>(about.divisor);
    if (about.scale != 1.0) sum = sum * static_cast<Sum>(about.scale);
    if (!(about.aggregate == Aggregate::sum && about.base_first))
        sum = sum + static_cast<Sum>(about.base[output]);
    return sum;
}

}  // namespace dm::engine
