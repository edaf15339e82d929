// Oblique trees over a tile: z by row, then trees a level at a time; see kernels/oblique.hpp.
#include <algorithm>
#include <cmath>

#include "engine/engine.hpp"
#include "engine/leaf_values.hpp"

namespace dm::engine {
namespace {

constexpr int64_t kRowsInCache = int64_t{1} << 19;  // bytes

}  // namespace

// z of a tile's rows, the columns that tests weigh.
template <typename T, typename Sum>
T* Engine::oblique_rows(const Tile<Sum>& tile) const {
    const std::vector<int32_t>& columns = plan.oblique.columns;
    const int64_t n = tile.n, width = static_cast<int64_t>(columns.size());
    tile.own.row_codes.reserve((n * width + n) * static_cast<int64_t>(sizeof(T)));
    T* z = tile.own.row_codes.template as<T>();
    T* one = z + n * width;
    for (int64_t i = 0; i < width; ++i) {
        const int32_t c = columns[i];
        plan.kernels->load(tile.feature(plan.machine.columns.feature[c]), tile.row, n,
                           tile.source.integers_single, sizeof(T) == 4, tile.missing_value, one);
        if (plan.machine.columns.rule_of(c) != Rule::value)
            for (int64_t r = 0; r < n; ++r) one[r] = static_cast<T>(z_of(plan, c, one[r]));
        for (int64_t r = 0; r < n; ++r) z[r * width + i] = one[r];
    }
    return z;
}

// The rows as the caller holds them, where they are as the kernel reads them, or null.
template <typename T>
const T* Engine::rows_in_place(const Source& source, int64_t row) const {
    const std::vector<int32_t>& columns = plan.oblique.columns;
    const Machine::Columns& about = plan.machine.columns;
    if (!source.is_array || source.first.dtype != (sizeof(T) == 4 ? Dtype::f32 : Dtype::f64) ||
        source.next != sizeof(T) || source.first.stride % static_cast<int64_t>(sizeof(T)) ||
        reinterpret_cast<uintptr_t>(source.first.data) % sizeof(T) ||
        about.missing_value == about.missing_value || columns.empty())
        return nullptr;
    const int32_t first = about.feature[columns[0]];
    for (size_t i = 0; i < columns.size(); ++i)
        if (about.rule_of(columns[i]) != Rule::value ||
            about.feature[columns[i]] != first + static_cast<int32_t>(i))
            return nullptr;
    return reinterpret_cast<const T*>(source.first.data + row * source.first.stride) + first;
}

template <typename T, typename Sum>
void Engine::oblique_trees_of(const Tile<Sum>& tile) const {
    const Machine& machine = plan.machine;
    const ObliquePlan& made = plan.oblique;
    const int64_t n = tile.n, n_terms = static_cast<int64_t>(made.columns.size());
    const ObliqueTests tests{machine.tests.weight_start,
                             made.column.empty() ? nullptr : made.column.data(),
                             machine.tests.weight,
                             n_terms,
                             machine.tests.t,
                             machine.tests.missing,
                             machine.trees.children};
    const T* z = rows_in_place<T>(tile.source, tile.row);
    const int64_t stride = z ? tile.source.first.stride / static_cast<int64_t>(sizeof(T)) : n_terms;
    if (!z) z = oblique_rows<T>(tile);
    const auto kernel = typed<T>(*plan.kernels).oblique;
    tile.own.ends.reserve(3 * n * kUnderWayBytes);
    tile.own.labels.reserve(n * 4);
    uint32_t* leaves = tile.own.labels.template as<uint32_t>();
    // A level reads all rows again: as many at a time as stay in the second-level cache.
    const int64_t at_once = std::max<int64_t>(kRowsInCache / (8 * (n_terms + 1)), 32);
    for (int64_t tree = 0; tree < machine.trees.n; ++tree) {
        const int32_t first_leaf = static_cast<int32_t>(machine.trees.first_leaf(tree));
        const int32_t root = machine.trees.tests_of(tree)
                                 ? static_cast<int32_t>(machine.trees.test_start[tree])
                                 : ~first_leaf;
        for (int64_t start = 0; start < n; start += at_once)
            kernel(tests, root, z + start * stride, stride, std::min(at_once, n - start),
                   tile.own.ends.template as<char>(), leaves + start);
        for (int64_t r = 0; r < n; ++r) leaves[r] -= static_cast<uint32_t>(first_leaf);
        for (int64_t block = 0; block < n; block += kBlockRows)
            add_labels(tile, tree, leaves + block, block, std::min(kBlockRows, n - block));
    }
}

template <typename Sum>
void Engine::oblique_trees(const Tile<Sum>& tile) const {
    plan.machine.columns.single ? oblique_trees_of<float>(tile) : oblique_trees_of<double>(tile);
}

template void Engine::oblique_trees(const Tile<float>&) const;
template void Engine::oblique_trees(const Tile<double>&) const;

}  // namespace dm::engine
