#include "engine/plan/columns.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/plan/categories.hpp"

namespace dm::engine {
namespace {

// That a 16-bit code tells apart, and one more code: records need it for NaN.
constexpr int64_t kMostThresholds = 65534;
// Buckets to a threshold, and thresholds to a bucket: of the finest grid, and of others.
constexpr int64_t kMostBuckets = 4;
constexpr uint32_t kMostBucketKeys = 16, kFewBucketKeys = 8;

float round_down(double t) {
    float found = static_cast<float>(t);
    return static_cast<double>(found) > t
               ? std::nextafter(found, -std::numeric_limits<float>::infinity())
               : found;
}

uint32_t rank_of(double z, const std::vector<double>& keys) {
    return static_cast<uint32_t>(std::lower_bound(keys.begin(), keys.end(), z) - keys.begin());
}

// The tests of one column.
struct Tests {
    const int64_t *first, *last;
    const int64_t* begin() const { return first; }
    const int64_t* end() const { return last; }
};

// The planes of a column's codes, and the code of NaN.
//
// NaN goes left where its code is at most the test's. Often one code does for all tests: the least,
// the greatest, or that of 0 where the source reads NaN as 0. If not, it takes two planes. With
// nan_as_zero NaN never reaches the tests, and any code does.
void add_planes(const Machine& m, const Tests& tests, const std::vector<double>& keys,
                Column& column, Section& section, std::vector<Coded>& coded) {
    uint32_t least = 0, most = column.n;
    if (column.rule != Rule::nan_as_zero)
        for (const int64_t j : tests) {
            const uint32_t code = rank_of(m.tests.t[j], keys);
            if (m.tests.missing[j] < 0)
                most = std::min(most, code);
            else
                least = std::max(least, code + 1);
        }
    const bool one_code = least <= most;
    const bool has_low = !one_code || least == 0, has_high = !one_code || least > 0;
    column.nan = one_code ? least : column.n;
    column.low = column.high = -1;
    auto add = [&](int32_t& plane, int32_t& number) {
        plane = static_cast<int32_t>(section.row_bytes);
        number = static_cast<int32_t>(section.n_planes++);
        section.planes.push_back(
            {static_cast<uint32_t>(section.row_bytes), column.width, column.n < 128, false, 0, 0});
        section.row_bytes += column.width;
    };
    if (has_low) add(column.low, column.low_number);
    if (has_high) add(column.high, column.high_number);
    for (const int64_t j : tests) {
        const bool is_low = has_low && (m.tests.missing[j] < 0 || !has_high);
        coded[j] = {static_cast<uint16_t>(is_low ? column.low_number : column.high_number),
                    static_cast<uint16_t>(rank_of(m.tests.t[j], keys))};
    }
}

// A column's thresholds in ascending order and a grid over them, if one of few buckets to a
// threshold leaves few thresholds in each.
bool add_buckets(const std::vector<double>& keys, Column& column, Section& section) {
    std::vector<float> floats;
    for (const double key : keys) floats.push_back(round_down(key));
    const float low = floats.front(), range = floats.back() - low;
    for (int64_t n = (column.n + 1) / 2; n <= kMostBuckets * column.n; n *= 2) {
        Buckets buckets{low, static_cast<float>(n) / range, static_cast<uint32_t>(n), 0, 0};
        if (!(buckets.scale > 0) || !std::isfinite(buckets.scale) || !std::isfinite(range))
            return false;
        std::vector<uint16_t> first(static_cast<size_t>(n), 0);
        std::vector<uint32_t> counts(static_cast<size_t>(n), 0);
        for (const float key : floats) ++counts[bucket_of(buckets, static_cast<float>(n - 1), key)];
        const uint32_t most = *std::max_element(counts.begin(), counts.end());
        if (most > (2 * n > kMostBuckets * column.n ? kMostBucketKeys : kFewBucketKeys)) continue;
        uint32_t before = 0;
        for (int64_t i = 0; i < n; ++i) {
            first[i] = static_cast<uint16_t>(before);
            before += counts[i];
        }
        buckets.keys = static_cast<uint8_t>(most);
        buckets.first = static_cast<uint32_t>(section.thresholds->bucket_first.size());
        section.thresholds->bucket_first.insert(section.thresholds->bucket_first.end(),
                                                first.begin(), first.end());
        section.thresholds->keys32.insert(section.thresholds->keys32.end(), floats.begin(),
                                          floats.end());
        // Comparisons go on beyond the last key.
        section.thresholds->keys32.resize(section.thresholds->keys32.size() + kMostBucketKeys,
                                          std::numeric_limits<float>::infinity());
        column.buckets = buckets;
        return true;
    }
    return false;
}

// A column's thresholds as an implicit search tree of floats, or in buckets, and where columns are
// doubles a test for each threshold, to decide between equal floats.
void add_keys(const Machine& m, const Tests& tests, const std::vector<double>& keys, Column& column,
              Section& section) {
    column.keys = static_cast<uint32_t>(section.thresholds->keys32.size());
    if (!m.columns.single) {
        column.sorted = static_cast<uint32_t>(section.thresholds->sorted.size());
        section.thresholds->sorted.resize(section.thresholds->sorted.size() + column.n);
        for (const int64_t j : tests)
            section.thresholds->sorted[column.sorted + rank_of(m.tests.t[j], keys)] =
                static_cast<uint32_t>(j);
    }
    // A small tree is searched in registers.
    if (column.width > 1 && add_buckets(keys, column, section)) return;
    // A tree of 2^levels - 1 keys, and at least 15 so that its top fills a register.
    int levels = 4;
    while ((int64_t{1} << levels) <= column.n) ++levels;
    column.levels = static_cast<uint8_t>(levels);
    const int64_t size = int64_t{1} << levels;
    section.thresholds->keys32.resize(section.thresholds->keys32.size() + size,
                                      std::numeric_limits<float>::infinity());
    float* tree = section.thresholds->keys32.data() + column.keys;
    tree[0] = std::numeric_limits<float>::quiet_NaN();
    for (int64_t i = 1; i < size; ++i) {
        // Key i of level l is number (2 (i - 2^l) + 1) 2^(levels - l - 1) - 1 in order.
        int level = 0;
        while ((i >> level) > 1) ++level;
        const int64_t rank = ((2 * (i - (int64_t{1} << level)) + 1) << (levels - level - 1)) - 1;
        if (rank < column.n) tree[i] = round_down(keys[rank]);
    }
}

}  // namespace

std::vector<int64_t> section_starts(const Plan& plan) {
    const Machine& m = plan.machine;
    if (m.tests.is_oblique()) return {};
    // A node counts planes in 16 bits: at most two of them to a column, and half for sets.
    int64_t n_numbers = 0;
    for (const int32_t c : plan.read_columns) n_numbers += plan.set_of[c] < 0;
    if (2 * n_numbers > (m.sets.n ? 32767 : 65535)) return {};
    std::vector<int64_t> starts{0};
    std::vector<int64_t> counts(m.columns.n, 0), own(m.columns.n, 0);
    SetBudget sets(m, plan.set_of);
    for (int64_t tree = 0; tree < m.trees.n; ++tree) {
        const int64_t begin = m.trees.test_start[tree], end = m.trees.test_start[tree + 1];
        bool fits = sets.add(tree);
        for (int64_t j = begin; j < end; ++j) {
            const int32_t c = m.tests.selection[j];
            if (plan.set_of[c] >= 0) continue;
            if (++own[c] > kMostThresholds) return {};
            if (++counts[c] > kMostThresholds) fits = false;
        }
        if (!fits && tree > starts.back()) {
            starts.push_back(tree);
            std::fill(counts.begin(), counts.end(), 0);
            for (int64_t j = begin; j < end; ++j) ++counts[m.tests.selection[j]];
            sets.start_over();
            fits = sets.add(tree);
        }
        if (!fits) return {};
        for (int64_t j = begin; j < end; ++j) own[m.tests.selection[j]] = 0;
    }
    starts.push_back(m.trees.n);
    return starts;
}

Section make_section(const Machine& m, int64_t first, int64_t last,
                     const std::vector<int64_t>& set_of, std::vector<Coded>& coded) {
    Section section;
    section.first = first;
    section.last = last;
    const int64_t begin = m.trees.test_start[first], end = m.trees.test_start[last];
    // Tests by column.
    std::vector<int64_t> start(m.columns.n + 1, 0);
    for (int64_t j = begin; j < end; ++j) ++start[m.tests.selection[j] + 1];
    for (int64_t c = 0; c < m.columns.n; ++c) start[c + 1] += start[c];
    std::vector<int64_t> order(end - begin);
    {
        std::vector<int64_t> at(start.begin(), start.end() - 1);
        for (int64_t j = begin; j < end; ++j) order[at[m.tests.selection[j]]++] = j;
    }
    std::vector<double> keys;
    for (int64_t c = 0; c < m.columns.n; ++c) {
        const Tests tests{order.data() + start[c], order.data() + start[c + 1]};
        if (tests.first == tests.last || set_of[c] >= 0) continue;
        keys.clear();
        for (const int64_t j : tests) keys.push_back(m.tests.t[j]);
        std::sort(keys.begin(), keys.end());
        keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
        Column column{};
        column.feature = static_cast<uint32_t>(m.columns.feature[c]);
        column.rule = m.columns.rule_of(c);
        column.n = static_cast<uint32_t>(keys.size());
        column.width = column.n > 255 ? 2 : 1;
        add_planes(m, tests, keys, column, section, coded);
        add_keys(m, tests, keys, column, section);
        section.columns.push_back(column);
    }
    if (m.sets.n) add_categories(m, set_of, start, order, section, coded);
    return section;
}

}  // namespace dm::engine
