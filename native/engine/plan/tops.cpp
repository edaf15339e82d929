#include "engine/plan/tops.hpp"

#include <algorithm>
#include <queue>
#include <utility>

#include "engine/plan/selects.hpp"

namespace dm::engine {
namespace {

// Together: their bitmaps should stay in the second-level cache.
constexpr size_t kMostTrees = 8, kMostTests = 512;

}  // namespace

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

void TopsWriter::add(int64_t tree, TopTree top, const std::function<uint32_t(int32_t)>& place) {
    if (tree != tops_.last || trees_.size() == kMostTrees ||
        n_tests_ + top.tests.size() > kMostTests)
        end();
    if (trees_.empty()) tops_.first = tree;
    tops_.last = tree + 1;
    const size_t start = tops_.nodes.size();
    tops_.start.push_back(static_cast<uint32_t>(start));
    tops_.nodes.resize(start + (size_t{1} << bits_for(static_cast<int64_t>(top.exits.size()))), 0);
    for (size_t leaf = 0; leaf < top.exits.size(); ++leaf)
        tops_.nodes[start + label_of(static_cast<uint32_t>(leaf), true)] = place(top.exits[leaf]);
    n_tests_ += top.tests.size();
    trees_.push_back(std::move(top));
}

void TopsWriter::end() {
    if (trees_.empty()) return;
    std::vector<uint32_t> keys;
    for (const TopTree& top : trees_)
        for (const int32_t j : top.tests) keys.push_back(key_of(coded_[j]));
    const DistinctTests distinct = DistinctTests::of(std::move(keys));
    tops_.tests = distinct.tests();
    for (const TopTree& top : trees_) {
        std::vector<uint16_t> slot_of;
        for (const int32_t j : top.tests) slot_of.push_back(distinct.slot(coded_[j]));
        Machine::Trees own;
        const int64_t start[2] = {0, static_cast<int64_t>(top.tests.size())};
        own.children = top.children.data();
        own.test_start = start;
        const Selects found = make_selects(own, 0, true, top.size, slot_of, distinct.end());
        tops_.trees.push_back(select_tree(found, tops_));
        tops_.n_slots = std::max(tops_.n_slots, found.n_slots);
        tops_.selects.insert(tops_.selects.end(), found.selects.begin(), found.selects.end());
        tops_.bits.insert(tops_.bits.end(), found.bits.begin(), found.bits.end());
    }
    tops_.trees.push_back(select_tree({}, tops_));
    tops_.start.push_back(static_cast<uint32_t>(tops_.nodes.size()));
    for (int64_t tree = tops_.first; tree < tops_.last; ++tree)
        plan_.tops_of[tree] = static_cast<int32_t>(plan_.tops.size());
    plan_.tops.push_back(std::move(tops_));
    tops_ = {};
    trees_.clear();
    n_tests_ = 0;
}

}  // namespace dm::engine
