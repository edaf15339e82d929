// The best tree on the rows of a node, by branch and bound over the cuts of its root.
//
// Let L(c) be the least value of the left side of cut c and R(c) that of the right side, in the
// relaxed problem. The left side grows with c, so L never falls and R never rises: for all cuts
// between a and b the value is at least L(a) + R(b). An interval whose bound reaches the best value
// known is done; any other is cut at its middle, whose two sides are solved, each only as far as
// the interval's other end leaves room for.
#pragma once

#include <memory>
#include <vector>

#include "optimal/node.hpp"
#include "optimal/prefix_losses.hpp"
#include "optimal/screen.hpp"
#include "optimal/stop.hpp"

namespace dm::optimal {

// For each feature, what trees with that feature at the root cannot be better than.
using FeatureBounds = std::vector<double>;

// Leaves that a tree of this depth can have.
inline int64_t most_leaves(int32_t depth) { return int64_t{1} << depth; }

// Cuts first..last of feature f, none of them tried, with bounds of what lies around them.
struct Interval {
    int32_t f;
    int32_t first, last;
    int64_t left_leaves, right_leaves;  // how many each side may have
    double left_bound, right_bound;     // L before `first`, R behind `last`
    double bound;                       // of every cut in it
    std::shared_ptr<const FeatureBounds> left_features, right_features;

    bool operator<(const Interval& other) const {  // the largest is tried first
        if (bound != other.bound) return bound > other.bound;
        if (f != other.f) return f > other.f;
        return first > other.first;
    }
};

class Solver {
public:
    Solver(const Problem& problem, const Kernels& kernels, Stop& stop)
        : problem_(problem), screens_(problem, kernels), stumps_(problem), stop_(stop) {}

    // The best tree whose value is below `limit`, with at most so many leaves. `known` bounds
    // features from below, or is null; what is learned of them goes to `learned`.
    Solved solve(const Node& node, int32_t depth, int64_t leaves, double limit,
                 const FeatureBounds* known, FeatureBounds* learned);

    // What the middle of an interval tells: a tree, where one is below `limit`, and the intervals
    // that remain, with the least bound of the cuts that are done.
    struct Tried {
        Solved solved;
        std::vector<Interval> left;
    };
    Tried attempt(const Node& node, int32_t depth, const Interval& interval, double limit);

    // All cuts of every feature, for each way to share the leaves.
    std::vector<Interval> all_cuts(const Node& node, int32_t depth, int64_t leaves,
                                   const FeatureBounds* known) const;

    // The tree itself, where only its root is known.
    void complete(const Node& node, int64_t leaves, Solved& solved);

    // A leaf, where its value is below the limit.
    Solved leaf(const Node& node, double limit);

private:
    Solved stump(const Node& node, double limit);
    Solved two_levels(const Node& node, int64_t leaves, double limit, const FeatureBounds* known,
                      FeatureBounds* learned);
    Solved more_levels(const Node& node, int32_t depth, int64_t leaves, double limit,
                       const FeatureBounds* known, FeatureBounds* learned);
    void confirm(const Node& node, int32_t f, int32_t cut, int64_t leaves, const int32_t* second,
                 Solved& best);
    void weights_by_rank(const Node& node, int32_t f, std::vector<double>& out) const;

    struct Level {
        Node left, right;
        std::vector<int32_t> scratch;
        std::vector<double> weight;
    };

    const Problem& problem_;
    Screens screens_;
    Stumps stumps_;
    Stop& stop_;
    Level levels_[kDeepest + 1];
    std::vector<double> leaf_left_, leaf_right_, one_leaf_, weight_, second_;
};

}  // namespace dm::optimal
