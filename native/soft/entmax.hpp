// 1.5-entmax by row, and its gradient: which columns a test weighs, and how much.
#pragma once

#include <cstdint>
#include <vector>

namespace dm::soft {

// Rows of weights that are not 0.
template <typename T>
struct SparseRows {
    std::vector<int64_t> start;  // (rows + 1,)
    std::vector<int32_t> column;
    std::vector<T> weight;
};

// w_i = (x_i / 2 - tau)^2 where that is positive, tau such that a row sums to 1.
template <typename T>
SparseRows<T> entmax15(const T* logits, int64_t rows, int64_t columns);

// dL/dlogits (rows, columns) from dL/dw: with g = sqrt(w), g (dw - sum(g dw) / sum(g)).
template <typename T>
void entmax15_gradient(const int64_t* start, const int32_t* column, const T* weight, const T* dw,
                       int64_t rows, int64_t columns, T* dlogits);

}  // namespace dm::soft
