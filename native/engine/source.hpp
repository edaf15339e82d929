// Rows as the caller holds them: one array, an array for each feature, or compressed sparse rows.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/kernels/kernels.hpp"

namespace dm::engine {

struct Source {
    int64_t n_rows = 0;
    bool is_array = false;
    Feature first{};  // feature 0 of the array, and the bytes from one to the next
    int64_t next = 0;
    std::vector<Feature> features;  // (n_features,), unless an array or sparse
    bool integers_single = false;   // integers pass through float32
    bool is_sparse = false;
    Feature entries{};  // the stored values
    const int32_t* indices32 = nullptr;
    const int64_t* indices64 = nullptr;
    const int32_t* indptr32 = nullptr;
    const int64_t* indptr64 = nullptr;

    Feature feature(int64_t i) const {
        return is_array ? Feature{first.data + i * next, first.stride, first.dtype}
                        : features[static_cast<size_t>(i)];
    }
};

}  // namespace dm::engine
