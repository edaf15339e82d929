// What the ways through deep trees share: tops by selects, and values of the leaves where rows end.
#include <algorithm>

#include "common/prefetch.hpp"
#include "engine/engine.hpp"
#include "engine/leaf_values.hpp"

namespace dm::engine {
namespace {

constexpr int64_t kTreesToAdd = 8;  // at once, where values are few

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

}  // namespace

// Labels of the tops that are done together, where this tree is the first of them.
template <typename Sum>
void Engine::run_tops(const Tile<Sum>& tile, const Section& section, int64_t tree) const {
    if (plan.tops_of[tree] < 0) return;
    const Tops& tops = plan.tops[plan.tops_of[tree]];
    if (tops.first != tree) return;
    const Kernels& kernels = *plan.kernels;
    const SelectGroup view = section.view(tops);
    uint8_t* slots = tile.own.prepare_slots(tops.n_slots);
    tile.own.top_labels.reserve((tops.last - tops.first) * tile.room);
    for (int64_t block = 0; block < tile.n; block += kBlockRows) {
        const int64_t m = std::min(kBlockRows, tile.n - block);
        kernels.tests(view, tile.own.codes.as(), tile.room, block, m, slots);
        for (int64_t i = 0; i < tops.last - tops.first; ++i)
            kernels.select(view, tops.trees[i], m, slots,
                           tile.own.top_labels.as() + i * tile.room + block);
    }
}

// Where n rows from `row` on go on after a tree's top; false where it has none.
bool Engine::put_top_exits(const Workspace& own, int64_t tree, int64_t room, int64_t row, int64_t n,
                           uint32_t* ends) const {
    if (plan.tops_of[tree] < 0) return false;
    const Tops& tops = plan.tops[plan.tops_of[tree]];
    const uint8_t* labels = own.top_labels.as() + (tree - tops.first) * room + row;
    const uint32_t* starts = tops.start.data() + (tree - tops.first);
    plan.kernels->top_exits(labels, n, tops.nodes.data() + starts[0], starts[1] - starts[0], ends);
    return true;
}

// A leaf's values stand together, so rows' sums do too. Where leaves have few values, the labels of
// several trees wait, and each row's sum is read and written once for all of them.
template <typename Sum>
DeepSums<Sum> Engine::start_deep(const Tile<Sum>& tile) const {
    DeepSums<Sum> sums;
    const int64_t n_outputs = plan.machine.output.n;
    if (!tile.margins) return sums;
    if (!plan.few_values.value_of.empty()) {
        tile.own.labels.reserve(kTreesToAdd * tile.room);
        sums.labels = tile.own.labels.as();
    }
    if (plan.machine.output.width() == 1) return sums;
    tile.own.row_sums.reserve(n_outputs * tile.room * static_cast<int64_t>(sizeof(Sum)));
    sums.rows = tile.own.row_sums.template as<Sum>();
    turn_sums(tile, n_outputs, sums.rows, true);
    return sums;
}

// All that rows might read at a tree's leaves, where they are many: each would wait for its own.
template <typename Sum>
void Engine::prefetch_leaves(const Tile<Sum>& tile, int64_t tree) const {
    if (!tile.margins) return;
    const bool is_few = !plan.few_values.value_of.empty();
    const int64_t bytes =
        is_few ? 1 : plan.machine.output.width() * static_cast<int64_t>(sizeof(Sum));
    const char* from = is_few ? reinterpret_cast<const char*>(plan.few_values.value_of.data())
                              : static_cast<const char*>(plan.machine.output.V);
    const int64_t first = plan.machine.trees.first_leaf(tree) * bytes;
    const int64_t last = plan.machine.trees.first_leaf(tree + 1) * bytes;
    if ((last - first) / 64 <= tile.n) common::prefetch(from + first, from + last);
}

// What the tile's rows, which are few, will read at a tree's leaves.
template <typename Sum>
void Engine::prefetch_values(const Tile<Sum>& tile, int64_t tree, const uint32_t* places) const {
    if (!tile.margins) return;
    const Machine& machine = plan.machine;
    const int64_t bytes = machine.output.width() * static_cast<int64_t>(sizeof(Sum));
    for (int64_t r = 0; r < tile.n; ++r) {
        const int64_t leaf = machine.trees.first_leaf(tree) + (places[r] & (kAtLeaf - 1));
        const char* values = static_cast<const char*>(machine.output.V) + leaf * bytes;
        if (plan.few_values.value_of.empty())
            common::prefetch(values, values + bytes);
        else
            __builtin_prefetch(plan.few_values.value_of.data() + leaf);
    }
}

// Exit leaves and values of one tree, for n rows of the tile from `row` on.
template <typename Sum>
void Engine::add_leaves(const Tile<Sum>& tile, int64_t tree, const uint32_t* places, int64_t row,
                        int64_t n, DeepSums<Sum>& sums) const {
    const Machine& machine = plan.machine;
    const int64_t width = machine.output.width();
    auto leaf_at = [&](int64_t r) { return static_cast<int64_t>(places[r] & (kAtLeaf - 1)); };
    if (tile.leaves) {
        int32_t* out = tile.leaves + (tile.row + row) * machine.trees.n + tree;
        for (int64_t r = 0; r < n; ++r) out[r * machine.trees.n] = static_cast<int32_t>(leaf_at(r));
    }
    if (!tile.margins) return;
    const int64_t first = machine.trees.first_leaf(tree);
    if (sums.labels) {
        if (sums.first == sums.last) sums.first = sums.last = tree;
        uint8_t* labels = sums.labels + (tree - sums.first) * tile.room + row;
        const uint8_t* value_of = plan.few_values.value_of.data() + first;
        for (int64_t r = 0; r < n; ++r) labels[r] = value_of[leaf_at(r)];
        return;
    }
    Sum* own =
        sums.rows ? sums.rows : tile.sums(machine.output.narrow ? machine.trees.feeds[tree] : 0);
    own += row * width;
    const Sum* V = static_cast<const Sum*>(machine.output.V) + first * width;
    if (machine.output.aggregate == Aggregate::sum && !machine.linear)
        return typed<Sum>(*plan.kernels).add_places(places, n, V, width, own);
    const double* x = tile.own.z.template as<double>() + row;
    for (int64_t r = 0; r < n; ++r)
        for (int64_t output = 0; output < width; ++output)
            include(machine.output.aggregate,
                    machine.linear
                        ? static_cast<Sum>(linear_value(machine, first + leaf_at(r), output, x + r,
                                                        tile.room, feature_at_))
                        : V[leaf_at(r) * width + output],
                    own[r * width + output]);
}

// After all rows of the tile have gone through the tree.
template <typename Sum>
void Engine::end_tree(const Tile<Sum>& tile, int64_t tree, DeepSums<Sum>& sums) const {
    if (!sums.labels) return;
    const Machine& machine = plan.machine;
    const int32_t* feeds = machine.trees.feeds;
    sums.last = tree + 1;
    const bool is_full = sums.last - sums.first == kTreesToAdd;
    if (!is_full && sums.last < machine.trees.n && feeds[sums.last] == feeds[tree]) return;
    add_waiting(tile, sums);
}

template <typename Sum>
void Engine::add_waiting(const Tile<Sum>& tile, DeepSums<Sum>& sums) const {
    if (sums.first == sums.last) return;
    const Machine& machine = plan.machine;
    Sum* own = sums.rows ? sums.rows
                         : tile.sums(machine.output.narrow ? machine.trees.feeds[sums.first] : 0);
    typed<Sum>(*plan.kernels)
        .add_few_values(sums.labels, tile.room, sums.last - sums.first, tile.n,
                        reinterpret_cast<const Sum*>(plan.few_values.table.data()),
                        machine.output.width(), own);
    sums.first = sums.last;
}

template <typename Sum>
void Engine::finish_deep(const Tile<Sum>& tile, DeepSums<Sum>& sums) const {
    if (sums.labels) add_waiting(tile, sums);
    if (sums.rows) turn_sums(tile, plan.machine.output.n, sums.rows, false);
}

#define DM_FOR(Sum)                                                                                \
    template void Engine::run_tops(const Tile<Sum>&, const Section&, int64_t) const;               \
    template DeepSums<Sum> Engine::start_deep(const Tile<Sum>&) const;                             \
    template void Engine::prefetch_leaves(const Tile<Sum>&, int64_t) const;                        \
    template void Engine::prefetch_values(const Tile<Sum>&, int64_t, const uint32_t*) const;       \
    template void Engine::add_leaves(const Tile<Sum>&, int64_t, const uint32_t*, int64_t, int64_t, \
                                     DeepSums<Sum>&) const;                                        \
    template void Engine::end_tree(const Tile<Sum>&, int64_t, DeepSums<Sum>&) const;               \
    template void Engine::finish_deep(const Tile<Sum>&, DeepSums<Sum>&) const;
DM_FOR(float)
DM_FOR(double)
#undef DM_FOR

}  // namespace dm::engine
