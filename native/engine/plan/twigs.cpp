#include "engine/plan/twigs.hpp"

#include <string_view>
#include <unordered_map>

#include "engine/plan/tops.hpp"

namespace dm::engine {
namespace {

constexpr int64_t kTestsForTwigs = 127;  // fewer, and a tree is hardly more than its top
// Measured: faster than records at 2 900 leaves, slower at 12 600, whose nodes are 100 KB a tree.
constexpr int64_t kTestsForRecords = 6000;
static_assert(kTestsForRecords < kMostTwigTreeLeaves);
constexpr int64_t kFewestTopTests = 63, kMostTopTests = 255;
constexpr int64_t kTwigLeaves = 48;  // to a twig on average, if the top can be so large

TopTree top_above_twigs(const Machine::Trees& trees, int64_t tree,
                        const std::vector<int32_t>& size) {
    const int64_t n_leaves = trees.tests_of(tree) + 1;
    int64_t n_tests = kFewestTopTests;
    while (n_tests < kMostTopTests && n_leaves > kTwigLeaves * (n_tests + 1))
        n_tests = 2 * n_tests + 1;
    return find_top(trees, tree, size, n_tests);
}

// The nodes of one tree, from `exits` of its top on.
class TwigWriter {
public:
    TwigWriter(const Machine::Trees& trees, int64_t tree, uint8_t zero_plane,
               const std::vector<Coded>& coded, std::vector<TwigNode>& out)
        : trees_(trees),
          first_leaf_(trees.first_leaf(tree)),
          zero_plane_(zero_plane),
          coded_(coded),
          first_(out.size()),
          out_(out) {}

    // Adds the twig from a test, or from ~leaf, on; where it starts among the tree's nodes.
    uint32_t add(int32_t exit) {
        const uint32_t place = static_cast<uint32_t>(out_.size() - first_);
        waiting_.assign(1, exit);
        // Children side by side, in a search by breadth.
        for (size_t i = 0; i < waiting_.size(); ++i) {
            const int32_t node = waiting_[i];
            if (node < 0) {
                out_.push_back({static_cast<uint16_t>(~node - first_leaf_), zero_plane_, 0});
                continue;
            }
            // No more nodes wait than the twig has leaves, so a step is no larger.
            out_.push_back({coded_[node].code, static_cast<uint8_t>(coded_[node].plane),
                            static_cast<uint8_t>(waiting_.size() - i)});
            waiting_.push_back(trees_.children[2 * node]);
            waiting_.push_back(trees_.children[2 * node + 1]);
        }
        return place;
    }

private:
    const Machine::Trees& trees_;
    const int64_t first_leaf_;
    const uint8_t zero_plane_;
    const std::vector<Coded>& coded_;
    const size_t first_;
    std::vector<TwigNode>& out_;
    std::vector<int32_t> waiting_;
};

constexpr size_t kMostValues = 256;  // that a byte tells apart

// Leaves of classifying forests are mostly pure, and then have no more values than there are
// classes: those stay in the first-level cache, where all of V would not stay in the second.
void find_few_values(const Machine& machine, TwigPlan& twigs) {
    const int64_t n = machine.trees.n_leaves();
    const int64_t bytes = machine.output.width() * (machine.output.single ? 4 : 8);
    const char* V = static_cast<const char*>(machine.output.V);
    std::unordered_map<std::string_view, uint8_t> known;  // by their bytes: -0 is not 0
    std::vector<uint8_t> value_of;
    std::vector<int64_t> leaf_with;
    value_of.reserve(static_cast<size_t>(n));
    for (int64_t leaf = 0; leaf < n; ++leaf) {
        const std::string_view own(V + leaf * bytes, static_cast<size_t>(bytes));
        const auto [found, is_new] = known.try_emplace(own, static_cast<uint8_t>(known.size()));
        if (is_new) {
            if (known.size() > kMostValues) return;
            leaf_with.push_back(leaf);
        }
        value_of.push_back(found->second);
    }
    twigs.value_of = std::move(value_of);
    twigs.leaf_with = std::move(leaf_with);
}

}  // namespace

bool can_have_twigs(const Plan& plan, const Section& section, int64_t tree,
                    const std::vector<int32_t>& size) {
    const int64_t n_tests = plan.machine.trees.tests_of(tree);
    if (!plan.kernels->twigs || section.n_planes > kMostTwigPlanes || n_tests < kTestsForTwigs ||
        n_tests > kTestsForRecords)
        return false;
    for (const int32_t exit : top_above_twigs(plan.machine.trees, tree, size).exits)
        if (exit >= 0 && size[exit] > kMostTwigLeaves) return false;
    return true;
}

void add_twigs(const std::vector<int32_t>& size, const std::vector<Coded>& coded, Plan& plan) {
    const Machine::Trees& trees = plan.machine.trees;
    TwigPlan& twigs = plan.twigs;
    twigs.start.push_back(0);
    for (const Section& section : plan.sections)
        for (int64_t tree = section.first; tree < section.last; ++tree) {
            if (plan.trees[tree].kind == Kind::twig) {
                TwigWriter writer(trees, tree, static_cast<uint8_t>(section.n_planes), coded,
                                  twigs.nodes);
                plan.tops[tree] = make_top(top_above_twigs(trees, tree, size), coded,
                                           [&](int32_t exit) { return writer.add(exit); });
            }
            twigs.start.push_back(static_cast<int64_t>(twigs.nodes.size()));
        }
    twigs.nodes.shrink_to_fit();
    if (plan.machine.output.aggregate == Aggregate::sum && !plan.machine.linear)
        find_few_values(plan.machine, twigs);
}

}  // namespace dm::engine
