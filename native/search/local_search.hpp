// Iterated local search for one hard tree of at most so many leaves.
//
// A search holds a tree and improves it by moves. A move changes one place (another test at a node,
// a subtree grown anew, the best two levels of tests in its place, a twig taken off, a node
// replaced by its child), mends what the change broke, improves the tests around by TAO's step,
// spends the leaves it has left where they gain most, and is kept if the loss of the whole tree
// falls, or rises by no more than a temperature allows that sinks to nothing. Every number drawn
// comes from the search's own generator, so that a search gives the same tree whatever runs beside
// it.
#pragma once

#include <cstdint>
#include <vector>

#include "search/pair_search.hpp"
#include "search/random.hpp"
#include "search/split_search.hpp"

namespace dm::search {

struct SearchSettings {
    int64_t max_leaves = 32;
    int64_t max_depth = 1 << 30;
    int64_t least = 1;         // rows in a leaf, at least
    double temperature = 0.0;  // at the start, as a part of the root's loss in a leaf
    int64_t n_moves = 1;       // by when the temperature has sunk to nothing
    uint64_t seed = 0;
    double leaf_cost = 0.0;  // what each leaf adds to the loss
    std::vector<double>
        feature_cost;              // (n,) or empty: what a row pays for each feature it is asked
    std::vector<int8_t> monotone;  // (n,) or empty: +1 never falls, −1 never rises
    Objective objective;
};

struct Node {
    int32_t left = -1, right = -1;  // −1 at a leaf
    int32_t parent = -1;            // −1 at the root, −2 where the place is free
    int32_t depth = 0;
    int64_t first = 0, last = 0;  // its rows stand there in Tree::rows
    Split test;
    // Of a leaf:
    Totals about;
    double loss = 0.0;
    Split next;  // the purest test it could have
    double gain = 0.0;
    enum class Known : uint8_t { no, partly, fully } known = Known::no;

    bool is_leaf() const { return left < 0; }
    int64_t count() const { return last - first; }
};

struct Tree {
    std::vector<Node> nodes;     // [0] is the root
    std::vector<double> totals;  // (nodes, k) of leaves
    std::vector<double> cost;    // (nodes, k) of leaves: a row's loss by class, or the mean
    std::vector<int32_t> rows;   // (m,) permuted: each node's stand together
    std::vector<int32_t> free;
    int64_t n_leaves = 1;
    double loss = 0.0;
};

// Nodes in preorder, the root first.
struct TreeArrays {
    std::vector<int64_t> left, right;  // −1 at a leaf
    std::vector<int32_t> feature, cut;
    std::vector<int32_t> below, above;  // ranks of the node's rows nearest to the cut, or −1
    std::vector<uint8_t> missing_left;
    std::vector<double> totals;  // (nodes, k)
    std::vector<double> weight;
    std::vector<int64_t> count;
};

// Where the values of each feature lie, for telling wide gaps from narrow ones: rank r of feature
// f is from least[start[f] + r] to largest[start[f] + r], in units of the feature's spread.
struct Places {
    const double* least;
    const double* largest;
    const int64_t* start;  // (n + 1,)
};

class LocalSearch {
public:
    // `binned` has the same rows in bins, for the steps of a move; `by_row` (m, n) holds the ranks
    // of `rows` row by row.
    LocalSearch(const Rows& rows, const Rows& binned, const uint16_t* by_row,
                const SearchSettings& settings);

    void grow(bool in_bins);  // the greedy tree: what CART would give
    void advance(int64_t n_moves);
    void polish();                         // TAO over the whole best tree, every rank a cut
    void aim(const Objective& objective);  // another loss from now on, from the best tree so far
    void adopt(const TreeArrays& found);   // go on from this tree, forgetting the own one
    double loss() const { return best_.loss; }
    int64_t places() const { return 2 * settings_.max_leaves - 1; }  // for nodes
    // With `places`, where several features part a node's rows in the same way, the one with the
    // widest gap stands for the test, the children changing sides if need be.
    TreeArrays tree(const Places* places = nullptr) const;

private:
    void measure(Tree& tree, int32_t leaf);
    void refresh(Tree& tree, int32_t node);
    void refresh_depth(Tree& tree, int32_t node, int32_t depth);
    void total_loss(Tree& tree);
    double paid(const Tree& tree, int32_t node, double& weight) const;
    double price(const Tree& tree, int32_t node, int32_t feature, double weight) const;
    double weight_of(const Tree& tree, int32_t node) const;
    double bent(const Tree& tree);
    bool two_levels(Tree& tree);
    void release(Tree& tree, int32_t node);
    void collapse(Tree& tree, int32_t node);
    void lift(Tree& tree, int32_t node, bool left);
    void split(Tree& tree, int32_t leaf, const Split& test);
    bool mend(Tree& tree);
    void look(Tree& tree, int32_t leaf, bool partly);
    void spend(Tree& tree, bool partly, int32_t barred);
    bool better(Tree& tree, int32_t node, bool partly);
    double subtree_loss(const Tree& tree, int32_t node) const;
    void sweep(Tree& tree, int32_t node, bool partly, int rounds);
    double row_loss(const Tree& tree, int32_t leaf, int32_t row) const;
    int32_t exit_leaf(const Tree& tree, int32_t node, int32_t row) const;
    Split random_test(Tree& tree, int32_t node);
    void pick_features(bool partly);
    void widest_gap(const Node& node, const Places& places, Split& test, bool& swapped) const;
    void restart();
    void move();
    bool change(Tree& tree);

    const Rows& rows_;
    const uint16_t* by_row_;
    SearchSettings settings_;
    Random random_;
    SplitSearch fine_, coarse_;
    SplitSearch* search_ = &fine_;
    PairSearch pairs_;
    QuantileLoss quantile_;
    Tree current_, best_, trial_;
    double root_loss_ = 0.0;
    double row_share_ = 0.0;  // of it, by weight
    int64_t moves_done_ = 0;
    int32_t touched_ = 0, barred_ = -1;
    std::vector<int32_t> features_, inner_, spare_;
    std::vector<double> lean_;
    TreeArrays bare_;  // what `bent` looks at
    std::vector<double> cut_, said_;
};

}  // namespace dm::search
