#include "soft/entmax.hpp"

#include <algorithm>
#include <cmath>

namespace dm::soft {
namespace {

constexpr int kLanes = 16;  // sums side by side, which a compiler can put in vectors

// Sums of (x / 2 - tau)_+ and of its square.
template <typename T>
void sums(const T* x, int64_t n, T tau, T& first, T& second) {
    T one[kLanes] = {}, two[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        for (int k = 0; k < kLanes; ++k) {
            const T above = x[i + k] * T(0.5) - tau;
            const T d = above > 0 ? above : T(0);
            one[k] += d;
            two[k] += d * d;
        }
    first = second = 0;
    for (int k = 0; k < kLanes; ++k) {
        first += one[k];
        second += two[k];
    }
    for (; i < n; ++i) {
        const T d = std::max(x[i] * T(0.5) - tau, T(0));
        first += d;
        second += d * d;
    }
}

// The sum of squares falls in tau and is convex: Newton's steps from the left, where it is at least
// 1, never pass the root. Those of sqrt(sum) = 1 come nearer, and from the left as well.
template <typename T>
T threshold(const T* x, int64_t n) {
    T most = x[0];
    for (int64_t i = 1; i < n; ++i) most = std::max(most, x[i]);
    T tau = most * T(0.5) - T(1);
    for (int step = 0; step < 60; ++step) {
        T first, second;
        sums(x, n, tau, first, second);
        const T root = std::sqrt(second);
        const T next = tau + root * (root - T(1)) / first;
        if (!(next > tau)) break;
        tau = next;
    }
    return tau;
}

}  // namespace

template <typename T>
SparseRows<T> entmax15(const T* logits, int64_t rows, int64_t columns) {
    SparseRows<T> found;
    found.start.reserve(static_cast<size_t>(rows) + 1);
    found.start.push_back(0);
    for (int64_t r = 0; r < rows; ++r) {
        const T* x = logits + r * columns;
        const T tau = threshold(x, columns);
        const size_t first = found.weight.size();
        T total = 0;
        for (int64_t c = 0; c < columns; ++c) {
            const T above = x[c] * T(0.5) - tau;
            if (above <= 0) continue;
            found.column.push_back(static_cast<int32_t>(c));
            found.weight.push_back(above * above);
            total += above * above;
        }
        for (size_t e = first; e < found.weight.size(); ++e) found.weight[e] /= total;
        found.start.push_back(static_cast<int64_t>(found.weight.size()));
    }
    return found;
}

template <typename T>
void entmax15_gradient(const int64_t* start, const int32_t* column, const T* weight, const T* dw,
                       int64_t rows, int64_t columns, T* dlogits) {
    std::fill(dlogits, dlogits + rows * columns, T(0));
    for (int64_t r = 0; r < rows; ++r) {
        T total = 0, mean = 0;
        for (int64_t e = start[r]; e < start[r + 1]; ++e) {
            const T g = std::sqrt(weight[e]);
            total += g;
            mean += g * dw[e];
        }
        mean /= total;
        for (int64_t e = start[r]; e < start[r + 1]; ++e)
            dlogits[r * columns + column[e]] = std::sqrt(weight[e]) * (dw[e] - mean);
    }
}

template SparseRows<float> entmax15(const float*, int64_t, int64_t);
template SparseRows<double> entmax15(const double*, int64_t, int64_t);
template void entmax15_gradient(const int64_t*, const int32_t*, const float*, const float*, int64_t,
                                int64_t, float*);
template void entmax15_gradient(const int64_t*, const int32_t*, const double*, const double*,
                                int64_t, int64_t, double*);

}  // namespace dm::soft
