#include "search/split_search.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/interrupts.hpp"

namespace dm::search {

namespace {

double x_log_x(double x) { return x > 0.0 ? x * std::log(x) : 0.0; }

}  // namespace

double leaf_loss(const Objective& objective, bool classify, int32_t k, const double* totals,
                 const Totals& about) {
    if (about.weight <= 0.0) return 0.0;
    double loss = 0.0, squares = 0.0;
    for (int32_t c = 0; c < k; ++c) squares += totals[c] * totals[c];
    if (!classify) return std::max(0.0, about.squares - squares / (about.weight + objective.ridge));
    if (objective.gini > 0.0)
        loss += objective.gini * std::max(0.0, about.weight - squares / about.weight);
    if (objective.error > 0.0)
        loss += objective.error * (about.weight - *std::max_element(totals, totals + k));
    if (objective.entropy > 0.0) {
        double sum = x_log_x(about.weight);
        for (int32_t c = 0; c < k; ++c) sum -= x_log_x(totals[c]);
        loss += objective.entropy * std::max(0.0, sum);
    }
    return loss;
}

void SplitSearch::enter(const int32_t* ids, int64_t count, const double* lean) {
    ids_ = ids, count_ = count, lean_ = lean;
    const size_t size = static_cast<size_t>(count);
    if (rank_.size() < size)
        rank_.resize(size), sorted_.resize(size), order_.resize(size), spare_.resize(size),
            w_.resize(size), loss_.resize(size), most_right_.resize(size);
    if (lean) return;  // the walk over preferences reads nothing else
    for (int64_t i = 0; i < count; ++i) w_[i] = rows_.w[ids[i]];
    if (rows_.classify()) {
        if (label_.size() < size) label_.resize(size);
        for (int64_t i = 0; i < count; ++i) label_[i] = rows_.label[ids[i]];
    } else {
        const int32_t k = rows_.k;
        if (y_.size() < size * k) y_.resize(size * k);
        for (int64_t i = 0; i < count; ++i)
            std::memcpy(&y_[i * k], rows_.y + int64_t{ids[i]} * k, sizeof(double) * k);
    }
}

// Local rows in the order of their ranks, equal ranks in the order given, missing ones last.
int64_t SplitSearch::order(int32_t feature) {
    const uint16_t* column = rows_.rank + int64_t{feature} * rows_.m;
    const int64_t n_ranks = rows_.n_ranks[feature];
    int64_t missing = 0;
    for (int64_t i = 0; i < count_; ++i) {
        rank_[i] = column[ids_[i]];
        missing += rank_[i] == kMissing;
    }
    // Buckets: the ranks themselves where there are few, else two passes of a byte each.
    const auto pass = [&](const int32_t* from, int32_t* to, int64_t buckets, auto key) {
        start_.assign(static_cast<size_t>(buckets) + 1, 0);
        for (int64_t i = 0; i < count_; ++i) ++start_[key(from ? from[i] : i) + 1];
        for (int64_t b = 0; b < buckets; ++b) start_[b + 1] += start_[b];
        for (int64_t i = 0; i < count_; ++i) {
            const int32_t row = from ? from[i] : static_cast<int32_t>(i);
            to[start_[key(row)]++] = row;
        }
    };
    if (n_ranks <= count_ + 64) {
        pass(nullptr, order_.data(), n_ranks + 1,
             [&](int64_t i) { return rank_[i] == kMissing ? n_ranks : int64_t{rank_[i]}; });
    } else if (count_ <= 48) {
        for (int64_t i = 0; i < count_; ++i) {
            int64_t at = i;
            while (at > 0 && rank_[order_[at - 1]] > rank_[i]) order_[at] = order_[at - 1], --at;
            order_[at] = static_cast<int32_t>(i);
        }
    } else {
        pass(nullptr, spare_.data(), 256, [&](int64_t i) { return rank_[i] & 255; });
        pass(spare_.data(), order_.data(), 256, [&](int64_t i) { return rank_[i] >> 8; });
    }
    for (int64_t i = 0; i < count_; ++i) sorted_[i] = rank_[order_[i]];
    return count_ - missing;
}

double SplitSearch::xlogx(double x) const {
    if (x < 65536.0 && x == std::floor(x)) {
        const size_t at = static_cast<size_t>(x);
        while (xlogx_.size() <= at) xlogx_.push_back(x_log_x(static_cast<double>(xlogx_.size())));
        return xlogx_[at];
    }
    return x_log_x(x);
}

// Each sweep adds its part of the loss to loss_[p]: the first p + 1 rows of the order are left,
// with them the missing ones or not. Only where a rank ends is loss_[p] read.

void SplitSearch::sweep_gini(int64_t present, bool missing_left) {
    const int32_t k = rows_.k;
    const bool classify = rows_.classify();
    left_.assign(k, 0.0), right_.assign(k, 0.0);
    double weight_left = 0.0, weight_right = 0.0, squares = 0.0;
    for (int64_t i = 0; i < count_; ++i) {
        const int32_t row = order_[i];
        const bool goes_left = i >= present && missing_left;
        double* side = goes_left ? left_.data() : right_.data();
        (goes_left ? weight_left : weight_right) += w_[row];
        if (classify) {
            side[label_[row]] += w_[row];
            squares += w_[row];
        } else {
            for (int32_t c = 0; c < k; ++c) {
                const double y = y_[int64_t{row} * k + c];
                side[c] += w_[row] * y;
                squares += w_[row] * y * y;
            }
        }
    }
    const double scale = classify ? objective_.gini : 1.0;
    const double ridge = classify ? 0.0 : objective_.ridge;
    if (!classify && k == 1) {
        double left = left_[0], right = right_[0];
        for (int64_t p = 0; p < present; ++p) {
            const int32_t row = order_[p];
            const double w = w_[row], wy = w * y_[row];
            weight_left += w, weight_right -= w, left += wy, right -= wy;
            if (!ends_rank(p, present)) continue;
            loss_[p] += squares - left * left / (weight_left + ridge) -
                        (weight_right > 0.0 ? right * right / (weight_right + ridge) : 0.0);
        }
        return;
    }
    double sum_left = 0.0, sum_right = 0.0;
    for (int32_t c = 0; c < k; ++c)
        sum_left += left_[c] * left_[c], sum_right += right_[c] * right_[c];
    for (int64_t p = 0; p < present; ++p) {
        const int32_t row = order_[p];
        const double w = w_[row];
        weight_left += w, weight_right -= w;
        if (classify) {
            const int32_t c = label_[row];
            sum_left += w * (2.0 * left_[c] + w), sum_right += w * (w - 2.0 * right_[c]);
            left_[c] += w, right_[c] -= w;
        } else {
            for (int32_t c = 0; c < k; ++c) {
                const double wy = w * y_[int64_t{row} * k + c];
                sum_left += wy * (2.0 * left_[c] + wy), sum_right += wy * (wy - 2.0 * right_[c]);
                left_[c] += wy, right_[c] -= wy;
            }
        }
        if (!ends_rank(p, present)) continue;
        loss_[p] += scale * (squares - sum_left / (weight_left + ridge) -
                             (weight_right > 0.0 ? sum_right / (weight_right + ridge) : 0.0));
    }
}

void SplitSearch::sweep_entropy(int64_t present, bool missing_left) {
    const int32_t k = rows_.k;
    left_.assign(k, 0.0), right_.assign(k, 0.0);
    double weight_left = 0.0, weight_right = 0.0;
    for (int64_t i = 0; i < count_; ++i) {
        const int32_t row = order_[i];
        const bool goes_left = i >= present && missing_left;
        (goes_left ? left_ : right_)[label_[row]] += w_[row];
        (goes_left ? weight_left : weight_right) += w_[row];
    }
    double sum = 0.0;  // Σ c log c over the classes of both sides
    for (int32_t c = 0; c < k; ++c) sum += xlogx(left_[c]) + xlogx(right_[c]);
    for (int64_t p = 0; p < present; ++p) {
        const int32_t row = order_[p], c = label_[row];
        const double w = w_[row];
        weight_left += w, weight_right -= w;
        sum -= xlogx(left_[c]) + xlogx(right_[c]);
        left_[c] += w, right_[c] -= w;
        sum += xlogx(left_[c]) + xlogx(right_[c]);
        if (!ends_rank(p, present)) continue;
        loss_[p] += objective_.entropy * (xlogx(weight_left) + xlogx(weight_right) - sum);
    }
}

void SplitSearch::sweep_error(int64_t present, bool missing_left) {
    // A largest class is easy to follow while rows join, so the right side is walked backwards.
    const int32_t k = rows_.k;
    double weight = 0.0;
    left_.assign(k, 0.0), right_.assign(k, 0.0);
    for (int64_t i = 0; i < count_; ++i) weight += w_[order_[i]];
    for (int64_t i = present; i < count_; ++i)
        (missing_left ? left_ : right_)[label_[order_[i]]] += w_[order_[i]];
    double most = *std::max_element(right_.begin(), right_.end());
    for (int64_t p = present - 1; p >= 0; --p) {
        most_right_[p] = most;
        const int32_t row = order_[p];
        most = std::max(most, right_[label_[row]] += w_[row]);
    }
    most = *std::max_element(left_.begin(), left_.end());
    for (int64_t p = 0; p < present; ++p) {
        const int32_t row = order_[p];
        most = std::max(most, left_[label_[row]] += w_[row]);
        loss_[p] += objective_.error * (weight - most - most_right_[p]);
    }
}

void SplitSearch::purest(const Objective& objective, int32_t feature, int64_t least, Split& best) {
    common::poll();
    objective_ = objective;
    if (!rows_.classify() && rows_.k == 1 && rows_.n_ranks[feature] <= 2 * count_)
        return purest_number(feature, least, best);
    if (int64_t{rows_.n_ranks[feature]} * rows_.k <= 3 * count_)
        return purest_of_bins(feature, least, best);
    const int64_t present = order(feature), missing = count_ - present;
    if (present == 0 || (missing == 0 && sorted_[0] == sorted_[present - 1])) return;
    for (int side = 0; side < (missing > 0 ? 2 : 1); ++side) {
        const bool missing_left = side == 1;
        std::fill(loss_.begin(), loss_.begin() + present, 0.0);
        if (!rows_.classify() || objective.gini > 0.0) sweep_gini(present, missing_left);
        if (rows_.classify() && objective.entropy > 0.0) sweep_entropy(present, missing_left);
        if (rows_.classify() && objective.error > 0.0) sweep_error(present, missing_left);
        for (int64_t p = 0; p < present; ++p) {
            if (!ends_rank(p, present)) continue;
            const int64_t left = p + 1 + (missing_left ? missing : 0);
            if (left < least || count_ - left < least || left == count_) continue;
            if (loss_[p] < best.loss)
                best = {loss_[p], feature, cut_of(feature, sorted_[p]), missing_left};
        }
    }
}

// The same for one number where ranks are few for so many rows.
void SplitSearch::purest_number(int32_t feature, int64_t least, Split& best) {
    const uint16_t* column = rows_.rank + int64_t{feature} * rows_.m;
    const int64_t n_ranks = rows_.n_ranks[feature];
    bins_.assign(static_cast<size_t>(n_ranks) + 1, Bin{});
    double squares = 0.0;
    Bin all;
    for (int64_t i = 0; i < count_; ++i) {
        const uint16_t rank = column[ids_[i]];
        Bin& bin = bins_[rank == kMissing ? n_ranks : rank];
        const double wy = w_[i] * y_[i];
        bin.sum += wy, bin.weight += w_[i], ++bin.count;
        all.sum += wy, all.weight += w_[i], squares += wy * y_[i];
    }
    const double ridge = objective_.ridge;
    const Bin missing = bins_[n_ranks];
    for (int side = 0; side < (missing.count > 0 ? 2 : 1); ++side) {
        Bin left = side == 1 ? missing : Bin{};
        for (int64_t r = 0; r < n_ranks; ++r) {
            const Bin& bin = bins_[r];
            if (bin.count == 0) continue;
            left.sum += bin.sum, left.weight += bin.weight, left.count += bin.count;
            if (left.count < least || count_ - left.count < least || left.count == count_) continue;
            const double right = all.sum - left.sum;
            const double a = left.weight + ridge, b = all.weight - left.weight + ridge;
            const double loss = squares - (left.sum * left.sum * b + right * right * a) / (a * b);
            if (loss < best.loss) best = {loss, feature, cut_of(feature, r), side == 1};
        }
    }
}

// The same where ranks are few for so many rows: totals of each rank first, then a walk over ranks.
void SplitSearch::purest_of_bins(int32_t feature, int64_t least, Split& best) {
    const uint16_t* column = rows_.rank + int64_t{feature} * rows_.m;
    const int32_t k = rows_.k, stride = k + 2;  // totals, weight, count
    const int64_t n_ranks = rows_.n_ranks[feature];
    const bool classify = rows_.classify();
    histogram_.assign(static_cast<size_t>((n_ranks + 1) * stride), 0.0);
    double squares = 0.0;
    if (classify) {
        for (int64_t i = 0; i < count_; ++i) {
            const uint16_t rank = column[ids_[i]];
            double* bin = &histogram_[(rank == kMissing ? n_ranks : rank) * stride];
            bin[label_[i]] += w_[i], bin[k] += w_[i], bin[k + 1] += 1.0;
        }
    } else {
        for (int64_t i = 0; i < count_; ++i) {
            const uint16_t rank = column[ids_[i]];
            double* bin = &histogram_[(rank == kMissing ? n_ranks : rank) * stride];
            for (int32_t c = 0; c < k; ++c) {
                const double wy = w_[i] * y_[i * k + c];
                bin[c] += wy, squares += wy * y_[i * k + c];
            }
            bin[k] += w_[i], bin[k + 1] += 1.0;
        }
    }
    right_.assign(stride, 0.0);
    for (int64_t r = 0; r <= n_ranks; ++r)
        for (int32_t c = 0; c < stride; ++c) right_[c] += histogram_[r * stride + c];
    const std::vector<double> all = right_;
    const double* missing = &histogram_[n_ranks * stride];
    for (int side = 0; side < (missing[k + 1] > 0.0 ? 2 : 1); ++side) {
        left_.assign(stride, 0.0);
        if (side == 1) left_.assign(missing, missing + stride);
        for (int64_t r = 0; r < n_ranks; ++r) {
            const double* bin = &histogram_[r * stride];
            if (bin[k + 1] == 0.0) continue;
            for (int32_t c = 0; c < stride; ++c) left_[c] += bin[c], right_[c] = all[c] - left_[c];
            const int64_t n_left = static_cast<int64_t>(left_[k + 1]);
            if (n_left < least || count_ - n_left < least || n_left == count_) continue;
            double loss;
            if (!classify) {
                double left = 0.0, right = 0.0;
                for (int32_t c = 0; c < k; ++c)
                    left += left_[c] * left_[c], right += right_[c] * right_[c];
                loss = squares - left / (left_[k] + objective_.ridge) -
                       right / (right_[k] + objective_.ridge);
            } else {
                loss = leaf_loss(objective_, true, k, left_.data(), {left_[k], 0.0, n_left}) +
                       leaf_loss(objective_, true, k, right_.data(), {right_[k], 0.0, n_left});
            }
            if (loss < best.loss) best = {loss, feature, cut_of(feature, r), side == 1};
        }
    }
}

void SplitSearch::preferred(int32_t feature, int64_t least, Split& best) {
    common::poll();
    const uint16_t* column = rows_.rank + int64_t{feature} * rows_.m;
    const int64_t n_ranks = rows_.n_ranks[feature];
    // A histogram over all ranks where they are not many more than rows, else the rows in order.
    int64_t missing = 0;
    double missing_lean = 0.0;
    const auto offer = [&](double sum, int64_t left, int64_t rank) {
        const auto consider = [&](double loss, int64_t n_left, bool missing_left) {
            if (n_left < least || count_ - n_left < least || n_left == 0 || n_left == count_)
                return;
            if (loss < best.loss) best = {loss, feature, cut_of(feature, rank), missing_left};
        };
        consider(sum, left, false);
        if (missing > 0) consider(sum + missing_lean, left + missing, true);
    };
    if (n_ranks <= 2 * count_ + 64) {
        histogram_.assign(static_cast<size_t>(n_ranks), 0.0);
        start_.assign(static_cast<size_t>(n_ranks), 0);
        for (int64_t i = 0; i < count_; ++i) {
            const uint16_t rank = column[ids_[i]];
            if (rank == kMissing) {
                ++missing, missing_lean += lean_[i];
            } else {
                histogram_[rank] += lean_[i], ++start_[rank];
            }
        }
        double sum = 0.0;
        int64_t left = 0;
        for (int64_t r = 0; r < n_ranks; ++r) {
            if (start_[r] == 0) continue;
            sum += histogram_[r], left += start_[r];
            offer(sum, left, r);
        }
        return;
    }
    const int64_t present = order(feature);
    missing = count_ - present;
    for (int64_t i = present; i < count_; ++i) missing_lean += lean_[order_[i]];
    double sum = 0.0;
    for (int64_t p = 0; p < present; ++p) {
        sum += lean_[order_[p]];
        if (ends_rank(p, present)) offer(sum, p + 1, sorted_[p]);
    }
}

}  // namespace dm::search
