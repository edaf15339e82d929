// From the labels of a block of rows to their exit leaves, and to the sums of the leaves' values.
#include "engine/engine.hpp"
#include "engine/leaf_values.hpp"

namespace dm::engine {
namespace {

uint32_t label_at(const void* labels, int bytes, int64_t i) {
    if (bytes == 1) return static_cast<const uint8_t*>(labels)[i];
    if (bytes == 2) return static_cast<const uint16_t*>(labels)[i];
    return static_cast<const uint32_t*>(labels)[i];
}

uint32_t leaf_of(uint32_t label, bool gray) {
    if (!gray) return label;
    for (int shift = 1; shift < 32; shift *= 2) label ^= label >> shift;
    return label;
}

}  // namespace

// Whether the trees from this one on can be added in one go: their labels are bytes, their values
// constants that feed the same outputs.
bool Engine::can_add_trees(int64_t tree, int64_t last) const {
    const Machine& machine = plan.machine;
    if (tree + kAddTrees > last || machine.output.aggregate != Aggregate::sum || machine.linear)
        return false;
    for (int64_t i = tree; i < tree + kAddTrees; ++i)
        if (plan.trees[i].label_bytes != 1 || machine.trees.feeds[i] != machine.trees.feeds[tree])
            return false;
    return true;
}

// The sums of kAddTrees trees over the m rows of one block, from their labels in the workspace.
template <typename Sum>
void Engine::add_trees(const Tile<Sum>& tile, int64_t tree, int64_t block, int64_t m) const {
    const Machine& machine = plan.machine;
    for (int64_t output = 0; output < machine.output.width(); ++output) {
        const Sum* values[kAddTrees];
        int64_t n_labels[kAddTrees];
        for (int64_t i = 0; i < kAddTrees; ++i) {
            const Tree& about = plan.trees[tree + i];
            n_labels[i] = about.n_labels;
            values[i] = plan.values<Sum>() + about.values + output * n_labels[i];
        }
        Sum* sum = tile.sums(machine.output.narrow ? machine.trees.feeds[tree] : output) + block;
        typed<Sum>(*plan.kernels).add_trees(tile.own.labels.as(), m, values, n_labels, sum);
    }
}

// Leaves and sums of one tree over the m rows of one block.
template <typename Sum>
void Engine::add_labels(const Tile<Sum>& tile, int64_t tree, const void* labels, int64_t block,
                        int64_t m) const {
    const Machine& machine = plan.machine;
    const Tree& about = plan.trees[tree];
    auto leaf_at = [&](int64_t r) {
        return leaf_of(label_at(labels, about.label_bytes, r), about.gray);
    };
    if (tile.leaves) {
        int32_t* out = tile.leaves + (tile.row + block) * machine.trees.n + tree;
        for (int64_t r = 0; r < m; ++r) out[r * machine.trees.n] = static_cast<int32_t>(leaf_at(r));
    }
    if (!tile.margins) return;
    for (int64_t output = 0; output < machine.output.width(); ++output) {
        Sum* sum = tile.sums(machine.output.narrow ? machine.trees.feeds[tree] : output) + block;
        if (machine.linear) {
            const double* x = tile.own.z.template as<double>() + block;
            for (int64_t r = 0; r < m; ++r)
                include(machine.output.aggregate,
                        static_cast<Sum>(linear_value(machine,
                                                      machine.trees.first_leaf(tree) + leaf_at(r),
                                                      output, x + r, tile.room, feature_at_)),
                        sum[r]);
            continue;
        }
        typed<Sum>(*plan.kernels)
            .add(labels, about.label_bytes, m,
                 plan.values<Sum>() + about.values + output * about.n_labels, about.n_labels,
                 machine.output.aggregate, sum);
    }
}

template void Engine::add_trees(const Tile<float>&, int64_t, int64_t, int64_t) const;
template void Engine::add_trees(const Tile<double>&, int64_t, int64_t, int64_t) const;
template void Engine::add_labels(const Tile<float>&, int64_t, const void*, int64_t, int64_t) const;
template void Engine::add_labels(const Tile<double>&, int64_t, const void*, int64_t, int64_t) const;

}  // namespace dm::engine
