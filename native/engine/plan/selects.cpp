#include "engine/plan/selects.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace dm::engine {
namespace {

constexpr int64_t kMostTestsInGroup = 12288;  // their bitmaps should stay in the second-level cache

// For every bit of a subtree's label, the slot that holds it: 0 and 1 are constants.
using Slots = std::vector<uint16_t>;

Slots constants(uint32_t label, int n_bits) {
    Slots bits(static_cast<size_t>(n_bits));
    for (int bit = 0; bit < n_bits; ++bit) bits[bit] = label >> bit & 1;
    return bits;
}

// Writes the selects of one tree; results take slots from `first_slot` on, and give them back.
struct SelectWriter {
    const int64_t first_slot;
    int64_t n_slots;
    std::vector<Select> selects;
    std::vector<uint16_t> free;

    explicit SelectWriter(int64_t first) : first_slot(first), n_slots(first) {}

    bool is_result(uint16_t slot) const { return slot >= first_slot; }

    uint16_t take() {
        if (free.empty()) return static_cast<uint16_t>(n_slots++);
        const uint16_t slot = free.back();
        free.pop_back();
        return slot;
    }

    // The label below a test from the labels on its left and on its right.
    Slots merge(uint16_t test, const Slots& left, const Slots& right) {
        Slots found(left.size()), freed;
        for (size_t bit = 0; bit < left.size(); ++bit) {
            const uint16_t x = left[bit], y = right[bit];
            if (x == y) {
                found[bit] = x;
            } else if (x == 0 && y == 1) {
                found[bit] = test;
            } else {
                if (is_result(x) && is_result(y)) freed.push_back(y);
                const uint16_t to = is_result(x) ? x : is_result(y) ? y : take();
                selects.push_back({test, x, y, static_cast<uint8_t>(to - first_slot)});
                found[bit] = to;
            }
        }
        free.insert(free.end(), freed.begin(), freed.end());
        return found;
    }
};

}  // namespace

int bits_for(int64_t n) {
    int bits = 0;
    while ((int64_t{1} << bits) < n) ++bits;
    return bits;
}

DistinctTests DistinctTests::of(std::vector<uint32_t> keys) {
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    return {std::move(keys)};
}

std::vector<Test> DistinctTests::tests() const {
    std::vector<Test> out;
    out.reserve(keys.size());
    for (const uint32_t key : keys)
        out.push_back({static_cast<uint16_t>(key >> 16), static_cast<uint16_t>((key & 65535) + 1)});
    return out;
}

uint16_t DistinctTests::slot(const Coded& test) const {
    return static_cast<uint16_t>(
        kFirstTest + (std::lower_bound(keys.begin(), keys.end(), key_of(test)) - keys.begin()));
}

Selects make_selects(const Machine::Trees& trees, int64_t tree, bool gray,
                     const std::vector<int32_t>& size, const std::vector<uint16_t>& slot_of,
                     int64_t first_slot) {
    const int64_t begin = trees.test_start[tree], leaf0 = trees.first_leaf(tree);
    const int64_t n_tests = trees.tests_of(tree);
    const int n_bits = bits_for(n_tests + 1);
    SelectWriter writer(first_slot);
    std::vector<Slots> done;  // results of finished subtrees
    struct Visit {
        int32_t node;
        int8_t state;  // 0: first; 1: children done, left below right; 2: right below left
    };
    std::vector<Visit> stack{
        {n_tests ? static_cast<int32_t>(begin) : ~static_cast<int32_t>(leaf0), 0}};
    while (!stack.empty()) {
        const Visit visit = stack.back();
        stack.pop_back();
        if (visit.node < 0) {
            done.push_back(
                constants(label_of(static_cast<uint32_t>(~visit.node - leaf0), gray), n_bits));
            continue;
        }
        if (visit.state == 0) {
            // The larger subtree first: at most log2(leaves) results wait meanwhile, and their
            // slots fit in a byte.
            const int32_t left = trees.children[2 * visit.node];
            const int32_t right = trees.children[2 * visit.node + 1];
            auto size_of = [&](int32_t child) { return child < 0 ? 1 : size[child]; };
            const bool left_first = size_of(left) >= size_of(right);
            stack.push_back({visit.node, static_cast<int8_t>(left_first ? 1 : 2)});
            stack.push_back({left_first ? right : left, 0});
            stack.push_back({left_first ? left : right, 0});
            continue;
        }
        const Slots above = std::move(done.back());
        done.pop_back();
        Slots& below = done.back();
        const uint16_t test = slot_of[visit.node - begin];
        below =
            visit.state == 1 ? writer.merge(test, below, above) : writer.merge(test, above, below);
    }
    return {std::move(writer.selects), std::move(done.back()), writer.n_slots};
}

Group make_select_group(const Machine::Trees& trees, int64_t first, int64_t end,
                        const std::vector<int32_t>& size, const std::vector<Coded>& coded,
                        std::vector<Tree>& labelled) {
    Group group;
    group.kind = Kind::select;
    group.first = first;
    DistinctTests distinct;
    int64_t last = first;
    for (; last < end && labelled[last].kind == Kind::select; ++last) {
        std::vector<uint32_t> keys, both;
        for (int64_t j = trees.test_start[last]; j < trees.test_start[last + 1]; ++j)
            keys.push_back(key_of(coded[j]));
        const DistinctTests own = DistinctTests::of(std::move(keys));
        both.reserve(distinct.keys.size() + own.keys.size());
        std::set_union(distinct.keys.begin(), distinct.keys.end(), own.keys.begin(), own.keys.end(),
                       std::back_inserter(both));
        if (last > first && static_cast<int64_t>(both.size()) > kMostTestsInGroup) break;
        distinct.keys.swap(both);
    }
    group.last = last;
    group.tests = distinct.tests();
    group.n_slots = distinct.end();
    std::vector<uint16_t> slot_of;
    for (int64_t tree = first; tree < last; ++tree) {
        slot_of.clear();
        for (int64_t j = trees.test_start[tree]; j < trees.test_start[tree + 1]; ++j)
            slot_of.push_back(distinct.slot(coded[j]));
        Selects found = make_selects(trees, tree, false, size, slot_of, distinct.end());
        Tree& own = labelled[tree];
        // With no selects at all the tree is symmetric: its tests are the label.
        if (!found.selects.empty()) {
            Selects other = make_selects(trees, tree, true, size, slot_of, distinct.end());
            own.gray = other.selects.size() < found.selects.size();
            if (own.gray) found = std::move(other);
        }
        own.label_bytes = found.bits.size() > 8 ? 2 : 1;
        group.n_slots = std::max(group.n_slots, found.n_slots);
        group.trees.push_back(select_tree(found, group));
        group.selects.insert(group.selects.end(), found.selects.begin(), found.selects.end());
        group.bits.insert(group.bits.end(), found.bits.begin(), found.bits.end());
    }
    group.trees.push_back(select_tree({}, group));
    group.selects.shrink_to_fit();
    return group;
}

}  // namespace dm::engine
