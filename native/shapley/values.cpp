#include "shapley/values.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/buffer.hpp"
#include "common/targets.hpp"
#include "common/threads.hpp"

namespace dm::shapley {
namespace {

constexpr int64_t kTileBytes = int64_t{1} << 18;  // should stay in the second-level cache
constexpr int64_t kMostGroups = 256;

struct Sizes {
    int64_t n_columns, n_slots, n_outputs;
    bool pairs;
};

// Columns of rows from `row` on, as the kernels read them; lanes without a row repeat the last.
template <typename T>
void load(const Sizes& sizes, int64_t lanes, const T* z, int64_t row, int64_t n, int64_t n_groups,
          T* to) {
    const int64_t width = sizes.n_columns;
    for (int64_t g = 0; g < n_groups; ++g)
        for (int64_t lane = 0; lane < lanes; ++lane) {
            const T* from = z + (row + std::min(g * lanes + lane, n - 1)) * width;
            T* at = to + g * width * lanes + lane;
            for (int64_t c = 0; c < width; ++c) at[c * lanes] = from[c];
        }
}

template <typename T>
void store(const Sizes& sizes, int64_t lanes, int64_t row, int64_t n, const T* phi, const T* pairs,
           const Values<T>& values) {
    const int64_t k = sizes.n_outputs, s = sizes.n_slots, width = values.n_features;
    const T factor = static_cast<T>(values.factor);
    std::vector<T> rest(static_cast<size_t>(s));
    for (int64_t i = 0; i < n; ++i) {
        const int64_t group = i / lanes, lane = i % lanes;
        for (int64_t o = 0; o < k; ++o) {
            const int64_t at = group * k + o;
            const T* own = phi + at * s * lanes + lane;
            T* out = values.out + (row + i) * width * k + o;
            for (int64_t j = 0; j < s; ++j) out[values.features[j] * k] += own[j * lanes] * factor;
            if (!pairs) continue;
            const T* pair = pairs + at * s * s * lanes + lane;
            T* all = values.pairs + (row + i) * width * width * k + o;
            for (int64_t j = 0; j < s; ++j) rest[static_cast<size_t>(j)] = own[j * lanes];
            for (int64_t a = 0; a < s; ++a)
                for (int64_t b = a + 1; b < s; ++b) {
                    const T found = pair[(a * s + b) * lanes];
                    const int64_t f = values.features[a], g = values.features[b];
                    all[(f * width + g) * k] += found * factor;
                    all[(g * width + f) * k] += found * factor;
                    rest[static_cast<size_t>(a)] -= found;
                    rest[static_cast<size_t>(b)] -= found;
                }
            for (int64_t j = 0; j < s; ++j)
                all[values.features[j] * (width + 1) * k] += rest[static_cast<size_t>(j)] * factor;
        }
    }
}

// Calls add(rows, scratch) for tiles of rows, and takes what it added where it belongs.
template <typename T, typename Add>
void each_tile(const Sizes& sizes, int64_t lanes, int64_t scratch_size, const T* z, int64_t n_rows,
               int64_t n_threads, const Values<T>& values, const Add& add) {
    const int64_t s = sizes.n_slots, item = static_cast<int64_t>(sizeof(T));
    const int64_t phi_size = sizes.n_outputs * s * lanes;
    const int64_t pair_size = sizes.pairs ? phi_size * s : 0;
    const int64_t group_bytes = (sizes.n_columns * lanes + phi_size + pair_size) * item;
    int64_t groups =
        std::clamp<int64_t>(kTileBytes / std::max<int64_t>(group_bytes, 1), 1, kMostGroups);
    // Tiles that share the rows evenly among the threads.
    const int64_t all_groups = (n_rows + lanes - 1) / lanes;
    groups = std::min(groups, std::max<int64_t>((all_groups + n_threads - 1) / n_threads, 1));
    const int64_t size = groups * lanes;
    common::share((n_rows + size - 1) / size, n_threads, [&](auto next) {
        common::Buffer columns, sums, scratch;
        columns.reserve(groups * sizes.n_columns * lanes * item);
        sums.reserve(groups * (phi_size + pair_size) * item);
        scratch.reserve(scratch_size);
        for (int64_t i = next(); i >= 0; i = next()) {
            const int64_t row = i * size, n = std::min(size, n_rows - row);
            const int64_t n_groups = (n + lanes - 1) / lanes;
            T* phi = sums.as<T>();
            T* pairs = sizes.pairs ? phi + groups * phi_size : nullptr;
            std::memset(phi, 0, static_cast<size_t>(groups * (phi_size + pair_size) * item));
            load(sizes, lanes, z, row, n, n_groups, columns.as<T>());
            add(Rows<T>{n_groups, sizes.n_columns, s, sizes.n_outputs, columns.as<T>(), phi, pairs},
                scratch.as<void>());
            store(sizes, lanes, row, n, phi, pairs, values);
        }
    });
}

}  // namespace

const Kernels* find_kernels(const std::string& target) {
    return common::find_kernels<Kernels>(DM_OF_EVERY_TARGET(kernels), target);
}

template <typename T>
void add_values(const Plan<T>& plan, const TypedKernels<T>& kernels, const T* z, int64_t n_rows,
                int64_t n_threads, const Values<T>& values) {
    each_tile({plan.n_columns, plan.n_slots, plan.n_outputs, plan.pairs}, kernels.lanes,
              plan.scratch(), z, n_rows, n_threads, values,
              [&](const Rows<T>& rows, void* scratch) {
                  for (int64_t tree = 0; tree < plan.n_trees(); ++tree)
                      kernels.add_tree(plan.tree(tree), rows, scratch);
              });
}

template <typename T>
void add_tables(const Tables<T>& tables, const TypedKernels<T>& kernels, const T* z, int64_t n_rows,
                int64_t n_threads, const Values<T>& values) {
    each_tile({tables.n_columns, tables.n_slots, tables.n_outputs, false}, kernels.lanes,
              tables.most_tests() * kVectorBytes, z, n_rows, n_threads, values,
              [&](const Rows<T>& rows, void* scratch) {
                  std::vector<Cell<T>> cells;
                  for (int64_t tree = 0; tree < tables.n_trees(); ++tree)
                      kernels.add_cells(tables.tree(tree, cells), rows, scratch);
              });
}

template void add_values(const Plan<double>&, const TypedKernels<double>&, const double*, int64_t,
                         int64_t, const Values<double>&);
template void add_values(const Plan<float>&, const TypedKernels<float>&, const float*, int64_t,
                         int64_t, const Values<float>&);
template void add_tables(const Tables<double>&, const TypedKernels<double>&, const double*, int64_t,
                         int64_t, const Values<double>&);
template void add_tables(const Tables<float>&, const TypedKernels<float>&, const float*, int64_t,
                         int64_t, const Values<float>&);

}  // namespace dm::shapley
