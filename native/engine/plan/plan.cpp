#include "engine/plan/plan.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/plan/categories.hpp"
#include "engine/plan/columns.hpp"
#include "engine/plan/oblique.hpp"
#include "engine/plan/packs.hpp"
#include "engine/plan/records.hpp"
#include "engine/plan/selects.hpp"
#include "engine/plan/twigs.hpp"
#include "engine/plan/values.hpp"
#include "engine/plan/walks.hpp"

namespace dm::engine {
namespace {

// Which of the machine's columns and features are read, and which sets belong to which columns.
Plan start_plan(const Machine& m, const Kernels* kernels, const Wanted& wanted) {
    Plan plan;
    plan.machine = m;
    plan.kernels = kernels;
    plan.wanted = wanted;
    std::vector<char> reads(m.columns.n, 0);
    std::vector<int32_t>& used = plan.used_features;
    if (m.tests.is_oblique()) {
        plan.oblique = make_oblique(m);
        for (const int32_t c : plan.oblique.columns) reads[c] = 1;
    } else {
        for (int64_t j = 0; j < m.trees.n_tests; ++j) reads[m.tests.selection[j]] = 1;
    }
    int64_t n_sets = 0;
    for (int64_t c = 0; c < m.columns.n; ++c) {
        plan.set_of.push_back(m.columns.rule_of(c) == Rule::member ? n_sets++ : -1);
        if (!reads[c]) continue;
        plan.read_columns.push_back(static_cast<int32_t>(c));
        used.push_back(m.columns.feature[c]);
    }
    if (m.linear)
        for (int64_t i = 0; i < m.linear.start[m.trees.n_leaves()]; ++i)
            used.push_back(m.linear.feature[i]);
    // Features may be many more than columns: nothing is as long as their number.
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    plan.trees.resize(m.trees.n);
    plan.tops_of.assign(m.trees.n, -1);
    return plan;
}

// How many leaves are below each test.
std::vector<int32_t> leaves_below(const Machine::Trees& trees) {
    std::vector<int32_t> size(trees.n_tests, 0);
    for (int64_t j = trees.n_tests - 1; j >= 0; --j)
        for (int side = 0; side < 2; ++side) {
            const int32_t child = trees.children[2 * j + side];
            size[j] += child >= 0 ? size[child] : 1;
        }
    return size;
}

void set_kind(Kind kind, Plan& plan) {
    plan.kind = kind;
    for (Tree& tree : plan.trees) {
        tree.kind = kind;
        tree.label_bytes = 4;
    }
}

// The trees of a section in groups of one kind.
void add_groups(const std::vector<int32_t>& size, const std::vector<Coded>& coded, Plan& plan,
                Section& section) {
    for (int64_t first = section.first; first < section.last;) {
        Group group;
        if (plan.trees[first].kind == Kind::select) {
            group =
                make_select_group(plan.machine.trees, first, section.last, size, coded, plan.trees);
            section.has_planes = true;
        } else {
            group.kind = plan.trees[first].kind;
            group.first = group.last = first;
            for (; group.last < section.last && plan.trees[group.last].kind == group.kind;
                 ++group.last) {
                plan.trees[group.last].label_bytes = 4;
                section.has_planes |= has_top(plan, group.last) ||
                                      has_record_top(plan, group.last) || group.kind == Kind::twig;
            }
            (group.kind == Kind::record ? section.has_record
             : group.kind == Kind::twig ? section.has_twig
                                        : section.has_deep) = true;
        }
        first = group.last;
        section.groups.push_back(std::move(group));
    }
}

// A plan whose columns are coded: `kind` is by_tree, select, record, twig, deep or pack.
void add_coded(Kind kind, const std::vector<int64_t>& starts, Plan& plan) {
    const Machine& m = plan.machine;
    const std::vector<int32_t> size = leaves_below(m.trees);
    std::vector<Coded> coded(m.trees.n_tests);
    bool has_record = false, has_twig = false, has_deep = false;
    for (size_t s = 0; s + 1 < starts.size(); ++s) {
        if (starts[s] == starts[s + 1]) continue;
        Section section = make_section(m, starts[s], starts[s + 1], plan.set_of, coded);
        const bool can_record = can_have_records(plan.kernels->code_layout, section);
        for (int64_t tree = section.first; tree < section.last; ++tree) {
            const Possible possible{can_record, can_have_twigs(plan, section, tree, size)};
            plan.trees[tree].kind =
                kind_of_tree(kind, m.trees, tree, *plan.kernels, size, possible);
        }
        add_groups(size, coded, plan, section);
        has_record |= section.has_record;
        has_twig |= section.has_twig;
        has_deep |= section.has_deep;
        plan.sections.push_back(std::move(section));
    }
    add_values(plan);
    if (kind == Kind::pack && has_deep) {
        std::optional<PackPlan> packs = make_packs(plan, coded);
        if (packs) {
            plan.packs = std::move(*packs);
            plan.sections[0].thresholds->keys32 = {};
            plan.sections[0].tables = {};
            return set_kind(Kind::pack, plan);
        }
    }
    if (has_record) add_records(size, coded, plan);
    if (has_twig) add_twigs(size, coded, plan);
    if (has_record || has_twig) add_few_values(plan);
    for (Section& section : plan.sections)
        if (section.has_deep || section.has_twig) turn_sets(section);
    if (has_deep) add_nodes(size, coded, plan);
}

}  // namespace

Plan compile(const Machine& machine, const Kernels* kernels, const Wanted& wanted) {
    Plan plan = start_plan(machine, kernels, wanted);
    const std::vector<int64_t> starts = section_starts(plan);
    const int64_t n_codings = static_cast<int64_t>(starts.size()) - 1;
    const Kind kind = compatible_kind(wanted.kind, {machine, *kernels, n_codings});
    if (kind != Kind::raw && kind != Kind::oblique) {
        add_coded(kind, starts, plan);
        return plan;
    }
    set_kind(kind, plan);
    if (kind == Kind::raw) plan.raw_nodes = make_raw_nodes(machine);
    add_values(plan);
    return plan;
}

void Plan::share_thresholds(const Plan& other) {
    for (size_t i = 0; i < std::min(sections.size(), other.sections.size()); ++i)
        if (*sections[i].thresholds == *other.sections[i].thresholds) {
            sections[i].thresholds = other.sections[i].thresholds;
            sections[i].are_shared = true;
        }
}

int64_t Plan::n_bytes() const {
    auto bytes = [](const auto&... vectors) {
        return (static_cast<int64_t>(vectors.size() * sizeof(vectors[0])) + ... + 0);
    };
    int64_t total = bytes(trees, used_features, read_columns, set_of, values32, values64, raw_nodes,
                          oblique.columns, oblique.column) +
                    bytes(tops, tops_of, walks.nodes, walks.wide_nodes, walks.start) +
                    bytes(records.records, records.roots, records.first) +
                    bytes(twigs.nodes, twigs.start, few_values.value_of, few_values.table) +
                    bytes(packs.columns, packs.level_sizes, packs.keys, packs.packs, packs.roots,
                          packs.trees, packs.rights, packs.rights_of);
    for (const Tops& own : tops)
        total += bytes(own.tests, own.selects, own.bits, own.trees, own.nodes, own.start);
    for (const Section& section : sections) {
        total += bytes(section.columns, section.planes, section.tables, section.record_columns,
                       section.record_planes);
        const Thresholds& held = *section.thresholds;
        if (!section.are_shared) total += bytes(held.keys32, held.bucket_first, held.sorted);
        for (const CategoryFeature& own : section.categories)
            total += bytes(own.codes, own.far, own.far_codes, own.sets_by_code);
        for (const Group& group : section.groups)
            total += bytes(group.tests, group.selects, group.bits, group.trees);
    }
    return total;
}

}  // namespace dm::engine
