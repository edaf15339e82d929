// What all threads of a pass read: the tests' parameters judged, and the trees' values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "common/require.hpp"
#include "soft/passes.hpp"
#include "soft/workspace.hpp"

namespace dm::soft {

template <typename T>
struct Prepared {
    std::vector<uint8_t> wild;  // (J,)
    std::vector<T> values;      // by tree: its leaves' values, then its tests' means; if cut

    Prepared(const Plan& plan, const Call<T>& call) : wild(plan.n_tests()) {
        for (int64_t j = 0; j < plan.n_tests(); ++j) {
            common::require(call.t[j] == call.t[j], "t holds NaN");
            common::require(call.slope[j] == call.slope[j], "slope holds NaN");
            common::require(std::isfinite(call.nudge[j]), "nudge holds NaN or infinity");
            wild[j] = !(is_tame(call.t[j]) && is_tame(call.slope[j]));
        }
        if (!(call.skip > 0)) return;
        const int64_t w = plan.width();
        values.resize(static_cast<size_t>((2 * plan.n_tests() + plan.n_trees()) * w));
        std::vector<double> sums;
        for (int64_t i = 0; i < plan.n_trees(); ++i) {
            const int64_t first = plan.test_start[i], n = plan.test_start[i + 1] - first;
            const T* V = call.V + (first + i) * w;
            T* to = values.data() + (2 * first + i) * w;
            std::copy(V, V + (n + 1) * w, to);
            sums.assign(static_cast<size_t>(n * w), 0.0);
            for (int64_t j = n - 1; j >= 0; --j)
                for (int64_t c = 0; c < w; ++c) {
                    for (int side = 0; side < 2; ++side) {
                        const int32_t child = plan.children[2 * (first + j) + side];
                        sums[j * w + c] +=
                            child < n ? sums[child * w + c] : double(V[(child - n) * w + c]);
                    }
                    to[(n + 1 + j) * w + c] =
                        static_cast<T>(sums[j * w + c] / plan.n_below[first + j]);
                }
        }
    }

    Tree<T> tree(const Plan& plan, const Call<T>& call, int64_t i) const {
        const int64_t first = plan.test_start[i], w = plan.width();
        return {plan.test_start[i + 1] - first,
                plan.children.data() + 2 * first,
                plan.column.data() + first,
                plan.missing.data() + first,
                wild.data() + first,
                call.t + first,
                call.nudge + first,
                call.slope + first,
                values.empty() ? call.V + (first + i) * w : values.data() + (2 * first + i) * w,
                call.mix_start ? call.mix_start + first : nullptr,
                call.mix_column,
                call.mix_weight,
                w,
                plan.narrow ? plan.feeds[i] : 0};
    }
};

}  // namespace dm::soft
