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
constexpr int64_t kMostVectors = 256;

struct Sizes {
    int64_t n_columns, n_slots, n_outputs;
    bool pairs;
    const std::vector<Read>& reads;
    int64_t n_reads() const { return static_cast<int64_t>(reads.size()); }
    int64_t n_pairs() const { return pairs ? n_slots * (n_slots - 1) / 2 + 1 : 0; }
    int64_t group() const { return pairs ? kPairGroup : kGroup; }
};

// Where a vector stands in its group, and how many vectors the group has.
struct Place {
    int64_t group_start, at, size;

    Place(int64_t vector, int64_t n_vectors, int64_t group) {
        const bool is_left = vector >= n_vectors / group * group;
        size = is_left ? 1 : group;
        at = is_left ? 0 : vector % group;
        group_start = vector - at;
    }
    // Number i out of n that the vector has, in vectors.
    int64_t of(int64_t i, int64_t n) const { return group_start * n + i * size + at; }
};

// Rows from `row` on, as the kernels read them; lanes without a row repeat the last.
template <typename T>
void load(const Sizes& sizes, int64_t lanes, const T* z, int64_t row, int64_t n, int64_t n_vectors,
          T* to) {
    for (int64_t v = 0; v < n_vectors; ++v) {
        const Place place(v, n_vectors, sizes.group());
        for (int64_t lane = 0; lane < lanes; ++lane) {
            const T* from = z + (row + std::min(v * lanes + lane, n - 1)) * sizes.n_columns;
            T* at = to + place.of(0, sizes.n_reads()) * lanes + lane;
            for (const Read& read : sizes.reads) {
                *at = read.of(from);
                at += place.size * lanes;
            }
        }
    }
}

template <typename T>
void store(const Sizes& sizes, int64_t lanes, int64_t row, int64_t n, const T* phi, const T* pairs,
           const Values<T>& values) {
    const int64_t k = sizes.n_outputs, s = sizes.n_slots, width = values.n_features;
    const T factor = static_cast<T>(values.factor);
    std::vector<T> rest(static_cast<size_t>(s));
    for (int64_t i = 0; i < n; ++i) {
        const Place place(i / lanes, (n + lanes - 1) / lanes, sizes.group());
        const int64_t lane = i % lanes, step = place.size * lanes;
        for (int64_t o = 0; o < k; ++o) {
            const T* own = phi + place.of(o * s, k * s) * lanes + lane;
            T* out = values.out + (row + i) * width * k + o;
            for (int64_t j = 0; j < s; ++j) out[values.features[j] * k] += own[j * step] * factor;
            if (!pairs) continue;
            const int64_t n_pairs = sizes.n_pairs();
            const T* pair = pairs + place.of(o * n_pairs, k * n_pairs) * lanes + lane;
            T* all = values.pairs + (row + i) * width * width * k + o;
            for (int64_t j = 0; j < s; ++j) rest[static_cast<size_t>(j)] = own[j * step];
            for (int64_t a = 0; a < s; ++a)
                for (int64_t b = a + 1; b < s; ++b) {
                    const T found = pair[pair_of(a, b) * step] / 2;
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
void each_tile(const Sizes& sizes, int64_t lanes, int64_t most_vectors, int64_t scratch_size,
               const T* z, int64_t n_rows, int64_t n_threads, const Values<T>& values,
               const Add& add) {
    const int64_t s = sizes.n_slots, item = static_cast<int64_t>(sizeof(T));
    const int64_t phi_size = sizes.n_outputs * s * lanes;
    const int64_t pair_size = sizes.n_outputs * sizes.n_pairs() * lanes;
    const int64_t vector_bytes = (sizes.n_reads() * lanes + phi_size + pair_size) * item;
    int64_t vectors = std::max<int64_t>(kTileBytes / std::max<int64_t>(vector_bytes, 1), kGroup);
    vectors = std::min(vectors - vectors % sizes.group(), most_vectors);  // whole groups
    // Tiles that share the rows evenly among the threads.
    const int64_t all_vectors = (n_rows + lanes - 1) / lanes;
    vectors = std::min(vectors, std::max<int64_t>((all_vectors + n_threads - 1) / n_threads, 1));
    const int64_t size = vectors * lanes;
    common::share((n_rows + size - 1) / size, n_threads, [&](auto next) {
        common::Buffer columns, sums, scratch;
        columns.reserve(vectors * sizes.n_reads() * lanes * item);
        sums.reserve(vectors * (phi_size + pair_size) * item);
        scratch.reserve(scratch_size);
        for (int64_t i = next(); i >= 0; i = next()) {
            const int64_t row = i * size, n = std::min(size, n_rows - row);
            const int64_t n_vectors = (n + lanes - 1) / lanes;
            T* phi = sums.as<T>();
            T* pairs = sizes.pairs ? phi + vectors * phi_size : nullptr;
            std::memset(phi, 0, static_cast<size_t>(vectors * (phi_size + pair_size) * item));
            load(sizes, lanes, z, row, n, n_vectors, columns.as<T>());
            add(Rows<T>{n_vectors, sizes.n_reads(), s, sizes.n_outputs, sizes.n_pairs(),
                        columns.as<T>(), phi, pairs},
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
    const bool is_one = n_rows == 1 && !plan.pairs;
    const auto add = is_one ? kernels.add_row : kernels.add_tree;
    each_tile({plan.n_columns, plan.n_slots, plan.n_outputs, plan.pairs, plan.reads()},
              is_one ? 1 : kernels.lanes, is_one ? 1 : kMostVectors, plan.scratch(), z, n_rows,
              n_threads, values, [&](const Rows<T>& rows, void* scratch) {
                  for (int64_t tree = 0; tree < plan.n_trees(); ++tree)
                      add(plan.tree(tree), rows, scratch);
              });
}

template <typename T>
void add_tables(const Tables<T>& tables, const TypedKernels<T>& kernels, const T* z, int64_t n_rows,
                int64_t n_threads, const Values<T>& values) {
    each_tile({tables.n_columns, tables.n_slots, tables.n_outputs, false, tables.reads.list()},
              kernels.lanes, kMostVectors, tables.most_tests() * kVectorBytes, z, n_rows, n_threads,
              values, [&](const Rows<T>& rows, void* scratch) {
                  typename Tables<T>::Held cells;
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
