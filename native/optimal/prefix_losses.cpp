#include "optimal/prefix_losses.hpp"

#include <algorithm>

namespace dm::optimal {

void PrefixLosses::operator()(const Node& node, const int32_t* rows, int32_t count, double* out) {
    if (problem_.loss == Loss::error) return error(node, rows, count, out);
    if (problem_.loss == Loss::squared) return squared(node, rows, count, out);
    std::fill(out, out + count, 0.0);
    for (int32_t t = 0; t < problem_.k; ++t) absolute(node, t, rows, count, out);
}

void PrefixLosses::error(const Node& node, const int32_t* rows, int32_t count, double* out) {
    sums_.assign(node.n_classes, 0.0);
    double all = 0.0, most = 0.0;
    for (int32_t i = 0; i < count; ++i) {
        const int32_t row = rows[i];
        const double w = node.w[row];
        all += w;
        most = std::max(most, sums_[node.label[row]] += w);
        out[i] = std::max(0.0, all - most);
    }
}

void PrefixLosses::squared(const Node& node, const int32_t* rows, int32_t count, double* out) {
    sums_.assign(problem_.k, 0.0);
    double all = 0.0, squares = 0.0;
    for (int32_t i = 0; i < count; ++i) {
        const int32_t row = rows[i];
        const double w = node.w[row];
        all += w;
        double explained = 0.0;
        for (int32_t t = 0; t < problem_.k; ++t) {
            const double y = node.target(t)[row];
            squares += w * y * y;
            const double sum = sums_[t] += w * y;
            explained += sum * sum;
        }
        out[i] = std::max(0.0, squares - explained / all);
    }
}

// Rows are taken out, the last first, of a list in the order of y, in which the median moves
// little.
void PrefixLosses::absolute(const Node& node, int32_t t, const int32_t* rows, int32_t count,
                            double* out) {
    const double* y = node.target(t);
    const int32_t* by_y = node.order_of(problem_.n + t);
    before_.assign(node.m, -1);
    after_.assign(node.m, -1);
    place_.assign(node.m, -1);
    for (int32_t i = 0; i < count; ++i) place_[rows[i]] = 0;
    double weight = 0.0, sum = 0.0;
    int32_t last = -1, middle = -1, at = 0;
    for (int32_t i = 0; i < node.m; ++i) {
        const int32_t row = by_y[i];
        if (place_[row] < 0) continue;
        place_[row] = at++;
        before_[row] = last;
        if (last >= 0) after_[last] = row;
        if (last < 0) middle = row;
        last = row;
        weight += node.w[row];
        sum += node.w[row] * y[row];
    }
    double lower = 0.0, lower_sum = 0.0;  // of what lies before the median
    for (int32_t i = count - 1; i >= 0; --i) {
        while (lower > weight / 2 && before_[middle] >= 0) {
            middle = before_[middle];
            lower -= node.w[middle];
            lower_sum -= node.w[middle] * y[middle];
        }
        while (lower + node.w[middle] < weight / 2 && after_[middle] >= 0) {
            lower += node.w[middle];
            lower_sum += node.w[middle] * y[middle];
            middle = after_[middle];
        }
        const double centre = y[middle];
        const double loss =
            centre * lower - lower_sum + (sum - lower_sum) - centre * (weight - lower);
        out[i] += std::max(0.0, loss);
        const int32_t row = rows[i];
        const double w = node.w[row];
        weight -= w;
        sum -= w * y[row];
        if (place_[row] < place_[middle]) {
            lower -= w;
            lower_sum -= w * y[row];
        }
        const int32_t b = before_[row], a = after_[row];
        if (b >= 0) after_[b] = a;
        if (a >= 0) before_[a] = b;
        if (row == middle) {
            if (a >= 0) {
                middle = a;
            } else if (b >= 0) {
                middle = b;
                lower -= node.w[b];
                lower_sum -= node.w[b] * y[b];
            }
        }
    }
}

Stump Stumps::best(const Node& node, int32_t f, int32_t cut, int32_t side, int32_t only) {
    Stump found;
    rows_.resize(node.m);
    back_.resize(node.m);
    ahead_.resize(node.m);
    behind_.resize(node.m);
    const int32_t* root = f < 0 ? nullptr : node.rank_of(f);
    for (int32_t g = 0; g < problem_.n; ++g) {
        const int32_t* order = node.order_of(g);
        const int32_t* rank = node.rank_of(g);
        if (node.n_ranks[g] < 2 || (only >= 0 && g != only)) continue;
        int32_t count = 0;
        if (root == nullptr) {
            std::copy(order, order + node.m, rows_.begin());
            count = node.m;
        } else {
            for (int32_t i = 0; i < node.m; ++i) {
                rows_[count] = order[i];
                count += (root[order[i]] > cut) == (side == 1);
            }
        }
        if (count < 2 || rank[rows_[0]] == rank[rows_[count - 1]]) continue;
        std::reverse_copy(rows_.begin(), rows_.begin() + count, back_.begin());
        losses_(node, rows_.data(), count, ahead_.data());
        losses_(node, back_.data(), count, behind_.data());
        for (int32_t i = 0; i + 1 < count; ++i) {
            if (rank[rows_[i]] == rank[rows_[i + 1]]) continue;
            const double loss = ahead_[i] + behind_[count - 2 - i];
            found.relaxed = std::min(found.relaxed, loss);
            if (loss < found.loss && i + 1 >= problem_.least && count - i - 1 >= problem_.least) {
                found.loss = loss;
                found.feature = g;
                found.below = rows_[i];
                found.above = rows_[i + 1];
            }
        }
    }
    return found;
}

void Stumps::leaves(const Node& node, int32_t f, std::vector<double>& left,
                    std::vector<double>& right) {
    const int32_t* order = node.order_of(f);
    const int32_t* rank = node.rank_of(f);
    const int32_t m = node.m;
    left.resize(node.n_ranks[f]);
    right.resize(node.n_ranks[f]);
    back_.resize(m);
    ahead_.resize(m);
    behind_.resize(m);
    std::reverse_copy(order, order + m, back_.begin());
    losses_(node, order, m, ahead_.data());
    losses_(node, back_.data(), m, behind_.data());
    for (int32_t i = 0; i + 1 < m; ++i)
        if (rank[order[i]] != rank[order[i + 1]]) {
            left[rank[order[i]]] = ahead_[i];
            right[rank[order[i]]] = behind_[m - 2 - i];
        }
    left.back() = ahead_[m - 1];
    right.back() = 0.0;
}

double Stumps::leaf(const Node& node) {
    ahead_.resize(node.m);
    rows_.resize(node.m);
    for (int32_t i = 0; i < node.m; ++i) rows_[i] = i;
    losses_(node, rows_.data(), node.m, ahead_.data());
    return ahead_[node.m - 1];
}

}  // namespace dm::optimal
