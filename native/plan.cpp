#include "plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

#include "pack_plan.hpp"

namespace dm {
namespace {

constexpr int64_t kMostThresholds = 65535;  // that a 16-bit code tells apart
constexpr int64_t kTopTests = 63;          // of a deep tree, done by selects
constexpr int64_t kLeavesForTop = 512;      // fewer than that, and walking from the root is as fast
constexpr int64_t kMostMembersInTable = 4096;
constexpr int64_t kMostTestsInGroup = 12288;  // their bitmaps should stay in the second-level cache

// What a test, a select and a step of a walk cost, measured on trees of 64 to 4 096 leaves (AVX-512,
// nanoseconds for 1 024 rows); only the ratios matter. A test is cheaper than it is alone, because
// trees share tests. On that machine selects won up to 1 024 leaves, walks from 2 048.
constexpr double kCostTest = 7.0, kCostSelect = 2.0, kCostStep = 1100.0;
constexpr int64_t kMostSelectLeaves = 4096;

int bits_for(int64_t n_leaves) {
    int bits = 0;
    while ((int64_t{1} << bits) < n_leaves) ++bits;
    return bits;
}

uint32_t label_of(uint32_t leaf, bool gray) { return gray ? leaf ^ (leaf >> 1) : leaf; }

float round_down(double t) {
    float found = static_cast<float>(t);
    return static_cast<double>(found) > t
               ? std::nextafter(found, -std::numeric_limits<float>::infinity())
               : found;
}

// Distinct thresholds of the columns that trees first..last read, and the tests' ranks.
Section make_section(const Machine& m, int64_t first, int64_t last,
                     std::vector<Coded>& coded, const std::vector<int64_t>& set_of) {
    Section section;
    const int64_t begin = m.test_start[first], end = m.test_start[last];
    // Tests by column, then each column's by threshold.
    std::vector<int64_t> start(m.n_columns + 1, 0);
    for (int64_t j = begin; j < end; ++j) ++start[m.selection[j] + 1];
    for (int64_t c = 0; c < m.n_columns; ++c) start[c + 1] += start[c];
    std::vector<int64_t> order(end - begin);
    {
        std::vector<int64_t> at(start.begin(), start.end() - 1);
        for (int64_t j = begin; j < end; ++j) order[at[m.selection[j]]++] = j;
    }
    std::vector<double> keys;
    for (int64_t c = 0; c < m.n_columns; ++c) {
        if (start[c] == start[c + 1]) continue;
        keys.clear();
        for (int64_t i = start[c]; i < start[c + 1]; ++i) keys.push_back(m.t[order[i]]);
        std::sort(keys.begin(), keys.end());
        keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
        Column column{};
        column.feature = static_cast<uint32_t>(m.feature[c]);
        column.rule = static_cast<Rule>(m.rule[c]);
        column.n = static_cast<uint32_t>(keys.size());
        column.width = column.n > 255 ? 2 : 1;
        auto rank = [&](double z) {
            return static_cast<uint32_t>(
                std::lower_bound(keys.begin(), keys.end(), z) - keys.begin());
        };
        column.code0 = rank(0.0);
        column.code1 = rank(1.0);
        // NaN goes left where its code is at most the test's. Often one code does for all tests:
        // the least, the greatest, or that of 0 where the source reads NaN as 0. If not, it takes
        // two planes. With nan_as_zero NaN never reaches the tests, and any code does.
        uint32_t least = 0, most = column.n;
        for (int64_t i = start[c]; i < start[c + 1] && column.rule != Rule::nan_as_zero; ++i) {
            const uint32_t code = rank(m.t[order[i]]);
            if (m.missing[order[i]] < 0)
                most = std::min(most, code);
            else
                least = std::max(least, code + 1);
        }
        const bool one_code = least <= most;
        const bool has_low = !one_code || least == 0, has_high = !one_code || least > 0;
        column.nan = one_code ? least : column.n;
        column.low = column.high = -1;
        for (int32_t* plane : {has_low ? &column.low : nullptr, has_high ? &column.high : nullptr})
            if (plane) {
                *plane = static_cast<int32_t>(section.row_bytes);
                section.planes.push_back(
                    {static_cast<uint32_t>(section.row_bytes), column.width, column.n < 128});
                section.row_bytes += column.width;
                (plane == &column.low ? column.low_number : column.high_number) =
                    static_cast<int32_t>(section.n_planes++);
            }
        for (int64_t i = start[c]; i < start[c + 1]; ++i) {
            const int64_t j = order[i];
            const bool is_low = has_low && (m.missing[j] < 0 || !has_high);
            coded[j] = {static_cast<uint16_t>(is_low ? column.low_number : column.high_number),
                        static_cast<uint16_t>(rank(m.t[j]))};
        }
        section.table_of.push_back(-1);
        if (column.rule == Rule::member) {
            const int64_t set = set_of[c];
            const int64_t from = m.set_start[set], to = m.set_start[set + 1];
            column.set = from;
            column.set_size = static_cast<uint32_t>(to - from);
            column.outside = m.outside[set];
            if (to > from && m.members[to - 1] < kMostMembersInTable) {
                section.table_of.back() = static_cast<int64_t>(section.tables.size());
                column.set_size = static_cast<uint32_t>(m.members[to - 1] + 1);
                section.tables.resize(section.tables.size() + column.set_size, column.outside);
                for (int64_t i = from; i < to; ++i)
                    section.tables[section.table_of.back() + m.members[i]] = m.answers[i];
            }
        } else {
            // A tree of 2^levels - 1 keys, and at least 15 so that its top fills a register.
            int levels = 4;
            while ((int64_t{1} << levels) <= column.n) ++levels;
            column.levels = static_cast<uint8_t>(levels);
            column.keys = static_cast<uint32_t>(section.keys32.size());
            const int64_t size = int64_t{1} << levels;
            section.keys32.resize(section.keys32.size() + size,
                                  std::numeric_limits<float>::infinity());
            float* tree = section.keys32.data() + column.keys;
            tree[0] = std::numeric_limits<float>::quiet_NaN();
            for (int64_t i = 1; i < size; ++i) {
                // Key i of level l is number (2 (i - 2^l) + 1) 2^(levels - l - 1) - 1 in order.
                int level = 0;
                while ((i >> level) > 1) ++level;
                const int64_t rank =
                    ((2 * (i - (int64_t{1} << level)) + 1) << (levels - level - 1)) - 1;
                if (rank < column.n) tree[i] = round_down(keys[rank]);
            }
            if (!m.single) {
                column.sorted = static_cast<uint32_t>(section.sorted.size());
                section.sorted.resize(section.sorted.size() + column.n);
                for (int64_t i = start[c]; i < start[c + 1]; ++i)
                    section.sorted[column.sorted + rank(m.t[order[i]])] =
                        static_cast<uint32_t>(order[i]);
            }
        }
        section.columns.push_back(column);
    }
    return section;
}

// One tree's selects: for every bit of the label, the slot that holds it.
class Selector {
public:
    Selector(const Machine& m, const std::vector<int32_t>& n_leaves,
             const std::vector<uint16_t>& slot_of, int64_t first_slot)
        : m_(m), n_leaves_(n_leaves), slot_of_(slot_of), first_slot_(first_slot) {}

