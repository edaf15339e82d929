// Sums over rows that gradients are made of.
//
// Each block of rows has sums of its own, added up in order at the end: how the rows are split
// follows from sizes alone, so the answer is the same on any number of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "soft/passes.hpp"
#include "soft/workspace.hpp"

namespace dm::soft {

constexpr int64_t kBlockRowsLeast = 128;             // rows summed by themselves, at least
constexpr int64_t kBlocksMost = 32;                  // sums kept apart until the end, at most
constexpr int64_t kPartialBytes = int64_t{1} << 28;  // and their memory

template <typename T>
class GradientSums {
public:
    // Where paths are cut, a tree's tests have values too: the means below them.
    GradientSums(const Plan& plan, const Call<T>& call)
        : plan_(plan),
          is_cut_(call.skip > 0),
          mix_start_(call.mix_start),
          mix_at_(size_of(plan, is_cut_)),
          size_(mix_at_ + (mix_start_ ? (mix_start_[plan.n_tests()] + 15) / 16 * 16 : 0)),
          rows_(rows_of(call.m, size_)),
          n_blocks_((call.m + rows_ - 1) / rows_),
          sums_(n_blocks_ * size_) {}

    int64_t n_blocks() const { return n_blocks_; }
    int64_t rows() const { return rows_; }  // of a block, except perhaps the last

    // Where a kernel adds a tree's sums over a block.
    Sums<T> of(int64_t block, int64_t tree) const {
        T* own = sums_.get() + block * size_;
        const int64_t first = plan_.test_start[tree], J = plan_.n_tests();
        return {own + first, own + J + first, own + values_at(tree),
                mix_start_ ? own + mix_at_ + mix_start_[first] : nullptr};
    }

    // dL/dt, dL/dslope and dL/dV, of all rows.
    void write(const Call<T>& call, const Gradients<T>& gradients) const {
        const int64_t J = plan_.n_tests();
        for (int64_t j = 0; j < J; ++j) {
            const double slope = double(call.slope[j]);
            gradients.dt[j] = static_cast<T>(std::isfinite(slope) ? -slope * total(j) : 0.0);
            gradients.dslope[j] = static_cast<T>(total(J + j));
        }
        for (int64_t tree = 0; tree < plan_.n_trees(); ++tree) write_values(tree, gradients.dV);
        if (mix_start_)
            for (int64_t e = 0; e < mix_start_[J]; ++e)
                gradients.dmix[e] = static_cast<T>(total(mix_at_ + e));
    }

private:
    static int64_t size_of(const Plan& plan, bool is_cut) {
        const int64_t J = plan.n_tests();
        const int64_t n_values = (is_cut ? 2 * J + plan.n_trees() : plan.n_leaves()) * plan.width();
        return (2 * J + n_values + 15) / 16 * 16;
    }
    static int64_t rows_of(int64_t m, int64_t size) {
        const int64_t fit = kPartialBytes / std::max<int64_t>(size * int64_t(sizeof(T)), 1);
        const int64_t most = std::clamp<int64_t>(fit, 1, kBlocksMost);
        const int64_t rows = std::max((m + most - 1) / most, kBlockRowsLeast);
        return (rows + kBlockRowsLeast - 1) / kBlockRowsLeast * kBlockRowsLeast;
    }
    int64_t values_at(int64_t tree) const {
        const int64_t first = plan_.test_start[tree];
        return 2 * plan_.n_tests() + (is_cut_ ? 2 * first + tree : first + tree) * plan_.width();
    }
    double total(int64_t at) const {
        double sum = 0;
        for (int64_t b = 0; b < n_blocks_; ++b) sum += double(sums_.get()[b * size_ + at]);
        return sum;
    }

    void write_values(int64_t tree, T* all) const {
        const int64_t first = plan_.test_start[tree], n = plan_.test_start[tree + 1] - first;
        const int64_t w = plan_.width(), at = values_at(tree);
        T* dV = all + (first + tree) * w;
        if (!is_cut_ || n == 0) {
            for (int64_t e = 0; e < (n + 1) * w; ++e) dV[e] = static_cast<T>(total(at + e));
            return;
        }
        // A mean's gradient belongs in equal parts to the leaves below.
        std::vector<double> share_of(static_cast<size_t>(n * w), 0.0);
        for (int64_t j = 0; j < n; ++j)
            for (int64_t c = 0; c < w; ++c) {
                double& own = share_of[j * w + c];
                own += total(at + (n + 1 + j) * w + c) / plan_.n_below[first + j];
                for (int side = 0; side < 2; ++side) {
                    const int64_t child = plan_.children[2 * (first + j) + side];
                    if (child < n)
                        share_of[child * w + c] = own;
                    else
                        dV[(child - n) * w + c] =
                            static_cast<T>(total(at + (child - n) * w + c) + own);
                }
            }
    }

    const Plan& plan_;
    bool is_cut_;
    const int64_t* mix_start_;
    int64_t mix_at_;                  // where sums by weight start in a block
    int64_t size_, rows_, n_blocks_;  // numbers of a block, its rows, how many there are
    Aligned<T> sums_;
};

}  // namespace dm::soft
