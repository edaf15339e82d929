// Few rows, one at a time: packs where the target permutes bytes, else a walk over codes, or over z
// itself for machines whose columns cannot be coded.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/engine.hpp"
#include "engine/leaf_values.hpp"
#include "engine/workspace.hpp"

namespace dm::engine {
namespace {

// z of a column of categories from its feature's x.
double member(const Plan& plan, int64_t column, double x) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    if (x != x) return nan;
    const int64_t set = plan.set_of[column];
    int8_t answer = plan.outside[set];
    if ((x > (plan.negative_fractions ? -1.0 : 0.0) || x == 0.0) && x < 2147483648.0 &&
        !(plan.whole && static_cast<double>(static_cast<int64_t>(x)) != x)) {
        const int64_t category = static_cast<int64_t>(x);
        const auto end = plan.members.begin() + plan.set_start[set + 1];
        const auto at = std::lower_bound(plan.members.begin() + plan.set_start[set], end, category);
        if (at != end && *at == category) answer = plan.answers[at - plan.members.begin()];
    }
    return answer == 0 ? nan : answer > 0 ? 1.0 : 0.0;
}

}  // namespace

double z_of(const Plan& plan, int64_t column, double x) {
    switch (static_cast<Rule>(plan.rule[column])) {
        case Rule::value: return x;
        case Rule::nan_as_zero: return x == x ? x : 0.0;
        case Rule::zero_as_nan:
            return std::fabs(x) <= static_cast<double>(1e-35f)
                       ? std::numeric_limits<double>::quiet_NaN()
                       : x;
        default: return member(plan, column, x);
    }
}

namespace {

template <typename T>
void copy_features(const Source& source, int64_t row, const std::vector<int32_t>& features, T* x) {
    const char* from = source.first.data + row * source.first.stride;
    const int64_t n = static_cast<int64_t>(features.size());
    for (int64_t i = 0; i < n; ++i) std::memcpy(x + i, from + features[i] * source.next, sizeof(T));
}

float pack_sum(const Kernels& kernels, const RowPacks& packs, const float* V, float sum) {
    return kernels.pack_sum32(packs, V, sum);
}
double pack_sum(const Kernels& kernels, const RowPacks& packs, const double* V, double sum) {
    return kernels.pack_sum64(packs, V, sum);
}

}  // namespace

template <typename Sum>
void Engine::few(const Source& source, int64_t row, int64_t n, Workspace& own, Sum* margins,
                 int32_t* leaves) const {
    const int64_t n_used = static_cast<int64_t>(plan.used_features.size());
    own.z.reserve((2 * n_used + 2 * plan.n_columns) * 8);
    own.ends.reserve(2 * plan.n_trees * 4);
    void* x = own.z.as<char>();
    double* wide = own.z.as<double>() + n_used;  // x, where doubles are needed
    double* z = wide + n_used;
    uint32_t* found = own.ends.as<uint32_t>();
    const bool needs_wide = plan.raw_only || !plan.linear_start.empty();
    const bool is_plain =
        plan.linear_start.empty() && plan.aggregate == Aggregate::sum && plan.n_outputs == 1;
    for (int64_t r = row; r < row + n; ++r) {
        const bool single = few_features(source, r, x);
        if (needs_wide) {
            if (single)
                std::copy_n(static_cast<const float*>(x), n_used, wide);
            else
                std::copy_n(static_cast<const double*>(x), n_used, wide);
        }
        Sum* out = margins ? margins + r * plan.n_outputs : nullptr;
        if (plan.row.is_made) {
            alignas(64) uint8_t codes[kMostPackPlanes];
            const RowPacks packs = few_packs(x, single, codes);
            if (is_plain && !leaves) {
                *out = last_sum(plan, 0,
                                pack_sum(*plan.kernels, packs, static_cast<const Sum*>(plan.V),
                                         first_sum<Sum>(plan, 0)));
                continue;
            }
            plan.kernels->packs(packs, found);
        } else if (plan.raw_only) {
            few_raw(wide, z, found);
        } else {
            few_coded(x, single, z, own, found);
        }
        if (leaves) std::copy(found, found + plan.n_trees, leaves + r * plan.n_trees);
        if (out) few_values(wide, is_plain, found, out);
    }
}

template void Engine::few(const Source&, int64_t, int64_t, Workspace&, float*, int32_t*) const;
template void Engine::few(const Source&, int64_t, int64_t, Workspace&, double*, int32_t*) const;

