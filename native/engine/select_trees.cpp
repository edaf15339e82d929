// Trees by selects between bitmaps, over the blocks of a tile.
#include <algorithm>

#include "engine/engine.hpp"

namespace dm::engine {

template <typename Sum>
void Engine::select_group(const Tile<Sum>& tile, const Section& section, const Group& group) const {
    const Kernels& kernels = *plan.kernels;
    const SelectGroup view = section.view(group);
    uint8_t* slots = tile.own.prepare_slots(group.n_slots);
    tile.own.labels.reserve(kBlockRows * 4);
    uint8_t* labels = tile.own.labels.as();
    const bool only_sums = tile.margins && !tile.leaves;
    for (int64_t block = 0; block < tile.n; block += kBlockRows) {
        const int64_t m = std::min(kBlockRows, tile.n - block);
        kernels.tests(view, tile.own.codes.as(), tile.room, block, m, slots);
        for (int64_t tree = group.first; tree < group.last;) {
            const SelectTree* own = &group.trees[tree - group.first];
            if (only_sums && can_add_trees(tree, group.last)) {
                for (int64_t i = 0; i < kAddTrees; ++i)
                    kernels.select(view, own[i], m, slots, labels + i * kBlockRows);
                add_trees(tile, tree, block, m);
                tree += kAddTrees;
            } else {
                kernels.select(view, *own, m, slots, labels);
                add_labels(tile, tree, labels, block, m);
                ++tree;
            }
        }
    }
}

template void Engine::select_group(const Tile<float>&, const Section&, const Group&) const;
template void Engine::select_group(const Tile<double>&, const Section&, const Group&) const;

}  // namespace dm::engine
