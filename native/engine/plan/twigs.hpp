// Twigs: the small subtrees below the top of a deep tree, as nodes of 4 bytes; see
// kernels/twig.hpp.
#pragma once

#include "engine/plan/plan.hpp"

namespace dm::engine {

// Whether a tree can be one of twigs: its section's planes and the leaves below its top can be
// counted in a byte. `size` holds the leaves below each test.
bool can_have_twigs(const Plan& plan, const Section& section, int64_t tree,
                    const std::vector<int32_t>& size);

// Twigs and tops of the trees of that kind, into the plan.
void add_twigs(const std::vector<int32_t>& size, const std::vector<Coded>& coded, Plan& plan);

}  // namespace dm::engine
