#include "soft/entmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dm::soft {
namespace {

constexpr int kLanes = 16;  // rows side by side, which a compiler can put in vectors

// The thresholds tau of kLanes rows, of which x (columns, kLanes) holds halves of logits, less
// their largest, so that none is lost beside the 1 that tau lies below it at most. The sum of
// squares (x - tau)_+^2 falls in tau and is convex: Newton's steps from the left, where it is at
// least 1, never pass the root. Those of sqrt(sum) = 1 come nearer, and from the left as well.
template <typename T>
void thresholds(const T* x, int64_t columns, T* tau) {
    std::fill(tau, tau + kLanes, T(-1));
    for (int step = 0; step < 60; ++step) {
        T first[kLanes] = {}, second[kLanes] = {};
        for (int64_t c = 0; c < columns; ++c)
            for (int k = 0; k < kLanes; ++k) {
                const T above = x[c * kLanes + k] - tau[k];
                const T d = above > 0 ? above : T(0);
                first[k] += d;
                second[k] += d * d;
            }
        bool any = false;
        for (int k = 0; k < kLanes; ++k) {
            const T root = std::sqrt(second[k]);
            const T next = tau[k] + root * (root - T(1)) / first[k];
            // A last step of a rounding error or two changes no weight.
            any |= next - tau[k] > 4 * std::numeric_limits<T>::epsilon();
            tau[k] = next > tau[k] ? next : tau[k];
        }
        if (!any) return;
    }
}

}  // namespace

template <typename T>
SparseRows<T> entmax15(const T* logits, int64_t rows, int64_t columns) {
    SparseRows<T> found;
    found.start.reserve(static_cast<size_t>(rows) + 1);
    found.start.push_back(0);
    std::vector<T> x(static_cast<size_t>(columns) * kLanes);
    std::vector<int32_t> kept(static_cast<size_t>(columns));
    std::vector<T> weight(static_cast<size_t>(columns));
    T tau[kLanes];
    for (int64_t r = 0; r < rows; ++r) {
        const int k = static_cast<int>(r % kLanes);
        if (k == 0) {
            for (int lane = 0; lane < kLanes; ++lane) {
                // The last row again where there are no more.
                const T* from = logits + std::min(r + lane, rows - 1) * columns;
                const T most = *std::max_element(from, from + columns);
                for (int64_t c = 0; c < columns; ++c)
                    x[c * kLanes + lane] = from[c] * T(0.5) - most * T(0.5);
            }
            thresholds(x.data(), columns, tau);
        }
        // Without a branch: whether a column is kept is a coin toss to the processor.
        size_t n = 0;
        for (int64_t c = 0; c < columns; ++c) {
            const T above = x[c * kLanes + k] - tau[k];
            kept[n] = static_cast<int32_t>(c);
            weight[n] = above * above;
            n += above > 0;
        }
        T total = 0;
        for (size_t e = 0; e < n; ++e) total += weight[e];
        for (size_t e = 0; e < n; ++e) weight[e] /= total;
        found.column.insert(found.column.end(), kept.begin(), kept.begin() + n);
        found.weight.insert(found.weight.end(), weight.begin(), weight.begin() + n);
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
