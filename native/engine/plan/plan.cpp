#include "engine/plan/plan.hpp"

#include <algorithm>
#include <utility>

#include "engine/plan/columns.hpp"
#include "engine/plan/packs.hpp"
#include "engine/plan/selects.hpp"
#include "engine/plan/values.hpp"
#include "engine/plan/walks.hpp"

namespace dm::engine {
namespace {

// What a test, a select and a step of a walk cost, measured on trees of 64 to 4 096 leaves
// (AVX-512, nanoseconds for 1 024 rows); only the ratios matter. A test is cheaper than it is
// alone, because trees share tests. On that machine selects won up to 1 024 leaves, walks from 2
// 048.
constexpr double kCostTest = 7.0, kCostSelect = 2.0, kCostStep = 1100.0;
constexpr int64_t kMostSelectLeaves = 4096;

// The machine's own facts, and which of its columns and features are read.
Plan start_plan(const Machine& m, const Kernels* kernels) {
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
    plan.trees.resize(m.n_trees);
    return plan;
}

// How many leaves are below each test, and for each tree the kernel that costs least.
std::vector<int32_t> choose_kinds(const Machine& m, int force, Plan& plan) {
    std::vector<int32_t> size(m.n_tests);
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
            plan.kernels->select_cost * (kCostTest * (leaves - 1) + kCostSelect * selects);
        const bool small = end - begin < kMostSelectLeaves;
        const bool chooses_select = force == 0   ? small && select <= walk
                                    : force == 1 ? small
                                                 : false;
        plan.trees[tree].kind = chooses_select ? Kind::select : Kind::deep;
    }
    return size;
}

// The trees of a section in groups that are evaluated together.
void add_groups(const Machine& m, const std::vector<int32_t>& size, const std::vector<Coded>& coded,
                Plan& plan, Section& section) {
    for (int64_t first = section.first; first < section.last;) {
        Group group;
        if (plan.trees[first].kind == Kind::select) {
            group = make_select_group(m, first, section.last, size, coded, plan.trees);
            section.has_select = true;
        } else {
            group.kind = Kind::deep;
            group.first = group.last = first;
            for (; group.last < section.last && plan.trees[group.last].kind == Kind::deep;
                 ++group.last) {
                plan.trees[group.last].label_bytes = 4;
                section.has_select |= has_top(m, plan, group.last);
            }
            section.has_deep = true;
        }
        first = group.last;
        section.groups.push_back(std::move(group));
    }
}

// Oblique tests, and columns with too many thresholds, have no codes.
void leave_uncoded(const Machine& m, Plan& plan) {
    for (Tree& tree : plan.trees) {
        tree.kind = Kind::deep;
        tree.label_bytes = 4;
    }
    if (plan.raw_only) plan.raw = make_raw_nodes(m);
    add_values(m, plan);
}

}  // namespace

Plan compile(const Machine& m, const Kernels* kernels, int force) {
    Plan plan = start_plan(m, kernels);
    std::vector<int64_t> starts;
    if (!plan.oblique.is_made) {
        starts = section_starts(m, plan.raw_only);
        // A node counts planes in 16 bits, at most two of them to a column.
        if (force == 3 || 2 * plan.raw_columns.size() > 65535) plan.raw_only = true;
    }
    if (plan.oblique.is_made || plan.raw_only) {
        leave_uncoded(m, plan);
        return plan;
    }
    const std::vector<int32_t> size = choose_kinds(m, force, plan);
    std::vector<Coded> coded(m.n_tests);
    bool has_deep = false;
    for (size_t s = 0; s + 1 < starts.size(); ++s) {
        if (starts[s] == starts[s + 1]) continue;
        Section section = make_section(m, starts[s], starts[s + 1], plan.set_of, coded);
        add_groups(m, size, coded, plan, section);
        has_deep |= section.has_deep;
        plan.sections.push_back(std::move(section));
    }
    add_values(m, plan);
    if (!has_deep) return plan;
    if (force == 4 && kernels->packs && plan.sections.size() == 1) {
        plan.row = make_packs(m, plan.sections[0], coded, plan.used_features);
        if (plan.row.is_made) {
            plan.sections[0].keys32 = {};
            return plan;
        }
    }
    add_nodes(m, size, coded, plan);
    return plan;
}

int64_t Plan::n_bytes() const {
    auto bytes = [](const auto& v) { return static_cast<int64_t>(v.size() * sizeof(v[0])); };
    int64_t total = bytes(trees) + bytes(node_start) + bytes(used_features) + bytes(members) +
                    bytes(answers) + bytes(linear_start) + bytes(linear_feature) +
                    bytes(intercept) + bytes(coefficient) + bytes(linear_constant) + bytes(nodes) +
                    bytes(wide_nodes) + bytes(values32) + bytes(values64) + bytes(raw) +
                    bytes(oblique.columns) + bytes(oblique.column) + bytes(row.columns) +
                    bytes(row.level_sizes) + bytes(row.keys) + bytes(row.packs) + bytes(row.roots) +
                    bytes(row.trees);
    for (const Top& top : tops)
        total += bytes(top.tests) + bytes(top.selects) + bytes(top.bits) + bytes(top.nodes) +
                 static_cast<int64_t>(sizeof(Top));
    for (const Section& section : sections) {
        total += bytes(section.columns) + bytes(section.keys32) + bytes(section.sorted) +
                 bytes(section.planes) + bytes(section.tables);
        for (const Group& group : section.groups)
            total +=
                bytes(group.tests) + bytes(group.selects) + bytes(group.bits) + bytes(group.trees);
    }
    return total;
}

}  // namespace dm::engine
