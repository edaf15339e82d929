#include "routed/plan.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/require.hpp"
#include "common/targets.hpp"

namespace dm::routed {
namespace {

constexpr int64_t kRowsOfBatch = 4096;  // whose answers stand in scratch at once

}  // namespace

Networks::Networks(const Given& given)
    : n(given.n), h(given.h), k(given.k), size_((n + 1) * padded(h) + (h + 1) * padded(k)) {
    weights_.reserve(given.count * size_ * 4);
    for (int64_t e = 0; e < given.count; ++e) {
        float* to = weights_.as<float>() + e * size_;
        auto put = [&](const float* from, int64_t rows, int64_t columns) {
            for (int64_t r = 0; r < rows; ++r, to += padded(columns))
                std::copy(from + r * columns, from + (r + 1) * columns, to);
        };
        put(given.first + e * n * h, n, h);
        put(given.first_bias + e * h, 1, h);
        put(given.second + e * h * k, h, k);
        put(given.second_bias + e * k, 1, k);
    }
}

Network Networks::at(int64_t i) const {
    const float* first = weights_.as<float>() + i * size_;
    const float* second = first + (n + 1) * padded(h);
    return {n, h, k, first, first + n * padded(h), second, second + h * padded(k)};
}

Plan::Plan(const std::string& target, const float* tests, const float* thresholds,
           const Given& experts, const Given* dense, float certainty, bool is_classes)
    : kernels_(common::find_kernels<Kernels>(DM_OF_EVERY_TARGET(kernels), target)),
      n_experts_(experts.count),
      tests_(tests, tests + (experts.count - 1) * experts.n),
      thresholds_(thresholds, thresholds + experts.count - 1),
      experts_(experts),
      least_(std::log(std::max(certainty, 1e-30f))),
      is_classes_(is_classes) {
    common::require(kernels_ != nullptr, "this processor has no such target");
    if (dense) dense_.emplace_back(*dense);
}

int32_t Plan::route(const float* row) const {
    int64_t at = 0;
    while (at < n_experts_ - 1) {
        const bool right = kernels_->dot(tests_.data() + at * n(), row, n()) > thresholds_[at];
        at = 2 * at + 1 + right;
    }
    return static_cast<int32_t>(at - (n_experts_ - 1));
}

void Plan::finish(const float* logits, float* out) const {
    std::copy(logits, logits + k(), out);
    if (!is_classes_) return;
    const float most = *std::max_element(logits, logits + k());
    float sum = 0;
    for (int64_t c = 0; c < k(); ++c) sum += std::exp(logits[c] - most);
    const float norm = most + std::log(sum);
    for (int64_t c = 0; c < k(); ++c) out[c] -= norm;
}

void Plan::run(const float* x, int64_t m, float* out, int32_t* expert, uint8_t* deferred) const {
    const int64_t wide = padded(k());
    const int64_t most = std::min(m, kRowsOfBatch);
    common::Buffer memory;
    const int64_t hidden =
        kRowsAtOnce * padded(dense_.empty() ? experts_.h : std::max(experts_.h, dense_[0].h));
    memory.reserve((hidden + most * wide) * 4);
    float *inner = memory.as<float>(), *logits = inner + hidden;
    std::vector<int32_t> path(most), order(most), unsure;
    std::vector<int64_t> start;
    for (int64_t first = 0; first < m; first += kRowsOfBatch) {
        const int64_t rows = std::min(kRowsOfBatch, m - first);
        const float* own = x + first * n();
        float* to = out + first * k();
        start.assign(static_cast<size_t>(n_experts_) + 1, 0);
        for (int64_t r = 0; r < rows; ++r) {
            path[r] = route(own + r * n());
            ++start[path[r] + 1];
        }
        if (expert) std::copy(path.begin(), path.begin() + rows, expert + first);
        std::partial_sum(start.begin(), start.end(), start.begin());
        std::vector<int64_t> at(start.begin(), start.end() - 1);
        for (int64_t r = 0; r < rows; ++r) order[at[path[r]]++] = static_cast<int32_t>(r);
        for (int64_t e = 0; e < n_experts_; ++e)
            if (start[e + 1] > start[e])
                kernels_->answer(experts_.at(e), own, order.data() + start[e],
                                 start[e + 1] - start[e], inner, logits + start[e] * wide);
        unsure.clear();
        for (int64_t i = 0; i < rows; ++i) {
            float* answer = to + order[i] * k();
            finish(logits + i * wide, answer);
            if (!dense_.empty() && *std::max_element(answer, answer + k()) < least_)
                unsure.push_back(order[i]);
        }
        if (deferred) std::fill(deferred + first, deferred + first + rows, uint8_t{0});
        if (unsure.empty()) continue;
        kernels_->answer(dense_[0].at(0), own, unsure.data(), static_cast<int64_t>(unsure.size()),
                         inner, logits);
        for (size_t i = 0; i < unsure.size(); ++i) {
            finish(logits + static_cast<int64_t>(i) * wide, to + unsure[i] * k());
            if (deferred) deferred[first + unsure[i]] = 1;
        }
    }
}

}  // namespace dm::routed
