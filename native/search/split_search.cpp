#include "search/split_search.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/interrupts.hpp"

namespace dm::search {

double x_log_x(double x) { return x > 0.0 ? x * std::log(x) : 0.0; }

double leaf_loss(const Objective& objective, bool classify, int32_t k, const double* totals,
                 const Totals& about) {
    if (about.weight <= 0.0) return 0.0;
    double loss = 0.0, squares = 0.0;
    if (!classify && objective.number == NumberLoss::poisson) {
        double explained = 0.0;
        for (int32_t c = 0; c < k; ++c)
            if (totals[c] > 0.0) explained += totals[c] * std::log(totals[c] / about.weight);
        return std::max(0.0, about.squares - explained);
    }
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

// -- the pinball loss -----------------------------------------------------------------------------

void QuantileLoss::start(double quantile) {
    quantile_ = quantile;
    low_.clear(), high_.clear();
    low_w_ = high_w_ = low_sum_ = high_sum_ = 0.0;
}

void QuantileLoss::add(double y, double w) {
    const auto less = [](const Entry& a, const Entry& b) { return a.y < b.y; };
    const auto more = [](const Entry& a, const Entry& b) { return a.y > b.y; };
    if (low_.empty() || y <= low_.front().y) {
        low_.push_back({y, w}), std::push_heap(low_.begin(), low_.end(), less);
        low_w_ += w, low_sum_ += w * y;
    } else {
        high_.push_back({y, w}), std::push_heap(high_.begin(), high_.end(), more);
        high_w_ += w, high_sum_ += w * y;
    }
    // The low side is the shortest with the quantile's share; its largest is the answer.
    const double share = quantile_ * (low_w_ + high_w_) * (1.0 - 1e-12);
    while (low_.size() > 1 && low_w_ - low_.front().w >= share) {
        const Entry top = low_.front();
        std::pop_heap(low_.begin(), low_.end(), less), low_.pop_back();
        low_w_ -= top.w, low_sum_ -= top.w * top.y;
        high_.push_back(top), std::push_heap(high_.begin(), high_.end(), more);
        high_w_ += top.w, high_sum_ += top.w * top.y;
    }
    while (!high_.empty() && low_w_ < share) {
        const Entry top = high_.front();
        std::pop_heap(high_.begin(), high_.end(), more), high_.pop_back();
        high_w_ -= top.w, high_sum_ -= top.w * top.y;
        low_.push_back(top), std::push_heap(low_.begin(), low_.end(), less);
        low_w_ += top.w, low_sum_ += top.w * top.y;
    }
}

double QuantileLoss::value() const { return low_.empty() ? 0.0 : low_.front().y; }

double QuantileLoss::loss() const {
    if (low_.empty()) return 0.0;
    const double v = value();
    return std::max(
        0.0, (1.0 - quantile_) * (v * low_w_ - low_sum_) + quantile_ * (high_sum_ - v * high_w_));
}

// -- the rows of a node ---------------------------------------------------------------------------

void SplitSearch::enter(const int32_t* ids, int64_t count, const double* lean) {
    ids_ = ids, count_ = count, lean_ = lean;
    const size_t size = static_cast<size_t>(count);
    if (rank_.size() < size)
        rank_.resize(size), sorted_.resize(size), order_.resize(size), spare_.resize(size),
            w_.resize(size), loss_.resize(size), most_right_.resize(size);
    if (lean) {  // the walk over preferences reads nothing else
        if (lean_pairs_.size() < size) lean_pairs_.resize(size);
        for (int64_t i = 0; i < count; ++i) lean_pairs_[i] = Leaning{lean[i], 1.0};
        return;
    }
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
    const int64_t n_ranks = rows_.n_ranks[feature];
    int64_t missing = 0;
    read(feature, [&](const auto* column, auto no_rank) {
        for (int64_t i = 0; i < count_; ++i) {
            const auto rank = column[ids_[i]];
            rank_[i] = rank == no_rank ? kMissing : static_cast<uint16_t>(rank);
            missing += rank == no_rank;
        }
    });
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

// The same for a number of rows, from a table that grows by itself.
double SplitSearch::count_log_count(int64_t count) const {
    if (count < 65536) {
        while (static_cast<int64_t>(xlogx_.size()) <= count)
            xlogx_.push_back(x_log_x(static_cast<double>(xlogx_.size())));
        return xlogx_[count];
    }
    return x_log_x(static_cast<double>(count));
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

// Both sides as rows join them: the right one is walked backwards.
void SplitSearch::sweep_quantile(int64_t present, bool missing_left) {
    const int32_t k = rows_.k;
    for (int32_t c = 0; c < k; ++c) {
        const auto add = [&](int64_t i) {
            const int32_t row = order_[i];
            quantile_.add(y_[int64_t{row} * k + c], w_[row]);
        };
        for (const bool is_left : {true, false}) {
            quantile_.start(objective_.quantile);
            if (missing_left == is_left)
                for (int64_t i = present; i < count_; ++i) add(i);
            if (is_left) {
                for (int64_t p = 0; p < present; ++p) {
                    add(p);
                    loss_[p] += quantile_.loss();
                }
            } else {
                for (int64_t p = present - 1; p >= 0; --p) {
                    loss_[p] += quantile_.loss();
                    add(p);
                }
            }
        }
    }
}

void SplitSearch::purest(const Objective& objective, int32_t feature, int64_t least, Split& best,
                         double extra) {
    common::poll();
    objective_ = objective, extra_ = extra;
    const bool classify = rows_.classify(), by_rows = !classify && objective.is_quantile();
    const int64_t n_ranks = rows_.n_ranks[feature];
    const bool poisson = !classify && objective.number == NumberLoss::poisson;
    if (!by_rows) {
        if (!classify && rows_.k == 1 && (n_ranks <= 2 * count_ || poisson))
            return purest_number(feature, least, best);
        if (n_ranks * rows_.k <= 3 * count_ || poisson) {
            if (classify && rows_.each > 0.0) return purest_by_counts(feature, least, best);
            return purest_of_bins(feature, least, best);
        }
    }
    const int64_t present = order(feature), missing = count_ - present;
    if (present == 0 || (missing == 0 && sorted_[0] == sorted_[present - 1])) return;
    for (int side = 0; side < (missing > 0 ? 2 : 1); ++side) {
        const bool missing_left = side == 1;
        std::fill(loss_.begin(), loss_.begin() + present, 0.0);
        if (by_rows) {
            sweep_quantile(present, missing_left);
        } else {
            if (!classify || objective.gini > 0.0) sweep_gini(present, missing_left);
            if (classify && objective.entropy > 0.0) sweep_entropy(present, missing_left);
            if (classify && objective.error > 0.0) sweep_error(present, missing_left);
        }
        for (int64_t p = 0; p < present; ++p) {
            if (!ends_rank(p, present)) continue;
            const int64_t left = p + 1 + (missing_left ? missing : 0);
            if (left < least || count_ - left < least || left == count_) continue;
            offer(loss_[p], feature, sorted_[p], missing_left, best);
        }
    }
}

// The same for one number where ranks are few for so many rows.
void SplitSearch::purest_number(int32_t feature, int64_t least, Split& best) {
    const int64_t n_ranks = rows_.n_ranks[feature];
    bins_.assign(static_cast<size_t>(n_ranks) + 1, Bin{});
    const bool poisson = objective_.number == NumberLoss::poisson;
    double squares = 0.0;
    Bin all;
    read(feature, [&](const auto* column, auto no_rank) {
        for (int64_t i = 0; i < count_; ++i) {
            const auto rank = column[ids_[i]];
            Bin& bin = bins_[rank == no_rank ? n_ranks : rank];
            const double wy = w_[i] * y_[i];
            bin.sum += wy, bin.weight += w_[i], ++bin.count;
            all.sum += wy, all.weight += w_[i];
            squares += poisson ? w_[i] * x_log_x(y_[i]) : wy * y_[i];
        }
    });
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
            double loss = squares;
            if (poisson) {
                const double w = all.weight - left.weight;
                if (left.sum > 0.0) loss -= left.sum * std::log(left.sum / left.weight);
                if (right > 0.0 && w > 0.0) loss -= right * std::log(right / w);
            } else {
                const double a = left.weight + ridge, b = all.weight - left.weight + ridge;
                loss -= (left.sum * left.sum * b + right * right * a) / (a * b);
            }
            offer(loss, feature, r, side == 1, best);
        }
    }
}

// The same for classes where ranks are few for so many rows, all of the same weight: rows are
// counted, and the losses are those of counts.
void SplitSearch::purest_by_counts(int32_t feature, int64_t least, Split& best) {
    const int32_t k = rows_.k;
    const int64_t n_ranks = rows_.n_ranks[feature];
    const int64_t behind = missing_place(feature), size = (behind + 1) * k;
    const bool in_turn = 8 * size <= count_;  // as in `preferred`
    counts_.assign(static_cast<size_t>(in_turn ? 4 * size : size), 0);
    read(feature, [&](const auto* column, auto) {
        int32_t* const counts = counts_.data();
        const auto at = [&](int64_t i) { return place(column[ids_[i]], behind) * k + label_[i]; };
        int64_t i = 0;
        if (in_turn)
            for (; i + 3 < count_; i += 4)
                for (int64_t j = 0; j < 4; ++j) ++counts[j * size + at(i + j)];
        for (; i < count_; ++i) ++counts[at(i)];
        if (in_turn)
            for (int64_t j = 0; j < size; ++j)
                counts[j] += counts[size + j] + counts[2 * size + j] + counts[3 * size + j];
    });
    left_count_.assign(k, 0), all_count_.assign(k, 0);
    for (int64_t r = 0; r < n_ranks; ++r)
        for (int32_t c = 0; c < k; ++c) all_count_[c] += counts_[r * k + c];
    for (int32_t c = 0; c < k; ++c) all_count_[c] += counts_[behind * k + c];
    const int32_t* missing = &counts_[behind * k];
    int64_t n_missing = 0;
    for (int32_t c = 0; c < k; ++c) n_missing += missing[c];
    const bool gini = objective_.gini > 0.0, entropy = objective_.entropy > 0.0;
    const double all = static_cast<double>(count_);
    for (int side = 0; side < (n_missing > 0 ? 2 : 1); ++side) {
        int64_t n_left = side == 1 ? n_missing : 0;
        for (int32_t c = 0; c < k; ++c) left_count_[c] = side == 1 ? missing[c] : 0;
        for (int64_t r = 0; r < n_ranks; ++r) {
            const int32_t* bin = &counts_[r * k];
            int64_t joined = 0;
            for (int32_t c = 0; c < k; ++c) joined += bin[c], left_count_[c] += bin[c];
            if (joined == 0) continue;
            n_left += joined;
            if (n_left < least || count_ - n_left < least || n_left == count_) continue;
            const double weight = static_cast<double>(n_left), rest = all - weight;
            double loss = 0.0;
            if (gini) {
                int64_t left = 0, right = 0;
                for (int32_t c = 0; c < k; ++c) {
                    const int64_t l = left_count_[c], o = all_count_[c] - l;
                    left += l * l, right += o * o;
                }
                loss += objective_.gini * (all - static_cast<double>(left) / weight -
                                           static_cast<double>(right) / rest);
            }
            if (objective_.error > 0.0) {
                int64_t left = 0, right = 0;
                for (int32_t c = 0; c < k; ++c) {
                    left = std::max(left, left_count_[c]);
                    right = std::max(right, all_count_[c] - left_count_[c]);
                }
                loss += objective_.error * static_cast<double>(count_ - left - right);
            }
            if (entropy) {
                double sum = count_log_count(n_left) + count_log_count(count_ - n_left);
                for (int32_t c = 0; c < k; ++c)
                    sum -= count_log_count(left_count_[c]) +
                           count_log_count(all_count_[c] - left_count_[c]);
                loss += objective_.entropy * sum;
            }
            offer(loss * rows_.each, feature, r, side == 1, best);
        }
    }
}

// The same where ranks are few for so many rows: totals of each rank first, then a walk over ranks.
void SplitSearch::purest_of_bins(int32_t feature, int64_t least, Split& best) {
    const int32_t k = rows_.k, stride = k + 2;  // totals, weight, count
    const int64_t n_ranks = rows_.n_ranks[feature];
    const bool classify = rows_.classify(), poisson = objective_.number == NumberLoss::poisson;
    histogram_.assign(static_cast<size_t>((n_ranks + 1) * stride), 0.0);
    double squares = 0.0;
    read(feature, [&](const auto* column, auto no_rank) {
        for (int64_t i = 0; i < count_; ++i) {
            const auto rank = column[ids_[i]];
            double* bin = &histogram_[(rank == no_rank ? n_ranks : int64_t{rank}) * stride];
            bin[k] += w_[i], bin[k + 1] += 1.0;
            if (classify) {
                bin[label_[i]] += w_[i];
                continue;
            }
            for (int32_t c = 0; c < k; ++c) {
                const double y = y_[i * k + c], wy = w_[i] * y;
                bin[c] += wy, squares += poisson ? w_[i] * x_log_x(y) : wy * y;
            }
        }
    });
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
            double loss = squares;
            if (classify) {
                loss = leaf_loss(objective_, true, k, left_.data(), {left_[k], 0.0, n_left}) +
                       leaf_loss(objective_, true, k, right_.data(), {right_[k], 0.0, n_left});
            } else {
                for (const double* part : {left_.data(), right_.data()})
                    for (int32_t c = 0; c < k; ++c)
                        if (!poisson)
                            loss -= part[c] * part[c] / (part[k] + objective_.ridge);
                        else if (part[c] > 0.0)
                            loss -= part[c] * std::log(part[c] / part[k]);
            }
            offer(loss, feature, r, side == 1, best);
        }
    }
}

