// The loss of one leaf, as rows come into it one by one.
#pragma once

#include <cstdint>
#include <vector>

#include "optimal/node.hpp"

namespace dm::optimal {

// Loss of a leaf that holds rows[0], ..., rows[i], for every i.
class PrefixLosses {
public:
    explicit PrefixLosses(const Problem& problem) : problem_(problem) {}

    void operator()(const Node& node, const int32_t* rows, int32_t count, double* out);

private:
    void error(const Node& node, const int32_t* rows, int32_t count, double* out);
    void squared(const Node& node, const int32_t* rows, int32_t count, double* out);
    void absolute(const Node& node, int32_t t, const int32_t* rows, int32_t count, double* out);

    const Problem& problem_;
    std::vector<double> sums_;
    std::vector<int32_t> before_, after_, place_;
};

// The best split into two leaves.
struct Stump {
    double relaxed = kInfinite;  // with any number of rows in a leaf
    double loss = kInfinite;     // with enough of them
    int32_t feature = -1;
    int32_t below = -1, above = -1;  // rows of the node on either side of the cut
};

// Exact, by one pass over each feature.
class Stumps {
public:
    explicit Stumps(const Problem& problem) : problem_(problem), losses_(problem) {}

    // Of rows whose rank of feature f is <= cut (side 0) or above it (side 1); of all for f < 0.
    // With tests of feature `only`, or of all where it is below 0.
    Stump best(const Node& node, int32_t f, int32_t cut, int32_t side, int32_t only = -1);
    // Losses of the two leaves of every cut of feature f, (n_ranks,) each; at the last cut all rows
    // are on the left.
    void leaves(const Node& node, int32_t f, std::vector<double>& left, std::vector<double>& right);
    // Of a leaf that holds all rows.
    double leaf(const Node& node);

private:
    const Problem& problem_;
    PrefixLosses losses_;
    std::vector<int32_t> rows_, back_;
    std::vector<double> ahead_, behind_;
};

}  // namespace dm::optimal