    struct Result {
        std::vector<Select> selects;
        std::vector<uint16_t> bits;
        int64_t n_slots;
    };

    Result build(int64_t tree, bool gray) {
        Result out;
        const int64_t begin = m_.test_start[tree], leaf0 = begin + tree;
        const int64_t n_tests = m_.test_start[tree + 1] - begin;
        const int n_bits = bits_for(n_tests + 1);
        std::vector<uint16_t> free;
        int64_t next_slot = first_slot_;
        auto is_own = [&](uint16_t slot) { return slot >= first_slot_; };
        std::vector<std::vector<uint16_t>> done;  // results of finished subtrees
        struct Visit {
            int32_t node;
            int8_t state;  // 0: first; 1: children done, left below right; 2: right below left
        };
        std::vector<Visit> stack{{n_tests ? static_cast<int32_t>(begin) : ~static_cast<int32_t>(leaf0), 0}};
        while (!stack.empty()) {
            const Visit visit = stack.back();
            stack.pop_back();
            if (visit.node < 0) {
                const uint32_t label =
                    label_of(static_cast<uint32_t>(~visit.node - leaf0), gray);
                std::vector<uint16_t> bits(n_bits);
                for (int bit = 0; bit < n_bits; ++bit) bits[bit] = label >> bit & 1;
                done.push_back(std::move(bits));
                continue;
            }
            const int32_t left = m_.children[2 * visit.node], right = m_.children[2 * visit.node + 1];
            if (visit.state == 0) {
                // The larger subtree first: at most log2(leaves) results wait meanwhile, and their
                // slots fit in a byte.
                auto size = [&](int32_t child) { return child < 0 ? 1 : n_leaves_[child]; };
                const bool left_first = size(left) >= size(right);
                stack.push_back({visit.node, static_cast<int8_t>(left_first ? 1 : 2)});
                stack.push_back({left_first ? right : left, 0});
                stack.push_back({left_first ? left : right, 0});
                continue;
            }
            std::vector<uint16_t> above = std::move(done.back());
            done.pop_back();
            std::vector<uint16_t>& below = done.back();
            std::vector<uint16_t>& a = visit.state == 1 ? below : above;  // left
            std::vector<uint16_t>& b = visit.state == 1 ? above : below;
            const uint16_t test = slot_of_[visit.node - begin];
            std::vector<uint16_t> freed;
            for (int bit = 0; bit < n_bits; ++bit) {
                const uint16_t x = a[bit], y = b[bit];
                uint16_t found;
                if (x == y) {
                    found = x;
                } else if (x == 0 && y == 1) {
                    found = test;
                } else {
                    if (is_own(x)) {
                        found = x;
                        if (is_own(y)) freed.push_back(y);
                    } else if (is_own(y)) {
                        found = y;
                    } else if (!free.empty()) {
                        found = free.back();
                        free.pop_back();
                    } else {
                        found = static_cast<uint16_t>(next_slot++);
                    }
                    out.selects.push_back({test, x, y, static_cast<uint8_t>(found - first_slot_)});
                }
                below[bit] = found;
            }
            free.insert(free.end(), freed.begin(), freed.end());
        }
        out.bits = std::move(done.back());
        out.n_slots = next_slot;
        return out;
    }

private:
    const Machine& m_;
    const std::vector<int32_t>& n_leaves_;
    const std::vector<uint16_t>& slot_of_;
    int64_t first_slot_;
};

uint32_t key_of(const Coded& test) {
    return static_cast<uint32_t>(test.plane) << 16 | test.code;
}

// The top of one deep tree: its tests with the most leaves below them. `place` is the number among
// the tree's nodes to walk of a test (>= 0) or leaf (~leaf), counted over all trees.
template <typename Place>
Top make_top(const Machine& m, int64_t tree, const std::vector<int32_t>& size,
             const std::vector<Coded>& coded, const Place& place) {
    const int64_t begin = m.test_start[tree];
    std::priority_queue<std::pair<int32_t, int32_t>> largest;
    std::vector<char> is_top(m.test_start[tree + 1] - begin, 0);
    largest.push({size[begin], static_cast<int32_t>(begin)});
    for (int64_t n = 0; n < kTopTests && !largest.empty(); ++n) {
        const int32_t j = largest.top().second;
        largest.pop();
        is_top[j - begin] = 1;
        for (int side = 0; side < 2; ++side) {
            const int32_t child = m.children[2 * j + side];
            if (child >= 0) largest.push({size[child], child});
        }
    }
    // As a tree of its own: tests in preorder, leaves from left to right.
    std::vector<int32_t> children, tests, own_size, exits;
    struct Visit {
        int32_t node, slot;
    };
    std::vector<Visit> stack{{static_cast<int32_t>(begin), -1}};
    while (!stack.empty()) {
        const Visit visit = stack.back();
        stack.pop_back();
        int32_t number;
        if (visit.node >= 0 && is_top[visit.node - begin]) {
            number = static_cast<int32_t>(tests.size());
            tests.push_back(visit.node);
            own_size.push_back(size[visit.node]);
            children.resize(children.size() + 2);
            stack.push_back({m.children[2 * visit.node + 1], 2 * number + 1});
            stack.push_back({m.children[2 * visit.node], 2 * number});
        } else {
            number = ~static_cast<int32_t>(exits.size());
            exits.push_back(visit.node);
        }
        if (visit.slot >= 0) children[visit.slot] = number;
    }
    Machine top{};
    const int64_t start[2] = {0, static_cast<int64_t>(tests.size())};
    top.children = children.data();
    top.test_start = start;
    std::vector<uint32_t> distinct;
    for (int32_t j : tests) distinct.push_back(key_of(coded[j]));
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    std::vector<uint16_t> slot_of;
    for (int32_t j : tests)
        slot_of.push_back(static_cast<uint16_t>(
            kFirstTest + (std::lower_bound(distinct.begin(), distinct.end(), key_of(coded[j])) -
                          distinct.begin())));
    Top out;
    for (uint32_t key : distinct)
        out.tests.push_back(
            {static_cast<uint16_t>(key >> 16), static_cast<uint16_t>((key & 65535) + 1)});
    Selector selector(top, own_size, slot_of, kFirstTest + static_cast<int64_t>(distinct.size()));
    auto found = selector.build(0, true);
    out.selects = std::move(found.selects);
    out.bits = std::move(found.bits);
    out.n_slots = found.n_slots;
    out.trees[0] = {0, 0, static_cast<uint32_t>(out.bits.size())};
    out.trees[1].first = static_cast<uint32_t>(out.selects.size());
    out.nodes.assign(size_t{1} << out.bits.size(), 0);
    for (size_t leaf = 0; leaf < exits.size(); ++leaf)
        out.nodes[label_of(static_cast<uint32_t>(leaf), true)] = place(exits[leaf]);
    return out;
}

}  // namespace

Plan compile(const Machine& m, const Kernels* kernels, int force) {
    Plan plan;
    plan.n_features = m.n_features;
    plan.n_columns = m.n_columns;
    plan.n_trees = m.n_trees;
    plan.n_outputs = m.n_outputs;
    plan.n_tests = m.n_tests;
    plan.single = m.single;
    plan.integers_single = m.integers_single;
    plan.narrow = m.narrow;
    plan.sum_single = m.sum_single;
    plan.base_first = m.base_first;
    plan.negative_fractions = m.negative_fractions;
    plan.whole = m.whole;
    plan.missing_value = m.missing_value;
    plan.absent = m.absent;
    plan.divisor = m.divisor;
    plan.scale = m.scale;
    plan.aggregate = m.aggregate;
    plan.base.assign(m.base, m.base + m.n_outputs);
    plan.feature.assign(m.feature, m.feature + m.n_columns);
    plan.rule.assign(m.rule, m.rule + m.n_columns);
    plan.kernels = kernels;
    plan.V = m.V;
    plan.t = m.t;
    plan.feeds = m.feeds;
    plan.test_start = m.test_start;
    plan.missing = m.missing;
    plan.children = m.children;
    plan.set_of.assign(m.n_columns, -1);
    int64_t n_sets = 0;
    for (int64_t c = 0; c < m.n_columns; ++c)
        if (m.rule[c] == static_cast<uint8_t>(Rule::member)) plan.set_of[c] = n_sets++;
    if (n_sets) {
        plan.set_start.assign(m.set_start, m.set_start + n_sets + 1);
        plan.members.assign(m.members, m.members + m.set_start[n_sets]);
        plan.answers.assign(m.answers, m.answers + m.set_start[n_sets]);
        plan.outside.assign(m.outside, m.outside + n_sets);
    }
    const int64_t n_leaves = m.n_tests + m.n_trees, k = m.narrow ? 1 : m.n_outputs;
    std::vector<char> reads(m.n_columns, 0), wants(m.n_features, 0);
    if (m.weight_start) {
        plan.weight_start = m.weight_start;
        plan.weight = m.weight;
        plan.oblique = make_oblique(m);
        for (const int32_t c : plan.oblique.columns) reads[c] = 1;
    } else {
        for (int64_t j = 0; j < m.n_tests; ++j) reads[m.selection[j]] = 1;
    }
    for (int64_t c = 0; c < m.n_columns; ++c)
        if (reads[c]) {
            plan.raw_columns.push_back(static_cast<int32_t>(c));
            wants[m.feature[c]] = 1;
        }
    if (m.linear_start) {
        const int64_t terms = m.linear_start[n_leaves];
        plan.linear_start.assign(m.linear_start, m.linear_start + n_leaves + 1);
        plan.linear_feature.assign(m.linear_feature, m.linear_feature + terms);
        plan.intercept.assign(m.intercept, m.intercept + n_leaves * k);
        plan.coefficient.assign(m.coefficient, m.coefficient + terms * k);
        plan.linear_constant.assign(m.linear_constant, m.linear_constant + n_leaves * k);
        plan.linear_single = m.linear_single;
        for (int64_t i = 0; i < terms; ++i) wants[m.linear_feature[i]] = 1;
    }
    for (int64_t f = 0; f < m.n_features; ++f)
        if (wants[f]) plan.used_features.push_back(static_cast<int32_t>(f));

    // Sizes and mean depth below every test, for the cost model.
    std::vector<int32_t> size(m.n_tests);
    std::vector<Kind> kinds(m.n_trees, Kind::select);
    for (int64_t tree = 0; tree < m.n_trees; ++tree) {
        const int64_t begin = m.test_start[tree], end = m.test_start[tree + 1];
        double path = 0;  // sum of depths of all leaves = sum of sizes of all tests
        double selects = 0;
        for (int64_t j = end - 1; j >= begin; --j) {
            int32_t sizes[2];
            for (int side = 0; side < 2; ++side) {
                const int32_t child = m.children[2 * j + side];
                sizes[side] = child >= 0 ? size[child] : 1;
            }
            size[j] = sizes[0] + sizes[1];
            path += size[j];
            selects += bits_for(std::max(sizes[0], sizes[1]));
        }
        const double leaves = static_cast<double>(end - begin + 1);
        // Rows tend to the large leaves, which are not deep: a path is about its mean depth.
        const double walk = kCostStep * path / leaves;
        const double select =
            kernels->select_cost * (kCostTest * (leaves - 1) + kCostSelect * selects);
        const bool small = end - begin < kMostSelectLeaves;
        const bool chooses_select = force == 0 ? small && select <= walk : force == 1 ? small : false;
        kinds[tree] = chooses_select ? Kind::select : Kind::deep;
    }

    // Sections: runs of trees that one 16-bit coding of the columns serves.
    std::vector<int64_t> starts{0};
    {
        std::vector<int64_t> counts(m.n_columns, 0), own(m.n_columns, 0);
        for (int64_t tree = 0; !plan.oblique.is_made && tree < m.n_trees; ++tree) {
            const int64_t begin = m.test_start[tree], end = m.test_start[tree + 1];
            bool fits = true;
            for (int64_t j = begin; j < end; ++j) {
                const int32_t c = m.selection[j];
                ++own[c];
                if (own[c] > kMostThresholds) plan.raw_only = true;
                if (++counts[c] > kMostThresholds) fits = false;
            }
            if (!fits && tree > starts.back()) {
                starts.push_back(tree);
                std::fill(counts.begin(), counts.end(), 0);
                for (int64_t j = begin; j < end; ++j) ++counts[m.selection[j]];
            }
            for (int64_t j = begin; j < end; ++j) own[m.selection[j]] = 0;
        }
        starts.push_back(m.n_trees);
    }
    // A node counts planes in 16 bits, at most two of them to a column.
    if (force == 3 || 2 * plan.raw_columns.size() > 65535) plan.raw_only = true;
    if (plan.oblique.is_made) plan.raw_only = false;
    const bool is_coded = !plan.raw_only && !plan.oblique.is_made;

    auto add_value = [&](double value) {
        if (m.sum_single)
            plan.values32.push_back(static_cast<float>(value));
        else
            plan.values64.push_back(value);
    };
    auto value_of = [&](int64_t i) {
        return m.sum_single ? static_cast<double>(static_cast<const float*>(m.V)[i])
                            : static_cast<const double*>(m.V)[i];
    };
    auto n_values = [&] {
        return static_cast<int64_t>(m.sum_single ? plan.values32.size() : plan.values64.size());
    };
    // Values of one tree by label, for each of its outputs.
    const bool can_split = (kernels->splits & (m.sum_single ? kSplitsFloat : kSplitsDouble)) &&
                           m.aggregate == Aggregate::sum;
    auto add_values = [&](Tree& tree, int64_t n, bool gray, bool select) {
        tree.values = n_values();
        tree.n_labels = static_cast<uint32_t>(select ? int64_t{1} << bits_for(n) : n);
        tree.split = can_split && select && n <= 64;
        if (m.linear_start || !m.wants_values) return;
        for (int64_t output = 0; output < k; ++output) {
            const int64_t at = n_values();
            const int64_t room = tree.n_labels;
            for (int64_t i = 0; i < room; ++i) add_value(0.0);
            std::vector<double> by_label(static_cast<size_t>(room), 0.0);
            for (int64_t leaf = 0; leaf < n; ++leaf)
                by_label[label_of(static_cast<uint32_t>(leaf), gray)] =
                    value_of((plan.first_leaf(&tree - plan.trees.data()) + leaf) * k + output);
            for (int64_t i = 0; i < room; ++i) {
                auto put = [&](auto* values, auto value) {
                    if (!tree.split) {
                        values[at + i] = value;
                        return;
                    }
                    const unsigned char* from = reinterpret_cast<const unsigned char*>(&value);
                    unsigned char* to = reinterpret_cast<unsigned char*>(values + at);
                    for (size_t byte = 0; byte < sizeof value; ++byte) to[room * byte + i] = from[byte];
                };
                if (m.sum_single)
                    put(plan.values32.data(), static_cast<float>(by_label[i]));
                else
                    put(plan.values64.data(), by_label[i]);
            }
        }
    };

    std::vector<Coded> coded(is_coded ? m.n_tests : 0);
    plan.trees.resize(m.n_trees);
    for (int64_t tree = 0; tree < m.n_trees; ++tree) {
        Tree& own = plan.trees[tree];
        own.kind = is_coded ? kinds[tree] : Kind::deep;
    }
    if (!is_coded)
        for (Tree& tree : plan.trees) {
            const int64_t i = &tree - plan.trees.data();
            tree.label_bytes = 4;
            add_values(tree, m.test_start[i + 1] - m.test_start[i] + 1, false, false);
        }
    // Where selects are dear, deep trees are walked from their roots.
    const bool has_tops = m.wants_values && kernels->select_cost < 2;
    std::vector<uint32_t> distinct, own_keys;
    for (size_t s = 0; is_coded && s + 1 < starts.size(); ++s) {
        if (starts[s] == starts[s + 1]) continue;
        Section section = make_section(m, starts[s], starts[s + 1], coded, plan.set_of);
        section.first = starts[s];
        section.last = starts[s + 1];
        for (int64_t tree = section.first; tree < section.last; ++tree)
            if (kinds[tree] == Kind::select)
                section.has_select = true;
            else
                section.has_deep = true;
        // The tops of deep trees are selects, too.
        for (int64_t tree = section.first; tree < section.last; ++tree)
            section.has_select |=
                has_tops && m.test_start[tree + 1] - m.test_start[tree] >= kLeavesForTop;
        for (int64_t first = starts[s]; first < starts[s + 1];) {
            Group group;
            group.kind = kinds[first];
            group.first = first;
            int64_t last = first;
            if (group.kind != Kind::select) {
                while (last < starts[s + 1] && kinds[last] == group.kind) ++last;
            } else {
                distinct.clear();
                while (last < starts[s + 1] && kinds[last] == Kind::select) {
                    own_keys.clear();
                    for (int64_t j = m.test_start[last]; j < m.test_start[last + 1]; ++j)
                        own_keys.push_back(key_of(coded[j]));
                    std::sort(own_keys.begin(), own_keys.end());
                    own_keys.erase(std::unique(own_keys.begin(), own_keys.end()), own_keys.end());
                    std::vector<uint32_t> both;
                    both.reserve(distinct.size() + own_keys.size());
                    std::set_union(distinct.begin(), distinct.end(), own_keys.begin(),
                                   own_keys.end(), std::back_inserter(both));
                    if (last > first && static_cast<int64_t>(both.size()) > kMostTestsInGroup) break;
                    distinct.swap(both);
                    ++last;
                }
            }
            group.last = last;
            if (group.kind == Kind::select) {
                for (uint32_t key : distinct)
                    group.tests.push_back({static_cast<uint16_t>(key >> 16),
                                           static_cast<uint16_t>((key & 65535) + 1)});
                const int64_t first_slot = 2 + static_cast<int64_t>(distinct.size());
                group.n_slots = first_slot;
                std::vector<uint16_t> slot_of;
                Selector selector(m, size, slot_of, first_slot);
                for (int64_t tree = first; tree < last; ++tree) {
                    const int64_t begin = m.test_start[tree], end = m.test_start[tree + 1];
                    slot_of.resize(end - begin);
                    for (int64_t j = begin; j < end; ++j) {
                        const int64_t at =
                            std::lower_bound(distinct.begin(), distinct.end(), key_of(coded[j])) -
                            distinct.begin();
                        slot_of[j - begin] = static_cast<uint16_t>(2 + at);
                    }
                    auto found = selector.build(tree, false);
                    bool gray = false;
                    // With no selects at all the tree is symmetric: its tests are the label.
                    if (!found.selects.empty()) {
                        auto other = selector.build(tree, true);
                        if (other.selects.size() < found.selects.size()) {
                            found = std::move(other);
                            gray = true;
                        }
                    }
                    group.n_slots = std::max(group.n_slots, found.n_slots);
                    Tree& own = plan.trees[tree];
                    own.gray = gray;
                    own.label_bytes = found.bits.size() > 8 ? 2 : 1;
                    SelectTree select;
                    select.first = static_cast<uint32_t>(group.selects.size());
                    group.selects.insert(group.selects.end(), found.selects.begin(),
                                         found.selects.end());
                    select.bits = static_cast<uint32_t>(group.bits.size()) & ((1u << 27) - 1);
                    select.n_bits = static_cast<uint8_t>(found.bits.size()) & 31;
                    group.bits.insert(group.bits.end(), found.bits.begin(), found.bits.end());
                    group.trees.push_back(select);
                    add_values(own, end - begin + 1, gray, true);
                }
                SelectTree end{};
                end.first = static_cast<uint32_t>(group.selects.size());
                group.trees.push_back(end);
                group.tests.shrink_to_fit();
                group.selects.shrink_to_fit();
            } else {
                for (int64_t tree = first; tree < last; ++tree) {
                    Tree& own = plan.trees[tree];
                    own.label_bytes = 4;
                    add_values(own, m.test_start[tree + 1] - m.test_start[tree] + 1, false, false);
                }
            }
            section.groups.push_back(std::move(group));
            first = last;
        }
        plan.sections.push_back(std::move(section));
    }

    // Kernels read 64 values of a table, however many it has.
    int64_t most = 0;
    for (const Tree& tree : plan.trees)
        if (!m.linear_start && m.wants_values)
            most = std::max(most, tree.values + (k - 1) * tree.n_labels + 64);
    while (n_values() < most) add_value(0.0);
    plan.values32.shrink_to_fit();
    plan.values64.shrink_to_fit();

    for (int64_t tree = 0; plan.raw_only && tree < m.n_trees; ++tree) {
        const int64_t begin = m.test_start[tree], leaf0 = begin + tree;
        for (int64_t j = begin; j < m.test_start[tree + 1]; ++j) {
            auto child = [&](int32_t number) {
                return number >= 0 ? number - static_cast<int32_t>(begin)
                                   : ~(~number - static_cast<int32_t>(leaf0));
            };
            plan.raw.push_back({m.t[j], 2 * static_cast<uint32_t>(m.selection[j]) + (m.missing[j] < 0),
                                child(m.children[2 * j]), child(m.children[2 * j + 1])});
        }
    }
    const bool has_deep = std::any_of(plan.sections.begin(), plan.sections.end(),
                                      [](const Section& section) { return section.has_deep; });
    if (plan.raw_only || !has_deep) return plan;
    if (force == 4 && kernels->packs && plan.sections.size() == 1) {
        plan.row = make_packs(m, plan.sections[0], coded, plan.used_features);
        if (plan.row.is_made) {
            plan.sections[0].keys32 = {};
            return plan;
        }
    }

    // Nodes to walk, children side by side. Large subtrees come late, so that what is near the
    // root is near in memory: a queue, as in a search by breadth.
    bool is_wide = false;
    for (int64_t tree = 0; tree < m.n_trees; ++tree)
        is_wide |= m.test_start[tree + 1] - m.test_start[tree] >= 65535;
    if (is_wide)
        plan.wide_nodes.reserve(2 * m.n_tests + m.n_trees);
    else
        plan.nodes.reserve(2 * m.n_tests + m.n_trees);
    std::vector<int32_t> queue;
    std::vector<uint32_t> place_of;
    int64_t n_nodes = 0;
    for (int64_t tree = 0; tree < m.n_trees; ++tree) {
        const int64_t begin = m.test_start[tree], end = m.test_start[tree + 1];
        plan.node_start.push_back(n_nodes);
        queue.clear();
        queue.push_back(begin < end ? static_cast<int32_t>(begin)
                                    : ~static_cast<int32_t>(plan.first_leaf(tree)));
        for (size_t i = 0; i < queue.size(); ++i) {
            const int32_t number = queue[i];
            WideNode node{0, 65535, 0, 0};
            if (number < 0) {
                node.leaf = static_cast<uint32_t>(~number - plan.first_leaf(tree));
            } else {
                // No more nodes wait than the tree has leaves, so a step is no larger.
                node = {coded[number].plane, coded[number].code,
                        static_cast<uint32_t>(queue.size() - i), 0};
                queue.push_back(m.children[2 * number]);
                queue.push_back(m.children[2 * number + 1]);
            }
            if (is_wide)
                plan.wide_nodes.push_back(node);
            else
                plan.nodes.push_back({node.plane, node.code, static_cast<uint16_t>(node.step),
                                      static_cast<uint16_t>(node.leaf)});
        }
        n_nodes += static_cast<int64_t>(queue.size());
        plan.tops.emplace_back();
        if (has_tops && kinds[tree] == Kind::deep && end - begin >= kLeavesForTop) {
            place_of.assign(2 * (end - begin) + 1, 0);  // tests, then leaves
            for (size_t i = 0; i < queue.size(); ++i)
                place_of[queue[i] >= 0 ? queue[i] - begin
                                       : end - begin + ~queue[i] - plan.first_leaf(tree)] =
                    static_cast<uint32_t>(i);
            plan.tops.back() = make_top(m, tree, size, coded, [&](int32_t node) {
                return place_of[node >= 0 ? node - begin
                                          : end - begin + ~node - plan.first_leaf(tree)];
            });
        }
    }
    plan.node_start.push_back(n_nodes);
    return plan;
}

int64_t Plan::n_bytes() const {
    auto bytes = [](const auto& v) { return static_cast<int64_t>(v.size() * sizeof(v[0])); };
    int64_t total = bytes(trees) + bytes(node_start) + bytes(used_features) + bytes(members) +
                    bytes(answers) + bytes(linear_start) + bytes(linear_feature) +
                    bytes(intercept) + bytes(coefficient) + bytes(linear_constant) + bytes(nodes) + bytes(wide_nodes) + bytes(values32) +
                    bytes(values64) + bytes(raw) + bytes(oblique.columns) + bytes(oblique.column) + bytes(row.columns) + bytes(row.level_sizes) +
                    bytes(row.keys) + bytes(row.packs) + bytes(row.roots) + bytes(row.trees);
    for (const Top& top : tops)
        total += bytes(top.tests) + bytes(top.selects) + bytes(top.bits) + bytes(top.nodes) +
                 static_cast<int64_t>(sizeof(Top));
    for (const Section& section : sections) {
        total += bytes(section.columns) + bytes(section.keys32) + bytes(section.sorted) + bytes(section.planes) +
                 bytes(section.tables);
        for (const Group& group : section.groups)
            total += bytes(group.tests) + bytes(group.selects) + bytes(group.bits) +
                     bytes(group.trees);
    }
    return total;
}

}  // namespace dm
