// Leaf values by label, as the kernels look them up.
#pragma once

#include "engine/plan/plan.hpp"

namespace dm::engine {

// The values of all trees, whose kinds and labels are known, into the plan; a tree's values stand
// for each output in turn.
void add_values(Plan& plan);

// Leaves of classifying forests are mostly pure, and then have no more values than there are
// classes: those stay in the first-level cache, where all of V would not stay in the second.
void add_few_values(Plan& plan);

}  // namespace dm::engine
