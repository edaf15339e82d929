// z of one row, for machines whose columns cannot be coded.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "plan.hpp"

namespace dm {

// z of one column from its feature's x. The column is one of the machine's, not of a section.
inline double few_member(const Plan& plan, int64_t column, double x) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    if (x != x) return nan;
    const int64_t set = plan.set_of[column];
    int8_t answer = plan.outside[set];
    if ((x > (plan.negative_fractions ? -1.0 : 0.0) || x == 0.0) && x < 2147483648.0 &&
        !(plan.whole && static_cast<double>(static_cast<int64_t>(x)) != x)) {
        const int64_t category = static_cast<int64_t>(x);
        int64_t low = plan.set_start[set], high = plan.set_start[set + 1];
        const int64_t end = high;
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if (plan.members[middle] < category)
                low = middle + 1;
            else
                high = middle;
        }
        if (low < end && plan.members[low] == category) answer = plan.answers[low];
    }
    return answer == 0 ? nan : answer > 0 ? 1.0 : 0.0;
}

inline double few_column(const Plan& plan, int64_t column, double x) {
    switch (static_cast<Rule>(plan.rule[column])) {
        case Rule::value: return x;
        case Rule::nan_as_zero: return x == x ? x : 0.0;
        case Rule::zero_as_nan:
            return std::fabs(x) <= static_cast<double>(1e-35f)
                       ? std::numeric_limits<double>::quiet_NaN()
                       : x;
        default: return few_member(plan, column, x);
    }
}

}  // namespace dm
