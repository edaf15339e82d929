// Deep trees by walks over codes, all rows of a tile through one tree after the other.
#include <algorithm>
#include <cstring>

#include "common/prefetch.hpp"
#include "engine/engine.hpp"

namespace dm::engine {
namespace {

template <typename Node>
void add_ends(const Walks<Node>& walks, const uint32_t* ends, int64_t n, const Node* nodes,
              const float* values, float* sum) {
    walks.add32(ends, n, nodes, values, sum);
}
template <typename Node>
void add_ends(const Walks<Node>& walks, const uint32_t* ends, int64_t n, const Node* nodes,
              const double* values, double* sum) {
    walks.add64(ends, n, nodes, values, sum);
}

}  // namespace

template <typename Sum>
void Engine::walk_group(const Tile<Sum>& tile, const Section& section, const Group& group) const {
    const WalkPlan& own = plan.walks;
    if (own.wide_nodes.empty())
        walk_trees(tile, section, group, own.nodes.data(), plan.kernels->walks);
    else
        walk_trees(tile, section, group, own.wide_nodes.data(), plan.kernels->wide_walks);
}

template <typename Sum, typename Node>
void Engine::walk_trees(const Tile<Sum>& tile, const Section& section, const Group& group,
                        const Node* all, const Walks<Node>& walks) const {
    const Machine::Output& output = plan.machine.output;
    const int64_t n = tile.n;
    const bool adds_ends =
        tile.margins && !tile.leaves && output.aggregate == Aggregate::sum && !plan.machine.linear;
    tile.own.ends.reserve(2 * tile.room * 4);
    uint32_t* ends = tile.own.ends.template as<uint32_t>();
    uint32_t* under_way = ends + tile.room;
    tile.own.labels.reserve((adds_ends ? kBlockRows : tile.room) * 4);
    uint32_t* labels = tile.own.labels.template as<uint32_t>();
    for (int64_t tree = group.first; tree < group.last; ++tree) {
        const Node* nodes = all + plan.walks.start[tree];
        // All of a tree at once: rows would fetch its lower nodes one by one, and wait for each.
        if (n >= kBlockRows) common::prefetch(nodes, all + plan.walks.start[tree + 1]);
        run_tops(tile, section, tree);
        if (!put_top_exits(tile.own, tree, tile.room, 0, n, ends))
            std::memset(ends, 0, static_cast<size_t>(n * 4));
        walks.deep(nodes, tile.own.row_codes.template as<uint16_t>(), section.row_stride(), n,
                   under_way, ends);
        if (adds_ends) {
            const Tree& about = plan.trees[tree];
            for (int64_t i = 0; i < output.width(); ++i)
                add_ends(walks, ends, n, nodes,
                         plan.values<Sum>() + about.values + i * about.n_labels,
                         tile.sums(output.narrow ? plan.machine.trees.feeds[tree] : i));
            continue;
        }
        for (int64_t r = 0; r < n; ++r) labels[r] = nodes[ends[r]].leaf;
        for (int64_t block = 0; block < n; block += kBlockRows)
            add_labels(tile, tree, labels + block, block, std::min(kBlockRows, n - block));
    }
}

template void Engine::walk_group(const Tile<float>&, const Section&, const Group&) const;
template void Engine::walk_group(const Tile<double>&, const Section&, const Group&) const;

}  // namespace dm::engine
