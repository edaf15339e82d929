// From the labels of a block of rows to their exit leaves, and to the sums of the leaves' values.
#include "engine/engine.hpp"
#include "engine/leaf_values.hpp"
#include "engine/workspace.hpp"

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

// Whether the trees from i on can be added in one go: their labels are bytes, their values
// constants that feed the same outputs.
bool Engine::can_add_trees(int64_t i, int64_t last) const {
    if (i + kAddTrees > last || plan.aggregate != Aggregate::sum || !plan.linear_start.empty())
        return false;
    for (int64_t t = i; t < i + kAddTrees; ++t)
        if (plan.trees[t].label_bytes != 1 || plan.feeds[t] != plan.feeds[i]) return false;
    return true;
}

template <typename Sum>
void Engine::add_trees(int64_t i, int64_t block, int64_t m, int64_t rows, Workspace& own) const {
    const int64_t width = plan.narrow ? 1 : plan.n_outputs;
    const Sum* all;
    if constexpr (sizeof(Sum) == 4)
        all = plan.values32.data();
    else
        all = plan.values64.data();
    for (int64_t output = 0; output < width; ++output) {
        const Sum* values[kAddTrees];
        int64_t n_labels[kAddTrees];
        for (int64_t t = 0; t < kAddTrees; ++t) {
            const Tree& tree = plan.trees[i + t];
            n_labels[t] = tree.n_labels;
            values[t] = all + tree.values + output * n_labels[t];
        }
        Sum* sum = own.sums.as<Sum>() + (plan.narrow ? plan.feeds[i] : output) * rows + block;
        if constexpr (sizeof(Sum) == 4)
            plan.kernels->add_trees32(own.labels.as(), m, values, n_labels, sum);
        else
            plan.kernels->add_trees64(own.labels.as(), m, values, n_labels, sum);
    }
}

// Leaves and sums of one tree over the m rows of one block, from its labels.
template <typename Sum>
void Engine::finish_block(int64_t i, const void* labels, int64_t row, int64_t block, int64_t m,
                          int64_t rows, Workspace& own, bool wants_margins, int32_t* leaves) const {
    const Tree& tree = plan.trees[i];
    if (leaves)
        for (int64_t r = 0; r < m; ++r)
            leaves[(row + block + r) * plan.n_trees + i] =
                static_cast<int32_t>(leaf_of(label_at(labels, tree.label_bytes, r), tree.gray));
    if (!wants_margins) return;
    const int64_t width = plan.narrow ? 1 : plan.n_outputs;
    for (int64_t output = 0; output < width; ++output) {
        Sum* sum = own.sums.as<Sum>() + (plan.narrow ? plan.feeds[i] : output) * rows + block;
        if (!plan.linear_start.empty()) {
            for (int64_t r = 0; r < m; ++r) {
                const int64_t leaf =
                    plan.first_leaf(i) + leaf_of(label_at(labels, tree.label_bytes, r), tree.gray);
                const double* x = own.z.as<double>() + block + r;
                const double value =
                    plan.linear_single
                        ? linear_value<float>(plan, leaf, width, output, x, rows, feature_at_)
                        : linear_value<double>(plan, leaf, width, output, x, rows, feature_at_);
                include(plan.aggregate, static_cast<Sum>(value), sum[r]);
            }
            continue;
        }
        const int64_t at = tree.values + output * tree.n_labels;
        if constexpr (sizeof(Sum) == 4)
            plan.kernels->add32(labels, tree.label_bytes, m, plan.values32.data() + at,
                                tree.n_labels, plan.aggregate, sum);
        else
            plan.kernels->add64(labels, tree.label_bytes, m, plan.values64.data() + at,
                                tree.n_labels, plan.aggregate, sum);
    }
}

template void Engine::add_trees<float>(int64_t, int64_t, int64_t, int64_t, Workspace&) const;
template void Engine::add_trees<double>(int64_t, int64_t, int64_t, int64_t, Workspace&) const;
template void Engine::finish_block<float>(int64_t, const void*, int64_t, int64_t, int64_t, int64_t,
                                          Workspace&, bool, int32_t*) const;
template void Engine::finish_block<double>(int64_t, const void*, int64_t, int64_t, int64_t, int64_t,
                                           Workspace&, bool, int32_t*) const;

}  // namespace dm::engine
