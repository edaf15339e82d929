#include "search/pair_search.hpp"

#include <algorithm>
#include <cmath>

#include "common/interrupts.hpp"

namespace dm::search {

// The feature's bins in groups of about as many of the node's rows; each its own where they are
// few.
void PairSearch::group(int32_t feature, int64_t place) {
    const uint8_t* column = rows_.bin + int64_t{feature} * rows_.m;
    int64_t rows_of[256] = {}, left = 0;
    for (int64_t i = 0; i < count_; ++i) ++rows_of[column[ids_[i]]];
    for (int32_t b = 0; b < kMostBins; ++b) left += rows_of[b];
    uint8_t group_of[256] = {};
    int32_t* last = &last_[place * groups_];
    int32_t at = 0, n = 0;
    int64_t held = 0, to_come = 0;  // rows of this group; bins that have rows
    for (int32_t b = 0; b < kMostBins; ++b) to_come += rows_of[b] != 0;
    for (int32_t b = 0; b < kMostBins; ++b) {
        group_of[b] = static_cast<uint8_t>(at);
        if (rows_of[b] == 0) continue;
        last[at] = b, n = at + 1;
        held += rows_of[b], --to_come;
        const int32_t groups_to_come = groups_ - 1 - at;
        if (groups_to_come > 0 &&
            (held * (groups_to_come + 1) >= left || to_come <= groups_to_come))
            left -= held, held = 0, ++at;
    }
    n_groups_[place] = n;
    group_of[kMissingBin] = static_cast<uint8_t>(n);
    uint8_t* code = &code_[place * count_];
    for (int64_t i = 0; i < count_; ++i) code[i] = group_of[column[ids_[i]]];
}

double PairSearch::loss_of(const Objective& objective, const double* totals) const {
    const int32_t k = rows_.k;
    const double weight = totals[k];
    if (weight <= 0.0) return 0.0;
    if (rows_.classify())
        return leaf_loss(objective, true, k, totals,
                         {weight, 0.0, static_cast<int64_t>(totals[k + 1])});
    double loss = 0.0;
    for (int32_t c = 0; c < k; ++c)
        if (objective.number != NumberLoss::poisson)
            loss -= totals[c] * totals[c] / (weight + objective.ridge);
        else if (totals[c] > 0.0)
            loss -= totals[c] * std::log(totals[c] / weight);
    return loss;
}

// One side of a test: its best second test of feature g, by cells (groups + missing, stride).
void PairSearch::below(const Objective& objective, const double* cells, int64_t g, int64_t least,
                       Below& best) {
    const int32_t n = n_groups_[g];
    std::fill(sum_.begin(), sum_.end(), 0.0), std::fill(rest_.begin(), rest_.end(), 0.0);
    for (int32_t b = 0; b <= n; ++b)
        for (int32_t c = 0; c < stride_; ++c) rest_[c] += cells[b * stride_ + c];
    const double enough = static_cast<double>(least);
    if (rest_[stride_ - 1] < enough) return;
    const double whole = loss_of(objective, rest_.data());
    if (whole < best.loss) best = {whole, -1, -1};
    for (int32_t b = 0; b < n; ++b) {
        const double* cell = cells + b * stride_;
        if (cell[stride_ - 1] == 0.0) continue;
        for (int32_t c = 0; c < stride_; ++c) sum_[c] += cell[c], rest_[c] -= cell[c];
        if (sum_[stride_ - 1] < enough) continue;
        if (rest_[stride_ - 1] < std::max(enough, 1.0)) return;
        const double loss = loss_of(objective, sum_.data()) + loss_of(objective, rest_.data());
        if (loss < best.loss) best = {loss, static_cast<int32_t>(g), b};
    }
}

// Tests of f above, tests of g below.
void PairSearch::look(const Objective& objective, int64_t f, int64_t g, int64_t least) {
    const int32_t k = rows_.k, wide = groups_ + 1, nf = n_groups_[f], ng = n_groups_[g];
    cell_.assign(static_cast<size_t>(wide) * wide * stride_, 0.0);
    const uint8_t *above = &code_[f * count_], *under = &code_[g * count_];
    for (int64_t i = 0; i < count_; ++i) {
        const int64_t row = ids_[i];
        double* cell = &cell_[(int64_t{above[i]} * wide + under[i]) * stride_];
        const double w = rows_.w[row];
        cell[k] += w, cell[k + 1] += 1.0;
        if (rows_.classify())
            cell[rows_.label[row]] += w;
        else
            for (int32_t c = 0; c < k; ++c) cell[c] += w * rows_.y[row * k + c];
    }
    for (const bool turned : {false, true}) {
        if (turned && f == g) break;
        const int64_t top = turned ? g : f, low = turned ? f : g;
        const int32_t n_top = turned ? ng : nf, n_low = turned ? nf : ng;
        const auto at = [&](int32_t a, int32_t b) {
            return &cell_[(turned ? int64_t{b} * wide + a : int64_t{a} * wide + b) * stride_];
        };
        side_.assign(static_cast<size_t>(wide) * stride_, 0.0), other_ = side_;
        for (int32_t a = 0; a <= n_top; ++a)
            for (int32_t b = 0; b <= n_low; ++b)
                for (int32_t c = 0; c < stride_; ++c) other_[b * stride_ + c] += at(a, b)[c];
        for (int32_t a = 0; a < n_top; ++a) {
            for (int32_t b = 0; b <= n_low; ++b) {
                const double* cell = at(a, b);
                for (int32_t c = 0; c < stride_; ++c)
                    side_[b * stride_ + c] += cell[c], other_[b * stride_ + c] -= cell[c];
            }
            below(objective, side_.data(), low, least, left_[top * groups_ + a]);
            below(objective, other_.data(), low, least, right_[top * groups_ + a]);
        }
    }
}

Split PairSearch::test(int64_t place, int32_t group) const {
    Split out;
    out.feature = features_[place];
    out.cut = rows_.upper[int64_t{out.feature} * kMostBins + last_[place * groups_ + group]];
    return out;
}

TwoLevels PairSearch::best(const Objective& objective, const int32_t* ids, int64_t count,
                           const std::vector<int32_t>& features, int64_t least) {
    ids_ = ids, count_ = count, features_ = features;
    groups_ = rows_.k > 8 ? 8 : 16, stride_ = rows_.k + 2;
    const int64_t n = static_cast<int64_t>(features.size());
    n_groups_.assign(n, 0), last_.assign(n * groups_, 0);
    code_.resize(n * count);
    left_.assign(n * groups_, Below{}), right_.assign(n * groups_, Below{});
    sum_.resize(stride_), rest_.resize(stride_);
    for (int64_t i = 0; i < n; ++i) group(features[i], i);
    for (int64_t f = 0; f < n; ++f)
        for (int64_t g = f; g < n; ++g) {
            common::poll();
            look(objective, f, g, least);
        }
    TwoLevels out;
    for (int64_t f = 0; f < n; ++f)
        for (int32_t a = 0; a < n_groups_[f]; ++a) {
            const Below &l = left_[f * groups_ + a], &r = right_[f * groups_ + a];
            if (!(l.loss + r.loss < out.loss)) continue;
            out.loss = l.loss + r.loss, out.top = test(f, a);
            out.left = l.feature < 0 ? Split{} : test(l.feature, l.group);
            out.right = r.feature < 0 ? Split{} : test(r.feature, r.group);
        }
    return out;
}

}  // namespace dm::search
