// Deep trees by records: all rows of a tile through one tree after the other, or few rows through
// all trees at once.
#include <algorithm>
#include <cstring>

#include "common/prefetch.hpp"
#include "engine/engine.hpp"
#include "engine/leaf_values.hpp"
#include "engine/plan/records.hpp"

namespace dm::engine {
namespace {

constexpr int64_t kMostItems = 16384;      // pairs of a tree and a row under way together
constexpr int64_t kItemsToPrefetch = 128;  // whose records fit in the first-level cache

// From planes by output to rows of all outputs, or back.
template <typename Sum>
void turn_sums(const Tile<Sum>& tile, int64_t n_outputs, Sum* rows, bool to_rows) {
    for (int64_t output = 0; output < n_outputs; ++output) {
        Sum* plane = tile.sums(output);
        for (int64_t r = 0; r < tile.n; ++r)
            to_rows ? rows[r * n_outputs + output] = plane[r]
                    : plane[r] = rows[r * n_outputs + output];
    }
}

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

void prefetch_values(const Machine& machine, int64_t first, int64_t last, int64_t n, int shift,
                     const uint32_t* places) {
    const int64_t bytes = machine.output.width() * (machine.output.single ? 4 : 8);
    const char* V = static_cast<const char*>(machine.output.V);
    for (int64_t tree = first; tree < last; ++tree)
        for (int64_t r = 0; r < n; ++r) {
            const int64_t leaf = places[(tree - first) << shift | r] & (kAtLeaf - 1);
            const char* values = V + (machine.trees.first_leaf(tree) + leaf) * bytes;
            common::prefetch(values, values + bytes);
        }
}

}  // namespace

RecordTrees Engine::record_trees(const Section& section, const Workspace& own) const {
    return {plan.records.records.data(),
            plan.records.exits.data(),
            own.record_codes.as(),
            record_stride(plan.kernels->code_layout, static_cast<int64_t>(section.columns.size())),
            own.has_nan,
            plan.records.depth};
}

// A leaf's values stand together, so rows' sums do too: a copy of the tile's, or null where a leaf
// has one value.
template <typename Sum>
Sum* Engine::sums_by_row(const Tile<Sum>& tile) const {
    const int64_t n_outputs = plan.machine.output.n;
    if (!tile.margins || plan.machine.output.width() == 1) return nullptr;
    tile.own.row_sums.reserve(n_outputs * tile.room * static_cast<int64_t>(sizeof(Sum)));
    Sum* rows = tile.own.row_sums.template as<Sum>();
    turn_sums(tile, n_outputs, rows, true);
    return rows;
}

// What sums_by_row gave, to the tile's sums.
template <typename Sum>
void Engine::put_sums(const Tile<Sum>& tile, Sum* row_sums) const {
    turn_sums(tile, plan.machine.output.n, row_sums, false);
}

template <typename Sum>
void Engine::record_group(const Tile<Sum>& tile, const Section& section, const Group& group) const {
    const Kernels& kernels = *plan.kernels;
    const RecordPlan& own = plan.records;
    const int64_t n = tile.n;
    const int64_t room = tile.room + 64;
    tile.own.ends.reserve(3 * room * 4);
    uint32_t* places = tile.own.ends.template as<uint32_t>();
    uint32_t* items = places + room;
    uint32_t* next = items + room;
    const RecordTrees trees = record_trees(section, tile.own);
    Sum* row_sums = sums_by_row(tile);
    for (int64_t tree = group.first; tree < group.last; ++tree) {
        // All of a tree at once: rows would fetch its records one by one, and wait for each.
        common::prefetch(own.records.data() + own.first[tree],
                         own.records.data() + own.first[tree + 1]);
        if (plan.tops[tree].tests.empty())
            std::fill_n(places, n, own.roots[tree]);
        else
            run_top(tile, section, tree, places);
        const int64_t m = kernels.under_way(nullptr, places, n, items);
        to_leaves(kernels, trees, ~uint32_t{0}, m, items, places, next);
        add_record_leaves(tile, tree, places, row_sums);
    }
    if (row_sums) put_sums(tile, row_sums);
}

// Exit leaves and values of one tree, for all rows of the tile.
template <typename Sum>
void Engine::add_record_leaves(const Tile<Sum>& tile, int64_t tree, const uint32_t* places,
                               Sum* row_sums) const {
    const Machine& machine = plan.machine;
    const int64_t n = tile.n, width = machine.output.width();
    auto leaf_at = [&](int64_t r) { return static_cast<int64_t>(places[r] & (kAtLeaf - 1)); };
    if (tile.leaves) {
        int32_t* out = tile.leaves + tile.row * machine.trees.n + tree;
        for (int64_t r = 0; r < n; ++r) out[r * machine.trees.n] = static_cast<int32_t>(leaf_at(r));
    }
    if (!tile.margins) return;
    Sum* sums =
        row_sums ? row_sums : tile.sums(machine.output.narrow ? machine.trees.feeds[tree] : 0);
    const int64_t first = machine.trees.first_leaf(tree);
    const Sum* V = static_cast<const Sum*>(machine.output.V) + first * width;
    if (machine.output.aggregate == Aggregate::sum && !machine.linear)
        return typed<Sum>(*plan.kernels).add_places(places, n, V, width, sums);
    const double* x = tile.own.z.template as<double>();
    for (int64_t r = 0; r < n; ++r)
        for (int64_t output = 0; output < width; ++output)
            include(machine.output.aggregate,
                    machine.linear
                        ? static_cast<Sum>(linear_value(machine, first + leaf_at(r), output, x + r,
                                                        tile.room, feature_at_))
                        : V[leaf_at(r) * width + output],
                    sums[r * width + output]);
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
    const RecordTrees trees = record_trees(section, tile.own);
    Sum* row_sums = sums_by_row(tile);
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
        if (tile.margins) prefetch_values(plan.machine, first, last, n, shift, places);
        for (int64_t tree = first; tree < last; ++tree)
            add_record_leaves(tile, tree, places + ((tree - first) << shift), row_sums);
    }
    if (row_sums) put_sums(tile, row_sums);
}

template float* Engine::sums_by_row(const Tile<float>&) const;
template double* Engine::sums_by_row(const Tile<double>&) const;
template void Engine::put_sums(const Tile<float>&, float*) const;
template void Engine::put_sums(const Tile<double>&, double*) const;
template void Engine::add_record_leaves(const Tile<float>&, int64_t, const uint32_t*, float*) const;
template void Engine::add_record_leaves(const Tile<double>&, int64_t, const uint32_t*,
                                        double*) const;
template void Engine::record_group(const Tile<float>&, const Section&, const Group&) const;
template void Engine::record_group(const Tile<double>&, const Section&, const Group&) const;
template void Engine::code_record_rows(const Tile<float>&, const Section&) const;
template void Engine::code_record_rows(const Tile<double>&, const Section&) const;
template void Engine::record_few(const Tile<float>&, const Section&) const;
template void Engine::record_few(const Tile<double>&, const Section&) const;

}  // namespace dm::engine