void SplitSearch::preferred(int32_t feature, int64_t least, Split& best, double extra) {
    common::poll();
    extra_ = extra;
    const int64_t n_ranks = rows_.n_ranks[feature];
    // A histogram over all ranks where they are not many more than rows, else the rows in order.
    int64_t missing = 0;
    double missing_lean = 0.0;
    const auto consider = [&](double loss, int64_t n_left, int64_t rank, bool missing_left) {
        if (n_left < least || count_ - n_left < least || n_left == 0 || n_left == count_) return;
        offer(loss, feature, rank, missing_left, best);
    };
    const auto cut = [&](double sum, int64_t left, int64_t rank) {
        consider(sum, left, rank, false);
        if (missing > 0) consider(sum + missing_lean, left + missing, rank, true);
    };
    if (n_ranks <= 2 * count_ + 64) {
        const int64_t behind = missing_place(feature), size = behind + 1;
        // Two histograms in turn: rows of one rank need not wait for each other's sums.
        leaning_.assign(static_cast<size_t>(2 * size), Leaning{});
        Leaning *const even = leaning_.data(), *const odd = even + size;
        read(feature, [&](const auto* column, auto) {
            int64_t i = 0;
            for (; i + 1 < count_; i += 2) {
                even[place(column[ids_[i]], behind)] += lean_pairs_[i];
                odd[place(column[ids_[i + 1]], behind)] += lean_pairs_[i + 1];
            }
            if (i < count_) even[place(column[ids_[i]], behind)] += lean_pairs_[i];
        });
        const Leaning none = even[behind] + odd[behind];
        missing_lean = none[0], missing = static_cast<int64_t>(none[1]);
        Leaning sum{};
        for (int64_t r = 0; r < n_ranks; ++r) {
            const Leaning own = even[r] + odd[r];
            if (own[1] == 0.0) continue;
            sum += own;
            cut(sum[0], static_cast<int64_t>(sum[1]), r);
        }
        return;
    }
    const int64_t present = order(feature);
    missing = count_ - present;
    for (int64_t i = present; i < count_; ++i) missing_lean += lean_[order_[i]];
    double sum = 0.0;
    for (int64_t p = 0; p < present; ++p) {
        sum += lean_[order_[p]];
        if (ends_rank(p, present)) cut(sum, p + 1, sorted_[p]);
    }
}

}  // namespace dm::search
