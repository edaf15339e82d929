#include "engine/plan/walks.hpp"

#include <queue>
#include <utility>

#include "engine/plan/selects.hpp"

namespace dm::engine {
namespace {

constexpr int64_t kTopTests = 63;       // of a deep tree, done by selects
constexpr int64_t kLeavesForTop = 512;  // fewer than that, and walking from the root is as fast

// The tests of one tree with the most leaves below them, as a tree of its own.
struct TopTree {
    std::vector<int32_t> tests;     // of the machine, in preorder
    std::vector<int32_t> children;  // (n_tests, 2), a test or ~leaf
    std::vector<int32_t> size;      // leaves of the whole tree below each test
    std::vector<int32_t> exits;     // what its leaves are in the machine: a test, or ~leaf
};

TopTree find_top(const Machine::Trees& trees, int64_t tree, const std::vector<int32_t>& size) {
    const int64_t begin = trees.test_start[tree];
    std::priority_queue<std::pair<int32_t, int32_t>> largest;
    std::vector<char> is_top(trees.test_start[tree + 1] - begin, 0);
    largest.push({size[begin], static_cast<int32_t>(begin)});
    for (int64_t n = 0; n < kTopTests && !largest.empty(); ++n) {
        const int32_t j = largest.top().second;
        largest.pop();
        is_top[j - begin] = 1;
        for (int side = 0; side < 2; ++side) {
            const int32_t child = trees.children[2 * j + side];
            if (child >= 0) largest.push({size[child], child});
        }
    }
    TopTree top;
    struct Visit {
        int32_t node, slot;
    };
    std::vector<Visit> stack{{static_cast<int32_t>(begin), -1}};
    while (!stack.empty()) {
        const Visit visit = stack.back();
        stack.pop_back();
        int32_t number;
        if (visit.node >= 0 && is_top[visit.node - begin]) {
            number = static_cast<int32_t>(top.tests.size());
            top.tests.push_back(visit.node);
            top.size.push_back(size[visit.node]);
            top.children.resize(top.children.size() + 2);
            stack.push_back({trees.children[2 * visit.node + 1], 2 * number + 1});
            stack.push_back({trees.children[2 * visit.node], 2 * number});
        } else {
            number = ~static_cast<int32_t>(top.exits.size());
            top.exits.push_back(visit.node);
        }
        if (visit.slot >= 0) top.children[visit.slot] = number;
    }
    return top;
}

// The selects of a top. `place` says where a test (>= 0) or leaf (~leaf) of the machine stands
// among the tree's nodes to walk.
template <typename Place>
Top make_top(const TopTree& top, const std::vector<Coded>& coded, const Place& place) {
    std::vector<uint32_t> keys;
    for (const int32_t j : top.tests) keys.push_back(key_of(coded[j]));
    const DistinctTests distinct = DistinctTests::of(std::move(keys));
    std::vector<uint16_t> slot_of;
    for (const int32_t j : top.tests) slot_of.push_back(distinct.slot(coded[j]));
    Machine::Trees own;
    const int64_t start[2] = {0, static_cast<int64_t>(top.tests.size())};
    own.children = top.children.data();
    own.test_start = start;
    Selects found = make_selects(own, 0, true, top.size, slot_of, distinct.end());
    Top out;
    out.tests = distinct.tests();
    out.selects = std::move(found.selects);
    out.bits = std::move(found.bits);
    out.n_slots = found.n_slots;
    out.trees[0] = {0, 0, static_cast<uint32_t>(out.bits.size())};
    out.trees[1].first = static_cast<uint32_t>(out.selects.size());
    out.nodes.assign(size_t{1} << out.bits.size(), 0);
    for (size_t leaf = 0; leaf < top.exits.size(); ++leaf)
        out.nodes[label_of(static_cast<uint32_t>(leaf), true)] = place(top.exits[leaf]);
    return out;
}

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
    for (int64_t tree = 0; tree < trees.n; ++tree) {
        const int64_t begin = trees.test_start[tree], end = trees.test_start[tree + 1];
        const int64_t first_leaf = trees.first_leaf(tree);
        walks.start.push_back(n_nodes);
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
        walks.tops.emplace_back();
        if (!has_top(plan, tree)) continue;
        auto place = [&](int32_t node) -> uint32_t& {  // tests, then leaves
            return place_of[node >= 0 ? node - begin : end - begin + ~node - first_leaf];
        };
        place_of.assign(2 * (end - begin) + 1, 0);
        for (size_t i = 0; i < queue.size(); ++i) place(queue[i]) = static_cast<uint32_t>(i);
        walks.tops.back() = make_top(find_top(trees, tree, size), coded, place);
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
