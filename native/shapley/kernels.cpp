// Shapley values by paths, compiled once for each target.
#include "shapley/kernels.hpp"

#include "shapley/cells.hpp"
#include "shapley/one_row.hpp"
#include "shapley/walk.hpp"

namespace dm::shapley {
namespace DM_TARGET {
namespace {

// A group of vectors at a time, and what is left one by one. Numbers of points that are common have
// loops of their own, N, for groups.
template <typename T, int N, bool Pairs>
void add_by_points(const Tree<T>& tree, const Rows<T>& rows, void* scratch) {
    constexpr int G = Pairs ? kPairGroup : kGroup;
    const int64_t done = rows.n_vectors < G ? 0 : Walk<T, N, G, Pairs>(tree, rows, scratch).run(0);
    if (done < rows.n_vectors) Walk<T, 0, 1, Pairs>(tree, rows, scratch).run(done);
}

void add_tree(const Tree<double>& tree, const Rows<double>& rows, void* scratch) {
    if (rows.pairs) {
        switch (tree.n_points) {
            case 3: return add_by_points<double, 3, true>(tree, rows, scratch);
            case 4: return add_by_points<double, 4, true>(tree, rows, scratch);
            default: return add_by_points<double, 0, true>(tree, rows, scratch);
        }
    }
    switch (tree.n_points) {
        case 3: return add_by_points<double, 3, false>(tree, rows, scratch);
        case 4: return add_by_points<double, 4, false>(tree, rows, scratch);
        case 5: return add_by_points<double, 5, false>(tree, rows, scratch);
        case 6: return add_by_points<double, 6, false>(tree, rows, scratch);
        case 7: return add_by_points<double, 7, false>(tree, rows, scratch);
        case 8: return add_by_points<double, 8, false>(tree, rows, scratch);
        default: return add_by_points<double, 0, false>(tree, rows, scratch);
    }
}

void add_tree_32(const Tree<float>& tree, const Rows<float>& rows, void* scratch) {
    if (rows.pairs) return add_by_points<float, 0, true>(tree, rows, scratch);
    switch (tree.n_points) {
        case 3: return add_by_points<float, 3, false>(tree, rows, scratch);
        case 4: return add_by_points<float, 4, false>(tree, rows, scratch);
        case 5: return add_by_points<float, 5, false>(tree, rows, scratch);
        default: return add_by_points<float, 0, false>(tree, rows, scratch);
    }
}

template <typename T>
void add_row(const Tree<T>& tree, const Rows<T>& row, void* scratch) {
    if (tree.n_points <= kLanes<T>)
        OneRow<T, 1>(tree, row, scratch).run();
    else
        OneRow<T, 0>(tree, row, scratch).run();
}

template <typename T>
void add_cells(const Cells<T>& tree, const Rows<T>& rows, void* scratch) {
    const int64_t done = LookUp<T, kGroup>(tree, rows, scratch).run(0);
    LookUp<T, 1>(tree, rows, scratch).run(done);
}

// With u the features that a background row misses and o those that the row has, a feature in o
// gains the integral of y^(|u| - 1) (1 - y)^(d - |o|) over the u within o that hold it, and one
// outside o loses that of y^|u| (1 - y)^(d - |o| - 1) over all u within o: sums over subsets.
void leaf_table(const LeafGame& game, double* scratch, double* out) {
    const int64_t d = game.n_bits, size = int64_t{1} << d;
    double *Z = scratch, *share = scratch + size;
    for (int64_t i = 0; i < d * size; ++i) out[i] = 0;
    for (int64_t q = 0; q < game.n_points; ++q) {
        const double y = game.y[q], rest = 1 - y;
        Z[0] = 1;
        share[0] = game.weight[q] / y;
        for (int64_t i = 0; i < d; ++i) share[0] *= rest;
        for (int64_t half = 1; half < size; half *= 2)
            for (int64_t o = 0; o < half; ++o) {
                Z[half + o] = Z[o] * y;
                share[half + o] = share[o] / rest;
            }
        for (int64_t u = 0; u < size; ++u) Z[u] *= game.missed[u];
        for (int64_t half = 1; half < size; half *= 2)
            for (int64_t o = 0; o < size; o += 2 * half)
                for (int64_t k = 0; k < half; ++k) Z[o + half + k] += Z[o + k];
        const double loss = y / rest;
        for (int64_t i = 0; i < d; ++i) {
            const int64_t half = int64_t{1} << i;
            double* own = out + i * size;
            for (int64_t o = 0; o < size; o += 2 * half)
                for (int64_t k = o; k < o + half; ++k) {
                    own[k] -= loss * share[k] * Z[k];
                    own[k + half] += share[k + half] * (Z[k + half] - Z[k]);
                }
        }
    }
}

// With Z[o] the sum over the u within o, u not empty, of the shares of u times y^(|u| - 1), and m
// the share of the background rows that miss nothing:
//   gain[o]    = integral of (1 - y)^(d - |o|) Z[o]
//   without[o] = integral of (1 - y)^(d - |o| - 1) Z[o]
//   loss[o]    = integral of (1 - y)^(d - |o| - 1) (y Z[o] + m)
// A feature in o gains gain[o] - without[o but it], one outside loses loss[o].
void leaf_sums(const LeafGame& game, double* scratch, double* out) {
    const int64_t d = game.n_bits, size = int64_t{1} << d;
    double *Z = scratch, *gain = out, *loss = out + size, *without = out + 2 * size;
    for (int64_t i = 0; i < 3 * size; ++i) out[i] = 0;
    double rests[kMostLeafBits + 1], powers[kMostLeafBits + 1];
    for (int64_t q = 0; q < game.n_points; ++q) {
        const double y = game.y[q], rest = 1 - y;
        // By how many features a row has, and misses.
        powers[0] = 0;
        powers[1] = 1;
        for (int64_t k = 2; k <= d; ++k) powers[k] = powers[k - 1] * y;
        rests[d] = 0;
        if (d) rests[d - 1] = game.weight[q];
        for (int64_t k = d - 2; k >= 0; --k) rests[k] = rests[k + 1] * rest;
        for (int64_t u = 0; u < size; ++u) Z[u] = game.missed[u] * powers[__builtin_popcountll(u)];
        for (int64_t half = 1; half < size; half *= 2)
            for (int64_t o = 0; o < size; o += 2 * half)
                for (int64_t k = 0; k < half; ++k) Z[o + half + k] += Z[o + k];
        for (int64_t o = 0; o + 1 < size; ++o) {
            const double found = rests[__builtin_popcountll(o)] * Z[o];
            without[o] += found;
            gain[o] += found * rest;
            loss[o] += found * y + rests[__builtin_popcountll(o)] * game.missed[0];
        }
        gain[size - 1] += game.weight[q] * Z[size - 1];
    }
}

}  // namespace

const Kernels kernels = {DM_NAME(DM_TARGET),
                         {kLanes<double>, &add_tree, &add_row<double>, &add_cells<double>},
                         {kLanes<float>, &add_tree_32, &add_row<float>, &add_cells<float>},
                         &leaf_table,
                         &leaf_sums};

}  // namespace DM_TARGET
}  // namespace dm::shapley
