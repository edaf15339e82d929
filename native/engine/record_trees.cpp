// Deep trees by records: all rows of a tile through one tree after the other, or few rows through
// all trees at once.
#include <algorithm>

#include "common/prefetch.hpp"
#include "engine/engine.hpp"
#include "engine/plan/records.hpp"

namespace dm::engine {
namespace {

constexpr int64_t kMostItems = 16384;      // pairs of a tree and a row under way together
constexpr int64_t kItemsToPrefetch = 128;  // whose records fit in the first-level cache

// All items' records at once, where they are few: each would wait for its own.
void prefetch_records(const RecordTrees& trees, const uint32_t* items, int64_t n,
                      const uint32_t* places) {
    for (int64_t i = 0; i < n; ++i) {
        const Record* record = trees.records + (places[items[i]] >> kRecordBits);
        common::prefetch(record, record + 1);
    }
}

// Each of the items goes on until it is at a leaf. `places` are by item; `items` and `next` are
// buffers with room for all of them and 64 more.
void to_leaves(const Kernels& kernels, const RecordTrees& trees, uint32_t row_mask, int64_t n,
               uint32_t* items, uint32_t* places, uint32_t* next) {
    while (n) {
        if (n <= kItemsToPrefetch) prefetch_records(trees, items, n, places);
        kernels.records(trees, items, n, row_mask, places, next);
        n = kernels.under_way(items, next, n, items);
    }
}

}  // namespace

RecordTrees Engine::record_trees(const Section& section, const Workspace& own, int64_t row,
                                 bool are_far) const {
    const int64_t stride =
        record_stride(plan.kernels->code_layout, static_cast<int64_t>(section.columns.size()));
    return {plan.records.records.data(),
            own.record_codes.as() + row * stride,
            stride,
            own.has_nan,
            are_far,
            plan.records.depth};
}

template <typename Sum>
void Engine::record_group(const Tile<Sum>& tile, const Section& section, const Group& group) const {
    const Kernels& kernels = *plan.kernels;
    const RecordPlan& own = plan.records;
    const int64_t room = kBlockRows + 64;
    tile.own.ends.reserve(3 * room * 4);
    uint32_t* places = tile.own.ends.template as<uint32_t>();
    uint32_t* items = places + room;
    uint32_t* next = items + room;
    DeepSums<Sum> sums = start_deep(tile);
    for (int64_t tree = group.first; tree < group.last; ++tree) {
        // All of a tree at once: rows would fetch its records one by one, and wait for each.
        common::prefetch(own.records.data() + own.first[tree],
                         own.records.data() + own.first[tree + 1]);
        prefetch_leaves(tile, tree);
        run_tops(tile, section, tree);
        for (int64_t block = 0; block < tile.n; block += kBlockRows) {
            const int64_t n = std::min(kBlockRows, tile.n - block);
            if (!put_top_exits(tile.own, tree, tile.room, block, n, places))
                std::fill_n(places, n, own.roots[tree]);
            const RecordTrees trees = record_trees(section, tile.own, block, false);
            const int64_t m = kernels.under_way(nullptr, places, n, items);
            to_leaves(kernels, trees, ~uint32_t{0}, m, items, places, next);
            add_leaves(tile, tree, places, block, n, sums);
        }
        end_tree(tile, tree, sums);
    }
    finish_deep(tile, sums);
}

// Codes of very few rows, one after the other.
template <typename Sum>
void Engine::code_record_rows(const Tile<Sum>& tile, const Section& section) const {
    const int64_t n_columns = static_cast<int64_t>(section.columns.size());
    const int64_t n_used = static_cast<int64_t>(plan.used_features.size());
    const CodeLayout layout = plan.kernels->code_layout;
    const int64_t stride = record_stride(layout, n_columns);
    tile.own.labels.reserve((n_used + n_columns) * 8);
    double* x = tile.own.labels.template as<double>();
    tile.own.record_codes.reserve(stride * tile.room);
    tile.own.has_nan = false;
    for (int64_t r = 0; r < tile.n; ++r) {
        const bool single = few_features(tile.source, tile.row + r, x);
        const uint16_t* codes = few_codes(section, x, single, x + n_used, tile.own);
        uint8_t* to = tile.own.record_codes.as() + r * stride;
        for (int64_t c = 0; c < n_columns; ++c) {
            const RecordColumn& column = section.record_columns[c];
            uint16_t code = codes[column.plane];
            if (column.other >= 0 && codes[column.other] != code) {
                code = kNanCode;
                tile.own.has_nan = true;
            }
            put_code(layout, code, c, stride / 2, to);
        }
    }
}

// Few rows of one section: many trees at once, because a row alone would wait for each record.
template <typename Sum>
void Engine::record_few(const Tile<Sum>& tile, const Section& section) const {
    const RecordPlan& own = plan.records;
    const int64_t n = tile.n;
    int shift = 0;
    while ((int64_t{1} << shift) < n) ++shift;
    const int64_t n_trees = std::min(section.last - section.first, kMostItems >> shift);
    const int64_t room = (n_trees << shift) + 64;
    tile.own.ends.reserve(3 * room * 4);
    uint32_t* places = tile.own.ends.template as<uint32_t>();
    uint32_t* items = places + room;
    uint32_t* next = items + room;
    const RecordTrees trees = record_trees(section, tile.own, 0, true);
    DeepSums<Sum> sums = start_deep(tile);
    for (int64_t first = section.first; first < section.last; first += n_trees) {
        const int64_t last = std::min(first + n_trees, section.last);
        int64_t m = 0;
        for (int64_t tree = first; tree < last; ++tree)
            for (int64_t r = 0; r < n; ++r) {
                const int64_t item = (tree - first) << shift | r;
                places[item] = own.roots[tree];
                items[m] = static_cast<uint32_t>(item);
                m += own.roots[tree] < kAtLeaf;
            }
        to_leaves(*plan.kernels, trees, (uint32_t{1} << shift) - 1, m, items, places, next);
        for (int64_t tree = first; tree < last; ++tree)
            prefetch_values(tile, tree, places + ((tree - first) << shift));
        for (int64_t tree = first; tree < last; ++tree) {
            add_leaves(tile, tree, places + ((tree - first) << shift), 0, n, sums);
            end_tree(tile, tree, sums);
        }
    }
    finish_deep(tile, sums);
}

template void Engine::record_group(const Tile<float>&, const Section&, const Group&) const;
template void Engine::record_group(const Tile<double>&, const Section&, const Group&) const;
template void Engine::code_record_rows(const Tile<float>&, const Section&) const;
template void Engine::code_record_rows(const Tile<double>&, const Section&) const;
template void Engine::record_few(const Tile<float>&, const Section&) const;
template void Engine::record_few(const Tile<double>&, const Section&) const;

}  // namespace dm::engine