bool Engine::few_features(const Source& source, int64_t row, void* x) const {
    if (source.is_sparse) {
        spread_sparse(source, row, 1, 1, x);
        return plan.single;
    }
    // A float32 x has the same codes by keys rounded down to float32.
    const bool is_float = source.is_array && source.first.dtype == Dtype::f32;
    if (plan.missing_value != plan.missing_value) {
        if (is_float) {
            copy_features(source, row, plan.used_features, static_cast<float*>(x));
            return true;
        }
        if (source.is_array && source.first.dtype == Dtype::f64 && !plan.single) {
            copy_features(source, row, plan.used_features, static_cast<double*>(x));
            return false;
        }
    }
    const bool single = plan.single || is_float;
    char* to = static_cast<char*>(x);
    for (const int32_t f : plan.used_features) {
        plan.kernels->load(source.feature(f), row, 1, source.integers_single, single,
                           plan.missing_value, to);
        to += single ? 4 : 8;
    }
    return single;
}

RowPacks Engine::few_packs(const void* x, bool single, uint8_t* codes) const {
    const RowPlan& row = plan.row;
    const RowCoding coding{row.columns.data(), row.keys.data(), row.level_sizes.data()};
    plan.kernels->code_bytes(coding_of(plan.sections[0]), coding, x, single, codes);
    return {row.packs.data(), row.roots.data(), row.trees.data(), plan.n_trees, codes,
            row.n_planes,     row.doublings};
}

void Engine::few_coded(const void* x, bool single, void* z, Workspace& own, uint32_t* found) const {
    auto spread = [&](const Section& section, const auto* from, auto* to) {
        for (size_t c = 0; c < section.columns.size(); ++c)
            to[c] = from[feature_at_[section.columns[c].feature]];
    };
    for (const Section& section : plan.sections) {
        own.codes.reserve(2 * section.n_planes);
        if (single)
            spread(section, static_cast<const float*>(x), static_cast<float*>(z));
        else
            spread(section, static_cast<const double*>(x), static_cast<double*>(z));
        plan.kernels->code_row(coding_of(section), z, single, own.codes.as<uint16_t>());
        const int64_t* start = plan.node_start.data() + section.first;
        const int64_t n_trees = section.last - section.first;
        uint32_t* rows = found + plan.n_trees;
        if (plan.wide_nodes.empty())
            plan.kernels->walks.few(plan.nodes.data(), start, n_trees, own.codes.as<uint16_t>(),
                                    rows, found + section.first);
        else
            plan.kernels->wide_walks.few(plan.wide_nodes.data(), start, n_trees,
                                         own.codes.as<uint16_t>(), rows, found + section.first);
    }
}

void Engine::few_raw(const double* x, double* z, uint32_t* found) const {
    for (const int32_t c : plan.raw_columns) {
        const double value = z_of(plan, c, x[feature_at_[plan.feature[c]]]);
        // NaN fails every test; -inf passes every one.
        z[2 * c] = value;
        z[2 * c + 1] = value == value ? value : -std::numeric_limits<double>::infinity();
    }
    for (int64_t tree = 0; tree < plan.n_trees; ++tree) {
        const RawNode* nodes = plan.raw.data() + plan.test_start[tree];
        int32_t at = plan.test_start[tree] == plan.test_start[tree + 1] ? -1 : 0;
        while (at >= 0) at = z[nodes[at].z] <= nodes[at].t ? nodes[at].left : nodes[at].right;
        found[tree] = static_cast<uint32_t>(~at);
    }
}

template <typename Sum>
void Engine::few_values(const double* x, bool is_plain, const uint32_t* found, Sum* out) const {
    const Sum* V = static_cast<const Sum*>(plan.V);
    const int64_t width = plan.narrow ? 1 : plan.n_outputs;
    for (int64_t output = 0; output < plan.n_outputs; ++output)
        out[output] = first_sum<Sum>(plan, output);
    if (is_plain) {
        Sum total = out[0];  // in a register: each addition waits for the one before
        for (int64_t i = 0; i < plan.n_trees; ++i) total += V[plan.first_leaf(i) + found[i]];
        out[0] = total;
    }
    for (int64_t i = 0; !is_plain && i < plan.n_trees; ++i) {
        const int64_t leaf = plan.first_leaf(i) + found[i];
        for (int64_t output = 0; output < width; ++output) {
            Sum value;
            if (plan.linear_start.empty())
                value = V[leaf * width + output];
            else if (plan.linear_single)
                value = static_cast<Sum>(
                    linear_value<float>(plan, leaf, width, output, x, 1, feature_at_));
            else
                value = static_cast<Sum>(
                    linear_value<double>(plan, leaf, width, output, x, 1, feature_at_));
            include(plan.aggregate, value, out[plan.narrow ? plan.feeds[i] : output]);
        }
    }
    for (int64_t output = 0; output < plan.n_outputs; ++output)
        out[output] = last_sum(plan, output, out[output]);
}

}  // namespace dm::engine
