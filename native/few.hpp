// One row, or few: no coding, several trees walked at once over z itself.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "plan.hpp"

namespace dm {

// Trees walked together: enough loads under way to hide the latency of each.
constexpr int kTreesAtOnce = 8;

// z of one column from its feature's x. The column is one of the machine's, not of a section.
inline double few_member(const Plan& plan, int64_t column, double x) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    if (x != x) return nan;
    const int64_t set = plan.set_of[column];
    int8_t answer = plan.outside[set];
    if ((x > (plan.negative_fractions ? -1.0 : 0.0) || x == 0.0) && x < 2147483648.0) {
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

// Exit leaves of trees first..last for one row. z[2 c] is column c, whose NaN fails every test;
// z[2 c + 1] has -inf for it, which passes every one.
template <typename Node>
void few_walk(const Node* nodes, const int64_t* start, int64_t first, int64_t last, const double* z,
              int32_t* leaves) {
    for (int64_t tree = first; tree < last; tree += kTreesAtOnce) {
        const Node* own[kTreesAtOnce];
        int32_t at[kTreesAtOnce];
        for (int i = 0; i < kTreesAtOnce; ++i) {
            const int64_t which = tree + i < last ? tree + i : tree;
            own[i] = nodes + start[which];
            at[i] = start[which] == start[which + 1] ? -1 : 0;
        }
        int32_t both = -1;
        for (int i = 0; i < kTreesAtOnce; ++i) both &= at[i];
        while (both >= 0) {
            both = -1;
            for (int i = 0; i < kTreesAtOnce; ++i) {
                if (at[i] >= 0) {
                    const Node& node = own[i][at[i]];
                    const int32_t left = node.left, right = node.right;
                    at[i] = z[node.z] <= node.t ? left : right;
                }
                both &= at[i];
            }
        }
        for (int i = 0; i < kTreesAtOnce && tree + i < last; ++i) leaves[tree + i] = ~at[i];
    }
}

}  // namespace dm
