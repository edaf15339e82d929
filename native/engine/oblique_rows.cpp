// Plans of oblique machines, and their rows: z by row, then trees a level at a time; see
// kernels/oblique.hpp.
#include <algorithm>
#include <cmath>

#include "engine/engine.hpp"
#include "engine/leaf_values.hpp"
#include "engine/workspace.hpp"

namespace dm::engine {
namespace {

constexpr int64_t kRowsInCache = int64_t{1} << 19;  // bytes

}  // namespace

ObliquePlan make_oblique(const Machine& m) {
    ObliquePlan out;
    out.is_made = true;
    std::vector<int32_t> place(m.n_columns, -1);
    const int64_t n_terms = m.weight_start[m.n_tests];
    for (int64_t i = 0; i < n_terms; ++i) place[m.weight_column[i]] = 0;
    for (int64_t c = 0; c < m.n_columns; ++c)
        if (place[c] == 0) {
            place[c] = static_cast<int32_t>(out.columns.size());
            out.columns.push_back(static_cast<int32_t>(c));
        }
    const int64_t width = static_cast<int64_t>(out.columns.size());
    // Terms are in the order of the columns, each column at most once: as many of them as columns
    // are all columns.
    bool is_dense = true;
    for (int64_t j = 0; j < m.n_tests; ++j)
        is_dense &= m.weight_start[j + 1] - m.weight_start[j] == width;
    if (!is_dense)
        for (int64_t i = 0; i < n_terms; ++i) out.column.push_back(place[m.weight_column[i]]);
    return out;
}

template <typename T>
T* Engine::oblique_rows(const Source& source, const std::vector<Feature>& spread_out, int64_t row,
                        int64_t n, Workspace& own) const {
    const int64_t width = static_cast<int64_t>(plan.oblique.columns.size());
    own.row_codes.reserve((n * width + n) * static_cast<int64_t>(sizeof(T)));
    T* z = own.row_codes.as<T>();
    T* one = z + n * width;
    for (int64_t i = 0; i < width; ++i) {
        const int32_t c = plan.oblique.columns[i];
        const Feature feature =
            source.is_sparse ? spread_out[plan.feature[c]] : source.feature(plan.feature[c]);
        plan.kernels->load(feature, row, n, source.integers_single, sizeof(T) == 4,
                           source.is_sparse ? NAN : plan.missing_value, one);
        if (static_cast<Rule>(plan.rule[c]) != Rule::value)
            for (int64_t r = 0; r < n; ++r) one[r] = static_cast<T>(z_of(plan, c, one[r]));
        for (int64_t r = 0; r < n; ++r) z[r * width + i] = one[r];
    }
    return z;
}

template <typename T>
const T* Engine::rows_in_place(const Source& source, int64_t row) const {
    const ObliquePlan& own = plan.oblique;
    if (!source.is_array || source.first.dtype != (sizeof(T) == 4 ? Dtype::f32 : Dtype::f64) ||
        source.next != sizeof(T) || source.first.stride % static_cast<int64_t>(sizeof(T)) ||
        reinterpret_cast<uintptr_t>(source.first.data) % sizeof(T) ||
        plan.missing_value == plan.missing_value || own.columns.empty())
        return nullptr;
    const int32_t first = plan.feature[own.columns[0]];
    for (size_t i = 0; i < own.columns.size(); ++i)
        if (plan.rule[own.columns[i]] != 0 ||
            plan.feature[own.columns[i]] != first + static_cast<int32_t>(i))
            return nullptr;
    return reinterpret_cast<const T*>(source.first.data + row * source.first.stride) + first;
}

void Engine::oblique_leaves(const Source& source, const std::vector<Feature>& spread_out,
                            int64_t row, int64_t n, Workspace& own,
                            const std::function<void(int64_t, uint32_t*)>& use) const {
    const ObliquePlan& made = plan.oblique;
    const ObliqueTests tests{plan.weight_start,
                             made.column.empty() ? nullptr : made.column.data(),
                             plan.weight,
                             static_cast<int64_t>(made.columns.size()),
                             plan.t,
                             plan.missing,
                             plan.children};
    own.ends.reserve(3 * n * kUnderWayBytes);
    own.labels.reserve(n * 4);
    uint32_t* leaves = own.labels.as<uint32_t>();
    // A level reads all rows again: as many at a time as stay in the second-level cache.
    const int64_t block = std::max<int64_t>(kRowsInCache / (8 * (tests.n_terms + 1)), 32);
    auto with = [&](auto kernel, auto* z, int64_t stride) {
        for (int64_t i = 0; i < plan.n_trees; ++i) {
            const int64_t begin = plan.test_start[i], first = plan.first_leaf(i);
            const int32_t root = begin < plan.test_start[i + 1] ? static_cast<int32_t>(begin)
                                                                : ~static_cast<int32_t>(first);
            for (int64_t start = 0; start < n; start += block)
                kernel(tests, root, z + start * stride, stride, std::min(block, n - start),
                       own.ends.as<char>(), leaves + start);
            for (int64_t r = 0; r < n; ++r) leaves[r] -= static_cast<uint32_t>(first);
            use(i, leaves);
        }
    };
    const int64_t width = static_cast<int64_t>(made.columns.size());
    if (plan.single) {
        if (const float* z = rows_in_place<float>(source, row))
            return with(plan.kernels->oblique32, z, source.first.stride / 4);
        with(plan.kernels->oblique32, oblique_rows<float>(source, spread_out, row, n, own), width);
    } else {
        if (const double* z = rows_in_place<double>(source, row))
            return with(plan.kernels->oblique64, z, source.first.stride / 8);
        with(plan.kernels->oblique64, oblique_rows<double>(source, spread_out, row, n, own), width);
    }
}

}  // namespace dm::engine
