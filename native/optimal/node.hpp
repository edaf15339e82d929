// The rows that reach a node, numbered from 0, in the order of each feature.
#pragma once

#include <cstdint>
#include <vector>

#include "optimal/problem.hpp"

namespace dm::optimal {

struct Node {
    int32_t m = 0;
    int32_t n_classes = 0;         // that occur
    double weight = 0.0;           // of all rows
    double squares = 0.0;          // squared error only: sum of w y^2 over rows and targets
    std::vector<int32_t> id;       // (m,) row of the problem
    std::vector<int32_t> order;    // (n + targets of absolute error, m) rows by rank
    std::vector<int32_t> rank;     // (n, m) dense, by row
    std::vector<int32_t> n_ranks;  // (n,)
    std::vector<int32_t> label;    // (m,) among the classes that occur
    std::vector<double> w;         // (m,)
    std::vector<double> y;         // (k, m)

    const int32_t* order_of(int32_t f) const { return order.data() + int64_t{f} * m; }
    const int32_t* rank_of(int32_t f) const { return rank.data() + int64_t{f} * m; }
    const double* target(int32_t t) const { return y.data() + int64_t{t} * m; }
};

// All rows of the problem.
void make_root(const Problem& problem, Node& root);

// The rows with rank <= cut of feature f go left.
void split(const Problem& problem, const Node& node, int32_t f, int32_t cut, Node& left,
           Node& right, std::vector<int32_t>& scratch);

// The test of feature f between ranks `cut` and cut + 1 of the node, for rows in `among` (all
// where it is null).
Test test_at(const Problem& problem, const Node& node, int32_t f, int32_t below, int32_t above);

}  // namespace dm::optimal
