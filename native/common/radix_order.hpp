// Rows in the order of 64-bit keys, equal keys in the order of the rows.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace dm::common {

// The order of floats as that of whole numbers; -0.0 is 0.0, and NaN comes behind all others.
constexpr uint64_t kSign = uint64_t{1} << 63, kMissingKey = ~uint64_t{0};

inline uint64_t float_key(double x) {
    if (x != x) return kMissingKey;
    if (x == 0.0) x = 0.0;
    uint64_t bits;
    std::memcpy(&bits, &x, sizeof(bits));
    return bits & kSign ? ~bits : bits | kSign;
}

// The float of a key.
inline double float_of(uint64_t key) {
    const uint64_t bits = key & kSign ? key ^ kSign : ~key;
    double x;
    std::memcpy(&x, &bits, sizeof(x));
    return x;
}

// Sorts again and again into room of its own. Two passes over the leading bits in which keys differ
// leave next to nothing to compare.
class RadixOrder {
public:
    struct Entry {
        uint64_t key;
        int64_t row;
    };

    explicit RadixOrder(int64_t m) : entries_(m), other_(m) {}

    // key_of(row) for each row; the entries sorted, until the next call.
    template <typename KeyOf>
    const std::vector<Entry>& operator()(const KeyOf& key_of) {
        const int64_t m = static_cast<int64_t>(entries_.size());
        uint64_t least = ~uint64_t{0}, most = 0;
        for (int64_t row = 0; row < m; ++row) {
            const uint64_t key = key_of(row);
            entries_[row] = {key, row};
            least = std::min(least, key);
            most = std::max(most, key);
        }
        if (least >= most) return entries_;
        int width = 64;
        while ((most - least) >> (width - 1) == 0) --width;
        const int shift = std::max(0, width - 2 * kDigit);
        pass(least, shift);
        if (width > kDigit) pass(least, shift + kDigit);
        if (shift > 0) sort_runs(least, shift);
        return entries_;
    }

private:
    static constexpr int kDigit = 11;

    void pass(uint64_t least, int shift) {
        constexpr uint64_t mask = (1 << kDigit) - 1;
        std::array<int64_t, 1 << kDigit> start{};
        for (const Entry& entry : entries_) ++start[(entry.key - least) >> shift & mask];
        int64_t before = 0;
        for (int64_t& count : start) before += std::exchange(count, before);
        for (const Entry& entry : entries_)
            other_[start[(entry.key - least) >> shift & mask]++] = entry;
        entries_.swap(other_);
    }

    // What the leading bits did not tell apart.
    void sort_runs(uint64_t least, int shift) {
        const auto is_less = [](const Entry& a, const Entry& b) { return a.key < b.key; };
        const auto end = entries_.end();
        for (auto first = entries_.begin(); first != end;) {
            const uint64_t leading = (first->key - least) >> shift;
            auto last = first + 1;
            bool is_sorted = true;
            for (; last != end && (last->key - least) >> shift == leading; ++last)
                is_sorted = is_sorted && last[-1].key <= last->key;
            if (!is_sorted) std::stable_sort(first, last, is_less);
            first = last;
        }
    }

    std::vector<Entry> entries_, other_;
};

}  // namespace dm::common
