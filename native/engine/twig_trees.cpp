// Deep trees of twigs: all rows of a tile through a tree's top, and then through its twigs.
#include <cstring>

#include "common/prefetch.hpp"
#include "engine/engine.hpp"
#include "engine/leaf_values.hpp"

namespace dm::engine {

template <typename Sum>
void Engine::twig_group(const Tile<Sum>& tile, const Section& section, const Group& group) const {
    const Machine& machine = plan.machine;
    const TwigPlan& own = plan.twigs;
    const int64_t width = machine.output.width();
    tile.own.ends.reserve((tile.room + 64) * 4);
    uint32_t* at = tile.own.ends.template as<uint32_t>();
    const Sum* V = static_cast<const Sum*>(machine.output.V);
    const bool has_few_values = tile.margins && !tile.leaves && !own.value_of.empty();
    tile.own.labels.reserve(256 * width * static_cast<int64_t>(sizeof(Sum)));
    Sum* few = tile.own.labels.template as<Sum>();
    for (size_t i = 0; has_few_values && i < own.leaf_with.size(); ++i)
        std::memcpy(few + static_cast<int64_t>(i) * width, V + own.leaf_with[i] * width,
                    static_cast<size_t>(width) * sizeof(Sum));
    Sum* row_sums = sums_by_row(tile);
    for (int64_t tree = group.first; tree < group.last; ++tree) {
        const int64_t first = machine.trees.first_leaf(tree);
        const int64_t last = machine.trees.first_leaf(tree + 1);
        // All of a tree at once: rows would fetch its nodes and values one by one, and wait.
        const TwigNode* nodes = own.nodes.data() + own.start[tree];
        common::prefetch(nodes, own.nodes.data() + own.start[tree + 1]);
        if (has_few_values)
            common::prefetch(own.value_of.data() + first, own.value_of.data() + last);
        else if (tile.margins && tile.n >= kBlockRows)
            common::prefetch(V + first * width, V + last * width);
        run_top(tile, section, tree, at);
        plan.kernels->twigs(nodes, tile.own.row_codes.template as<uint16_t>(), section.row_stride(),
                            tile.n, at);
        if (!has_few_values) {
            add_record_leaves(tile, tree, at, row_sums);
            continue;
        }
        const uint8_t* value_of = own.value_of.data() + first;
        for (int64_t r = 0; r < tile.n; ++r) at[r] = value_of[at[r]];
        Sum* sums =
            row_sums ? row_sums : tile.sums(machine.output.narrow ? machine.trees.feeds[tree] : 0);
        typed<Sum>(*plan.kernels).add_places(at, tile.n, few, width, sums);
    }
    if (row_sums) put_sums(tile, row_sums);
}

template void Engine::twig_group(const Tile<float>&, const Section&, const Group&) const;
template void Engine::twig_group(const Tile<double>&, const Section&, const Group&) const;

}  // namespace dm::engine
