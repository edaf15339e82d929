#include "inputs/row_orders.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "common/arrays.hpp"
#include "common/radix_order.hpp"
#include "common/require.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dm::inputs {
namespace {

using common::Array;
using common::give;
using common::In;
using common::Out;
using common::require;

// Equal numbers have equal bits: -0.0 those of 0.0, every NaN those of one.
uint64_t bits_of(double x) {
    if (x == 0.0) x = 0.0;
    uint64_t bits;
    std::memcpy(&bits, &x, sizeof(bits));
    return x == x ? bits : uint64_t{0x7FF8000000000000};
}

// The bits are mixed first, because round numbers differ in few; chained, so that equal numbers in
// different columns do not cancel.
uint64_t mixed(uint64_t found, double x) {
    uint64_t bits = found * 0x9E3779B97F4A7C15 + bits_of(x);
    bits ^= bits >> 32;
    bits *= 0xD6E8FEB86659FD93;
    return bits ^ (bits >> 29);
}

bool is_same(const double* a, const double* b, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
        if (bits_of(a[i]) != bits_of(b[i])) return false;
    return true;
}

std::tuple<Array<double, 1>, Array<int64_t, 1>> py_column_ranks(In<double, 2> X,
                                                                Out<int32_t, 2> rank) {
    const int64_t m = static_cast<int64_t>(X.shape(0)), n = static_cast<int64_t>(X.shape(1));
    require(m < (int64_t{1} << 31), "rows: fewer than 2**31");
    require(static_cast<int64_t>(rank.shape(0)) == n && static_cast<int64_t>(rank.shape(1)) == m,
            "rank must be (n, m)");
    ColumnRanks found;
    {
        nb::gil_scoped_release release;
        found = column_ranks(X.data(), m, n, rank.data());
    }
    return {give(std::move(found.values)), give(std::move(found.start))};
}

std::tuple<Array<int64_t, 1>, Array<int64_t, 1>> py_distinct_rows(In<double, 2> X,
                                                                  In<double, 2> y) {
    require(X.shape(0) == y.shape(0), "as many rows of y as of X");
    DistinctRows found;
    {
        nb::gil_scoped_release release;
        found = distinct_rows(X.data(), y.data(), static_cast<int64_t>(X.shape(0)),
                              static_cast<int64_t>(X.shape(1)), static_cast<int64_t>(y.shape(1)));
    }
    return {give(std::move(found.order)), give(std::move(found.first))};
}

}  // namespace

ColumnRanks column_ranks(const double* X, int64_t m, int64_t n, int32_t* rank) {
    ColumnRanks found;
    found.start.push_back(0);
    common::RadixOrder by_key(m);
    // Columns of a cache line at once.
    constexpr int64_t width = 8;
    std::vector<uint64_t> key(width * m);
    for (int64_t f = 0; f < n; ++f) {
        if (f % width == 0)
            for (int64_t row = 0; row < m; ++row)
                for (int64_t g = f; g < std::min(n, f + width); ++g)
                    key[(g - f) * m + row] = common::float_key(X[row * n + g]);
        const uint64_t* const own = key.data() + f % width * m;
        int32_t* const out = rank + f * m;
        int32_t now = -1;
        uint64_t last = 0;  // is no key
        for (const auto& entry : by_key([&](int64_t row) { return own[row]; })) {
            if (entry.key == common::kMissingKey) {
                out[entry.row] = -1;
                continue;
            }
            if (entry.key != last) {
                found.values.push_back(common::float_of(entry.key));
                ++now;
                last = entry.key;
            }
            out[entry.row] = now;
        }
        found.start.push_back(static_cast<int64_t>(found.values.size()));
    }
    return found;
}

DistinctRows distinct_rows(const double* X, const double* y, int64_t m, int64_t n, int64_t k) {
    common::RadixOrder by_key(m);
    const auto& entries = by_key([&](int64_t row) {
        uint64_t hash = 0;
        for (int64_t f = 0; f < n; ++f) hash = mixed(hash, X[row * n + f]);
        for (int64_t t = 0; t < k; ++t) hash = mixed(hash, y[row * k + t]);
        return hash;
    });
    DistinctRows found;
    found.order.reserve(m);
    for (int64_t i = 0; i < m; ++i) {
        const int64_t row = entries[i].row;
        // Different rows may have the same hash.
        const bool is_first = i == 0 || entries[i].key != entries[i - 1].key ||
                              !is_same(X + row * n, X + entries[i - 1].row * n, n) ||
                              !is_same(y + row * k, y + entries[i - 1].row * k, k);
        if (is_first) found.first.push_back(i);
        found.order.push_back(row);
    }
    return found;
}

void bind_row_orders(nb::module_& m) {
    m.def(
        "column_ranks", &py_column_ranks, "X"_a, "rank"_a,
        "Ranks of the values of every column, -1 where one is missing, into `rank`; the values of "
        "all ranks, and where each column's start.");
    m.def("distinct_rows", &py_distinct_rows, "X"_a, "y"_a,
          "Rows of (X, y) in an order that their content decides, equal ones side by side, and the "
          "places in it where another row starts.");
}

}  // namespace dm::inputs
