// Deep trees of twigs: all rows of a tile through a tree's top, and then through its twigs.
#include "common/prefetch.hpp"
#include "engine/engine.hpp"

namespace dm::engine {

template <typename Sum>
void Engine::twig_group(const Tile<Sum>& tile, const Section& section, const Group& group) const {
    const TwigPlan& own = plan.twigs;
    tile.own.ends.reserve((tile.room + 64) * 4);
    uint32_t* at = tile.own.ends.template as<uint32_t>();
    DeepSums<Sum> sums = start_deep(tile);
    for (int64_t tree = group.first; tree < group.last; ++tree) {
        // All of a tree at once: rows would fetch its nodes and values one by one, and wait.
        const TwigNode* nodes = own.nodes.data() + own.start[tree];
        common::prefetch(nodes, own.nodes.data() + own.start[tree + 1]);
        prefetch_leaves(tile, tree);
        run_tops(tile, section, tree);
        put_top_exits(tile.own, tree, tile.room, 0, tile.n, at);
        plan.kernels->twigs(nodes, tile.own.row_codes.template as<uint16_t>(), section.row_stride(),
                            tile.n, at);
        add_leaves(tile, tree, at, 0, tile.n, sums);
        end_tree(tile, tree, sums);
    }
    finish_deep(tile, sums);
}

template void Engine::twig_group(const Tile<float>&, const Section&, const Group&) const;
template void Engine::twig_group(const Tile<double>&, const Section&, const Group&) const;

}  // namespace dm::engine
