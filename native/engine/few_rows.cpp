// Few rows, one at a time: packs where the target permutes bytes, else a walk over codes, or over z
// itself for machines whose columns cannot be coded.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/engine.hpp"
#include "engine/leaf_values.hpp"

namespace dm::engine {
namespace {

// z of a column of categories from its feature's x.
double member(const Plan& plan, int64_t column, double x) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    if (x != x) return nan;
    const Machine::Sets& sets = plan.machine.sets;
    const int64_t set = plan.set_of[column];
    int8_t answer = sets.outside[set];
    if ((x > (sets.negative_fractions ? -1.0 : 0.0) || x == 0.0) && x < 2147483648.0 &&
        !(sets.whole && static_cast<double>(static_cast<int64_t>(x)) != x)) {
        const int64_t category = static_cast<int64_t>(x);
        const int64_t* end = sets.members + sets.start[set + 1];
        const int64_t* at = std::lower_bound(sets.members + sets.start[set], end, category);
        if (at != end && *at == category) answer = sets.answers[at - sets.members];
    }
    return answer == 0 ? nan : answer > 0 ? 1.0 : 0.0;
}

template <typename T>
void copy_features(const Source& source, int64_t row, const std::vector<int32_t>& features, T* x) {
    const char* from = source.first.data + row * source.first.stride;
    const int64_t n = static_cast<int64_t>(features.size());
    for (int64_t i = 0; i < n; ++i) std::memcpy(x + i, from + features[i] * source.next, sizeof(T));
}

}  // namespace

double z_of(const Plan& plan, int64_t column, double x) {
    switch (plan.machine.columns.rule_of(column)) {
        case Rule::value: return x;
        case Rule::nan_as_zero: return x == x ? x : 0.0;
        case Rule::zero_as_nan:
            return std::fabs(x) <= static_cast<double>(1e-35f)
                       ? std::numeric_limits<double>::quiet_NaN()
                       : x;
        default: return member(plan, column, x);
    }
}

template <typename Sum>
void Engine::walk_rows(const Tile<Sum>& tile) const {
    const Machine& machine = plan.machine;
    const int64_t n_used = static_cast<int64_t>(plan.used_features.size());
    const int64_t n_trees = machine.trees.n, n_outputs = machine.output.n;
    tile.own.z.reserve((2 * n_used + 2 * machine.columns.n) * 8);
    tile.own.ends.reserve(n_trees * 4);
    void* x = tile.own.z.as();
    double* wide = tile.own.z.template as<double>() + n_used;  // x, where doubles are needed
    double* z = wide + n_used;
    uint32_t* found = tile.own.ends.template as<uint32_t>();
    const bool needs_wide = plan.kind == Kind::raw || machine.linear;
    const bool is_plain =
        !machine.linear && machine.output.aggregate == Aggregate::sum && n_outputs == 1;
    for (int64_t r = tile.row; r < tile.row + tile.n; ++r) {
        const bool single = few_features(tile.source, r, x);
        if (needs_wide) {
            if (single)
                std::copy_n(static_cast<const float*>(x), n_used, wide);
            else
                std::copy_n(static_cast<const double*>(x), n_used, wide);
        }
        Sum* out = tile.margins ? tile.margins + r * n_outputs : nullptr;
        if (plan.kind == Kind::pack) {
            alignas(64) uint8_t codes[kMostPackPlanes];
            const RowPacks packs = few_packs(x, single, codes, tile.own);
            if (is_plain && !tile.leaves) {
                const Sum sum = typed<Sum>(*plan.kernels)
                                    .pack_sum(packs, static_cast<const Sum*>(machine.output.V),
                                              first_sum<Sum>(machine, 0));
                *out = last_sum(machine, 0, sum);
                continue;
            }
            plan.kernels->packs(packs, found);
        } else if (plan.kind == Kind::raw) {
            few_raw(wide, z, found);
        } else {
            few_coded(x, single, z, tile.own, found);
        }
        if (tile.leaves) std::copy(found, found + n_trees, tile.leaves + r * n_trees);
        if (out) few_values(wide, is_plain, found, out);
    }
}

template void Engine::walk_rows(const Tile<float>&) const;
template void Engine::walk_rows(const Tile<double>&) const;

// The used features of one row; whether they are floats.
bool Engine::few_features(const Source& source, int64_t row, void* x) const {
    const Machine::Columns& columns = plan.machine.columns;
    if (source.is_sparse) {
        spread_sparse(source, row, 1, 1, x);
        return columns.single;
    }
    // A float32 x has the same codes by keys rounded down to float32.
    const bool is_float = source.is_array && source.first.dtype == Dtype::f32;
    if (columns.missing_value != columns.missing_value) {
        if (is_float) {
            copy_features(source, row, plan.used_features, static_cast<float*>(x));
            return true;
        }
        if (source.is_array && source.first.dtype == Dtype::f64 && !columns.single) {
            copy_features(source, row, plan.used_features, static_cast<double*>(x));
            return false;
        }
    }
    const bool single = columns.single || is_float;
    char* to = static_cast<char*>(x);
    for (const int32_t f : plan.used_features) {
        plan.kernels->load(source.feature(f), row, 1, source.integers_single, single,
                           columns.missing_value, to);
        to += single ? 4 : 8;
    }
    return single;
}

