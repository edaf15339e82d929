#include "engine/plan/tops.hpp"

#include <queue>
#include <utility>

#include "engine/plan/selects.hpp"

namespace dm::engine {

TopTree find_top(const Machine::Trees& trees, int64_t tree, const std::vector<int32_t>& size,
                 int64_t n_tests) {
    const int64_t begin = trees.test_start[tree];
    std::priority_queue<std::pair<int32_t, int32_t>> largest;
    std::vector<char> is_top(trees.test_start[tree + 1] - begin, 0);
    largest.push({size[begin], static_cast<int32_t>(begin)});
    for (int64_t n = 0; n < n_tests && !largest.empty(); ++n) {
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

Top make_top(const TopTree& top, const std::vector<Coded>& coded,
             const std::function<uint32_t(int32_t)>& place) {
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

}  // namespace dm::engine
