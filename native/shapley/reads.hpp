// What tests read of a row: a column, and whether NaN goes left there.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace dm::shapley {

struct Read {
    int32_t column;
    bool nan_left;

    // What is compared with thresholds: NaN is below all of them or, as it is, never at most one.
    template <typename T>
    T of(const T* row) const {
        const T z = row[column];
        return nan_left && z != z ? -std::numeric_limits<T>::infinity() : z;
    }
};

// Each read once, in the order in which tests ask for them.
class Reads {
public:
    int32_t of(int32_t column, bool nan_left) {
        const auto [at, is_new] =
            places_.emplace(std::make_pair(column, nan_left), static_cast<int32_t>(list_.size()));
        if (is_new) list_.push_back({column, nan_left});
        return at->second;
    }
    const std::vector<Read>& list() const { return list_; }

private:
    std::map<std::pair<int32_t, bool>, int32_t> places_;
    std::vector<Read> list_;
};

}  // namespace dm::shapley