uint16_t Engine::few_category(const CategoryFeature& own, const void* x, bool single) const {
    const int64_t at = feature_at_[own.feature];
    const void* value = single ? static_cast<const void*>(static_cast<const float*>(x) + at)
                               : static_cast<const double*>(x) + at;
    uint16_t code;
    plan.kernels->code_categories(own.view(plan.machine.sets), value, single, 1, 2, &code);
    return code;
}

RowPacks Engine::few_packs(const void* x, bool single, uint8_t* codes, Workspace& own) const {
    const PackPlan& row = plan.packs;
    const RowCoding coding{row.columns.data(), row.keys.data(), row.level_sizes.data()};
    plan.kernels->code_bytes(coding_of(plan.sections[0]), coding, x, single, codes);
    uint64_t* rights = nullptr;
    if (!row.rights.empty()) {
        const int64_t n_packs = static_cast<int64_t>(row.packs.size());
        own.codes.reserve(8 * n_packs);
        rights = own.codes.as<uint64_t>();
        std::fill_n(rights, n_packs, 0);
        const std::vector<CategoryFeature>& categories = plan.sections[0].categories;
        for (size_t i = 0; i < categories.size(); ++i) {
            const uint64_t* of_code = row.rights.data() + row.rights_of[i] +
                                      few_category(categories[i], x, single) * n_packs;
            for (int64_t pack = 0; pack < n_packs; ++pack) rights[pack] |= of_code[pack];
        }
    }
    return {row.packs.data(),
            row.roots.data(),
            row.trees.data(),
            plan.machine.trees.n,
            codes,
            row.n_planes,
            row.doublings,
            rights};
}

// 16-bit codes of one row by plane; z is a buffer of values by column.
const uint16_t* Engine::few_codes(const Section& section, const void* x, bool single, void* z,
                                  Workspace& own) const {
    auto spread = [&](const auto* from, auto* to) {
        for (size_t c = 0; c < section.columns.size(); ++c)
            to[c] = from[feature_at_[section.columns[c].feature]];
    };
    own.codes.reserve(2 * section.n_planes);
    if (single)
        spread(static_cast<const float*>(x), static_cast<float*>(z));
    else
        spread(static_cast<const double*>(x), static_cast<double*>(z));
    plan.kernels->code_row(coding_of(section), z, single, own.codes.as<uint16_t>());
    for (const CategoryFeature& sets : section.categories)
        plan.kernels->spread_bits(
            sets.sets_by_code.data() + few_category(sets, x, single) * sets.code_bytes(),
            sets.n_sets, own.codes.as<uint16_t>() + sets.first_set);
    return own.codes.as<uint16_t>();
}

// Exit leaves of all trees for one row.
void Engine::few_coded(const void* x, bool single, void* z, Workspace& own, uint32_t* found) const {
    for (const Section& section : plan.sections) {
        few_codes(section, x, single, z, own);
        const int64_t* start = plan.walks.start.data() + section.first;
        const int64_t n_trees = section.last - section.first;
        if (plan.walks.wide_nodes.empty())
            plan.kernels->walks.few(plan.walks.nodes.data(), start, n_trees,
                                    own.codes.as<uint16_t>(), found + section.first);
        else
            plan.kernels->wide_walks.few(plan.walks.wide_nodes.data(), start, n_trees,
                                         own.codes.as<uint16_t>(), found + section.first);
    }
}

void Engine::few_raw(const double* x, double* z, uint32_t* found) const {
    for (const int32_t c : plan.read_columns) {
        const double value = z_of(plan, c, x[feature_at_[plan.machine.columns.feature[c]]]);
        // NaN fails every test; -inf passes every one.
        z[2 * c] = value;
        z[2 * c + 1] = value == value ? value : -std::numeric_limits<double>::infinity();
    }
    const Machine::Trees& trees = plan.machine.trees;
    for (int64_t tree = 0; tree < trees.n; ++tree) {
        const RawNode* nodes = plan.raw_nodes.data() + trees.test_start[tree];
        int32_t at = trees.tests_of(tree) ? 0 : -1;
        while (at >= 0) at = z[nodes[at].z] <= nodes[at].t ? nodes[at].left : nodes[at].right;
        found[tree] = static_cast<uint32_t>(~at);
    }
}

template <typename Sum>
void Engine::few_values(const double* x, bool is_plain, const uint32_t* found, Sum* out) const {
    const Machine& machine = plan.machine;
    const Machine::Trees& trees = machine.trees;
    const Sum* V = static_cast<const Sum*>(machine.output.V);
    if (is_plain) {
        Sum total = first_sum<Sum>(machine, 0);  // each addition waits for the one before
        for (int64_t i = 0; i < trees.n; ++i) total += V[trees.first_leaf(i) + found[i]];
        out[0] = last_sum(machine, 0, total);
        return;
    }
    const int64_t width = machine.output.width();
    for (int64_t output = 0; output < machine.output.n; ++output)
        out[output] = first_sum<Sum>(machine, output);
    for (int64_t i = 0; i < trees.n; ++i) {
        const int64_t leaf = trees.first_leaf(i) + found[i];
        for (int64_t output = 0; output < width; ++output) {
            const Sum value =
                machine.linear
                    ? static_cast<Sum>(linear_value(machine, leaf, output, x, 1, feature_at_))
                    : V[leaf * width + output];
            include(machine.output.aggregate, value,
                    out[machine.output.narrow ? trees.feeds[i] : output]);
        }
    }
    for (int64_t output = 0; output < machine.output.n; ++output)
        out[output] = last_sum(machine, output, out[output]);
}

}  // namespace dm::engine
