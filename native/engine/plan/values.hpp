// Leaf values by label, as the kernels look them up.
#pragma once

#include "engine/plan/plan.hpp"

namespace dm::engine {

// The values of all trees, whose kinds and labels are known, into the plan; a tree's values stand
// for each output in turn.
void add_values(Plan& plan);

}  // namespace dm::engine
