// Rows in the order of a column's values, and in one that their content decides.
#pragma once

#include <cstdint>
#include <vector>

namespace dm::inputs {

// The ranks of every column's values; -1 where a value is missing.
struct ColumnRanks {
    std::vector<double> values;  // of column 0's ranks, then of column 1's, ...
    std::vector<int64_t> start;  // (n + 1,) where each column's values start
};
ColumnRanks column_ranks(const double* X, int64_t m, int64_t n,  // (m, n)
                         int32_t* rank);                         // (n, m)

// Equal rows side by side, in the order of their hashes.
struct DistinctRows {
    std::vector<int64_t> order;  // (m,) rows
    std::vector<int64_t> first;  // (distinct,) places in the order where another row starts
};
DistinctRows distinct_rows(const double* X, const double* y, int64_t m, int64_t n,  // (m, n)
                           int64_t k);                                              // (m, k)

}  // namespace dm::inputs
