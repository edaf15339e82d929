// A tree of experts: each row's path, its expert, and a dense network where the expert is unsure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/buffer.hpp"
#include "routed/kernels.hpp"

namespace dm::routed {

// Networks of one shape, as they were handed in.
struct Given {
    int64_t count, n, h, k;
    const float* first;        // (count, n, h)
    const float* first_bias;   // (count, h)
    const float* second;       // (count, h, k)
    const float* second_bias;  // (count, k)
};

// Networks in the layout of the kernels.
class Networks {
public:
    explicit Networks(const Given& given);
    int64_t n, h, k;
    Network at(int64_t i) const;

private:
    int64_t size_;  // floats of one network
    common::Buffer weights_;
};

class Plan {
public:
    // tests: (count - 1, n), thresholds: (count - 1,), in level order; `dense` may be null.
    Plan(const std::string& target, const float* tests, const float* thresholds,
         const Given& experts, const Given* dense, float certainty, bool is_classes);

    int64_t n() const { return experts_.n; }
    int64_t k() const { return experts_.k; }
    // Answers of m rows into out (m, k), and for each row its expert and whether it was deferred
    // where these are not null. One thread; a plan may be run by several at once.
    void run(const float* x, int64_t m, float* out, int32_t* expert, uint8_t* deferred) const;

private:
    int32_t route(const float* row) const;
    void finish(const float* logits, float* out) const;

    const Kernels* kernels_;
    int64_t n_experts_;
    std::vector<float> tests_, thresholds_;
    Networks experts_;
    std::vector<Networks> dense_;  // none or one
    float least_;                  // log of the certainty
    bool is_classes_;
};

}  // namespace dm::routed
