// The nodes of a plan for one row on targets that permute bytes; see kernels/pack.hpp.
#include "engine/plan/packs.hpp"

#include <algorithm>
#include <limits>

namespace dm::engine {
namespace {

constexpr int64_t kThresholdsInPlane = 255;
constexpr int64_t kMostRightsBytes = int64_t{1} << 22;

// The tests of a tree from left to right, and the greatest number of tests on a path.
struct Layout {
    std::vector<int32_t> order;  // (n_tests,) tests of the machine
    int64_t depth = 0;
    bool is_ordered = true;  // leaves are numbered from left to right
};

Layout lay_out(const Machine::Trees& trees, int64_t tree) {
    Layout out;
    const int64_t begin = trees.test_start[tree], end = trees.test_start[tree + 1];
    if (begin == end) return out;
    int64_t next_leaf = begin + tree;
    struct Visit {
        int32_t node;
        int64_t depth;
        bool left_is_done;
    };
    std::vector<Visit> stack{{static_cast<int32_t>(begin), 1, false}};
    while (!stack.empty()) {
        const Visit visit = stack.back();
        stack.pop_back();
        if (visit.node < 0) {
            out.is_ordered &= ~visit.node == next_leaf++;
            continue;
        }
        if (visit.left_is_done) {
            out.order.push_back(visit.node);
            stack.push_back({trees.children[2 * visit.node + 1], visit.depth + 1, false});
            continue;
        }
        out.depth = std::max(out.depth, visit.depth);
        stack.push_back({visit.node, visit.depth, true});
        stack.push_back({trees.children[2 * visit.node], visit.depth + 1, false});
    }
    return out;
}

// Search trees of 16 keys to a node for the columns of a section, and the planes of their codes.
bool code_columns(const Section& section, const std::vector<int32_t>& used_features,
                  PackPlan& packs) {
    for (size_t c = 0; c < section.columns.size(); ++c) {
        const Column& column = section.columns[c];
        RowColumn own{};
        own.column = static_cast<uint32_t>(c);
        own.x = static_cast<uint32_t>(std::lower_bound(used_features.begin(), used_features.end(),
                                                       static_cast<int32_t>(column.feature)) -
                                      used_features.begin());
        own.keys = static_cast<uint32_t>(packs.keys.size());
        own.n_planes = static_cast<uint8_t>(
            std::min<int64_t>((column.n + kThresholdsInPlane - 1) / kThresholdsInPlane, 255));
        own.low = own.high = -1;
        for (int side = 0; side < 2; ++side) {
            if ((side ? column.high : column.low) < 0) continue;
            (side ? own.high : own.low) = static_cast<int16_t>(packs.n_planes);
            packs.n_planes += own.n_planes;
            if (packs.n_planes > kMostPackPlanes) return false;
        }
        uint32_t sizes[kMostRowLevels] = {};
        // Levels from the last, which has all keys: the one above has the greatest of each
        // node. The last key of a level is infinite, so that no search leaves it.
        std::vector<std::vector<float>> levels(1);
        for (uint32_t k = 0; k < column.n; ++k)
            levels[0].push_back(section.thresholds->keys32[column.keys + key_place(column, k)]);
        const float infinity = std::numeric_limits<float>::infinity();
        levels[0].resize((column.n + 16) / 16 * 16, infinity);
        while (levels.back().size() > 16) {
            std::vector<float> above;
            for (size_t i = 15; i < levels.back().size(); i += 16)
                above.push_back(levels.back()[i]);
            above.back() = infinity;
            above.resize((above.size() + 15) / 16 * 16, infinity);
            levels.push_back(std::move(above));
        }
        if (levels.size() > kMostRowLevels) return false;
        own.levels = static_cast<uint8_t>(levels.size());
        for (size_t i = 0; i < levels.size(); ++i) {
            const std::vector<float>& level = levels[levels.size() - 1 - i];
            sizes[i] = static_cast<uint32_t>(level.size() / 16);
            packs.keys.insert(packs.keys.end(), level.begin(), level.end());
        }
        packs.columns.push_back(own);
        packs.level_sizes.insert(packs.level_sizes.end(), sizes, sizes + kMostRowLevels);
    }
    return true;
}

// The first plane of the packs for each plane of the section; -1 for sets.
std::vector<int16_t> planes_of(const Section& section, const PackPlan& packs) {
    std::vector<int16_t> plane_of(section.n_planes, -1);
    for (size_t c = 0; c < section.columns.size(); ++c) {
        const Column& column = section.columns[c];
        if (column.low >= 0) plane_of[column.low_number] = packs.columns[c].low;
        if (column.high >= 0) plane_of[column.high_number] = packs.columns[c].high;
    }
    return plane_of;
}

// A pack whose tests all go left, to themselves.
Pack empty_pack() {
    Pack pack;
    for (int i = 0; i < kPackTests; ++i) {
        pack.plane[i] = 0;
        pack.code[i] = 255;
        pack.left[i] = pack.right[i] = static_cast<uint8_t>(i);
    }
    return pack;
}

// The tests of one tree into a pack, from test `first` of it on; its root.
uint8_t add_tests(const Machine::Trees& trees, int64_t tree, const Layout& layout, int64_t first,
                  const std::vector<Coded>& coded, const std::vector<int16_t>& plane_of,
                  Pack& pack) {
    const int64_t begin = trees.test_start[tree], n = static_cast<int64_t>(layout.order.size());
    if (n == 0) return static_cast<uint8_t>(first);
    std::vector<uint8_t> slot_of(n);
    for (int64_t i = 0; i < n; ++i)
        slot_of[layout.order[i] - begin] = static_cast<uint8_t>(first + i);
    for (int64_t i = 0; i < n; ++i) {
        const int32_t j = layout.order[i];
        const int64_t at = first + i;
        // A test of a set goes left by its code, and right where the row's `rights` say so.
        if (plane_of[coded[j].plane] >= 0) {
            const int64_t part = coded[j].code / kThresholdsInPlane;
            pack.plane[at] = static_cast<uint8_t>(plane_of[coded[j].plane] + part);
            pack.code[at] = static_cast<uint8_t>(coded[j].code % kThresholdsInPlane);
        }
        auto slot = [&](int32_t child) {
            return child < 0 ? static_cast<uint8_t>(at) : slot_of[child - begin];
        };
        pack.left[at] = slot(trees.children[2 * j]);
        pack.right[at] = slot(trees.children[2 * j + 1]);
    }
    return slot_of[0];
}

// Where a test of a set stands.
struct SetTest {
    uint16_t plane;
    uint8_t slot;
    int64_t pack;
};

// For each code of each category feature the tests that go right; false where they are too many.
bool add_rights(const Section& section, const std::vector<SetTest>& set_tests, PackPlan& packs) {
    if (set_tests.empty()) return true;
    const int64_t n_packs = static_cast<int64_t>(packs.packs.size());
    int64_t size = 0;
    std::vector<size_t> feature_of(section.planes.size(), 0);  // of a set
    for (size_t i = 0; i < section.categories.size(); ++i) {
        const CategoryFeature& own = section.categories[i];
        packs.rights_of.push_back(size);
        size += own.n_codes * n_packs;
        for (uint32_t set = 0; set < own.n_sets; ++set) feature_of[own.first_set + set] = i;
    }
    if (8 * size > kMostRightsBytes) return false;
    packs.rights.assign(static_cast<size_t>(size), 0);
    for (const SetTest& test : set_tests) {
        const size_t i = feature_of[test.plane];
        const uint8_t* table = section.tables.data() + section.planes[test.plane].table;
        for (int64_t code = 0; code < section.categories[i].n_codes; ++code)
            packs.rights[packs.rights_of[i] + code * n_packs + test.pack] |=
                static_cast<uint64_t>(table[code >> 3] >> (code & 7) & 1) << test.slot;
    }
    return true;
}

}  // namespace

int64_t key_place(const Column& column, uint32_t k) {
    if (column.buckets.n) return k;
    // Its depth from the bottom is the number of trailing zeros of k + 1.
    const uint32_t number = k + 1;
    const int below = __builtin_ctz(number);
    return (int64_t{1} << (column.levels - 1 - below)) + (number >> (below + 1));
}

std::optional<PackPlan> make_packs(const Plan& plan, const std::vector<Coded>& coded) {
    const Section& section = plan.sections[0];
    const Machine::Trees& trees = plan.machine.trees;
    PackPlan packs;
    if (!code_columns(section, plan.used_features, packs)) return std::nullopt;
    const std::vector<int16_t> plane_of = planes_of(section, packs);
    int64_t used = kPackTests, n_trees = 0;  // of the last pack
    int64_t depth = 1;
    std::vector<SetTest> set_tests;
    for (int64_t tree = 0; tree < trees.n; ++tree) {
        const Layout layout = lay_out(trees, tree);
        const int64_t room =  // a leaf alone has a test that goes left
            std::max<int64_t>(static_cast<int64_t>(layout.order.size()), 1);
        if (room > kPackTests || !layout.is_ordered) return std::nullopt;
        depth = std::max(depth, layout.depth);
        if (used + room > kPackTests || n_trees == kPackTrees) {
            if (!packs.trees.empty()) packs.trees.back().ends_pack = true;
            packs.packs.push_back(empty_pack());
            packs.roots.resize(packs.packs.size() * kPackTrees, 0);
            used = n_trees = 0;
        }
        packs.roots[(packs.packs.size() - 1) * kPackTrees + n_trees++] =
            add_tests(trees, tree, layout, used, coded, plane_of, packs.packs.back());
        for (int64_t i = 0; i < static_cast<int64_t>(layout.order.size()); ++i) {
            const uint16_t plane = coded[layout.order[i]].plane;
            if (section.planes[plane].is_set)
                set_tests.push_back({plane, static_cast<uint8_t>(used + i),
                                     static_cast<int64_t>(packs.packs.size()) - 1});
        }
        PackTree own{};
        own.first = static_cast<uint8_t>(used);
        own.values = static_cast<uint32_t>(trees.first_leaf(tree) - used);
        packs.trees.push_back(own);
        used += room;
    }
    if (!packs.trees.empty()) packs.trees.back().ends_pack = true;
    // A path of d tests takes d - 1 steps.
    while ((int64_t{1} << packs.doublings) < depth - 1) ++packs.doublings;
    if (!add_rights(section, set_tests, packs)) return std::nullopt;
    return packs;
}

}  // namespace dm::engine
