#include "engine/plan/twigs.hpp"

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
    TopsWriter tops(coded, plan);
    twigs.start.push_back(0);
    for (const Section& section : plan.sections) {
        for (int64_t tree = section.first; tree < section.last; ++tree) {
            if (plan.trees[tree].kind == Kind::twig) {
                TwigWriter writer(trees, tree, static_cast<uint8_t>(section.n_planes), coded,
                                  twigs.nodes);
                tops.add(tree, top_above_twigs(trees, tree, size),
                         [&](int32_t exit) { return writer.add(exit); });
            }
            twigs.start.push_back(static_cast<int64_t>(twigs.nodes.size()));
        }
        tops.end();
    }
    twigs.nodes.shrink_to_fit();
}

}  // namespace dm::engine
