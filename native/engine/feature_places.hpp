// Where a feature stands among the used ones. A file of a few kilobytes may declare two thousand
// million features: what is held here grows with those that it uses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dm::engine {

class FeaturePlaces {
public:
    FeaturePlaces() = default;
    // `used`: ascending.
    explicit FeaturePlaces(const std::vector<int32_t>& used) {
        if (used.empty()) return;
        if (used.back() >= kNear) {
            sorted_ = used;
            return;
        }
        place_.assign(static_cast<size_t>(used.back()) + 1, -1);
        for (size_t i = 0; i < used.size(); ++i) place_[used[i]] = static_cast<int32_t>(i);
    }
    // -1 for a feature that is not used.
    int32_t operator[](int64_t feature) const {
        if (feature < static_cast<int64_t>(place_.size()))
            return place_[static_cast<size_t>(feature)];
        if (sorted_.empty()) return -1;
        const auto at = std::lower_bound(sorted_.begin(), sorted_.end(), feature);
        return at != sorted_.end() && *at == feature ? static_cast<int32_t>(at - sorted_.begin())
                                                     : -1;
    }

private:
    static constexpr int32_t kNear = 1 << 20;  // features up to here are found by a table
    std::vector<int32_t> place_, sorted_;
};

}  // namespace dm::engine
