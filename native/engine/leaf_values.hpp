// What becomes of exit leaves: their values, and the sum's beginning and end.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "engine/plan/plan.hpp"

namespace dm::engine {

// The leaf's linear function of x, or its constant where an x is NaN.
template <typename T>
inline double linear_value(const Plan& plan, int64_t leaf, int64_t width, int64_t output,
                           const double* x, int64_t stride,
                           const std::vector<int32_t>& feature_at) {
    T total = static_cast<T>(plan.intercept[leaf * width + output]);
    for (int64_t i = plan.linear_start[leaf]; i < plan.linear_start[leaf + 1]; ++i) {
        const T value = static_cast<T>(x[feature_at[plan.linear_feature[i]] * stride]);
        if (value != value) return static_cast<T>(plan.linear_constant[leaf * width + output]);
        const T term = static_cast<T>(plan.coefficient[i * width + output]) * value;
        total = total + term;
    }
    return static_cast<double>(total);
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

template <typename Sum>
inline Sum first_sum(const Plan& plan, int64_t output) {
    if (plan.aggregate != Aggregate::sum && plan.n_trees)
        return plan.aggregate == Aggregate::min ? std::numeric_limits<Sum>::infinity()
                                                : -std::numeric_limits<Sum>::infinity();
    if (plan.aggregate == Aggregate::sum && plan.base_first)
        return Sum(0) + static_cast<Sum>(plan.base[output]);
    return Sum(0);
}

template <typename Sum>
inline Sum last_sum(const Plan& plan, int64_t output, Sum sum) {
    if (plan.divisor != 1.0) sum = sum / static_cast<Sum>(plan.divisor);
    if (plan.scale != 1.0) sum = sum * static_cast<Sum>(plan.scale);
    if (!(plan.aggregate == Aggregate::sum && plan.base_first))
        sum = sum + static_cast<Sum>(plan.base[output]);
    return sum;
}

}  // namespace dm::engine
