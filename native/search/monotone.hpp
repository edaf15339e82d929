// Values of a tree's leaves that never fall, or never rise, along chosen features.
//
// Leaf a must not say more than leaf b where some row of a becomes a row of b when chosen features
// grow (or fall) and nothing else changes: where their boxes meet in every other feature, and in
// each chosen one a begins before b ends. A leaf then says the middle between the most that any
// leaf before it says and the least that any leaf after it says. Both grow from leaf to leaf along
// the order, and so does their middle, rounding included.
#pragma once

#include <cstdint>

#include "search/exit_nodes.hpp"

namespace dm::search {

// value (n_nodes,) is read and written at the leaves; sign (n,) is +1, −1 or 0.
void make_monotone(const NodeArrays& tree, int64_t n_nodes, const int8_t* sign, double* value);

}  // namespace dm::search
