#include "engine/plan/walks.hpp"

#include "engine/plan/tops.hpp"

namespace dm::engine {
namespace {

constexpr int64_t kTopTests = 63;       // of a deep tree, done by selects
constexpr int64_t kLeavesForTop = 512;  // fewer than that, and walking from the root is as fast

}  // namespace

bool has_top(const Plan& plan, int64_t tree) {
    // Where selects are expensive, deep trees are walked from their roots.
    return plan.trees[tree].kind == Kind::deep && plan.wanted.values &&
           plan.kernels->select_cost < 2 && plan.machine.trees.tests_of(tree) >= kLeavesForTop;
}

void add_nodes(const std::vector<int32_t>& size, const std::vector<Coded>& coded, Plan& plan) {
    const Machine::Trees& trees = plan.machine.trees;
    WalkPlan& walks = plan.walks;
    bool is_wide = false;
    for (int64_t tree = 0; tree < trees.n; ++tree) is_wide |= trees.tests_of(tree) >= 65535;
    if (is_wide)
        walks.wide_nodes.reserve(2 * trees.n_tests + trees.n);
    else
        walks.nodes.reserve(2 * trees.n_tests + trees.n);
    std::vector<int32_t> queue;
    std::vector<uint32_t> place_of;
    int64_t n_nodes = 0;
    TopsWriter tops(coded, plan);
    size_t section = 0;
    for (int64_t tree = 0; tree < trees.n; ++tree) {
        const int64_t begin = trees.test_start[tree], end = trees.test_start[tree + 1];
        const int64_t first_leaf = trees.first_leaf(tree);
        walks.start.push_back(n_nodes);
        while (tree == plan.sections[section].last) {
            tops.end();
            ++section;
        }
        // Children side by side. Large subtrees come late, so that what is near the root is near in
        // memory: a queue, as in a search by breadth.
        queue.clear();
        queue.push_back(begin < end ? static_cast<int32_t>(begin)
                                    : ~static_cast<int32_t>(first_leaf));
        for (size_t i = 0; i < queue.size(); ++i) {
            const int32_t number = queue[i];
            WideNode node{0, 65535, 0, 0};
            if (number < 0) {
                node.leaf = static_cast<uint32_t>(~number - first_leaf);
            } else {
                // No more nodes wait than the tree has leaves, so a step is no larger.
                node = {coded[number].plane, coded[number].code,
                        static_cast<uint32_t>(queue.size() - i), 0};
                queue.push_back(trees.children[2 * number]);
                queue.push_back(trees.children[2 * number + 1]);
            }
            if (is_wide)
                walks.wide_nodes.push_back(node);
            else
                walks.nodes.push_back({node.plane, node.code, static_cast<uint16_t>(node.step),
                                       static_cast<uint16_t>(node.leaf)});
        }
        n_nodes += static_cast<int64_t>(queue.size());
        if (!has_top(plan, tree)) continue;
        auto place = [&](int32_t node) -> uint32_t& {  // tests, then leaves
            return place_of[node >= 0 ? node - begin : end - begin + ~node - first_leaf];
        };
        place_of.assign(2 * (end - begin) + 1, 0);
        for (size_t i = 0; i < queue.size(); ++i) place(queue[i]) = static_cast<uint32_t>(i);
        tops.add(tree, find_top(trees, tree, size, kTopTests), place);
    }
    walks.start.push_back(n_nodes);
}

std::vector<RawNode> make_raw_nodes(const Machine& m) {
    std::vector<RawNode> nodes;
    for (int64_t tree = 0; tree < m.trees.n; ++tree) {
        const int64_t begin = m.trees.test_start[tree], first_leaf = m.trees.first_leaf(tree);
        auto child = [&](int32_t number) {
            return number >= 0 ? number - static_cast<int32_t>(begin)
                               : ~(~number - static_cast<int32_t>(first_leaf));
        };
        for (int64_t j = begin; j < m.trees.test_start[tree + 1]; ++j)
            nodes.push_back(
                {m.tests.t[j],
                 2 * static_cast<uint32_t>(m.tests.selection[j]) + (m.tests.missing[j] < 0),
                 child(m.trees.children[2 * j]), child(m.trees.children[2 * j + 1])});
    }
    return nodes;
}

}  // namespace dm::engine
